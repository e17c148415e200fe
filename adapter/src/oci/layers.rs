//! The layers of a run: fetched a few at a time, inspected in the order of their images while the next ones arrive.

use super::digest::Digest;
use super::document::{Layer, LayerKind};
use super::error::OciError;
use super::layout::Store;
use super::registry::Registry;
use crate::archive::{
    Container, Entry, EntrySink, Format, GateLimits, Input, Inspection, Interest, Profile, sniff,
};
use crate::run::RunContext;
use futures_util::stream::{self, StreamExt as _};
use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// Fetched layers that wait for the gate; their content is on disk, so this bounds nothing but the overlap.
const AHEAD: usize = 8;

/// What the gate is given beside the layers.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) limits: GateLimits,
    pub(super) scratch: PathBuf,
    pub(super) run: RunContext,
}

/// What came of the layers.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    /// What the gate saw in all of them together.
    pub(super) inspection: Inspection,
    /// Foreign layers that the registry does not have.
    pub(super) absent: HashSet<Digest>,
    /// Files that are named like archives and are broken or unsafe ones: no engine may open them.
    pub(super) withheld: BTreeSet<String>,
}

/// Fetches distinct layers into the store and inspects all of them under one budget.
pub(super) async fn take(
    registry: &Registry,
    store: &Store,
    layers: &[&Layer],
    parallel: usize,
    gate: Gate,
) -> Result<Taken, OciError> {
    let total = layers
        .iter()
        .fold(0u64, |sum, layer| sum.saturating_add(layer.blob.size));
    let mut absent = HashSet::new();
    let (to_gate, fetched) = mpsc::channel::<(File, u64)>(AHEAD);
    let gate = tokio::task::spawn_blocking(move || inspect_all(fetched, total, &gate));
    let fetching: Vec<_> = layers.iter().map(|layer| fetch(registry, store, layer)).collect();
    // Results come in the order of the layers, so which failure is reported does not depend on the network.
    let mut arriving = stream::iter(fetching).buffered(parallel.max(1));
    let failure = loop {
        let next = tokio::select! {
            () = to_gate.closed() => break None,
            next = arriving.next() => next,
        };
        match next {
            None => break None,
            Some(Err(error)) => break Some(error),
            Some(Ok(Err(digest))) => {
                absent.insert(digest);
            }
            Some(Ok(Ok(layer))) => {
                if to_gate.send(layer).await.is_err() {
                    break None;
                }
            }
        }
    };
    drop((arriving, to_gate));
    let inspected = gate
        .await
        .map_err(|error| OciError::Store(io::Error::other(error)))?;
    // What the gate has seen comes before what failed to arrive.
    match (inspected, failure) {
        (Ok(_), Some(failure)) | (Err(failure), _) => Err(failure),
        (Ok((inspection, withheld)), None) => Ok(Taken {
            inspection,
            absent,
            withheld,
        }),
    }
}

/// The layer's content and size, or the digest of a layer that nobody has to have.
type Fetched = Result<(File, u64), Digest>;

async fn fetch(registry: &Registry, store: &Store, layer: &Layer) -> Result<Fetched, OciError> {
    let Layer { blob, kind } = layer;
    let file = store.begin(&blob.digest).map_err(OciError::Store)?;
    let reader = file.try_clone().map_err(OciError::Store)?;
    match registry.store(blob, file).await {
        // Its descriptor may say where else it is. That is never asked: it could be anywhere.
        Err(OciError::Missing { .. }) if *kind == LayerKind::Foreign => return Ok(Err(blob.digest.clone())),
        other => other?,
    }
    store.finish(&blob.digest).map_err(OciError::Store)?;
    Ok(Ok((reader, blob.size)))
}

fn inspect_all(
    mut layers: mpsc::Receiver<(File, u64)>,
    total: u64,
    gate: &Gate,
) -> Result<(Inspection, BTreeSet<String>), OciError> {
    let mut withheld = BTreeSet::new();
    let mut totals = Inspection {
        format: Format::Tar,
        content: Format::Tar,
        entries: 0,
        expanded_bytes: 0,
        nested_archives: 0,
        unopened: 0,
    };
    let inspector = crate::archive::Gate::new(gate.limits, total, &gate.scratch, Profile::Layer, &gate.run);
    while let Some((file, size)) = layers.blocking_recv() {
        let mut watch = Watch {
            withheld,
            ..Watch::default()
        };
        let seen = inspector
            .inspect(Input::complete(&file, size), &mut watch)
            .map_err(OciError::Layer)?;
        let is_readable = matches!(seen.format, Format::Tar | Format::Gzip | Format::Zstd);
        if !is_readable || !(seen.content == Format::Tar || watch.is_empty_tar()) {
            return Err(OciError::LayerFormat);
        }
        totals.entries += seen.entries;
        totals.expanded_bytes += seen.expanded_bytes;
        totals.nested_archives += seen.nested_archives;
        totals.unopened += seen.unopened;
        withheld = watch.withheld;
    }
    Ok((totals, withheld))
}

/// Most files of an image that are withheld from the engine; with more the image is refused.
const MAX_WITHHELD: usize = 256;

/// Watches what the gate reads in a layer.
///
/// An empty tar archive has nothing to know it by, it is nothing but zeros; and a broken archive among the files of an
/// image (test data, a download that was cut off) is no reason to refuse the image, as long as no engine opens it.
#[derive(Debug, Default)]
struct Watch {
    is_content: bool,
    seen: u64,
    has_other: bool,
    /// The file of the layer itself that is being read.
    file: String,
    withheld: BTreeSet<String>,
}

impl Watch {
    fn is_empty_tar(&self) -> bool {
        self.is_content && !self.has_other && self.seen.is_multiple_of(512)
    }
}

impl EntrySink for Watch {
    fn begin(&mut self, entry: &Entry<'_>) -> Interest {
        self.is_content = entry.container == Container::Compressed && entry.within.is_empty();
        if entry.within.is_empty() {
            entry.path.clone_into(&mut self.file);
        }
        if self.is_content {
            Interest::Content
        } else {
            Interest::Skip
        }
    }

    fn is_handed_on(&self) -> bool {
        self.withheld.len() >= MAX_WITHHELD
    }

    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.seen = self
            .seen
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.has_other = self.has_other || bytes.iter().any(|byte| *byte != 0);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn abandon(&mut self) -> io::Result<()> {
        // Under another name no engine takes it for an archive.
        if sniff::names_archive(&self.file) {
            self.withheld.insert(std::mem::take(&mut self.file));
        }
        Ok(())
    }

    fn rpm(&mut self, _: &[String], _: &rpm::PackageMetadata) {}
}
