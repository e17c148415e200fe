//! The closed list of artifact types and the workspace file name of each.

/// A hint from the client, derived from the asset's suffix. It names the workspace file and picks the cataloguers;
/// it never decides what the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ArtifactType {
    /// No known suffix.
    Unknown,
    /// `.tar.gz`
    TarGz,
    /// `.tar.bz2`
    TarBz2,
    /// `.tar.xz`
    TarXz,
    /// `.tar.zst`
    TarZst,
    /// `.xz`
    Xz,
    /// `.zip`
    Zip,
    /// `.tar`
    Tar,
    /// `.tgz`
    Tgz,
    /// `.tbz2`
    Tbz2,
    /// `.txz`
    Txz,
    /// `.tzst`
    Tzst,
    /// `.jar`
    Jar,
    /// `.war`
    War,
    /// `.ear`
    Ear,
    /// `.aar`
    Aar,
    /// `.whl`
    Whl,
    /// `.egg`
    Egg,
    /// `.crate`
    Crate,
    /// `.conda`, or a Conda `.tar.bz2`
    Conda,
    /// `.gem`
    Gem,
    /// `.nupkg`
    Nupkg,
    /// `.rpm`
    Rpm,
    /// `.deb`
    Deb,
    /// `.apk`
    Apk,
    /// `.ipa`
    Ipa,
}

impl ArtifactType {
    /// Every type in the order in which the client tries suffixes, and [`ArtifactType::Unknown`] last.
    pub const ALL: &'static [Self] = &[
        Self::TarGz,
        Self::TarBz2,
        Self::TarXz,
        Self::TarZst,
        Self::Xz,
        Self::Zip,
        Self::Tar,
        Self::Tgz,
        Self::Tbz2,
        Self::Txz,
        Self::Tzst,
        Self::Jar,
        Self::War,
        Self::Ear,
        Self::Aar,
        Self::Whl,
        Self::Egg,
        Self::Crate,
        Self::Conda,
        Self::Gem,
        Self::Nupkg,
        Self::Rpm,
        Self::Deb,
        Self::Apk,
        Self::Ipa,
        Self::Unknown,
    ];

    /// The wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::TarGz => "TAR_GZ",
            Self::TarBz2 => "TAR_BZ2",
            Self::TarXz => "TAR_XZ",
            Self::TarZst => "TAR_ZST",
            Self::Xz => "XZ",
            Self::Zip => "ZIP",
            Self::Tar => "TAR",
            Self::Tgz => "TGZ",
            Self::Tbz2 => "TBZ2",
            Self::Txz => "TXZ",
            Self::Tzst => "TZST",
            Self::Jar => "JAR",
            Self::War => "WAR",
            Self::Ear => "EAR",
            Self::Aar => "AAR",
            Self::Whl => "WHL",
            Self::Egg => "EGG",
            Self::Crate => "CRATE",
            Self::Conda => "CONDA",
            Self::Gem => "GEM",
            Self::Nupkg => "NUPKG",
            Self::Rpm => "RPM",
            Self::Deb => "DEB",
            Self::Apk => "APK",
            Self::Ipa => "IPA",
        }
    }

    /// The only name under which an artifact of this type is ever stored or handed to an engine.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Unknown => "artifact",
            Self::TarGz => "artifact.tar.gz",
            Self::TarBz2 => "artifact.tar.bz2",
            Self::TarXz | Self::Xz => "artifact.tar.xz",
            Self::TarZst => "artifact.tar.zst",
            Self::Zip => "artifact.zip",
            Self::Tar => "artifact.tar",
            Self::Tgz => "artifact.tgz",
            Self::Tbz2 => "artifact.tbz2",
            Self::Txz => "artifact.txz",
            Self::Tzst => "artifact.tzst",
            Self::Jar => "artifact.jar",
            Self::War => "artifact.war",
            Self::Ear => "artifact.ear",
            Self::Aar => "artifact.aar",
            Self::Whl => "artifact.whl",
            Self::Egg => "artifact.egg",
            Self::Crate => "artifact.crate",
            Self::Conda => "artifact.conda",
            Self::Gem => "artifact.gem",
            Self::Nupkg => "artifact.nupkg",
            Self::Rpm => "artifact.rpm",
            Self::Deb => "artifact.deb",
            Self::Apk => "artifact.apk",
            Self::Ipa => "artifact.ipa",
        }
    }

    /// The type with this wire name: trimmed, any case; blank means [`ArtifactType::Unknown`].
    ///
    /// `None` for a name that is not in the list.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Some(Self::Unknown);
        }
        Self::ALL
            .iter()
            .copied()
            .find(|t| t.as_str().eq_ignore_ascii_case(text))
    }

    /// The suffix of the type with its dot, or `None` for [`ArtifactType::Unknown`].
    pub fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Xz => Some(".xz"),
            other => other
                .file_name()
                .strip_prefix("artifact")
                .filter(|s| !s.is_empty()),
        }
    }

    /// What a client would derive from a file name: the first suffix of [`ArtifactType::ALL`] that the lower-cased
    /// last path segment ends with.
    pub fn from_file_name(name: &str) -> Self {
        let last = name
            .rsplit(['/', '\\'])
            .next()
            .unwrap_or(name)
            .to_ascii_lowercase();
        Self::ALL
            .iter()
            .copied()
            .find(|t| t.suffix().is_some_and(|suffix| last.ends_with(suffix)))
            .unwrap_or(Self::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::ArtifactType;

    #[test]
    fn names_round_trip_in_any_case() {
        for t in ArtifactType::ALL {
            assert_eq!(
                ArtifactType::parse(&format!(" {} ", t.as_str().to_lowercase())),
                Some(*t)
            );
        }
        assert_eq!(ArtifactType::parse("  "), Some(ArtifactType::Unknown));
        assert_eq!(ArtifactType::parse("ELF"), None);
    }

    #[test]
    fn suffixes_follow_the_client() {
        let cases = [
            ("a/b.tar.gz", ArtifactType::TarGz),
            ("a\\B.JAR", ArtifactType::Jar),
            ("pkg.xz", ArtifactType::Xz),
            ("pkg.tar.xz", ArtifactType::TarXz),
            ("go.mod", ArtifactType::Unknown),
            ("numpy.conda", ArtifactType::Conda),
        ];
        for (name, want) in cases {
            assert_eq!(ArtifactType::from_file_name(name), want, "{name}");
        }
    }
}
