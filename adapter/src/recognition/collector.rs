//! Listens to the gate: lays out what the cataloguers read, and keeps what the artifact says about itself.

use super::conda::CondaSeen;
use super::distribution::Distribution;
use super::form::Form;
use super::identity::{Coordinates, Identity};
use super::interest::{self, Wanted};
use super::layout::{Layout, LayoutLimits, Writing};
use super::manifest::{self, MAX_MANIFEST_BYTES, ManifestError};
use super::unit::{Candidate, Unit};
use super::{
    ExpectedFile, MAX_EXPECTED_FILES, MAX_IDENTITIES, RecognitionError, Recognized, RootFacts, ScanPlan,
    ScanSource, sniff,
};
use crate::archive::{Entry, EntryKind, EntrySink, Interest};
use assay_schemas::ArtifactType;
use assay_schemas::catalog::{PartialCode, PartialReason};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most containers whose facts are kept.
const MAX_UNITS: usize = 4096;
/// Where the payload of a package that has no container of its own around it is laid out.
const PAYLOAD: &str = "payload!/";

/// Where a Conda package describes itself.
const CONDA_INDEX: &str = "info/index.json";

/// The sink of one run. See the module's documentation for what it does with what it hears.
#[derive(Debug)]
pub struct Collector<'a> {
    hint: ArtifactType,
    layout: Layout,
    layout_dir: &'a Path,
    distribution_hint: Option<Distribution>,
    units: BTreeMap<String, Unit>,
    found: Vec<Found>,
    uncounted: u64,
    conda: CondaSeen,
    rpms: Vec<Found>,
    distributions: BTreeSet<String>,
    root_distribution: Option<Distribution>,
    undistributed: u64,
    alpine_db: String,
    expected: Vec<ExpectedFile>,
    current: Option<Current>,
}

/// A manifest that was read, or why not.
#[derive(Debug)]
struct Found {
    unit: String,
    candidate: Option<Candidate>,
    location: String,
    coordinates: Result<Coordinates, ManifestError>,
}

/// The file whose content is arriving.
#[derive(Debug)]
struct Current {
    unit: String,
    location: String,
    place: String,
    wanted: Option<Wanted>,
    candidate: Option<Candidate>,
    captured: Vec<u8>,
    head: Vec<u8>,
    writing: Option<Writing>,
    /// Whether it was decided if the file is laid out.
    decided: bool,
}

impl<'a> Collector<'a> {
    /// A collector for one artifact.
    ///
    /// `layout_dir` must be private and must not hold anything yet; it may not exist. `distribution_hint` is what the
    /// host knows about the repository.
    pub fn new(
        artifact_type: ArtifactType,
        layout_dir: &'a Path,
        limits: LayoutLimits,
        distribution_hint: Option<Distribution>,
    ) -> Self {
        Self {
            hint: artifact_type,
            layout: Layout::new(layout_dir, limits),
            layout_dir,
            distribution_hint,
            units: BTreeMap::new(),
            found: Vec::new(),
            uncounted: 0,
            conda: CondaSeen::default(),
            rpms: Vec::new(),
            distributions: BTreeSet::new(),
            root_distribution: None,
            undistributed: 0,
            alpine_db: String::new(),
            expected: Vec::new(),
            current: None,
        }
    }

