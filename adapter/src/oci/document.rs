//! Manifests, indexes and configs, read strictly: what two readers could see differently is refused.

use super::digest::Digest;
use super::platform::Platform;
use super::strict;
use oci_spec::image::{Descriptor, ImageIndex, ImageManifest};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// Media types of the documents that a registry is asked for.
pub mod media {
    /// Index of the OCI image specification.
    pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// Manifest of the OCI image specification.
    pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// Manifest list of Docker's schema 2.
    pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// Manifest of Docker's schema 2.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    /// All of them, as an `Accept` header.
    pub const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
        application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";
}

/// Configs that make a manifest an image.
const IMAGE_CONFIGS: &[&str] = &[
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.docker.container.image.v1+json",
];

/// Layers that the cataloguer reads, and whose content is a tar archive, compressed or not.
const LAYERS: &[&str] = &[
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.docker.image.rootfs.diff.tar.zstd",
    "application/vnd.docker.image.rootfs.diff.tar+zstd",
];

/// Layers that registries need not have: their content is somebody else's to give. Those that the cataloguer reads.
const FOREIGN_LAYERS: &[&str] = &[
    "application/vnd.oci.image.layer.nondistributable.v1.tar",
    "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
    "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
];

/// Annotation by which builders mark the attestation of an image.
const REFERENCE_TYPE: &str = "vnd.docker.reference.type";

/// Why a manifest, an index or a config cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON, a member that is missing, twice there or of the wrong kind.
    #[error("not readable: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version of the format.
    #[error("schema version {got}, only 2 is supported")]
    SchemaVersion {
        /// What it says.
        got: i64,
    },
    /// Index and manifest at once.
    #[error("it has the members of an index and those of a manifest")]
    Ambiguous,
    /// Its own media type, its content or its descriptor contradict each other.
    #[error("it is not what its media type says")]
    MediaTypeContradiction,
    /// A media type that names no manifest or index.
    #[error("an unsupported media type")]
    MediaTypeUnsupported,
    /// A digest that is not sha256 in its canonical form.
    #[error("a digest that is not sha256 in lower-case hexadecimal digits")]
    Digest,
    /// A size that no file can have.
    #[error("a size of {got} bytes")]
    Size {
        /// What it says.
        got: u64,
    },
    /// The config names no platform.
    #[error("the config names no operating system or no architecture")]
    PlatformMissing,
    /// The root file system of the config is of another type, or has not one entry for each layer.
    #[error("the config describes {got} layers, the manifest {want}")]
    LayerCount {
        /// Entries of the config.
        got: usize,
        /// Layers of the manifest.
        want: usize,
    },
}

/// A reference to content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// What it is.
    pub media_type: String,
    /// Its name.
    pub digest: Digest,
    /// Its size, bytes. A claim until it has been fetched.
    pub size: u64,
}

impl Blob {
    fn new(descriptor: &Descriptor) -> Result<Self, DocumentError> {
        let size = descriptor.size();
        if i64::try_from(size).is_err() {
            return Err(DocumentError::Size { got: size });
        }
        Ok(Self {
            media_type: descriptor.media_type().to_string(),
            digest: Digest::parse(descriptor.digest().as_ref()).ok_or(DocumentError::Digest)?,
            size,
        })
    }
}

/// One entry of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// What it refers to.
    pub blob: Blob,
    /// What the index promises; the config of the child decides.
    pub platform: Option<Platform>,
    /// What it is by its media type and annotations.
    pub kind: EntryKind,
}

/// What an index entry refers to, as far as the index tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A manifest.
    Manifest,
    /// Another index.
    Index,
    /// Something about an image, or of a type that is no image.
    Companion(Kind),
}

/// What a manifest that is no image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Statements of a builder about an image.
    Attestation,
    /// A package of Kubernetes manifests.
    HelmChart,
    /// Any other artifact.
    Artifact,
}

