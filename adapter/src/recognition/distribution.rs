//! Which operating system distribution a loose package belongs to.
//!
//! A deb, rpm or apk matches nothing without it. It is only said when the package or the host names the number; a
//! wrong distribution would be worse than none.

use std::fmt;

/// A distribution as `os-release` names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Distribution {
    /// `ID`, for example `debian`.
    pub id: String,
    /// `VERSION_ID`, for example `12`.
    pub version: String,
}

impl Distribution {
    /// A distribution; `None` unless id and version have the characters that `os-release` allows, 1 to 64 each.
    pub fn new(id: &str, version: &str) -> Option<Self> {
        let usable = |text: &str| {
            (1..=64).contains(&text.len())
                && text
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
        };
        (usable(id) && usable(version)).then(|| Self {
            id: id.to_owned(),
            version: version.to_owned(),
        })
    }

    /// The distribution that a host or a user names as `id:version`, in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, version) = text.split_once(':')?;
        Self::new(id, version)
    }

    /// The namespace of this distribution's purls, as Syft writes it.
    pub fn purl_namespace(&self) -> &str {
        match self.id.as_str() {
            "rhel" => "redhat",
            id if id.starts_with("opensuse") => "opensuse",
            id => id,
        }
    }

    /// The text of an `etc/os-release` that says so.
    pub fn os_release(&self) -> String {
        format!("ID={}\nVERSION_ID=\"{}\"\n", self.id, self.version)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.id, self.version)
    }
}

/// What a Debian version string says: `+deb12u3`, `~deb11u1`, `~bpo12+1`, `~22.04.1` after `ubuntu`.
pub fn of_deb_version(version: &str) -> Option<Distribution> {
    for marker in ["+deb", "~deb", "~bpo"] {
        if let Some((_, rest)) = version.rsplit_once(marker) {
            let (number, rest) = leading_digits(rest);
            let ends = if marker == "~bpo" { '+' } else { 'u' };
            if !number.is_empty() && rest.starts_with(ends) {
                return Distribution::new("debian", number);
            }
        }
    }
    // `1.2-3ubuntu0.22.04.1` (security) and `1.2-3ubuntu1~22.04` (backport) name the release; `ubuntu1` alone does not.
    let (_, rest) = version.rsplit_once("ubuntu")?;
    rest.split(['~', '+', '-'])
        .find_map(ubuntu_release)
        .and_then(|release| Distribution::new("ubuntu", &release))
}

/// `22.04` in `0.22.04.1`, `22.04` or `22.04.1`.
fn ubuntu_release(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('.').collect();
    parts.windows(2).find_map(|pair| match pair {
        [year, month]
            if year.len() == 2
                && matches!(*month, "04" | "10")
                && year.bytes().all(|b| b.is_ascii_digit())
                && *year >= "04" =>
        {
            Some(format!("{year}.{month}"))
        }
        _ => None,
    })
}

/// What an RPM's header says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RpmOrigin<'a> {
    /// Tag `RELEASE`.
    pub release: &'a str,
    /// Tag `VENDOR`.
    pub vendor: &'a str,
    /// Tag `DISTRIBUTION`.
    pub distribution: &'a str,
    /// Tag `DISTTAG`.
    pub dist_tag: &'a str,
}

