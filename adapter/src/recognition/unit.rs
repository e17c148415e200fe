//! What one container of the artifact shows: which manifests it has, and so what it is.

use super::conda;
use super::form::Form;
use super::manifest::module_prefix;
use crate::archive::Container;
use assay_schemas::ArtifactType;
use std::collections::BTreeSet;

/// A file whose content names a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Candidate {
    Npm,
    Wheel,
    Sdist,
    Egg,
    Cargo,
    Nuspec,
    Gem,
    Helm,
    PomProperties,
    DebControl,
    Alpine,
    Composer,
    Pub,
    Ansible,
    CondaIndex,
    CondaMetadata,
}

impl Candidate {
    /// What the file at `path` could name, by its place alone.
    ///
    /// `around` is the name of the nearest container, `hint` the type of that container.
    pub(super) fn of(container: Container, path: &str, around: &str, hint: ArtifactType) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        let is_tar = container == Container::Tar;
        let is_zip = container == Container::Zip;
        Some(match parts.as_slice() {
            ["info", "index.json"] => Self::CondaIndex,
            ["metadata.json"] if is_zip => Self::CondaMetadata,
            ["metadata.gz" | "metadata"] if is_tar => Self::Gem,
            ["control"] if is_tar && around.starts_with("control.tar") => Self::DebControl,
            [".PKGINFO"] if is_tar => Self::Alpine,
            ["MANIFEST.json"] if is_tar => Self::Ansible,
            ["pubspec.yaml"] if is_tar => Self::Pub,
            ["EGG-INFO", "PKG-INFO"] if is_zip => Self::Egg,
            ["META-INF", "maven", _, _, "pom.properties"] if is_zip => Self::PomProperties,
            [name] if is_zip && has_suffix(name, ".nuspec") => Self::Nuspec,
            [dir, "METADATA"] if is_zip && dir.ends_with(".dist-info") => Self::Wheel,
            ["composer.json"] | [_, "composer.json"] => Self::Composer,
            // npm drops the first component, whatever it is.
            [top, "package.json"] if is_tar && (*top == "package" || hint == ArtifactType::Tgz) => Self::Npm,
            [top, "package.json"] if is_zip && (*top == "package" || ends_in_version(top)) => Self::Npm,
            [_, "Chart.yaml"] | [_, "charts", _, "Chart.yaml"] if is_tar => Self::Helm,
            [_, "Cargo.toml"] if is_tar => Self::Cargo,
            [_, "PKG-INFO"] => Self::Sdist,
            _ => return None,
        })
    }

    /// Whether the cataloguers read this very file where the layout has it.
    ///
    /// Not the source distribution's `PKG-INFO`: Python's reader looks for it in an `.egg-info` only. A wheel's
    /// `METADATA` is expected wherever it is.
    pub(super) const fn is_cataloged(self) -> bool {
        matches!(self, Self::Npm | Self::Pub)
    }

    /// The form whose identity this candidate gives; a candidate of another form is only a file.
    pub(super) const fn form(self) -> Option<Form> {
        Some(match self {
            Self::Npm => Form::NpmPackage,
            Self::Wheel => Form::PythonWheel,
            Self::Sdist => Form::PythonSdist,
            Self::Egg => Form::PythonEgg,
            Self::Cargo => Form::RustCrate,
            Self::Nuspec => Form::NugetPackage,
            Self::Gem => Form::RubyGem,
            Self::Helm => Form::HelmChart,
            Self::PomProperties => Form::JavaArchive,
            Self::Alpine => Form::AlpinePackage,
            Self::Composer => Form::ComposerPackage,
            Self::Pub => Form::PubPackage,
            Self::Ansible => Form::AnsibleCollection,
            // Their container is another one than the package.
            Self::DebControl | Self::CondaIndex | Self::CondaMetadata => return None,
        })
    }
}

/// Whether a directory is called like `name-1.2.3`, as the only directory of a packed package is.
fn ends_in_version(name: &str) -> bool {
    name.match_indices('-').any(|(at, _)| {
        let version = name.get(at + 1..).unwrap_or_default();
        let major = version.split('.').next().unwrap_or_default();
        at > 0
            && major.len() < version.len()
            && !major.is_empty()
            && major.bytes().all(|b| b.is_ascii_digit())
    })
}

