//! Files that may name a package, told by their place in a container.

use super::form::Form;
use super::manifest::android_library;
use crate::archive::Container;
use assay_schemas::ArtifactType;

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
    Cran,
    Hex,
    Podspec,
    Conanfile,
    AndroidVersion,
    /// Default values of a chart: they name no package, but images.
    ChartValues,
    /// The manifest of a Java archive: it names no group.
    JavaManifest,
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
            ["metadata.config"] if is_tar => Self::Hex,
            ["pubspec.yaml"] if is_tar => Self::Pub,
            ["EGG-INFO", "PKG-INFO"] if is_zip => Self::Egg,
            ["META-INF", "maven", _, _, "pom.properties"] if is_zip => Self::PomProperties,
            [name] if is_zip && has_suffix(name, ".nuspec") => Self::Nuspec,
            [dir, "METADATA"] if is_zip && dir.ends_with(".dist-info") => Self::Wheel,
            ["composer.json"] | [_, "composer.json"] => Self::Composer,
            // npm drops the first component, whatever it is.
            [top, "package.json"] if is_tar && (*top == "package" || hint == ArtifactType::Tgz) => Self::Npm,
            [top, "package.json"] if is_zip && (*top == "package" || ends_in_version(top)) => Self::Npm,
            [_, .., "Chart.yaml"] if is_tar && is_chart(&parts) => Self::Helm,
            [_, .., "values.yaml"] if is_tar && is_chart(&parts) => Self::ChartValues,
            [_, "DESCRIPTION"] if is_tar || is_zip => Self::Cran,
            [name] | [_, name] if has_suffix(name, ".podspec") || has_suffix(name, ".podspec.json") => {
                Self::Podspec
            }
            ["conanfile.py"] => Self::Conanfile,
            ["META-INF", "MANIFEST.MF"] if is_zip && around.is_empty() => Self::JavaManifest,
            ["META-INF", _] if is_zip && android_library(path).is_some() => Self::AndroidVersion,
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

    /// Whether there are good packages in which the file is of no use.
    pub(super) const fn is_optional(self) -> bool {
        matches!(self, Self::PomProperties | Self::AndroidVersion)
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
            Self::CondaIndex => Form::CondaPackage,
            Self::Cran => Form::RPackage,
            Self::Hex => Form::HexPackage,
            Self::Podspec => Form::CocoaPod,
            Self::Conanfile => Form::ConanPackage,
            // Its container is another one than the package.
            Self::DebControl => return None,
            // They name no package, or one that is only a part.
            Self::CondaMetadata | Self::AndroidVersion | Self::ChartValues | Self::JavaManifest => {
                return None;
            }
        })
    }
}

/// Whether a file of these path components lies in a chart or in a chart below its `charts`.
fn is_chart(parts: &[&str]) -> bool {
    match parts {
        [_, "charts", rest @ ..] => is_chart(rest),
        [_, _] => true,
        _ => false,
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

pub(super) fn has_suffix(name: &str, suffix: &str) -> bool {
    name.len()
        .checked_sub(suffix.len())
        .and_then(|at| name.get(at..))
        .is_some_and(|end| end.eq_ignore_ascii_case(suffix))
}

#[cfg(test)]
mod tests {
    use super::Candidate;
    use crate::archive::Container;
    use assay_schemas::ArtifactType;

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

    #[test]
    fn charts_are_found_at_any_depth_and_nowhere_else() {
        for (path, want) in [
            ("a/Chart.yaml", Some(Candidate::Helm)),
            ("a/charts/b/Chart.yaml", Some(Candidate::Helm)),
            ("a/charts/b/charts/c/Chart.yaml", Some(Candidate::Helm)),
            ("a/charts/b/values.yaml", Some(Candidate::ChartValues)),
            ("Chart.yaml", None),
            ("a/b/Chart.yaml", None),
            ("a/charts/Chart.yaml", None),
            ("a/charts/b/templates/Chart.yaml", None),
        ] {
            let got = Candidate::of(Container::Tar, path, "", ArtifactType::Tgz);
            assert_eq!(got, want, "{path}");
        }
    }
}
