//! Which addresses a registry may have. Whoever may name a registry must not reach by that name what only this host
//! can reach: the cloud's metadata service above all.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Networks that are never asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    denied: Vec<IpNet>,
}

impl AddressPolicy {
    /// The policy of comma-separated networks or addresses; `None` when one of them is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let denied = text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .map(|item| {
                item.parse()
                    .ok()
                    .or_else(|| item.parse::<IpAddr>().ok().map(IpNet::from))
            })
            .collect::<Option<_>>()?;
        Some(Self { denied })
    }

    /// Whether this address may be asked. An IPv4 address counts in each of its IPv6 spellings, too.
    pub fn allows(&self, address: IpAddr) -> bool {
        let embedded = embedded_v4(address).map(IpAddr::V4);
        ![Some(address), embedded]
            .into_iter()
            .flatten()
            .any(|address| self.denied.iter().any(|network| network.contains(&address)))
    }
}

/// The IPv4 address that traffic to this IPv6 address ends at: mapped, compatible, or translated by NAT64.
fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let is_plain_v6 = address == Ipv6Addr::LOCALHOST || address.is_unspecified();
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0, 0, high, low] if !is_plain_v6 => {
            let [first, second] = high.to_be_bytes();
            let [third, fourth] = low.to_be_bytes();
            Some(Ipv4Addr::new(first, second, third, fourth))
        }
        _ => address.to_ipv4_mapped(),
    }
}

#[cfg(test)]
mod tests {
    use super::AddressPolicy;
    use crate::config::keys;
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn default_policy() -> AddressPolicy {
        AddressPolicy::parse(keys::find("oci_denied_networks").unwrap().default).unwrap()
    }

    #[test]
    fn the_default_denies_link_local_and_metadata_addresses_in_every_spelling() {
        let policy = default_policy();
        for denied in [
            "169.254.169.254",
            "169.254.0.1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "fe80::1",
            "fd00:ec2::254",
            "100.100.100.200",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "255.255.255.255",
            "ff02::1",
        ] {
            assert!(!policy.allows(denied.parse().unwrap()), "{denied}");
        }
        for allowed in [
            "127.0.0.1",
            "::1",
            "10.0.0.1",
            "192.168.1.1",
            "93.184.216.34",
            "fd00::1",
            "2001:db8::1",
        ] {
            assert!(policy.allows(allowed.parse().unwrap()), "{allowed}");
        }
    }

    #[test]
    fn a_policy_is_made_of_networks_and_addresses() {
        let policy = AddressPolicy::parse(" 10.0.0.0/8 ,192.168.0.7, ").unwrap();
        assert!(!policy.allows("10.1.2.3".parse().unwrap()));
        assert!(!policy.allows("192.168.0.7".parse().unwrap()));
        assert!(policy.allows("192.168.0.8".parse().unwrap()));
        assert_eq!(AddressPolicy::parse(""), Some(AddressPolicy::default()));
        for bad in ["10.0.0.0/33", "metadata", "10.0.0"] {
            assert_eq!(AddressPolicy::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn an_ipv6_spelling_is_never_allowed_where_the_ipv4_address_is_denied(bits in any::<u32>()) {
            let policy = default_policy();
            let v4 = Ipv4Addr::from(bits);
            if !policy.allows(IpAddr::V4(v4)) {
                prop_assert!(!policy.allows(IpAddr::V6(v4.to_ipv6_mapped())));
                let [a, b, c, d] = v4.octets();
                let nat64 = format!("64:ff9b::{a:02x}{b:02x}:{c:02x}{d:02x}");
                prop_assert!(!policy.allows(nat64.parse().unwrap()));
            }
        }
    }
}
