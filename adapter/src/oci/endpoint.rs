//! Where content is asked for: the registry of one request, and the URLs of its content.

use super::address::AddressPolicy;
use super::digest::Digest;
use super::error::OciError;
use hyper::Uri;
use hyper::http::uri::{Authority, Scheme};
use std::net::IpAddr;

/// Which registries may be asked, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointPolicy {
    /// `host` or `host:port`, lower case, that may be asked over plain HTTP.
    pub plain_http: Vec<String>,
    /// Addresses.
    pub addresses: AddressPolicy,
}

impl EndpointPolicy {
    fn allows_plain_http(&self, authority: &Authority) -> bool {
        let host = authority.host().to_ascii_lowercase();
        let with_port = format!("{host}:{}", authority.port_u16().unwrap_or(80));
        self.plain_http
            .iter()
            .any(|allowed| *allowed == host || *allowed == with_port)
    }
}

/// What kind of content is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collection {
    /// Manifests and indexes.
    Manifests,
    /// Everything else.
    Blobs,
}

/// One repository of one registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    scheme: Scheme,
    authority: Authority,
    /// Everything before the collection, with a slash at both ends.
    base: String,
}

impl Endpoint {
    /// The repository at this registry, if the policy lets it be asked.
    ///
    /// # Errors
    /// [`OciError::Url`], [`OciError::PlainHttp`], [`OciError::AddressRefused`].
    pub fn new(registry: &Uri, repository: &str, policy: &EndpointPolicy) -> Result<Self, OciError> {
        let (Some(scheme), Some(authority)) = (registry.scheme(), registry.authority()) else {
            return Err(OciError::Url);
        };
        if *scheme == Scheme::HTTP {
            if !policy.allows_plain_http(authority) {
                return Err(OciError::PlainHttp);
            }
        } else if *scheme != Scheme::HTTPS {
            return Err(OciError::Url);
        }
        // A literal is never resolved, so the resolver's check would not see it.
        let literal = authority.host().trim_start_matches('[').trim_end_matches(']');
        if literal
            .parse::<IpAddr>()
            .is_ok_and(|address| !policy.addresses.allows(address))
        {
            return Err(OciError::AddressRefused);
        }
        let prefix: Vec<&str> = registry
            .path()
            .split('/')
            .filter(|part| !part.is_empty())
            .collect();
        // A percent sign could hide a dot or a slash from this check.
        if prefix
            .iter()
            .any(|part| matches!(*part, "." | "..") || part.contains('%'))
        {
            return Err(OciError::Url);
        }
        let base = ["v2"]
            .into_iter()
            .chain(prefix)
            .chain([repository])
            .collect::<Vec<_>>()
            .join("/");
        Ok(Self {
            scheme: scheme.clone(),
            authority: authority.clone(),
            base: format!("/{base}/"),
        })
    }

    /// The URL of this content.
    ///
    /// # Errors
    /// [`OciError::Url`].
    pub fn url(&self, collection: Collection, digest: &Digest) -> Result<Uri, OciError> {
        let collection = match collection {
            Collection::Manifests => "manifests",
            Collection::Blobs => "blobs",
        };
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(format!("{}{collection}/{digest}", self.base))
            .build()
            .map_err(|_| OciError::Url)
    }
}

#[cfg(test)]
mod tests {
    use super::{Collection, Endpoint, EndpointPolicy};
    use crate::oci::address::AddressPolicy;
    use crate::oci::digest::Digest;
    use assay_schemas::Code;

    fn policy() -> EndpointPolicy {
        EndpointPolicy {
            plain_http: vec!["plain".to_owned(), "ported:5000".to_owned(), "[::1]".to_owned()],
            addresses: AddressPolicy::parse("169.254.0.0/16,fe80::/10").unwrap(),
        }
    }

    fn url(registry: &str, collection: Collection) -> Result<String, Code> {
        let digest = Digest::parse(&format!("sha256:{}", "a".repeat(64))).unwrap();
        Endpoint::new(&registry.parse().unwrap(), "team/App", &policy())
            .and_then(|endpoint| endpoint.url(collection, &digest))
            .map(|url| url.to_string().replace(&"a".repeat(64), "A"))
            .map_err(|error| error.code())
    }

    #[test]
    fn content_lies_below_the_registrys_path() {
        let cases = [
            (
                "https://r",
                Collection::Manifests,
                "https://r/v2/team/App/manifests/sha256:A",
            ),
            (
                "https://r:5000/",
                Collection::Blobs,
                "https://r:5000/v2/team/App/blobs/sha256:A",
            ),
            (
                "https://r//a/b//",
                Collection::Blobs,
                "https://r/v2/a/b/team/App/blobs/sha256:A",
            ),
        ];
        for (registry, collection, want) in cases {
            assert_eq!(url(registry, collection).as_deref(), Ok(want));
        }
    }

    #[test]
    fn plain_http_is_for_listed_registries_only() {
        for listed in [
            "http://plain",
            "http://PLAIN:81",
            "http://ported:5000",
            "http://[::1]:5000",
        ] {
            assert!(url(listed, Collection::Blobs).is_ok(), "{listed}");
        }
        for other in [
            "http://r",
            "http://ported",
            "http://ported:5001",
            "http://plain.example",
            "ftp://plain",
        ] {
            assert_eq!(
                url(other, Collection::Blobs),
                Err(Code::OciRegistryInvalid),
                "{other}"
            );
        }
    }

    #[test]
    fn denied_literals_and_relative_paths_are_refused() {
        for bad in [
            "https://169.254.169.254",
            "https://[fe80::1]:443",
            "https://r/../x",
            "https://r/./x",
            "https://r/%2e%2e/x",
        ] {
            assert_eq!(
                url(bad, Collection::Blobs),
                Err(Code::OciRegistryInvalid),
                "{bad}"
            );
        }
        assert!(url("https://10.0.0.1", Collection::Blobs).is_ok());
    }
}
