//! What one container of the artifact shows: which manifests it has, and so what it is.

use super::candidate::{Candidate, has_suffix};
use super::conda;
use super::form::Form;
use super::manifest::{is_terraform_provider, module_prefix};
use crate::archive::Container;
use assay_schemas::ArtifactType;
use std::collections::BTreeSet;

/// Most packages of which one container can be made.
const MAX_PREFIXES: usize = 4096;

/// The only directory at the top so far.
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

/// The `module@version` directories of a container of Go modules.
#[derive(Debug, Default, Clone)]
struct GoModules {
    prefixes: BTreeSet<String>,
    /// There is something else, too.
    is_mixed: bool,
    /// Files of modules beyond [`MAX_PREFIXES`].
    uncounted: u64,
}

impl GoModules {
    /// Takes in the prefix of one more file.
    fn add(&mut self, prefix: Option<&str>) {
        match prefix {
            None => self.is_mixed = true,
            Some(prefix) if self.prefixes.contains(prefix) => {}
            Some(_) if self.prefixes.len() >= MAX_PREFIXES => self.uncounted += 1,
            Some(prefix) => _ = self.prefixes.insert(prefix.to_owned()),
        }
    }
}

/// Facts of one container, gathered entry by entry.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    container: Container,
    hint: ArtifactType,
    candidates: BTreeSet<Candidate>,
    signs: BTreeSet<&'static str>,
    go: GoModules,
    top: Prefix,
    providers: BTreeSet<String>,
}

/// Most executables of providers in one container.
const MAX_PROVIDERS: usize = 16;

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
    "contents.tar.gz",
    "conandata.yml",
    "conaninfo.txt",
    "conanmanifest.txt",
];

impl Unit {
    pub(super) fn new(container: Container, hint: ArtifactType) -> Self {
        Self {
            container,
            hint,
            candidates: BTreeSet::new(),
            signs: BTreeSet::new(),
            go: GoModules::default(),
            top: Prefix::Unseen,
            providers: BTreeSet::new(),
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
            ["BOOT-INF" | "WEB-INF" | "repository", _, ..]
            | ["META-INF", "application.xml" | "jboss-service.xml" | "ra.xml"] => {
                self.signs.insert("java-application");
            }
            ["Payload", app, "Info.plist"] if has_suffix(app, ".app") => _ = self.signs.insert("ios"),
            ["Package.swift"] | [_, "Package.swift"] => _ = self.signs.insert("swift"),
            [_, "NAMESPACE"] | [_, "R", _] | [_, "Meta", "package.rds"] => _ = self.signs.insert("r"),
            [name] if has_suffix(name, ".tf") || has_suffix(name, ".tf.json") => {
                self.signs.insert("terraform");
            }
            [_, name] if has_suffix(name, ".tf") || has_suffix(name, ".tf.json") => {
                self.signs.insert("terraform-below");
            }
            ["meta", "main.yml" | "main.yaml"] | [_, "meta", "main.yml" | "main.yaml"] => {
                self.signs.insert("ansible-meta");
            }
            ["tasks", "main.yml" | "main.yaml"] | [_, "tasks", "main.yml" | "main.yaml"] => {
                self.signs.insert("ansible-tasks");
            }
            [name] if is_terraform_provider(name) && self.providers.len() < MAX_PROVIDERS => {
                self.providers.insert((*name).to_owned());
            }
            _ => {}
        }
        self.top.narrow(path.split_once('/').map(|(top, _)| top));
        if self.container == Container::Zip {
            self.go.add(module_prefix(path));
        }
    }

    /// Each `module@version` of a container in which every file belongs to one.
    pub(super) fn go_modules(&self) -> impl Iterator<Item = &str> {
        let prefixes = (!self.go.is_mixed).then_some(&self.go.prefixes);
        prefixes.into_iter().flatten().map(String::as_str)
    }

    /// Files of Go modules that are too many to be told apart.
    pub(super) const fn uncounted(&self) -> u64 {
        self.go.uncounted
    }

    /// Names of the executables of Terraform providers.
    pub(super) fn providers(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().map(String::as_str)
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
            .or_else(|| self.source_form())
            .unwrap_or(Form::Archive)
    }

    /// Sources that say what they are, and as a rule not which version.
    fn source_form(&self) -> Option<Form> {
        let has = |c| self.candidates.contains(&c);
        let sign = |s| self.signs.contains(s);
        let is_one_directory = matches!(self.top, Prefix::Common(_));
        Some(if !self.providers.is_empty() {
            Form::TerraformProvider
        } else if has(Candidate::Cran) && sign("r") && is_one_directory {
            Form::RPackage
        } else if sign("conaninfo.txt")
            || sign("conanmanifest.txt")
            || (has(Candidate::Conanfile) && sign("conandata.yml"))
        {
            Form::ConanPackage
        } else if has(Candidate::Composer) {
            Form::ComposerPackage
        } else if sign("swift") {
            Form::SwiftPackage
        } else if has(Candidate::Podspec) {
            Form::CocoaPod
        } else if sign("ansible-meta") && sign("ansible-tasks") {
            Form::AnsibleRole
        } else if sign("terraform") || (sign("terraform-below") && is_one_directory) {
            Form::TerraformModule
        } else {
            return None;
        })
    }

    fn tar_form(&self) -> Option<Form> {
        let has = |c| self.candidates.contains(&c);
        let sign = |s| self.signs.contains(s);
        Some(if self.hint == ArtifactType::Conda {
            Form::CondaPackage
        } else if has(Candidate::Gem) && sign("data.tar.gz") {
            Form::RubyGem
        } else if has(Candidate::Hex) && sign("contents.tar.gz") {
            Form::HexPackage
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
            _ if self.go_modules().next().is_some() => Form::GoModule,
            _ if sign("AndroidManifest.xml") && sign("classes.jar") => Form::AndroidLibrary,
            ArtifactType::Apk => Form::AndroidPackage,
            _ if sign("AndroidManifest.xml") => Form::AndroidPackage,
            _ if sign("ios") => Form::IosPackage,
            _ if sign("META-INF/MANIFEST.MF") || has(Candidate::PomProperties) => Form::JavaArchive,
            _ if has(Candidate::Sdist) => Form::PythonSdist,
            // npm's sign is a weak one in a ZIP, and such a package may well hold a manifest for it.
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
mod tests;
