//! From a digest to images that can be catalogued: manifest, selection, configs, layers.

use super::digest::Digest;
use super::document::{self, Blob, Document, EntryKind, Image, IndexEntry, Kind, Layer, LayerKind, media};
use super::error::OciError;
use super::layers::{self, Gate};
use super::layout::Store;
use super::meter::Meter;
use super::platform::Platform;
use super::registry::Registry;
use super::select::{self, MAX_INDEX_DEPTH, Selection};
use crate::archive::{GateLimits, Inspection};
use crate::run::RunContext;
use assay_schemas::ResourceLimits;
use assay_schemas::oci::MAX_PLATFORMS;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

/// Most platforms that are named as missing; the contract's bound of that list.
const MAX_MISSING: usize = 256;

/// What is wanted of a repository.
#[derive(Debug, Clone, Copy)]
pub struct Order<'o> {
    /// The manifest or index.
    pub root: &'o Digest,
    /// Which images of it.
    pub selection: &'o Selection,
    /// Effective limits of the run.
    pub limits: &'o ResourceLimits,
    /// The same for the gate.
    pub gate: GateLimits,
    /// Blobs fetched at the same time.
    pub parallel_fetches: usize,
}

/// A platform that is there.
#[derive(Debug, Clone)]
pub struct StagedImage {
    /// As it was asked for.
    pub requested: Platform,
    /// As the config has it.
    pub platform: Platform,
    /// The manifest; it and everything that it refers to is in the store, but for absent layers.
    pub manifest: Blob,
    image: Image,
    /// Positions of foreign layers that the registry does not have.
    absent: BTreeSet<usize>,
}

impl StagedImage {
    /// What the cataloguer sees of it: the same for two images that differ in their configs only.
    pub fn content(&self) -> (String, Vec<Digest>) {
        let layers = self.image.layers.iter().map(|layer| layer.blob.digest.clone());
        (self.platform.os().to_owned(), layers.collect())
    }

    /// Layers that are not there, and that nobody has to have.
    pub fn absent_layers(&self) -> usize {
        self.absent.len()
    }

    /// Writes its layout into `directory`. An image with absent layers is laid out without them.
    ///
    /// # Errors
    /// [`OciError::Store`].
    pub fn lay_out(&self, store: &Store, directory: &Path) -> Result<(), OciError> {
        let mut manifest = self.manifest.clone();
        let mut config = self.image.config.digest.clone();
        if !self.absent.is_empty() {
            let read = |digest: &Digest| store.get(digest).map_err(OciError::Store);
            let (rewritten, rewritten_config) =
                document::without_layers(&read(&manifest.digest)?, &read(&config)?, &self.absent)
                    .map_err(OciError::Manifest)?;
            config = Digest::of(&rewritten_config);
            manifest.digest = Digest::of(&rewritten);
            manifest.size = u64::try_from(rewritten.len()).unwrap_or(u64::MAX);
            store.put(&config, &rewritten_config).map_err(OciError::Store)?;
            store.put(&manifest.digest, &rewritten).map_err(OciError::Store)?;
        }
        let layers = self.image.layers.iter().enumerate();
        let present = layers.filter(|(position, _)| !self.absent.contains(position));
        let digests = std::iter::once(&config).chain(present.map(|(_, layer)| &layer.blob.digest));
        store
            .lay_out(directory, &manifest, &self.platform, digests)
            .map_err(OciError::Store)
    }
}

/// What was staged.
#[derive(Debug, Clone)]
pub struct Staged {
    /// Platforms that are there, in the order of the request; at least one.
    pub images: Vec<StagedImage>,
    /// Platforms that are not.
    pub missing: Vec<Platform>,
    /// Whether the digest named an index.
    pub is_index: bool,
    /// What else the index refers to.
    pub companions: BTreeMap<Kind, u64>,
    /// Bytes taken from the registry.
    pub bytes: u64,
    /// What the gate saw in all layers together.
    pub inspection: Inspection,
    /// Paths of files that no engine may open: named like archives, and broken or unsafe ones.
    pub withheld: BTreeSet<String>,
}

