//! The layers of a run: fetched a few at a time, inspected in the order of their images while they arrive.

use super::digest::Digest;
use super::document::{Layer, LayerKind};
use super::error::OciError;
use super::layout::Store;
use super::registry::Registry;
use crate::archive::{
    Container, Entry, EntrySink, Format, GateLimits, Growth as _, Input, Inspection, Interest, Profile, sniff,
};
use crate::run::RunContext;
use crate::spool::{self, Reader};
use futures_util::stream::{self, StreamExt as _};
use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use tokio::sync::oneshot;
use tokio::task::JoinError;

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

/// Fetches distinct layers into the store and inspects all of them under one budget, each while it arrives.
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
    let (fetching, arrivals): (Vec<_>, Vec<_>) = layers
        .iter()
        .map(|layer| {
            let (begun, arrival) = oneshot::channel();
            (fetch(registry, store, layer, begun), arrival)
        })
        .unzip();
    let mut gate = tokio::task::spawn_blocking(move || inspect_all(arrivals, total, &gate));
    // Results come in the order of the layers, so which failure is reported does not depend on the network.
    let mut fetched = stream::iter(fetching).buffered(parallel.max(1));
    let mut verdict: Option<Verdict> = None;
    let mut arrived = 0;
    let mut absent = HashSet::new();
    let failure = loop {
        if matches!(&verdict, Some(Err(refusal)) if refusal.layer < arrived) {
            break None;
        }
        tokio::select! {
            ended = &mut gate, if verdict.is_none() => verdict = Some(unless_panicked(ended)),
            next = fetched.next() => match next {
                None => break None,
                Some(Err(error)) => break Some(error),
                Some(Ok(nobodys)) => {
                    arrived += 1;
                    absent.extend(nobodys);
                }
            },
        }
    };
    // What is still on its way ends here, and with it the gate's wait.
    drop(fetched);
    let verdict = match verdict {
        Some(verdict) => verdict,
        None => unless_panicked(gate.await),
    };
    match (verdict, failure) {
        // What the gate made of bytes is of worth only when they are the layer's.
        (Err(refusal), Some(_)) if refusal.layer < arrived => Err(refusal.error),
        (_, Some(failure)) => Err(failure),
        (Err(refusal), None) => Err(refusal.error),
        (Ok((inspection, withheld)), None) => Ok(Taken {
            inspection,
            absent,
            withheld,
        }),
    }
}

/// What the gate saw, and which files are withheld.
type Verdict = Result<(Inspection, BTreeSet<String>), Refusal>;

/// The gate's refusal of a layer.
#[derive(Debug)]
struct Refusal {
    /// Position of the layer.
    layer: usize,
    error: OciError,
}

fn unless_panicked(outcome: Result<Verdict, JoinError>) -> Verdict {
    outcome.unwrap_or_else(|error| {
        Err(Refusal {
            layer: 0,
            error: OciError::Store(io::Error::other(error)),
        })
    })
}

/// A layer whose content is on its way.
#[derive(Debug)]
struct Arrival {
    file: File,
    size: u64,
    growth: Reader,
}

/// Fetches one layer and says when its content begins to come. Gives the digest of a layer that nobody has to have.
async fn fetch(
    registry: &Registry,
    store: &Store,
    layer: &Layer,
    begun: oneshot::Sender<Arrival>,
) -> Result<Option<Digest>, OciError> {
    let Layer { blob, kind } = layer;
    let download = match registry.download(blob).await {
        // Its descriptor may say where else it is. That is never asked: it could be anywhere.
        Err(OciError::Missing { .. }) if *kind == LayerKind::Foreign => return Ok(Some(blob.digest.clone())),
        other => other?,
    };
    let file = store.begin(&blob.digest).map_err(OciError::Store)?;
    let (writer, growth) = spool::growing();
    // The gate may be at another layer still; this one need not wait for it.
    growth.reached(u64::MAX);
    // A gate that has ended takes nothing more, and its verdict says why.
    let _ = begun.send(Arrival {
        file: file.try_clone().map_err(OciError::Store)?,
        size: blob.size,
        growth,
    });
    download.store(blob, file, writer).await?;
    store.finish(&blob.digest).map_err(OciError::Store)?;
    Ok(None)
}

/// Inspects layers in their order. One that never begins to arrive is passed over: it is absent, or its fetch failed,
/// which outranks all that is seen of later ones.
fn inspect_all(arrivals: Vec<oneshot::Receiver<Arrival>>, total: u64, gate: &Gate) -> Verdict {
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
    for (layer, arrival) in arrivals.into_iter().enumerate() {
        let Ok(arrival) = arrival.blocking_recv() else {
            continue;
        };
        let mut watch = Watch {
            withheld,
            ..Watch::default()
        };
        let seen = inspect(&inspector, &arrival, &mut watch).map_err(|error| Refusal { layer, error })?;
        totals.entries += seen.entries;
        totals.expanded_bytes += seen.expanded_bytes;
        totals.nested_archives += seen.nested_archives;
        totals.unopened += seen.unopened;
        withheld = watch.withheld;
    }
    Ok((totals, withheld))
}

fn inspect(
    inspector: &crate::archive::Gate<'_>,
    layer: &Arrival,
    watch: &mut Watch,
) -> Result<Inspection, OciError> {
    let input = Input::growing(&layer.file, layer.size, &layer.growth);
    let seen = inspector.inspect(input, watch).map_err(OciError::Layer)?;
    let is_readable = matches!(seen.format, Format::Tar | Format::Gzip | Format::Zstd);
    if is_readable && (seen.content == Format::Tar || watch.is_empty_tar()) {
        Ok(seen)
    } else {
        Err(OciError::LayerFormat)
    }
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
