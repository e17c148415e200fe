//! What follows from all that was heard: the form, the identities, the plan for Syft and the reasons for doubt.

use super::{CONDA_INDEX, Collector, Found, is_java, join};
use crate::recognition::candidate::Candidate;
use crate::recognition::form::{Form, UNDECLARED_CONDA};
use crate::recognition::identity::{CHART_IMAGE, Ecosystem, Identity};
use crate::recognition::interest::{self, Wanted};
use crate::recognition::manifest;
use crate::recognition::unit::Unit;
use crate::recognition::{
    MAX_IDENTITIES, PLACEHOLDER_NAME, RecognitionError, Recognized, RootFacts, ScanPlan, ScanSource, sniff,
};
use assay_schemas::ArtifactType;
use assay_schemas::catalog::{PartialCode, PartialReason};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};

impl Collector<'_> {
    /// Decides what the artifact is and what Syft is to read.
    pub fn finish(mut self, root: &RootFacts<'_>) -> Result<Recognized, RecognitionError> {
        self.layout.ensure_root()?;
        let mut form = self.root_form(root);
        let mut reasons = Vec::new();
        let mut conda = None;
        let mut identities = Vec::new();
        let mut names_itself;
        let mut is_unnamed_jar = false;
        let mut catalogers = form.catalogers();
        if form == Form::CondaPackage && self.hint == ArtifactType::Conda {
            let (facts, index) = std::mem::take(&mut self.conda).package(root)?;
            self.layout.clear()?;
            self.expected.clear();
            self.lay_out_conda(&index, "conda-meta/package.json")
                .map_err(RecognitionError::CondaLayout)?;
            let identity = facts.coordinates().and_then(|c| c.identify(CONDA_INDEX.into()));
            identities.extend(identity.ok());
            names_itself = !identities.is_empty();
            conda = Some(facts);
        } else if root.is_opaque {
            form = self.opaque(root, &mut identities)?;
            names_itself = !identities.is_empty();
        } else {
            match form {
                Form::JavaArchive => {
                    self.layout.clear()?;
                    self.expected.clear();
                    let name = self.java_name();
                    is_unnamed_jar = self.is_unnamed_jar();
                    self.link(root, &name)?;
                }
                Form::DebPackage => self.link(root, "artifact.deb")?,
                Form::RpmPackage => self.link(root, "artifact.rpm")?,
                Form::AlpinePackage => self.write_alpine()?,
                _ => {}
            }
            (identities, names_itself) = self.identities(form, &mut reasons);
            if form == Form::CondaPackage {
                catalogers = UNDECLARED_CONDA;
                identities.extend(self.undeclared_conda(&mut reasons)?);
                names_itself = true;
                identities.sort_by(|a, b| a.purl.cmp(&b.purl));
            }
        }
        if form.must_name_itself() && !names_itself && reasons.iter().all(is_not_about_identity) {
            let detail = format!("no manifest of a {form} names a package");
            reasons.push(reason(PartialCode::IdentityUnknown, &detail));
        }
        self.reasons(form, &mut reasons);
        Ok(Recognized {
            form,
            identities,
            plan: ScanPlan {
                source: ScanSource::Directory(self.layout_dir.to_owned()),
                catalogers,
            },
            reasons,
            laid_out_files: self.layout.files(),
            laid_out_bytes: self.layout.bytes(),
            expected_files: self.expected,
            distribution: self.root_distribution,
            has_system_packages: !self.distributions.is_empty() || self.undistributed > 0,
            is_unnamed_jar,
            conda,
            renamed: self.layout.into_renamed(),
        })
    }

    /// The identity of a Conda package that was recognised by its contents.
    fn undeclared_conda(&mut self, reasons: &mut Vec<PartialReason>) -> io::Result<Option<Identity>> {
        let identity = match std::mem::take(&mut self.conda).undeclared() {
            Some((facts, index)) => {
                // Another name than for a declared one: here npm's reader looks too, and would take it for its own.
                self.lay_out_conda(&index, "conda-meta/index.json")?;
                let identity = facts.coordinates().and_then(|c| c.identify(CONDA_INDEX.into()));
                identity.ok()
            }
            None => None,
        };
        if identity.is_none() {
            let detail = "the conda package has no usable index";
            reasons.push(reason(PartialCode::IdentityUnknown, &detail));
        }
        Ok(identity)
    }

    /// The index as it is where Syft looks for installed Conda packages.
    fn lay_out_conda(&mut self, index: &[u8], installed: &str) -> io::Result<()> {
        self.layout.write(installed, index)?;
        self.layout.rename(installed, CONDA_INDEX);
        self.expect(installed.to_owned(), CONDA_INDEX.to_owned());
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
    /// the jar's only `pom.properties`. So the jar gets the name that Maven gives it, if that is plain text; else its
    /// own file name, if that is known and plain; else the one that its manifest gives; else one that no artifact has.
    fn java_name(&self) -> String {
        let suffix = match self.hint {
            ArtifactType::War => "war",
            ArtifactType::Ear => "ear",
            _ => "jar",
        };
        let named = |name: &str, version: &str| {
            (is_plain(name) && is_plain(version)).then(|| format!("{name}-{version}.{suffix}"))
        };
        let mut own = self.own_poms();
        let by_properties = match (own.next().map(|f| &f.coordinates), own.next()) {
            (Some(Ok(c)), None) => named(&c.name, &c.version),
            _ => None,
        };
        by_properties
            .or_else(|| {
                self.file_name
                    .clone()
                    .filter(|name| is_plain(name) && is_java(name))
            })
            .or_else(|| {
                let (name, version) = self.java_manifest.as_ref()?;
                named(name, version)
            })
            .unwrap_or_else(|| format!("{PLACEHOLDER_NAME}.{suffix}"))
    }

    /// The `pom.properties` of the artifact itself, not of an archive inside.
    fn own_poms(&self) -> impl Iterator<Item = &Found> {
        self.found
            .iter()
            .filter(|f| f.unit.is_empty() && f.candidate == Some(Candidate::PomProperties))
    }

    /// Applications are ordinarily deployed without coordinates of their own: what is in them is what counts.
    fn is_unnamed_jar(&self) -> bool {
        !self.units.get("").is_some_and(Unit::is_java_application)
            && !self.own_poms().any(|f| f.coordinates.is_ok())
    }

    /// Syft has no cataloguer for an Alpine package, but one for the database of installed ones.
    fn write_alpine(&mut self) -> io::Result<()> {
        if let Some(distribution) = self.root_distribution.clone() {
            let database = std::mem::take(&mut self.alpine_db);
            self.layout.write("lib/apk/db/installed", database.as_bytes())?;
            self.layout.rename("lib/apk/db/installed", ".PKGINFO");
            self.expect("lib/apk/db/installed".to_owned(), ".PKGINFO".to_owned());
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
        let name = sniff::manifest_name(&bytes).map(str::to_owned).or_else(|| {
            let name = self.file_name.clone()?;
            (is_plain(&name) && interest::wanted(&name) == Wanted::File).then_some(name)
        });
        let place = name.as_deref().unwrap_or("artifact");
        self.layout.link(root.path, place)?;
        self.layout.rename(place, "");
        let coordinates = match place {
            "pom.xml" => manifest::pom(&bytes).ok(),
            "package.json" => manifest::npm(&bytes).ok(),
            sniff::GRADLE_MODULE => manifest::gradle_module(&bytes).ok(),
            sniff::IVY => manifest::ivy(&bytes).ok(),
            _ => None,
        };
        identities.extend(coordinates.and_then(|c| c.identify(String::new()).ok()));
        if let Some(name) = name {
            if !sniff::UNCATALOGED.contains(&name.as_str()) {
                self.expect(name, String::new());
            }
            return Ok(Form::Manifest);
        }
        Ok(Form::of_hint(self.hint).unwrap_or(Form::Opaque))
    }

    /// Identities of the packages that are there, whether one of them is the artifact's own, and a reason for each one
    /// that cannot be read.
    fn identities(&mut self, root: Form, reasons: &mut Vec<PartialReason>) -> (Vec<Identity>, bool) {
        let forms: BTreeMap<String, Form> = self
            .units
            .iter()
            .map(|(key, unit)| (key.clone(), if key.is_empty() { root } else { unit.form() }))
            .collect();
        let mut found = std::mem::take(&mut self.found);
        found.append(&mut self.rpms);
        for (key, unit) in &self.units {
            let form = forms.get(key);
            if let Some(Form::GoModule | Form::TerraformProvider) = form {
                found.extend(named_by_path(key, unit, form == Some(&Form::GoModule)));
                self.uncounted = self.uncounted.saturating_add(unit.uncounted());
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
        let mut names_itself = false;
        for item in found {
            if !is_of_its_form(&item, forms.get(&item.unit).copied()) {
                continue;
            }
            if item.candidate == Some(Candidate::PomProperties) && shaded.contains(&item.unit) {
                continue;
            }
            match item.coordinates.and_then(|c| c.identify(item.location)) {
                Ok(identity) if identities.len() < MAX_IDENTITIES => {
                    names_itself |= is_own(&item.unit, item.candidate);
                    if let Some(layout_path) = self.provable.remove(&identity.location) {
                        self.expect(layout_path, identity.location.clone());
                    }
                    let identity = self.with_images(identity);
                    identities.entry(identity.purl.clone()).or_insert(identity);
                }
                Ok(_) => self.uncounted += 1,
                Err(error) if !item.candidate.is_some_and(Candidate::is_optional) => {
                    reasons.push(reason(PartialCode::IdentityUnknown, &error));
                    reasons.dedup();
                }
                Err(_) => {}
            }
        }
        (identities.into_values().collect(), names_itself)
    }

    /// A chart with the images that its default values name. They are named, not scanned.
    fn with_images(&self, mut identity: Identity) -> Identity {
        if identity.ecosystem == Ecosystem::Helm {
            let chart = identity.location.rsplit_once('/').map_or("", |(chart, _)| chart);
            let images = self.chart_images.get(chart).into_iter().flatten();
            identity.properties.extend(
                images
                    .enumerate()
                    .map(|(number, image)| (format!("{CHART_IMAGE}{number}"), image.clone())),
            );
        }
        identity
    }

    fn reasons(&self, form: Form, reasons: &mut Vec<PartialReason>) {
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
}

/// What the paths in a container name: modules of Go or providers of Terraform.
fn named_by_path(key: &str, unit: &Unit, is_go: bool) -> Vec<Found> {
    let found = |path: &str, coordinates| Found {
        unit: key.to_owned(),
        candidate: None,
        location: join(key, path),
        coordinates,
    };
    if is_go {
        let modules = unit.go_modules();
        modules
            .map(|prefix| found(prefix, manifest::go_module(prefix)))
            .collect()
    } else {
        let providers = unit.providers();
        providers
            .map(|name| found(name, manifest::terraform_provider(name)))
            .collect()
    }
}

/// Whether what was found counts in a container of this form.
fn is_of_its_form(item: &Found, form: Option<Form>) -> bool {
    match item.candidate {
        Some(Candidate::AndroidVersion) => {
            matches!(form, Some(Form::AndroidLibrary | Form::AndroidPackage))
        }
        candidate => candidate
            .and_then(Candidate::form)
            .is_none_or(|wanted| Some(wanted) == form),
    }
}

/// Whether an identity is that of the artifact and not of something in it.
fn is_own(unit: &str, candidate: Option<Candidate>) -> bool {
    match candidate {
        Some(Candidate::AndroidVersion) => false,
        Some(Candidate::DebControl) => !unit.contains("!/"),
        _ => unit.is_empty(),
    }
}

fn is_not_about_identity(reason: &PartialReason) -> bool {
    reason.code != PartialCode::IdentityUnknown
}

/// Whether a text can be a file name that means nothing to anyone but its reader.
fn is_plain(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

fn reason(code: PartialCode, detail: &impl ToString) -> PartialReason {
    PartialReason {
        code,
        detail: detail.to_string(),
    }
}