/// Stages the wanted platforms into the store. `scratch` is a private directory.
///
/// # Errors
/// [`OciError`].
pub async fn stage(
    registry: &Registry,
    order: &Order<'_>,
    store: &Store,
    scratch: &Path,
    run: &RunContext,
) -> Result<Staged, OciError> {
    let mut reading = Reading {
        registry,
        store,
        meter: Meter::new(order.limits),
        known: HashMap::new(),
        read: HashMap::new(),
        companions: BTreeMap::new(),
    };
    let (document, blob) = reading.root(order.root).await?;
    let is_index = matches!(document, Document::Index(_));
    let (mut images, missing) = match document {
        Document::Other(kind) => return Err(OciError::NotAnImage(kind)),
        Document::Image(image) => {
            let platform = reading.config_of(&image).await?;
            single(&image, &platform, &blob, order.selection)
        }
        Document::Index(entries) => {
            let entries = reading.flatten(entries, order.selection).await?;
            match order.selection {
                Selection::Required(wanted) => reading.required(&entries, wanted).await?,
                Selection::All => reading.all(&entries).await?,
            }
        }
    };
    if images.is_empty() {
        return Err(OciError::NoPlatform);
    }
    let layers = distinct_layers(&images)?;
    for layer in &layers {
        reading.meter.check_blob(layer.blob.size)?;
        reading.meter.charge_bytes(layer.blob.size)?;
    }
    let gate = Gate {
        limits: order.gate,
        scratch: scratch.to_owned(),
        run: run.clone(),
    };
    let taken = layers::take(registry, store, &layers, order.parallel_fetches, gate).await?;
    for image in &mut images {
        let layers = image.image.layers.iter().enumerate();
        image.absent = layers
            .filter(|(_, layer)| taken.absent.contains(&layer.blob.digest))
            .map(|(position, _)| position)
            .collect();
    }
    Ok(Staged {
        missing,
        is_index,
        companions: reading.companions,
        bytes: reading.meter.bytes(),
        inspection: taken.inspection,
        withheld: taken.withheld,
        images,
    })
}

/// What was found, and what was not.
type Selected = (Vec<StagedImage>, Vec<Platform>);

/// A manifest of its own satisfies only the platform that its config declares.
fn single(image: &Image, platform: &Platform, blob: &Blob, selection: &Selection) -> Selected {
    let declared = [platform.clone()];
    let wanted = match selection {
        Selection::Required(wanted) => wanted.as_slice(),
        Selection::All => &declared,
    };
    let (found, missing): (Vec<&Platform>, Vec<&Platform>) =
        wanted.iter().partition(|wanted| wanted.accepts(platform));
    let staged = |requested: &Platform| StagedImage {
        requested: requested.clone(),
        platform: platform.clone(),
        manifest: blob.clone(),
        image: image.clone(),
        absent: BTreeSet::new(),
    };
    (
        found.into_iter().map(staged).collect(),
        missing.into_iter().cloned().collect(),
    )
}

/// The layers of all images, each once, from the base upwards.
fn distinct_layers(images: &[StagedImage]) -> Result<Vec<&Layer>, OciError> {
    let mut seen = HashSet::new();
    let mut layers = Vec::new();
    for layer in images.iter().flat_map(|image| &image.image.layers) {
        if layer.kind == LayerKind::Unsupported {
            return Err(OciError::layer_type(&layer.blob.media_type));
        }
        if seen.insert(&layer.blob.digest) {
            layers.push(layer);
        }
    }
    Ok(layers)
}

/// Documents read so far.
struct Reading<'r> {
    registry: &'r Registry,
    store: &'r Store,
    meter: Meter,
    known: HashMap<Digest, (u64, String)>,
    read: HashMap<Digest, Option<(Image, Platform)>>,
    companions: BTreeMap<Kind, u64>,
}

