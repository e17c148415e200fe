//! What an artifact can be recognised as, and which cataloguers read it.

use assay_schemas::ArtifactType;
use std::fmt;

/// Every cataloguer of Syft's `directory` set, and those that read what is installed: bundled npm packages and
/// Composer's list. What the layout holds decides what they see.
const LAYOUT: &[&str] = &[
    "directory",
    "javascript-package-cataloger",
    "php-composer-installed-cataloger",
    "conan-info-cataloger",
];

/// The same with the reader of Conda's indexes: for a package that no client declared, whose other files are looked at
/// like those of any archive, so that an index hides nothing.
pub(super) const UNDECLARED_CONDA: &[&str] = &[
    "directory",
    "javascript-package-cataloger",
    "php-composer-installed-cataloger",
    "conan-info-cataloger",
    "conda-meta-cataloger",
];

/// For operating system packages: their own readers, and those of what a vendor bundles. Without the classifier of
/// well-known binaries, which would report the distribution's patched program as the unpatched upstream one.
const SYSTEM: &[&str] = &[
    "deb-archive-cataloger",
    "rpm-archive-cataloger",
    "apk-db-cataloger",
    "java-archive-cataloger",
    "javascript-package-cataloger",
    "python-installed-package-cataloger",
    "ruby-installed-gemspec-cataloger",
    "php-composer-installed-cataloger",
    "dotnet-deps-binary-cataloger",
    "go-module-binary-cataloger",
    "cargo-auditable-binary-cataloger",
    "graalvm-native-image-cataloger",
];

/// What the bytes are. `Display` gives the kebab-case text of `summary.recognizedAs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Form {
    /// An archive of no known package type.
    Archive,
    /// No archive and no known manifest.
    Opaque,
    /// A lone manifest or lock file, recognised by its content.
    Manifest,
    /// A jar, war, ear or one of their relatives.
    JavaArchive,
    /// An Android library.
    AndroidLibrary,
    /// An Android application package.
    AndroidPackage,
    /// An iOS application package.
    IosPackage,
    /// What `npm pack` makes.
    NpmPackage,
    /// A Python wheel.
    PythonWheel,
    /// A Python source distribution.
    PythonSdist,
    /// A Python egg.
    PythonEgg,
    /// A Rust crate as published.
    RustCrate,
    /// A Go module zip.
    GoModule,
    /// A Ruby gem.
    RubyGem,
    /// A `NuGet` package.
    NugetPackage,
    /// A Helm chart.
    HelmChart,
    /// A Debian binary package.
    DebPackage,
    /// An RPM package.
    RpmPackage,
    /// An Alpine package.
    AlpinePackage,
    /// A Conda package, version 1 or 2.
    CondaPackage,
    /// A Composer distribution archive.
    ComposerPackage,
    /// A Dart package archive.
    PubPackage,
    /// An Ansible collection.
    AnsibleCollection,
    /// An Ansible role.
    AnsibleRole,
    /// A Hex package.
    HexPackage,
    /// An R package, source or binary.
    RPackage,
    /// A Terraform provider: its executable.
    TerraformProvider,
    /// Source of a Terraform module.
    TerraformModule,
    /// Source of a Swift package.
    SwiftPackage,
    /// Source of a pod.
    CocoaPod,
    /// A Conan package or recipe.
    ConanPackage,
}

