//! The targets by name.

use super::document;
use super::gate::{self, Sink};
use super::oci;
use assay_adapter::archive::Profile;

/// A parser under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// ZIP.
    Zip,
    /// tar, all dialects.
    Tar,
    /// gzip members.
    Gzip,
    /// bzip2 streams.
    Bzip2,
    /// xz streams.
    Xz,
    /// LZMA-alone.
    Lzma,
    /// zstd frames.
    Zstd,
    /// `ar` and deb.
    Ar,
    /// CPIO, all forms.
    Cpio,
    /// RPM.
    Rpm,
    /// Alpine packages: gzip members of tar segments.
    Apk,
    /// Conda packages of both forms.
    Conda,
    /// Anything, under every profile.
    Gate,
    /// The gate with recognition behind it.
    Recognition,
    /// Manifests by which packages name themselves.
    Manifest,
    /// CycloneDX documents.
    Sbom,
    /// Grype's reports.
    Report,
    /// Heads of requests.
    Head,
    /// Manifests, indexes and configs of registries.
    Oci,
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 19] = [
        Self::Zip,
        Self::Tar,
        Self::Gzip,
        Self::Bzip2,
        Self::Xz,
        Self::Lzma,
        Self::Zstd,
        Self::Ar,
        Self::Cpio,
        Self::Rpm,
        Self::Apk,
        Self::Conda,
        Self::Gate,
        Self::Recognition,
        Self::Manifest,
        Self::Sbom,
        Self::Report,
        Self::Head,
        Self::Oci,
    ];

    /// Name of the executable and of its folder of inputs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Tar => "tar",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Lzma => "lzma",
            Self::Zstd => "zstd",
            Self::Ar => "ar",
            Self::Cpio => "cpio",
            Self::Rpm => "rpm",
            Self::Apk => "apk",
            Self::Conda => "conda",
            Self::Gate => "gate",
            Self::Recognition => "recognition",
            Self::Manifest => "manifest",
            Self::Sbom => "sbom",
            Self::Report => "report",
            Self::Head => "head",
            Self::Oci => "oci",
        }
    }

    /// Whether its inputs are archives.
    pub const fn reads_archives(self) -> bool {
        !matches!(
            self,
            Self::Manifest | Self::Sbom | Self::Report | Self::Head | Self::Oci
        )
    }

    /// Judges one input.
    ///
    /// # Panics
    /// When a bound is passed, a rule is broken or two runs over the same bytes differ.
    // So that an executable has the code, and the counters, of its own target only.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a fifth of the time of an execution")]
    pub fn run(self, bytes: &[u8]) {
        match self {
            Self::Conda => gate::check(bytes, Profile::Conda, Sink::Listen),
            Self::Gate => {
                for profile in [Profile::Package, Profile::Conda, Profile::Layer] {
                    gate::check(bytes, profile, Sink::Listen);
                }
            }
            Self::Recognition => gate::check(bytes, Profile::Package, Sink::Recognise),
            Self::Manifest => document::manifests(bytes),
            Self::Sbom => document::sbom(bytes),
            Self::Report => document::report(bytes),
            Self::Head => document::head(bytes),
            Self::Oci => oci::documents(bytes),
            _ => gate::check(bytes, Profile::Package, Sink::Listen),
        }
    }
}