    /// Decides what the artifact is and what Syft is to read.
    pub fn finish(mut self, root: &RootFacts<'_>) -> Result<Recognized, RecognitionError> {
        self.layout.ensure_root()?;
        let mut form = self.root_form(root);
        let mut reasons = Vec::new();
        let mut conda = None;
        let mut identities = Vec::new();
        if form == Form::CondaPackage && self.hint == ArtifactType::Conda {
            let (facts, index) = std::mem::take(&mut self.conda).package(root)?;
            self.lay_out_conda(&index)
                .map_err(RecognitionError::CondaLayout)?;
            let identity = facts.coordinates().and_then(|c| c.identify(CONDA_INDEX.into()));
            identities.extend(identity.ok());
            conda = Some(facts);
        } else if root.is_opaque {
            form = self.opaque(root, &mut identities)?;
        } else {
            match form {
                Form::JavaArchive => {
                    self.layout.clear()?;
                    self.expected.clear();
                    let name = self.java_name();
                    self.link(root, &name)?;
                }
                Form::DebPackage => self.link(root, "artifact.deb")?,
                Form::RpmPackage => self.link(root, "artifact.rpm")?,
                Form::AlpinePackage => self.write_alpine()?,
                _ => {}
            }
            identities = self.identities(form, &mut reasons);
        }
        self.reasons(form, &identities, &mut reasons);
        Ok(Recognized {
            form,
            identities,
            plan: ScanPlan {
                source: ScanSource::Directory(self.layout_dir.to_owned()),
                catalogers: form.catalogers(),
            },
            reasons,
            laid_out_files: self.layout.files(),
            laid_out_bytes: self.layout.bytes(),
            expected_files: self.expected,
            distribution: self.root_distribution,
            has_system_packages: !self.distributions.is_empty() || self.undistributed > 0,
            conda,
            renamed: self.layout.into_renamed(),
        })
    }

    /// The index as it is, and nothing else, where Syft looks for installed Conda packages.
    fn lay_out_conda(&mut self, index: &[u8]) -> io::Result<()> {
        const INSTALLED: &str = "conda-meta/package.json";
        self.layout.clear()?;
        self.expected.clear();
        self.layout.write(INSTALLED, index)?;
        self.layout.rename(INSTALLED, CONDA_INDEX);
        self.expect(INSTALLED.to_owned(), CONDA_INDEX.to_owned());
        Ok(())
    }

    fn root_form(&self, root: &RootFacts<'_>) -> Form {
        if root.is_opaque {
            return Form::of_hint(self.hint).unwrap_or(Form::Opaque);
        }
        if root.is_rpm {
            return Form::RpmPackage;
        }
        match self.units.get("") {
            Some(unit) => unit.form(),
            None => Form::of_hint(self.hint).unwrap_or(Form::Archive),
        }
    }

    fn link(&mut self, root: &RootFacts<'_>, name: &str) -> io::Result<()> {
        self.layout.link(root.path, name)?;
        self.layout.rename(name, "");
        self.expect(name.to_owned(), String::new());
        Ok(())
    }