impl Form {
    /// Every form.
    pub const ALL: &'static [Self] = &[
        Self::Archive,
        Self::Opaque,
        Self::Manifest,
        Self::JavaArchive,
        Self::AndroidLibrary,
        Self::AndroidPackage,
        Self::IosPackage,
        Self::NpmPackage,
        Self::PythonWheel,
        Self::PythonSdist,
        Self::PythonEgg,
        Self::RustCrate,
        Self::GoModule,
        Self::RubyGem,
        Self::NugetPackage,
        Self::HelmChart,
        Self::DebPackage,
        Self::RpmPackage,
        Self::AlpinePackage,
        Self::CondaPackage,
        Self::ComposerPackage,
        Self::PubPackage,
        Self::AnsibleCollection,
        Self::AnsibleRole,
        Self::HexPackage,
        Self::RPackage,
        Self::TerraformProvider,
        Self::TerraformModule,
        Self::SwiftPackage,
        Self::CocoaPod,
        Self::ConanPackage,
    ];

    /// The text of `summary.recognizedAs`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::Opaque => "opaque",
            Self::Manifest => "manifest",
            Self::JavaArchive => "java-archive",
            Self::AndroidLibrary => "android-library",
            Self::AndroidPackage => "android-package",
            Self::IosPackage => "ios-package",
            Self::NpmPackage => "npm-package",
            Self::PythonWheel => "python-wheel",
            Self::PythonSdist => "python-sdist",
            Self::PythonEgg => "python-egg",
            Self::RustCrate => "rust-crate",
            Self::GoModule => "go-module",
            Self::RubyGem => "ruby-gem",
            Self::NugetPackage => "nuget-package",
            Self::HelmChart => "helm-chart",
            Self::DebPackage => "deb-package",
            Self::RpmPackage => "rpm-package",
            Self::AlpinePackage => "alpine-package",
            Self::CondaPackage => "conda-package",
            Self::ComposerPackage => "composer-package",
            Self::PubPackage => "pub-package",
            Self::AnsibleCollection => "ansible-collection",
            Self::AnsibleRole => "ansible-role",
            Self::HexPackage => "hex-package",
            Self::RPackage => "r-package",
            Self::TerraformProvider => "terraform-provider",
            Self::TerraformModule => "terraform-module",
            Self::SwiftPackage => "swift-package",
            Self::CocoaPod => "cocoapod",
            Self::ConanPackage => "conan-package",
        }
    }

    /// Whether the artifact is a package or a list of packages, so that an empty result is suspicious.
    pub const fn is_known_package_type(self) -> bool {
        !matches!(self, Self::Archive | Self::Opaque)
    }

    /// Whether a package of this type must name itself, so that a missing identity makes the result partial.
    ///
    /// A jar need not: without `pom.properties` nothing inside it says its group.
    pub const fn must_name_itself(self) -> bool {
        self.is_known_package_type()
            && !matches!(
                self,
                Self::Manifest | Self::JavaArchive | Self::AndroidPackage | Self::IosPackage
            )
    }

    /// Whether the format is known but no cataloguer reads it.
    pub const fn is_unsupported(self) -> bool {
        matches!(self, Self::AndroidPackage | Self::IosPackage)
    }

    /// Names and tags for Syft's `--override-default-catalogers`.
    pub const fn catalogers(self) -> &'static [&'static str] {
        match self {
            Self::JavaArchive => &["java-archive-cataloger"],
            Self::CondaPackage => &["conda-meta-cataloger"],
            Self::DebPackage | Self::RpmPackage | Self::AlpinePackage => SYSTEM,
            _ => LAYOUT,
        }
    }

    /// What a client's hint alone would make of an artifact that shows no sign of its own.
    pub(super) const fn of_hint(hint: ArtifactType) -> Option<Self> {
        Some(match hint {
            ArtifactType::Jar | ArtifactType::War | ArtifactType::Ear => Self::JavaArchive,
            ArtifactType::Aar => Self::AndroidLibrary,
            ArtifactType::Whl => Self::PythonWheel,
            ArtifactType::Egg => Self::PythonEgg,
            ArtifactType::Crate => Self::RustCrate,
            ArtifactType::Conda => Self::CondaPackage,
            ArtifactType::Gem => Self::RubyGem,
            ArtifactType::Nupkg => Self::NugetPackage,
            ArtifactType::Rpm => Self::RpmPackage,
            ArtifactType::Deb => Self::DebPackage,
            ArtifactType::Apk => Self::AlpinePackage,
            ArtifactType::Ipa => Self::IosPackage,
            _ => return None,
        })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Form;
    use std::collections::BTreeSet;

    #[test]
    fn every_form_stands_in_the_list_once_and_has_a_text_of_its_own() {
        let names: BTreeSet<&str> = Form::ALL.iter().map(|form| form.as_str()).collect();
        assert_eq!(names.len(), Form::ALL.len());
        let last = Form::ALL.iter().max().copied();
        assert_eq!(last, Some(Form::ConanPackage), "the last of the enumeration");
        assert!(Form::ALL.is_sorted());
        assert_eq!(Form::ALL.len(), 1 + Form::ConanPackage as usize);
    }
}