fn has_suffix(name: &str, suffix: &str) -> bool {
    name.len()
        .checked_sub(suffix.len())
        .and_then(|at| name.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
}

/// The directory that every file so far lies below: `module@version`, or the only one at the top.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
enum Prefix {
    #[default]
    Unseen,
    Common(String),
    Broken,
}

impl Prefix {
    /// Takes in the prefix of one more file.
    fn narrow(&mut self, prefix: Option<&str>) {
        *self = match (std::mem::take(self), prefix) {
            (Self::Unseen, Some(prefix)) => Self::Common(prefix.to_owned()),
            (Self::Common(common), Some(prefix)) if common == prefix => Self::Common(common),
            _ => Self::Broken,
        };
    }
}

/// Facts of one container, gathered entry by entry.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    container: Container,
    hint: ArtifactType,
    candidates: BTreeSet<Candidate>,
    signs: BTreeSet<&'static str>,
    go: Prefix,
    top: Prefix,
}

/// Paths whose presence says something, as [`Unit::observe`] compares them.
const SIGNS: &[&str] = &[
    "META-INF/MANIFEST.MF",
    "AndroidManifest.xml",
    "classes.jar",
    "debian-binary",
    "data.tar.gz",
    "FILES.json",
    ".BUILDINFO",
    ".MTREE",
];

impl Unit {
    pub(super) fn new(container: Container, hint: ArtifactType) -> Self {
        Self {
            container,
            hint,
            candidates: BTreeSet::new(),
            signs: BTreeSet::new(),
            go: Prefix::Unseen,
            top: Prefix::Unseen,
        }
    }

    /// Notes a file.
    pub(super) fn observe(&mut self, path: &str, candidate: Option<Candidate>) {
        self.candidates.extend(candidate);
        self.signs.extend(SIGNS.iter().find(|sign| **sign == path));
        let parts: Vec<&str> = path.split('/').take(4).collect();
        match parts.as_slice() {
            [_, "Cargo.toml.orig" | ".cargo_vcs_info.json"] => _ = self.signs.insert("crate"),
            [name] if conda::is_part(name, "info-") => _ = self.signs.insert("conda-info"),
            [name] if conda::is_part(name, "pkg-") => _ = self.signs.insert("conda-pkg"),
            ["BOOT-INF" | "WEB-INF", _, ..] => _ = self.signs.insert("java-application"),
            ["Payload", app, "Info.plist"] if has_suffix(app, ".app") => _ = self.signs.insert("ios"),
            _ => {}
        }
        if self.container == Container::Zip {
            self.go.narrow(module_prefix(path));
            self.top.narrow(path.split_once('/').map(|(top, _)| top));
        }
    }

    /// The `module@version` that all its files lie below.
    pub(super) fn go_prefix(&self) -> Option<&str> {
        match &self.go {
            Prefix::Common(prefix) => Some(prefix),
            _ => None,
        }
    }

    /// Whether it is a package of an operating system.
    pub(super) fn is_system_package(&self) -> bool {
        self.container == Container::Cpio
            || self.signs.contains("debian-binary")
            || self.candidates.contains(&Candidate::Alpine)
    }

    /// Whether it is a Java archive that carries the archives that it runs with, whatever it is called.
    pub(super) fn is_java_application(&self) -> bool {
        matches!(self.hint, ArtifactType::War | ArtifactType::Ear) || self.signs.contains("java-application")
    }

    /// What the container is: by what it shows, else by its name, else just an archive.
    pub(super) fn form(&self) -> Form {
        let shown = match self.container {
            Container::Tar => self.tar_form(),
            Container::Zip => self.zip_form(),
            Container::Ar => self.signs.contains("debian-binary").then_some(Form::DebPackage),
            Container::Cpio => Some(Form::RpmPackage),
            Container::Compressed => None,
        };
        shown
            .or_else(|| Form::of_hint(self.hint))
            .unwrap_or(Form::Archive)
    }