impl Kind {
    /// Its name in a summary.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Attestation => "attestation",
            Self::HelmChart => "helm-chart",
            Self::Artifact => "artifact",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Attestation => "an attestation",
            Self::HelmChart => "a Helm chart",
            Self::Artifact => "an artifact",
        })
    }
}

/// A layer of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Its content.
    pub blob: Blob,
    /// How it can be read.
    pub kind: LayerKind,
}

/// How a layer can be read, by its media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// A tar archive that the registry has.
    Tar,
    /// A tar archive that the registry need not have.
    Foreign,
    /// Something else.
    Unsupported,
}

/// A manifest of one image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Media type of the manifest itself.
    pub media_type: &'static str,
    /// The config.
    pub config: Blob,
    /// From the base upwards.
    pub layers: Vec<Layer>,
}

/// What a digest of the manifests endpoint names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// Images for several platforms.
    Index(Vec<IndexEntry>),
    /// One image.
    Image(Image),
    /// A manifest that is no image.
    Other(Kind),
}

/// The members that tell what a document is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline {
    schema_version: i64,
    media_type: Option<String>,
    manifests: Option<IgnoredAny>,
    config: Option<IgnoredAny>,
    layers: Option<IgnoredAny>,
}

/// Reads a manifest or an index. `declared` is the media type of the descriptor that led to it.
///
/// # Errors
/// [`DocumentError`].
pub fn read(document: &[u8], declared: Option<&str>) -> Result<Document, DocumentError> {
    let outline: Outline = strict::from_slice(document)?;
    if outline.schema_version != 2 {
        return Err(DocumentError::SchemaVersion {
            got: outline.schema_version,
        });
    }
    let has_index = outline.manifests.is_some();
    if has_index && (outline.config.is_some() || outline.layers.is_some()) {
        return Err(DocumentError::Ambiguous);
    }
    let own = outline.media_type.as_deref();
    if let (Some(own), Some(declared)) = (own, declared)
        && own != declared
    {
        return Err(DocumentError::MediaTypeContradiction);
    }
    let guessed = if has_index {
        media::OCI_INDEX
    } else {
        media::OCI_MANIFEST
    };
    let media_type = match own.or(declared).unwrap_or(guessed) {
        media::OCI_INDEX => media::OCI_INDEX,
        media::DOCKER_LIST => media::DOCKER_LIST,
        media::OCI_MANIFEST => media::OCI_MANIFEST,
        media::DOCKER_MANIFEST => media::DOCKER_MANIFEST,
        "application/vnd.oci.artifact.manifest.v1+json" => return Ok(Document::Other(Kind::Artifact)),
        _ => return Err(DocumentError::MediaTypeUnsupported),
    };
    if matches!(media_type, media::OCI_INDEX | media::DOCKER_LIST) != has_index {
        return Err(DocumentError::MediaTypeContradiction);
    }
    if has_index {
        let index: ImageIndex = serde_json::from_slice(document)?;
        let entries = index.manifests().iter().map(entry).collect::<Result<_, _>>()?;
        return Ok(Document::Index(entries));
    }
    let manifest: ImageManifest = serde_json::from_slice(document)?;
    image(&manifest, media_type)
}

fn entry(descriptor: &Descriptor) -> Result<IndexEntry, DocumentError> {
    let platform = descriptor.platform().as_ref().and_then(|platform| {
        Platform::new(
            &platform.os().to_string(),
            &platform.architecture().to_string(),
            platform.variant().as_deref(),
        )
    });
    let is_attestation = descriptor
        .annotations()
        .as_ref()
        .and_then(|annotations| annotations.get(REFERENCE_TYPE))
        .is_some_and(|kind| kind == "attestation-manifest");
    let is_about_nothing = platform
        .as_ref()
        .is_some_and(|platform| platform.os() == "unknown" && platform.architecture() == "unknown");
    let blob = Blob::new(descriptor)?;
    let kind = match blob.media_type.as_str() {
        _ if is_attestation || is_about_nothing => EntryKind::Companion(Kind::Attestation),
        media::OCI_INDEX | media::DOCKER_LIST => EntryKind::Index,
        media::OCI_MANIFEST | media::DOCKER_MANIFEST => EntryKind::Manifest,
        _ => EntryKind::Companion(Kind::Artifact),
    };
    Ok(IndexEntry { blob, platform, kind })
}

