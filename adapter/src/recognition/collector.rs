//! Listens to the gate: lays out what the cataloguers read, and keeps what the artifact says about itself.

mod conclusion;

use super::candidate::Candidate;
use super::conda::{self, CondaSeen};
use super::distribution::Distribution;
use super::identity::Coordinates;
use super::interest::{self, Bundled, Wanted};
use super::layout::{Layout, LayoutLimits, Writing};
use super::manifest::{self, MAX_MANIFEST_BYTES, ManifestError};
use super::unit::Unit;
use super::{ExpectedFile, MAX_EXPECTED_FILES, MAX_IDENTITIES};
use crate::archive::{Container, Entry, EntryKind, EntrySink, Interest};
use assay_schemas::ArtifactType;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
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
    file_name: Option<String>,
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
    /// Manifests of candidates that are laid out and that a cataloguer reads: location to layout path. A component
    /// must come of each one that gives an identity.
    provable: BTreeMap<String, String>,
    /// Images that charts name, by the location of the chart's directory.
    chart_images: BTreeMap<String, BTreeSet<String>>,
    /// Artifact and version by the manifest of the outermost Java archive.
    java_manifest: Option<(String, String)>,
    current: Option<Current>,
    /// Whether Syft gets the file that was announced last.
    handed_on: bool,
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
    /// Whose manifest it is when it is that of a package inside: of no identity, but a component must come of it.
    bundled: Option<Bundled>,
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
            file_name: None,
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
            provable: BTreeMap::new(),
            chart_images: BTreeMap::new(),
            java_manifest: None,
            current: None,
            handed_on: false,
        }
    }

    /// The same for an artifact whose file name is known: a name may say what nothing inside says.
    #[must_use]
    pub fn named(mut self, file_name: Option<String>) -> Self {
        self.file_name = file_name;
        self
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
                let package = conda::package_unit(&current.unit).to_owned();
                if package.is_empty() {
                    self.conda.index(&current.unit, bytes);
                    return;
                }
                // It counts as one more index of the package around it, too.
                current.unit = package;
                let coordinates = manifest::conda_index(&bytes)
                    .map_err(|_| ManifestError::Malformed {
                        format: "conda index",
                    })
                    .and_then(|facts| facts.coordinates());
                self.conda.index(&current.location, bytes);
                coordinates
            }
            Candidate::ChartValues => {
                self.note_images(&current.location, &bytes);
                return;
            }
            Candidate::JavaManifest => {
                self.java_manifest = manifest::java_manifest(&bytes);
                return;
            }
            Candidate::Cran => manifest::cran(&bytes),
            Candidate::Hex => manifest::hex(&bytes),
            Candidate::Podspec => manifest::podspec(&bytes),
            Candidate::Conanfile => manifest::conanfile(&bytes),
            Candidate::AndroidVersion => {
                let path = current.location.rsplit("!/").next().unwrap_or_default();
                manifest::android_version(path, &bytes)
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

    /// Notes the images that the chart's values at `location` name. Values are read for this alone, so that those which
    /// cannot be read take nothing away.
    fn note_images(&mut self, location: &str, values: &[u8]) {
        if let (Some((chart, _)), Ok(images)) = (location.rsplit_once('/'), manifest::chart_images(values))
            && self.chart_images.len() < MAX_UNITS
        {
            self.chart_images.insert(chart.to_owned(), images);
        }
    }

    /// Notes a laid out manifest of which the cataloguers must make a component.
    fn note_proof(&mut self, current: &Current) {
        let Some(writing) = &current.writing else {
            return;
        };
        let is_named = match current.bundled {
            Some(Bundled::Npm | Bundled::NpmCopy) => manifest::npm(&current.captured).is_ok(),
            Some(Bundled::Python) => manifest::python(&current.captured).is_ok(),
            None => false,
        };
        if is_named {
            self.expect(writing.name.clone(), current.location.clone());
        } else if current.candidate.is_some_and(Candidate::is_cataloged)
            && self.provable.len() < MAX_IDENTITIES
        {
            self.provable
                .insert(current.location.clone(), writing.name.clone());
        }
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
            self.handed_on = true;
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

    /// Listens to an entry; `head` is how a file begins, if that is known.
    fn begin_with(&mut self, entry: &Entry<'_>, head: Option<&[u8]>) -> Interest {
        self.current = None;
        self.handed_on = false;
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
        // What lies in a Java archive is opened there.
        let is_opened_inside =
            in_java || root_is_java || entry.within.is_empty() && entry.container == Container::Zip;
        let is_package = match wanted {
            Some(wanted) => wanted == Wanted::Package,
            None => is_opened_inside && interest::is_package(entry.path),
        };
        self.handed_on = is_opened_inside && is_package;
        let is_of_no_use = match (wanted, head) {
            (None, _) => true,
            (Some(Wanted::IfExecutable), Some(head)) => !interest::is_executable(head),
            (Some(_), _) => false,
        };
        if is_of_no_use && candidate.is_none() {
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
            bundled: interest::bundled(entry.path).filter(|_| wanted == Some(Wanted::File)),
            captured: Vec::new(),
            head: Vec::new(),
            writing: None,
            decided: false,
        });
        Interest::Content
    }
}

impl EntrySink for Collector<'_> {
    fn begin(&mut self, entry: &Entry<'_>) -> Interest {
        self.begin_with(entry, None)
    }

    fn begin_file(&mut self, entry: &Entry<'_>, head: &[u8]) -> Interest {
        self.begin_with(entry, Some(head))
    }

    fn is_handed_on(&self) -> bool {
        self.handed_on
    }

    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(mut current) = self.current.take() else {
            return Ok(());
        };
        if current.candidate.is_some() || current.bundled.is_some() {
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
        if current.bundled == Some(Bundled::NpmCopy) && !is_copy(&current) {
            if let Some(writing) = current.writing.take() {
                self.layout.discard(&writing)?;
            }
            current.bundled = None;
        }
        self.note_proof(&current);
        if let Some(candidate) = current.candidate {
            self.read_candidate(&mut current, candidate);
        }
        Ok(())
    }

    fn abandon(&mut self) -> io::Result<()> {
        let abandoned = self.current.take().and_then(|current| current.writing);
        let Some(writing) = abandoned else {
            return Ok(());
        };
        // Half a file would be read as a whole one.
        self.expected.retain(|file| file.layout_path != writing.name);
        self.layout.discard(&writing)
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

/// Whether a manifest is that of a copy of the package that it names.
fn is_copy(current: &Current) -> bool {
    manifest::npm(&current.captured)
        .is_ok_and(|package| interest::is_copy_of(&current.location, &package.name))
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

#[cfg(test)]
mod tests;
