//! Identities derived from wire values. Length-delimited, so that no two different part lists collide.

use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;

/// SHA-256 over, for each part, its 4-byte big-endian length and its UTF-8 bytes, as lower-case hexadecimal.
pub fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        hash.update(length.to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex::encode(hash.finalize())
}

/// The text of a platform set inside a fingerprint: distinct, sorted, one a line; empty for none.
pub fn platform_set<'a>(platforms: impl IntoIterator<Item = &'a str>) -> String {
    platforms
        .into_iter()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>()
        .join("\n")
}

/// Identity of a finding: advisory, package, installed version **and where it was found**, NUL-joined and hashed.
///
/// Without locations this is the plain contract's key; with them, the same package in two places stays two findings.
pub fn finding_key(
    advisory_id: &str,
    package_url: Option<&str>,
    package_name: &str,
    installed_version: Option<&str>,
    locations: &[String],
) -> String {
    let mut parts = vec![
        advisory_id,
        package_url.unwrap_or(""),
        package_name,
        installed_version.unwrap_or(""),
    ];
    let sorted: BTreeSet<&str> = locations.iter().map(String::as_str).collect();
    parts.extend(sorted);
    hex::encode(Sha256::digest(parts.join("\0")))
}

#[cfg(test)]
mod tests {
    use super::{finding_key, fingerprint, platform_set};

    #[test]
    fn the_contracts_catalog_vector_holds() {
        let identity = format!("sha256:{}", "a".repeat(64));
        let parts = [
            "ASSET_BLOB",
            &identity,
            "PACKAGE",
            "syft",
            "1.0",
            "config-a",
            "",
            "",
        ];
        assert_eq!(
            fingerprint(parts),
            "ade9d0a2ec2d17b13c5cb4abfc7b2e97b97bc9dff14008de1d59248012e20420"
        );
    }

    #[test]
    fn the_contracts_match_vector_holds() {
        let sbom = "a".repeat(64);
        let scanned = platform_set(["linux/arm64", "linux/amd64", "linux/amd64"]);
        let parts = [
            &sbom,
            "true",
            "grype",
            "1",
            "db",
            "2026-07-29T00:00:00Z",
            "config",
            &scanned,
            &platform_set([]),
        ];
        assert_eq!(
            fingerprint(parts.map(|p: &str| p)),
            "2edcd8016b3a8e02712953f1bba6490e0c01f3caba8a59aa269233bc95d20dcc"
        );
    }

    #[test]
    fn the_contracts_snapshot_and_finding_vectors_hold() {
        let at = "2026-07-28T06:17:50Z";
        assert_eq!(
            fingerprint([
                "syft-grype-v1",
                "1",
                "v1",
                "grype",
                "0.116.0",
                at,
                at,
                "cap",
                "true"
            ]),
            "3f4d5d59b33b65f105fb253e3e0e8fcc25ab6cd834a29e4f37dcad2063ea8c03"
        );
        assert_eq!(
            fingerprint(["CVE-1", "pkg:npm/a@1", "1", "/a"]),
            "be27e9be0c97b20959d881d8191abc7fbcbd0e5f72f19915c17d81025d508cce"
        );
    }

    #[test]
    fn the_contracts_finding_key_holds_without_locations_and_moves_with_them() {
        let plain = finding_key("CVE-1", Some("pkg:npm/a@1"), "a", Some("1"), &[]);
        assert_eq!(
            plain,
            "1108e37716887dc2478a85b5d726258afab0823de8f99da977ccf6c9812661d3"
        );
        let one = finding_key(
            "CVE-1",
            Some("pkg:npm/a@1"),
            "a",
            Some("1"),
            &["/x".into(), "/y".into()],
        );
        let two = finding_key(
            "CVE-1",
            Some("pkg:npm/a@1"),
            "a",
            Some("1"),
            &["/y".into(), "/x".into()],
        );
        assert_eq!(one, two);
        assert_ne!(one, plain);
    }
}