    /// Syft reads name and version from the file name too and reports a second, wrong package when they differ from
    /// the jar's only `pom.properties`. So the jar gets the name that Maven gives it, if that is plain text.
    fn java_name(&self) -> String {
        let suffix = match self.hint {
            ArtifactType::War => "war",
            ArtifactType::Ear => "ear",
            _ => "jar",
        };
        let mut own = self
            .found
            .iter()
            .filter(|f| f.unit.is_empty() && f.candidate == Some(Candidate::PomProperties));
        let plain = |text: &str| {
            (1..=100).contains(&text.len())
                && text.starts_with(|c: char| c.is_ascii_alphanumeric())
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        match (own.next().map(|f| &f.coordinates), own.next()) {
            (Some(Ok(c)), None) if plain(&c.name) && plain(&c.version) => {
                format!("{}-{}.{suffix}", c.name, c.version)
            }
            _ => format!("artifact.{suffix}"),
        }
    }

    /// Syft has no cataloguer for an Alpine package, but one for the database of installed ones.
    fn write_alpine(&mut self) -> io::Result<()> {
        if let Some(distribution) = &self.root_distribution {
            let database = std::mem::take(&mut self.alpine_db);
            self.layout.write("lib/apk/db/installed", database.as_bytes())?;
            self.layout.rename("lib/apk/db/installed", ".PKGINFO");
            self.layout
                .write("etc/os-release", distribution.os_release().as_bytes())?;
        }
        Ok(())
    }

    fn opaque(
        &mut self,
        root: &RootFacts<'_>,
        identities: &mut Vec<Identity>,
    ) -> Result<Form, RecognitionError> {
        let mut bytes = Vec::new();
        if root.input_bytes <= sniff::MAX_SNIFF_BYTES {
            File::open(root.path)?
                .take(sniff::MAX_SNIFF_BYTES)
                .read_to_end(&mut bytes)?;
        }
        let name = sniff::manifest_name(&bytes);
        self.layout.link(root.path, name.unwrap_or("artifact"))?;
        self.layout.rename(name.unwrap_or("artifact"), "");
        let coordinates = match name {
            Some("pom.xml") => manifest::pom(&bytes).ok(),
            Some("package.json") => manifest::npm(&bytes).ok(),
            _ => None,
        };
        identities.extend(coordinates.and_then(|c| c.identify(String::new()).ok()));
        if let Some(name) = name {
            self.expect(name.to_owned(), String::new());
            return Ok(Form::Manifest);
        }
        Ok(Form::of_hint(self.hint).unwrap_or(Form::Opaque))
    }

    /// Identities of the packages that are there, and a reason for each one that cannot be read.
    fn identities(&mut self, root: Form, reasons: &mut Vec<PartialReason>) -> Vec<Identity> {
        let forms: BTreeMap<String, Form> = self
            .units
            .iter()
            .map(|(key, unit)| (key.clone(), if key.is_empty() { root } else { unit.form() }))
            .collect();
        let mut found = std::mem::take(&mut self.found);
        found.append(&mut self.rpms);
        for (key, unit) in &self.units {
            if forms.get(key) == Some(&Form::GoModule)
                && let Some(prefix) = unit.go_prefix()
            {
                found.push(Found {
                    unit: key.clone(),
                    candidate: None,
                    location: join(key, prefix),
                    coordinates: manifest::go_module(prefix),
                });
            }
        }
        // A shaded jar holds the properties of everything in it, and none of them is surely its own.
        let poms = |unit: &str| {
            found
                .iter()
                .filter(|f| f.unit == unit && f.candidate == Some(Candidate::PomProperties))
                .count()
        };
        let shaded: BTreeSet<String> = forms.keys().filter(|key| poms(key) > 1).cloned().collect();
        let mut identities: BTreeMap<String, Identity> = BTreeMap::new();
        for item in found {
            let wanted = item.candidate.and_then(Candidate::form);
            if wanted.is_some() && wanted != forms.get(&item.unit).copied() {
                continue;
            }
            if item.candidate == Some(Candidate::PomProperties) && shaded.contains(&item.unit) {
                continue;
            }
            match item.coordinates.and_then(|c| c.identify(item.location)) {
                Ok(identity) if identities.len() < MAX_IDENTITIES => {
                    identities.entry(identity.purl.clone()).or_insert(identity);
                }
                Ok(_) => self.uncounted += 1,
                Err(error) if wanted != Some(Form::JavaArchive) => {
                    reasons.push(reason(PartialCode::IdentityUnknown, &error));
                    reasons.dedup();
                }
                Err(_) => {}
            }
        }
        identities.into_values().collect()
    }

    fn reasons(&self, form: Form, identities: &[Identity], reasons: &mut Vec<PartialReason>) {
        let says = |reasons: &[PartialReason], code| reasons.iter().any(|r| r.code == code);
        if form.must_name_itself() && identities.is_empty() && !says(reasons, PartialCode::IdentityUnknown) {
            let detail = format!("no manifest of a {form} names a package");
            reasons.push(reason(PartialCode::IdentityUnknown, &detail));
        }
        if form.is_unsupported() {
            reasons.push(reason(
                PartialCode::UnsupportedFormat,
                &format!("no cataloguer reads a {form}"),
            ));
        }
        if self.undistributed > 0 {
            let detail = format!(
                "{} system packages of an unknown distribution",
                self.undistributed
            );
            reasons.push(reason(PartialCode::DistroUnknown, &detail));
        }
        let refused = self.layout.refused().saturating_add(self.uncounted);
        if refused > 0 {
            let detail = format!("{refused} files of interest have no place in the layout");
            reasons.push(reason(PartialCode::LayoutLimit, &detail));
        }
        reasons.sort_by(|a, b| (a.code, &a.detail).cmp(&(b.code, &b.detail)));
        reasons.dedup();
        reasons.truncate(64);
    }

    fn expect(&mut self, layout_path: String, location: String) {
        if self.expected.len() < MAX_EXPECTED_FILES {
            self.expected.push(ExpectedFile {
                layout_path,
                location,
            });
        }
    }

    fn found(&mut self, found: Found) {
        if self.found.len() < MAX_IDENTITIES {
            self.found.push(found);
        } else {
            self.uncounted += 1;
        }
    }

    fn note_distribution(&mut self, distribution: Option<Distribution>, is_root: bool) {
        match distribution {
            None => self.undistributed += 1,
            Some(distribution) => {
                self.distributions.insert(distribution.to_string());
                if is_root {
                    self.root_distribution = Some(distribution);
                }
            }
        }
    }

    /// Parses what was captured of a candidate.
    fn read_candidate(&mut self, current: &mut Current, candidate: Candidate) {
        let bytes = std::mem::take(&mut current.captured);
        let hint = self.distribution_hint.clone();
        let coordinates = match candidate {
            Candidate::Npm => manifest::npm(&bytes),
            Candidate::Wheel | Candidate::Sdist | Candidate::Egg => manifest::python(&bytes),
            Candidate::Cargo => manifest::cargo(&bytes),
            Candidate::Nuspec => manifest::nuget(&bytes),
            Candidate::Gem => manifest::gem(&bytes),
            Candidate::Helm => manifest::helm(&bytes),
            Candidate::PomProperties => manifest::pom_properties(&bytes),
            Candidate::Composer => manifest::composer(&bytes),
            Candidate::Pub => manifest::dart(&bytes),
            Candidate::Ansible => manifest::ansible(&bytes),
            Candidate::DebControl => {
                let is_root = !current.unit.contains("!/");
                manifest::debian(&bytes, hint.as_ref()).map(|(coordinates, distribution)| {
                    self.note_distribution(distribution, is_root);
                    coordinates
                })
            }
            Candidate::Alpine => manifest::alpine(&bytes, hint.as_ref()).map(|package| {
                self.note_distribution(hint, current.unit.is_empty());
                if current.unit.is_empty() {
                    self.alpine_db = package.installed;
                }
                package.coordinates
            }),
            Candidate::CondaIndex => {
                self.conda.index(bytes);
                return;
            }
            Candidate::CondaMetadata => {
                self.conda.metadata(bytes);
                return;
            }
        };
        self.found(Found {
            unit: current.unit.clone(),
            candidate: Some(candidate),
            location: current.location.clone(),
            coordinates,
        });
    }

    /// Opens the file's place once it is known to be wanted.
    fn decide(&mut self, current: &mut Current) -> io::Result<()> {
        current.decided = true;
        let lay_out = match current.wanted {
            None => false,
            Some(Wanted::Package | Wanted::File) => true,
            Some(Wanted::IfExecutable) => interest::is_executable(&current.head),
        };
        if !lay_out {
            return Ok(());
        }
        current.writing = self.layout.create(&current.place)?;
        if let Some(writing) = &current.writing {
            let name = writing.name.clone();
            if current.place != current.location {
                self.layout.rename(&name, &current.location);
            }
            if current.wanted == Some(Wanted::Package) {
                self.expect(name, current.location.clone());
            }
        }
        let head = std::mem::take(&mut current.head);
        self.append(current, &head)
    }

    fn append(&mut self, current: &mut Current, bytes: &[u8]) -> io::Result<()> {
        if let Some(writing) = &mut current.writing
            && !self.layout.append(writing, bytes)?
        {
            current.writing = None;
        }
        Ok(())
    }

    /// Whether the entry lies in the payload of an operating system package.
    fn in_system_package(&self, entry: &Entry<'_>) -> bool {
        let own = |key: &str| self.units.get(key).is_some_and(Unit::is_system_package);
        let mut key = String::new();
        let mut any = own("");
        for name in entry.within {
            key = join(&key, name);
            any |= own(&key);
        }
        any
    }
}

impl EntrySink for Collector<'_> {
    fn begin(&mut self, entry: &Entry<'_>) -> Interest {
        self.current = None;
        let unit = entry.within.join("!/");
        let around = entry.within.last().map_or("", String::as_str);
        if entry.within.is_empty() {
            self.conda.outer(entry);
        }
        if entry.kind != EntryKind::File {
            return Interest::Skip;
        }
        let hint = if around.is_empty() {
            self.hint
        } else {
            ArtifactType::from_file_name(around)
        };
        let candidate = Candidate::of(entry.container, entry.path, around, hint);
        if self.units.len() >= MAX_UNITS && !self.units.contains_key(&unit) {
            self.uncounted += 1;
        } else {
            self.units
                .entry(unit.clone())
                .or_insert_with(|| Unit::new(entry.container, hint))
                .observe(entry.path, candidate);
        }
        // Syft opens Java archives itself, to any depth; their own manifests are read in the root only.
        let in_java = entry.within.iter().any(|name| is_java(name));
        let root_is_java = matches!(
            self.hint,
            ArtifactType::Jar | ArtifactType::War | ArtifactType::Ear
        );
        let candidate = candidate.filter(|_| !in_java);
        let in_system_package = self.in_system_package(entry);
        // The gemspec in a gem's data is its source; as a rule it computes the version, and Syft then reports none.
        let gem_source = around == "data.tar.gz" && interest::is_gemspec(entry.path);
        let distributed = in_system_package && interest::is_distributed(entry.path);
        let wanted = if in_java || root_is_java || distributed || gem_source {
            None
        } else if candidate == Some(Candidate::Npm) {
            Some(Wanted::File)
        } else {
            Some(interest::wanted(entry.path))
        };
        if wanted.is_none() && candidate.is_none() {
            return Interest::Skip;
        }
        let location = join(&unit, entry.path);
        let place = if in_system_package && entry.within.is_empty() {
            format!("{PAYLOAD}{location}")
        } else {
            location.clone()
        };
        self.current = Some(Current {
            unit,
            location,
            place,
            wanted,
            candidate,
            captured: Vec::new(),
            head: Vec::new(),
            writing: None,
            decided: false,
        });
        Interest::Content
    }

    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(mut current) = self.current.take() else {
            return Ok(());
        };
        if current.candidate.is_some() {
            // One byte over the bound is enough for the reader to see that it was passed.
            let room = (MAX_MANIFEST_BYTES + 1).saturating_sub(current.captured.len());
            current.captured.extend(bytes.iter().take(room));
        }
        if current.decided {
            self.append(&mut current, bytes)?;
        } else {
            current.head.extend_from_slice(bytes);
            if current.head.len() >= interest::MAGIC_BYTES {
                self.decide(&mut current)?;
            }
        }
        self.current = Some(current);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(mut current) = self.current.take() else {
            return Ok(());
        };
        if !current.decided {
            self.decide(&mut current)?;
        }
        if let Some(candidate) = current.candidate {
            self.read_candidate(&mut current, candidate);
        }
        Ok(())
    }

    fn rpm(&mut self, within: &[String], metadata: &rpm::PackageMetadata) {
        let coordinates =
            manifest::rpm(metadata, self.distribution_hint.as_ref()).map(|(c, distribution)| {
                self.note_distribution(distribution, within.is_empty());
                c
            });
        if self.rpms.len() < MAX_IDENTITIES {
            self.rpms.push(Found {
                unit: within.join("!/"),
                candidate: None,
                location: within.join("!/"),
                coordinates,
            });
        } else {
            self.uncounted += 1;
        }
    }
}

