//! `control` of a Debian binary package.

use super::ManifestError;
use super::headers::{headers, value};
use crate::recognition::distribution::{Distribution, of_deb_version};
use crate::recognition::identity::{Coordinates, Ecosystem};

/// Coordinates of a Debian package and its distribution: `hint`, else what the version says.
pub fn debian(
    bytes: &[u8],
    hint: Option<&Distribution>,
) -> Result<(Coordinates, Option<Distribution>), ManifestError> {
    let headers = headers(bytes)?;
    let version = value(&headers, "Version").unwrap_or_default();
    let distribution = hint.cloned().or_else(|| of_deb_version(version));
    // `Source: openssl (3.0.1-2)` when the source has another version; Syft writes `openssl@3.0.1-2`.
    let source = value(&headers, "Source").unwrap_or_default();
    let upstream = match source.split_once('(') {
        Some((name, version)) => format!("{}@{}", name.trim(), version.trim_end_matches(')').trim()),
        None => source.to_owned(),
    };
    let coordinates = Coordinates::new(Ecosystem::Deb, value(&headers, "Package"), Some(version))?
        .qualified("arch", value(&headers, "Architecture").unwrap_or_default())?
        .qualified("upstream", &upstream)?;
    Ok((in_distribution(coordinates, distribution.as_ref())?, distribution))
}

/// The coordinates with the namespace and qualifier of their distribution.
pub(super) fn in_distribution(
    coordinates: Coordinates,
    distribution: Option<&Distribution>,
) -> Result<Coordinates, ManifestError> {
    match distribution {
        None => Ok(coordinates),
        Some(d) => coordinates
            .in_namespace(d.purl_namespace())?
            .qualified("distro", &d.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::debian;
    use crate::recognition::distribution::Distribution;

    #[test]
    fn table() {
        let cases = [
            (
                "Package: libssl3\nSource: openssl\nVersion: 3.0.22-1~deb12u2\nArchitecture: amd64\nDescription: x\n y\n .\n",
                Some("pkg:deb/debian/libssl3@3.0.22-1~deb12u2?arch=amd64&distro=debian-12&upstream=openssl"),
            ),
            (
                "Package: zlib1g\nSource: zlib (1:1.2)\nVersion: 1:1.2.13.dfsg-1\nArchitecture: amd64\n",
                Some("pkg:deb/zlib1g@1:1.2.13.dfsg-1?arch=amd64&upstream=zlib%401:1.2"),
            ),
            ("Package: a\n", None),
            ("Version: 1\n", None),
            ("Package: a\nVersion: 1\nArchitecture: a b\n", None),
            ("", None),
        ];
        for (text, want) in cases {
            let got = debian(text.as_bytes(), None).and_then(|(c, _)| c.purl()).ok();
            assert_eq!(got.as_deref(), want, "{text}");
        }
    }

    #[test]
    fn the_host_knows_better_than_the_version() {
        let hint = Distribution::new("ubuntu", "22.04");
        let (_, got) = debian(b"Package: a\nVersion: 1~deb12u1\n", hint.as_ref()).unwrap();
        assert_eq!(got, hint);
    }
}