impl Reading<'_> {
    /// The document that the request names. Nobody announced its size or its type.
    async fn root(&mut self, digest: &Digest) -> Result<(Document, Blob), OciError> {
        let bytes = self
            .registry
            .root(digest, self.meter.manifest_allowance())
            .await?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.meter.charge_bytes(size)?;
        let document = document::read(&bytes, None).map_err(OciError::Manifest)?;
        let media_type = match &document {
            Document::Image(image) => {
                self.store.put(digest, &bytes).map_err(OciError::Store)?;
                self.note_image(image)?;
                image.media_type
            }
            _ => media::OCI_INDEX,
        };
        let blob = Blob {
            media_type: media_type.to_owned(),
            digest: digest.clone(),
            size,
        };
        Ok((document, blob))
    }

    /// The entries of an index and of those inside it that may hold a wanted platform, in order.
    async fn flatten(
        &mut self,
        entries: Vec<IndexEntry>,
        selection: &Selection,
    ) -> Result<Vec<IndexEntry>, OciError> {
        let mut flat = Vec::new();
        let mut opened = HashSet::new();
        // The entries still to look at, the next one last; each with the level of its index.
        let mut open: Vec<(IndexEntry, usize)> = Vec::new();
        self.push_entries(&mut open, entries, 1)?;
        while let Some((entry, level)) = open.pop() {
            if let EntryKind::Companion(kind) = entry.kind {
                *self.companions.entry(kind).or_default() += 1;
            }
            if !selection.may_hold(&entry) {
                flat.push(entry);
                continue;
            }
            if level >= MAX_INDEX_DEPTH {
                return Err(OciError::IndexTooDeep {
                    limit: MAX_INDEX_DEPTH,
                });
            }
            // Content that names itself by digest cannot be circular, but it can be there twice.
            if !opened.insert(entry.blob.digest.clone()) {
                continue;
            }
            let bytes = self.manifest(&entry.blob).await?;
            match document::read(&bytes, Some(&entry.blob.media_type)).map_err(OciError::Manifest)? {
                Document::Index(inner) => self.push_entries(&mut open, inner, level + 1)?,
                Document::Image(_) | Document::Other(_) => {
                    return Err(OciError::Manifest(
                        document::DocumentError::MediaTypeContradiction,
                    ));
                }
            }
        }
        Ok(flat)
    }

    fn push_entries(
        &mut self,
        open: &mut Vec<(IndexEntry, usize)>,
        entries: Vec<IndexEntry>,
        level: usize,
    ) -> Result<(), OciError> {
        self.meter.charge_descriptors(entries.len())?;
        for entry in &entries {
            self.note(&entry.blob)?;
        }
        open.extend(entries.into_iter().rev().map(|entry| (entry, level)));
        Ok(())
    }

    async fn required(&mut self, entries: &[IndexEntry], wanted: &[Platform]) -> Result<Selected, OciError> {
        let (mut images, mut missing) = (Vec::new(), Vec::new());
        for wanted in wanted {
            match self.find(entries, wanted).await? {
                Some(image) => images.push(image),
                None => missing.push(wanted.clone()),
            }
        }
        Ok((images, missing))
    }

    /// The first image of each platform. Those past the bound are missing, by the platform that the index promises.
    async fn all(&mut self, entries: &[IndexEntry]) -> Result<Selected, OciError> {
        let (mut images, mut missing): Selected = (Vec::new(), Vec::new());
        for entry in select::images(entries) {
            if images.len() >= MAX_PLATFORMS {
                missing.extend(entry.platform.clone());
                continue;
            }
            let Some((image, platform)) = self.image(&entry.blob).await? else {
                continue;
            };
            let is_new = images.iter().all(|staged| staged.platform != platform);
            if is_new && platform.is_recognisable() {
                images.push(StagedImage {
                    requested: platform.clone(),
                    platform,
                    manifest: entry.blob.clone(),
                    image,
                    absent: BTreeSet::new(),
                });
            }
        }
        missing.truncate(MAX_MISSING);
        Ok((images, missing))
    }

    /// The first image of this platform.
    async fn find(
        &mut self,
        entries: &[IndexEntry],
        wanted: &Platform,
    ) -> Result<Option<StagedImage>, OciError> {
        for entry in select::candidates(entries, wanted) {
            if let Some((image, platform)) = self.image(&entry.blob).await?
                && wanted.accepts(&platform)
            {
                return Ok(Some(StagedImage {
                    requested: wanted.clone(),
                    platform,
                    manifest: entry.blob.clone(),
                    image,
                    absent: BTreeSet::new(),
                }));
            }
        }
        Ok(None)
    }

    /// The image behind an index entry, if it is one, and its platform.
    async fn image(&mut self, blob: &Blob) -> Result<Option<(Image, Platform)>, OciError> {
        if let Some(read) = self.read.get(&blob.digest) {
            return Ok(read.clone());
        }
        let bytes = self.manifest(blob).await?;
        let read = match document::read(&bytes, Some(&blob.media_type)).map_err(OciError::Manifest)? {
            Document::Image(image) => {
                self.store.put(&blob.digest, &bytes).map_err(OciError::Store)?;
                self.note_image(&image)?;
                let platform = self.config_of(&image).await?;
                Some((image, platform))
            }
            Document::Other(kind) => {
                *self.companions.entry(kind).or_default() += 1;
                None
            }
            Document::Index(_) => {
                return Err(OciError::Manifest(
                    document::DocumentError::MediaTypeContradiction,
                ));
            }
        };
        self.read.insert(blob.digest.clone(), read.clone());
        Ok(read)
    }

    async fn manifest(&mut self, blob: &Blob) -> Result<Vec<u8>, OciError> {
        self.meter.check_manifest(blob.size)?;
        self.meter.charge_bytes(blob.size)?;
        self.registry.manifest(blob).await
    }

    /// Fetches and keeps the config of an image; gives the platform that it declares.
    async fn config_of(&mut self, image: &Image) -> Result<Platform, OciError> {
        let blob = &image.config;
        self.meter.check_config(blob.size)?;
        self.meter.charge_bytes(blob.size)?;
        let bytes = self.registry.config(blob).await?;
        let platform = document::read_config(&bytes, image.layers.len()).map_err(OciError::Config)?;
        self.store.put(&blob.digest, &bytes).map_err(OciError::Store)?;
        Ok(platform)
    }

    fn note_image(&mut self, image: &Image) -> Result<(), OciError> {
        self.meter
            .charge_descriptors(image.layers.len().saturating_add(1))?;
        self.note(&image.config)?;
        for layer in &image.layers {
            self.note(&layer.blob)?;
        }
        Ok(())
    }

    /// Remembers what a digest was said to be; it cannot be two things.
    fn note(&mut self, blob: &Blob) -> Result<(), OciError> {
        let said = (blob.size, blob.media_type.clone());
        match self.known.get(&blob.digest) {
            Some(known) if *known != said => Err(OciError::Contradiction {
                digest: blob.digest.to_string(),
            }),
            Some(_) => Ok(()),
            None => {
                self.known.insert(blob.digest.clone(), said);
                Ok(())
            }
        }
    }
}