fn is_java(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        ".jar", ".war", ".ear", ".par", ".sar", ".nar", ".jpi", ".hpi", ".kar", ".far", ".lpkg",
    ]
    .iter()
    .any(|suffix| name.ends_with(suffix))
}

fn join(unit: &str, path: &str) -> String {
    if unit.is_empty() {
        path.to_owned()
    } else {
        format!("{unit}!/{path}")
    }
}

fn reason(code: PartialCode, detail: &impl ToString) -> PartialReason {
    PartialReason {
        code,
        detail: detail.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::Collector;
    use crate::archive::{Container, Entry, EntryKind, EntrySink, Interest};
    use crate::recognition::{Distribution, Form, LayoutLimits, RecognitionError, Recognized, RootFacts};
    use assay_schemas::ArtifactType as Type;
    use assay_schemas::catalog::PartialCode;
    use std::path::Path;

    /// (containers around it, path, content)
    type File<'a> = (&'a [&'a str], &'a str, &'a [u8]);

    fn feed(
        dir: &Path,
        hint: Type,
        distribution: Option<Distribution>,
        root: Container,
        files: &[File<'_>],
    ) -> Result<Recognized, RecognitionError> {
        let artifact = dir.join("artifact");
        std::fs::write(&artifact, b"bytes").unwrap();
        let layout = dir.join("layout");
        let mut collector = Collector::new(hint, &layout, LayoutLimits::default(), distribution);
        for (within, path, content) in files {
            let within: Vec<String> = within.iter().map(|w| (*w).to_owned()).collect();
            let container = if within.is_empty() { root } else { Container::Tar };
            let entry = Entry {
                path,
                within: &within,
                container,
                kind: EntryKind::File,
                declared_size: None,
            };
            if collector.begin(&entry) == Interest::Content {
                // One byte at a time: no decision may depend on how the bytes arrive.
                for byte in *content {
                    collector.chunk(&[*byte]).unwrap();
                }
                collector.end().unwrap();
            }
        }
        collector.finish(&RootFacts {
            is_opaque: files.is_empty(),
            is_rpm: false,
            input_bytes: 5,
            path: &artifact,
        })
    }

    fn purls(recognized: &Recognized) -> Vec<&str> {
        recognized.identities.iter().map(|i| i.purl.as_str()).collect()
    }

    fn codes(recognized: &Recognized) -> Vec<PartialCode> {
        recognized.reasons.iter().map(|r| r.code).collect()
    }

    #[test]
    fn an_npm_package_and_what_is_bundled_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let files: [File<'_>; 3] = [
            (
                &[],
                "package/package.json",
                br#"{"name":"@s/a","version":"1.0.0"}"#,
            ),
            (
                &[],
                "package/test/package.json",
                br#"{"name":"fixture","version":"1.0.0"}"#,
            ),
            (
                &[],
                "package/node_modules/b/package.json",
                br#"{"name":"b","version":"2.0.0"}"#,
            ),
        ];
        let r = feed(dir.path(), Type::Tgz, None, Container::Tar, &files).unwrap();
        assert_eq!(r.form, Form::NpmPackage);
        assert_eq!(purls(&r), ["pkg:npm/%40s/a@1.0.0"]);
        assert_eq!((r.laid_out_files, codes(&r)), (2, vec![]));
        assert!(!dir.path().join("layout/package/test").exists());
    }

    #[test]
    fn a_package_inside_an_archive_is_named_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let files: [File<'_>; 3] = [
            (&[], "deps/a.tgz", b"\x1f\x8b"),
            (
                &["deps/a.tgz"],
                "package/package.json",
                br#"{"name":"a","version":"1.0.0"}"#,
            ),
            (&["deps/a.tgz"], "package/yarn.lock", b"x"),
        ];
        let r = feed(dir.path(), Type::Zip, None, Container::Zip, &files).unwrap();
        assert_eq!(r.form, Form::Archive);
        assert_eq!(
            r.identities.first().unwrap().location,
            "deps/a.tgz!/package/package.json"
        );
        assert!(dir.path().join("layout/deps/a.tgz!/package/yarn.lock").exists());
    }

    #[test]
    fn a_known_type_without_a_name_is_partial_and_an_archive_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let cases: [(Type, &str, &[u8], Vec<PartialCode>); 5] = [
            (Type::Whl, "a.txt", b"", vec![PartialCode::IdentityUnknown]),
            (
                Type::Tgz,
                "package/package.json",
                b"{",
                vec![PartialCode::IdentityUnknown],
            ),
            (
                Type::Crate,
                "a-1/Cargo.toml",
                b"[package]",
                vec![PartialCode::IdentityUnknown],
            ),
            (
                Type::Ipa,
                "Payload/a.app/Info.plist",
                b"",
                vec![PartialCode::UnsupportedFormat],
            ),
            (Type::Zip, "a.txt", b"", vec![]),
        ];
        for (index, (hint, path, content, want)) in cases.into_iter().enumerate() {
            let dir = dir.path().join(index.to_string());
            std::fs::create_dir(&dir).unwrap();
            let container = if path.starts_with("Payload") || hint == Type::Zip {
                Container::Zip
            } else {
                Container::Tar
            };
            let r = feed(&dir, hint, None, container, &[(&[], path, content)]).unwrap();
            assert_eq!(codes(&r), want, "{path}");
        }
    }

    #[test]
    fn a_jar_gets_the_name_that_its_properties_give() {
        let dir = tempfile::tempdir().unwrap();
        let files: [File<'_>; 2] = [
            (
                &[],
                "META-INF/maven/g/a/pom.properties",
                b"groupId=g\nartifactId=a\nversion=1\n",
            ),
            (&[], "lib/b.jar", b"PK"),
        ];
        let r = feed(dir.path(), Type::Zip, None, Container::Zip, &files).unwrap();
        assert_eq!(r.form, Form::JavaArchive);
        assert_eq!(purls(&r), ["pkg:maven/g/a@1"]);
        assert!(dir.path().join("layout/a-1.jar").exists());
        assert!(
            !dir.path().join("layout/lib").exists(),
            "Syft finds it in the jar"
        );
        assert_eq!(r.location("/a-1.jar"), "");
    }

    #[test]
    fn system_packages_want_a_distribution() {
        for (hint, purl, want) in [
            (
                None,
                "pkg:apk/alpine/a@1?arch=x86",
                vec![PartialCode::DistroUnknown],
            ),
            (
                Distribution::new("alpine", "3.17"),
                "pkg:apk/alpine/a@1?arch=x86&distro=alpine-3.17",
                vec![],
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let known = hint.is_some();
            let files: [File<'_>; 2] = [
                (&[], ".PKGINFO", b"pkgname = a\npkgver = 1\narch = x86\n"),
                (&[], "lib/apk/db/installed", b"P:evil\nV:1\n\n"),
            ];
            let r = feed(dir.path(), Type::Apk, hint, Container::Tar, &files).unwrap();
            assert_eq!(
                (r.form, purls(&r), codes(&r)),
                (Form::AlpinePackage, vec![purl], want)
            );
            assert_eq!(dir.path().join("layout/etc/os-release").exists(), known);
            assert!(dir.path().join("layout/payload!/lib/apk/db/installed").exists());
        }
    }

    #[test]
    fn a_conda_package_is_its_index_and_nothing_else() {
        let index: &[u8] = br#"{"name":"a","version":"1","build":"0","build_number":0}"#;
        let good: [File<'_>; 2] = [(&[], "info/index.json", index), (&[], "a/Cargo.lock", b"x")];
        let dir = tempfile::tempdir().unwrap();
        let r = feed(dir.path(), Type::Conda, None, Container::Tar, &good).unwrap();
        assert_eq!(
            std::fs::read(dir.path().join("layout/conda-meta/package.json")).unwrap(),
            index
        );
        assert_eq!((r.laid_out_files, purls(&r)), (1, vec!["pkg:conda/a@1?build=0"]));
        let twice: [File<'_>; 2] = [
            (&[], "info/index.json", index),
            (&["x"], "info/index.json", index),
        ];
        let dir = tempfile::tempdir().unwrap();
        let error = feed(dir.path(), Type::Conda, None, Container::Tar, &twice).unwrap_err();
        assert_eq!(error.code().as_str(), "CONDA_INDEX_DUPLICATE");
        let error = feed(dir.path(), Type::Conda, None, Container::Tar, &[]).unwrap_err();
        assert_eq!(error.code().as_str(), "CONDA_PACKAGE_INVALID");
    }

    #[test]
    fn an_empty_layout_is_there_to_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let nuspec = b"<package><metadata><id>A</id><version>1</version></metadata></package>";
        let r = feed(
            dir.path(),
            Type::Nupkg,
            None,
            Container::Zip,
            &[(&[], "A.nuspec", nuspec)],
        )
        .unwrap();
        assert_eq!((purls(&r), r.laid_out_files), (vec!["pkg:nuget/A@1"], 0));
        assert!(dir.path().join("layout").is_dir());
    }

    #[test]
    fn bytes_of_no_known_kind_are_opaque_but_laid_out() {
        let dir = tempfile::tempdir().unwrap();
        let r = feed(dir.path(), Type::Unknown, None, Container::Tar, &[]).unwrap();
        assert_eq!((r.form, r.laid_out_files, codes(&r)), (Form::Opaque, 1, vec![]));
        assert!(dir.path().join("layout/artifact").exists());
    }
}