fn image(manifest: &ImageManifest, media_type: &'static str) -> Result<Document, DocumentError> {
    let config = Blob::new(manifest.config())?;
    let layers: Vec<Layer> = manifest
        .layers()
        .iter()
        .map(|descriptor| {
            let blob = Blob::new(descriptor)?;
            let kind = layer_kind(&blob.media_type);
            Ok(Layer { blob, kind })
        })
        .collect::<Result<_, DocumentError>>()?;
    if !IMAGE_CONFIGS.contains(&config.media_type.as_str()) {
        let is_chart = config.media_type == "application/vnd.cncf.helm.config.v1+json";
        return Ok(Document::Other(if is_chart {
            Kind::HelmChart
        } else {
            Kind::Artifact
        }));
    }
    // Builders give attestations the config of an image.
    let is_statement = |layer: &Layer| layer.blob.media_type == "application/vnd.in-toto+json";
    if !layers.is_empty() && layers.iter().all(is_statement) {
        return Ok(Document::Other(Kind::Attestation));
    }
    Ok(Document::Image(Image {
        media_type,
        config,
        layers,
    }))
}

fn layer_kind(media_type: &str) -> LayerKind {
    if LAYERS.contains(&media_type) {
        LayerKind::Tar
    } else if FOREIGN_LAYERS.contains(&media_type) {
        LayerKind::Foreign
    } else {
        LayerKind::Unsupported
    }
}

/// What a config says that matters here. The rest of it describes how the image runs, and builders differ in it more
/// than the specification allows; the types of the specification would refuse images for that.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    variant: Option<String>,
    rootfs: RootFs,
}

#[derive(Deserialize)]
struct RootFs {
    #[serde(rename = "type")]
    kind: String,
    diff_ids: Option<Vec<String>>,
}

/// Reads the config of an image with this number of layers; gives its platform.
///
/// # Errors
/// [`DocumentError`].
pub fn read_config(document: &[u8], layers: usize) -> Result<Platform, DocumentError> {
    let config: Config = strict::from_slice(document)?;
    let platform = Platform::new(&config.os, &config.architecture, config.variant.as_deref())
        .ok_or(DocumentError::PlatformMissing)?;
    let diff_ids = config.rootfs.diff_ids.unwrap_or_default();
    if config.rootfs.kind != "layers" || diff_ids.len() != layers {
        return Err(DocumentError::LayerCount {
            got: diff_ids.len(),
            want: layers,
        });
    }
    if diff_ids.iter().any(|id| Digest::parse(id).is_none()) {
        return Err(DocumentError::Digest);
    }
    Ok(platform)
}

/// The same image without the layers at these positions, for a cataloguer that would fail on what is not there:
/// manifest and config.
///
/// # Errors
/// [`DocumentError::Json`] for documents that were not read before.
pub fn without_layers(
    manifest: &[u8],
    config: &[u8],
    positions: &BTreeSet<usize>,
) -> Result<(Vec<u8>, Vec<u8>), DocumentError> {
    let remove = |list: Option<&mut Value>| {
        if let Some(Value::Array(items)) = list {
            let mut position = 0;
            items.retain(|_| {
                position += 1;
                !positions.contains(&(position - 1))
            });
        }
    };
    let mut config: Value = serde_json::from_slice(config)?;
    remove(config.pointer_mut("/rootfs/diff_ids"));
    let config = config.to_string().into_bytes();
    let mut manifest: Value = serde_json::from_slice(manifest)?;
    remove(manifest.pointer_mut("/layers"));
    if let Some(described) = manifest.pointer_mut("/config").and_then(Value::as_object_mut) {
        described.insert("digest".to_owned(), Digest::of(&config).as_str().into());
        described.insert("size".to_owned(), config.len().into());
    }
    Ok((manifest.to_string().into_bytes(), config))
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