    fn tar_form(&self) -> Option<Form> {
        let has = |c| self.candidates.contains(&c);
        let sign = |s| self.signs.contains(s);
        Some(if self.hint == ArtifactType::Conda {
            Form::CondaPackage
        } else if has(Candidate::Gem) && sign("data.tar.gz") {
            Form::RubyGem
        // An Arch package has a `.PKGINFO` too, and these beside it.
        } else if has(Candidate::Alpine) && !sign(".BUILDINFO") && !sign(".MTREE") {
            Form::AlpinePackage
        } else if has(Candidate::Ansible) && sign("FILES.json") {
            Form::AnsibleCollection
        } else if has(Candidate::Cargo) && (sign("crate") || self.hint == ArtifactType::Crate) {
            Form::RustCrate
        } else if has(Candidate::Npm) {
            Form::NpmPackage
        } else if has(Candidate::Helm) {
            Form::HelmChart
        } else if has(Candidate::Sdist) {
            Form::PythonSdist
        } else if has(Candidate::Pub) {
            Form::PubPackage
        // Last: a package of another kind must not hide behind an index.
        } else if has(Candidate::CondaIndex) {
            Form::CondaPackage
        } else {
            return None;
        })
    }

    fn zip_form(&self) -> Option<Form> {
        let has = |c| self.candidates.contains(&c);
        let sign = |s| self.signs.contains(s);
        Some(match self.hint {
            ArtifactType::Conda => Form::CondaPackage,
            ArtifactType::Jar | ArtifactType::War | ArtifactType::Ear => Form::JavaArchive,
            _ if has(Candidate::Wheel) => Form::PythonWheel,
            _ if has(Candidate::Egg) => Form::PythonEgg,
            _ if has(Candidate::Nuspec) => Form::NugetPackage,
            _ if self.go_prefix().is_some() => Form::GoModule,
            _ if sign("AndroidManifest.xml") && sign("classes.jar") => Form::AndroidLibrary,
            ArtifactType::Apk => Form::AndroidPackage,
            _ if sign("AndroidManifest.xml") => Form::AndroidPackage,
            _ if sign("ios") => Form::IosPackage,
            _ if sign("META-INF/MANIFEST.MF") || has(Candidate::PomProperties) => Form::JavaArchive,
            _ if has(Candidate::Sdist) => Form::PythonSdist,
            _ if has(Candidate::Composer) => Form::ComposerPackage,
            _ if has(Candidate::Npm) && matches!(self.top, Prefix::Common(_)) => Form::NpmPackage,
            _ if has(Candidate::CondaMetadata) && sign("conda-info") && sign("conda-pkg") => {
                Form::CondaPackage
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Candidate, Unit};
    use crate::archive::Container::{self, Ar, Tar, Zip};
    use crate::recognition::form::Form;
    use assay_schemas::ArtifactType as Type;

    fn form(container: Container, hint: Type, paths: &[&str]) -> Form {
        let mut unit = Unit::new(container, hint);
        for path in paths {
            unit.observe(path, Candidate::of(container, path, "", hint));
        }
        unit.form()
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn table() {
        let cases: [(Container, Type, &[&str], Form); 35] = [
            (
                Tar,
                Type::Tgz,
                &["package/package.json", "package/a.js"],
                Form::NpmPackage,
            ),
            (Tar, Type::Tgz, &["node/package.json"], Form::NpmPackage),
            (Tar, Type::TarGz, &["proj-1/package.json"], Form::Archive),
            (
                Tar,
                Type::Tgz,
                &["nginx/Chart.yaml", "nginx/values.yaml"],
                Form::HelmChart,
            ),
            (
                Tar,
                Type::TarGz,
                &["requests-2.19.1/PKG-INFO", "requests-2.19.1/setup.py"],
                Form::PythonSdist,
            ),
            (Tar, Type::Crate, &["time-0.1.43/Cargo.toml"], Form::RustCrate),
            (
                Tar,
                Type::Unknown,
                &["time-0.1.43/Cargo.toml", "time-0.1.43/Cargo.toml.orig"],
                Form::RustCrate,
            ),
            (Tar, Type::TarGz, &["proj/Cargo.toml"], Form::Archive),
            (
                Tar,
                Type::Gem,
                &["metadata.gz", "data.tar.gz", "checksums.yaml.gz"],
                Form::RubyGem,
            ),
            (
                Tar,
                Type::Apk,
                &[".SIGN.RSA.x", ".PKGINFO", "usr/bin/x"],
                Form::AlpinePackage,
            ),
            (
                Tar,
                Type::TarGz,
                &["MANIFEST.json", "FILES.json"],
                Form::AnsibleCollection,
            ),
            (
                Tar,
                Type::TarGz,
                &["pubspec.yaml", "lib/http.dart"],
                Form::PubPackage,
            ),
            (Tar, Type::Whl, &["a"], Form::PythonWheel),
            (
                Zip,
                Type::Whl,
                &["Jinja2-2.11.2.dist-info/METADATA"],
                Form::PythonWheel,
            ),
            (
                Zip,
                Type::Zip,
                &[
                    "golang.org/x/text@v0.14.0/go.mod",
                    "golang.org/x/text@v0.14.0/a.go",
                ],
                Form::GoModule,
            ),
            (
                Zip,
                Type::Zip,
                &["golang.org/x/text@v0.14.0/go.mod", "other"],
                Form::Archive,
            ),
            (
                Zip,
                Type::Nupkg,
                &["Newtonsoft.Json.nuspec", "lib/a.dll"],
                Form::NugetPackage,
            ),
            (Zip, Type::Zip, &["META-INF/MANIFEST.MF"], Form::JavaArchive),
            (
                Zip,
                Type::Apk,
                &["AndroidManifest.xml", "classes.dex"],
                Form::AndroidPackage,
            ),
            (
                Zip,
                Type::Aar,
                &["AndroidManifest.xml", "classes.jar"],
                Form::AndroidLibrary,
            ),
            (
                Zip,
                Type::Zip,
                &["console-1/composer.json"],
                Form::ComposerPackage,
            ),
            (Zip, Type::Zip, &["readme"], Form::Archive),
            (
                Zip,
                Type::Zip,
                &["package/package.json", "package/a.js"],
                Form::NpmPackage,
            ),
            (
                Zip,
                Type::Zip,
                &["lodash-4.17.4/package.json", "lodash-4.17.4/lib/a.js"],
                Form::NpmPackage,
            ),
            (
                Zip,
                Type::Zip,
                &["package/package.json", "other/a.js"],
                Form::Archive,
            ),
            (Zip, Type::Zip, &["project/package.json"], Form::Archive),
            (
                Zip,
                Type::Zip,
                &["console-1.0/package.json", "console-1.0/composer.json"],
                Form::ComposerPackage,
            ),
            (
                Tar,
                Type::TarBz2,
                &["info/index.json", "lib/a.so"],
                Form::CondaPackage,
            ),
            (
                Tar,
                Type::Tgz,
                &["info/index.json", "package/package.json"],
                Form::NpmPackage,
            ),
            (Tar, Type::TarBz2, &["a/info/index.json"], Form::Archive),
            (
                Zip,
                Type::Zip,
                &["metadata.json", "info-a-1-0.tar.zst", "pkg-a-1-0.tar.zst"],
                Form::CondaPackage,
            ),
            (
                Zip,
                Type::Zip,
                &["metadata.json", "info-.tar.zst", "pkg-.tar.zst"],
                Form::Archive,
            ),
            (Zip, Type::Zip, &["info/index.json"], Form::Archive),
            (
                Ar,
                Type::Unknown,
                &["debian-binary", "control.tar.xz"],
                Form::DebPackage,
            ),
            (Ar, Type::Unknown, &["a.o"], Form::Archive),
        ];
        for (container, hint, paths, want) in cases {
            assert_eq!(form(container, hint, paths), want, "{paths:?}");
        }
    }

    #[test]
    fn a_directory_named_with_its_version() {
        for name in ["a-1.2.3", "a-b-1.0", "a-1.0.0-rc.1"] {
            assert!(super::ends_in_version(name), "{name}");
        }
        for name in ["a", "a-1", "-1.0", "a-b.c", "a-.1", "1.0", "é-é"] {
            assert!(!super::ends_in_version(name), "{name}");
        }
    }

    #[test]
    fn a_suffix_of_a_short_or_wide_name_is_safe() {
        assert!(super::has_suffix("A.NUSPEC", ".nuspec"));
        assert!(!super::has_suffix("é", ".nuspec"));
        assert!(!super::has_suffix("ééééééé", ".nuspec"));
    }
}
