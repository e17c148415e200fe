//! Platforms: what a request asks for, what an index promises, what a config declares.

use std::fmt;

/// An operating system, an architecture and perhaps a variant of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Platform {
    os: String,
    architecture: String,
    variant: Option<String>,
}

impl Platform {
    /// The platform of these names; `None` when one that is required is blank.
    pub fn new(os: &str, architecture: &str, variant: Option<&str>) -> Option<Self> {
        let blank = |text: &str| text.trim().is_empty();
        (!blank(os) && !blank(architecture)).then(|| Self {
            os: os.to_owned(),
            architecture: architecture.to_owned(),
            variant: variant.filter(|text| !blank(text)).map(str::to_owned),
        })
    }

    /// `os/arch` or `os/arch/variant`, each piece `[a-z0-9][a-z0-9._-]*`.
    pub fn parse(text: &str) -> Option<Self> {
        let pieces: Vec<&str> = text.split('/').collect();
        if !pieces.iter().all(|piece| is_piece(piece)) {
            return None;
        }
        match pieces.as_slice() {
            [os, architecture] => Self::new(os, architecture, None),
            [os, architecture, variant] => Self::new(os, architecture, Some(variant)),
            _ => None,
        }
    }

    /// Whether it can be asked for: attestations and other companions of images carry `unknown/unknown`.
    pub fn is_recognisable(&self) -> bool {
        // A slash inside a piece would read as another platform.
        let is_canonical = Self::parse(&self.to_string()).as_ref() == Some(self);
        self.os != "unknown" && self.architecture != "unknown" && is_canonical
    }

    /// Whether an image of the platform `other` is what was asked for. A wanted variant has to be there; without one
    /// any will do.
    pub fn accepts(&self, other: &Self) -> bool {
        self.os == other.os
            && self.architecture == other.architecture
            && (self.variant.is_none() || self.full_variant() == other.full_variant())
    }

    /// The variant, also where everybody leaves it out: 64-bit Arm has had only one for a decade, and builders differ
    /// in whether they write it.
    fn full_variant(&self) -> Option<&str> {
        match self.variant.as_deref() {
            None if self.architecture == "arm64" => Some("v8"),
            variant => variant,
        }
    }

    /// The operating system.
    pub fn os(&self) -> &str {
        &self.os
    }

    /// The architecture.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// The variant as it is written.
    pub fn variant(&self) -> Option<&str> {
        self.variant.as_deref()
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(variant) => write!(f, "/{variant}"),
            None => Ok(()),
        }
    }
}

fn is_piece(piece: &str) -> bool {
    piece.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && piece
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::Platform;

    fn platform(text: &str) -> Platform {
        Platform::parse(text).unwrap()
    }

    #[test]
    fn a_wanted_variant_has_to_be_there() {
        let cases = [
            ("linux/amd64", "linux/amd64", true),
            ("linux/amd64", "linux/arm64", false),
            ("linux/amd64", "windows/amd64", false),
            ("linux/arm", "linux/arm/v6", true),
            ("linux/arm/v7", "linux/arm/v6", false),
            ("linux/arm/v7", "linux/arm", false),
            ("linux/arm/v7", "linux/arm/v7", true),
            ("linux/arm64/v8", "linux/arm64", true),
            ("linux/arm64", "linux/arm64/v8", true),
            ("linux/arm64/v9", "linux/arm64", false),
            ("linux/amd64/v3", "linux/amd64", false),
        ];
        for (wanted, found, accepted) in cases {
            assert_eq!(
                platform(wanted).accepts(&platform(found)),
                accepted,
                "{wanted} {found}"
            );
        }
    }

    #[test]
    fn only_the_contracts_form_is_a_platform() {
        for good in ["linux/amd64", "linux/arm/v7", "0s/4.-_"] {
            assert_eq!(platform(good).to_string(), good);
        }
        for bad in [
            "",
            "/",
            "linux",
            "linux/",
            "/amd64",
            "Linux/amd64",
            "linux/arm/",
            "linux/arm/v7/x",
            "linux/-a",
            "linux/a b",
        ] {
            assert_eq!(Platform::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn companions_of_images_have_no_recognisable_platform() {
        assert!(
            !Platform::new("unknown", "unknown", None)
                .unwrap()
                .is_recognisable()
        );
        assert!(!Platform::new("Linux", "amd64", None).unwrap().is_recognisable());
        assert!(platform("linux/amd64").is_recognisable());
        assert!(!Platform::new("linux", "arm/v7", None).unwrap().is_recognisable());
        assert_eq!(Platform::new("linux", " ", None), None);
        assert_eq!(
            Platform::new("linux", "arm", Some("")),
            Platform::parse("linux/arm")
        );
    }
}