/// The distribution of an RPM: the number from its dist tag or release suffix, the name from its vendor.
///
/// `.elN` alone is shared by RHEL and its rebuilds, whose advisories differ, so it needs a vendor. Unknown vendors of
/// `.elN` packages give none.
pub fn of_rpm(origin: &RpmOrigin<'_>) -> Option<Distribution> {
    let who = format!("{} {}", origin.vendor, origin.distribution).to_ascii_lowercase();
    let tags = origin
        .dist_tag
        .split(['.', ' '])
        .chain(origin.release.split(['.', '_', '+', '-', '~', '^']));
    for tag in tags {
        let (letters, rest) = split_letters(tag);
        let (number, _) = leading_digits(rest);
        if number.is_empty() {
            continue;
        }
        let id = match letters {
            "fc" => "fedora",
            "amzn" => "amzn",
            "azl" => "azurelinux",
            "cm" if who.contains("mariner") || who.contains("microsoft") => "mariner",
            "el" => el_rebuild(&who)?,
            // `lp154` is Leap 15.4.
            "lp" if number.len() == 3 => "opensuse-leap",
            _ => continue,
        };
        // Amazon Linux 2023 has `amzn2023`, Amazon Linux 1 `amzn1`, which os-release calls 2018.03.
        let version = match (id, number) {
            ("amzn", "1") => "2018.03".to_owned(),
            ("mariner" | "azurelinux", n) => format!("{n}.0"),
            ("opensuse-leap", n) => format!("{}.{}", n.get(..2)?, n.get(2..)?),
            (_, n) => n.to_owned(),
        };
        return Distribution::new(id, &version);
    }
    None
}

fn el_rebuild(who: &str) -> Option<&'static str> {
    [
        ("red hat", "rhel"),
        ("almalinux", "almalinux"),
        ("rocky", "rocky"),
        ("oracle", "ol"),
        ("centos", "centos"),
    ]
    .into_iter()
    .find_map(|(mark, id)| who.contains(mark).then_some(id))
}

fn split_letters(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn leading_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::{Distribution, RpmOrigin, of_deb_version, of_rpm};

    #[test]
    fn deb_versions_name_their_release_or_nothing() {
        let cases = [
            ("1.6-2.1+deb12u3", Some("debian-12")),
            ("3.0.22-1~deb12u2", Some("debian-12")),
            ("6.1-1~bpo11+1", Some("debian-11")),
            ("3.0.2-0ubuntu1.22.04.1", Some("ubuntu-22.04")),
            ("3.0.2-0ubuntu1~22.04", Some("ubuntu-22.04")),
            ("3.0.2-0ubuntu1.15", None),
            ("1.2.13.dfsg-1", None),
            ("1.0+debug1", None),
            ("1.0+deb", None),
            ("1.0~deb12", None),
            ("", None),
        ];
        for (version, want) in cases {
            let got = of_deb_version(version).map(|d| d.to_string());
            assert_eq!(got.as_deref(), want, "{version}");
        }
    }

    #[test]
    fn rpm_headers_name_their_release_or_nothing() {
        let cases = [
            ("6.el9_2", "Red Hat, Inc.", "", Some("rhel-9")),
            (
                "6.el9_2",
                "Rocky Enterprise Software Foundation",
                "",
                Some("rocky-9"),
            ),
            ("1.el8", "", "", None),
            ("1.el8", "ACME", "", None),
            ("2.fc39", "Fedora Project", "", Some("fedora-39")),
            ("2.amzn2023.0.1", "Amazon Linux", "", Some("amzn-2023")),
            ("2.amzn2", "Amazon Linux", "", Some("amzn-2")),
            ("3", "Oracle America", ".el7", Some("ol-7")),
            ("1.azl3", "Microsoft Corporation", "", Some("azurelinux-3.0")),
            ("1", "", "", None),
            ("lp154.2.1", "openSUSE", "", Some("opensuse-leap-15.4")),
            ("lp15.1", "openSUSE", "", None),
        ];
        for (release, vendor, dist_tag, want) in cases {
            let origin = RpmOrigin {
                release,
                vendor,
                dist_tag,
                distribution: "",
            };
            assert_eq!(
                of_rpm(&origin).map(|d| d.to_string()).as_deref(),
                want,
                "{release}"
            );
        }
    }

    #[test]
    fn only_text_that_os_release_allows_is_a_distribution() {
        assert!(Distribution::new("debian", "12").is_some());
        for (id, version) in [("", "1"), ("a", ""), ("De", "1"), ("a\nb", "1"), ("a", "1\"")] {
            assert!(Distribution::new(id, version).is_none());
        }
    }
}
