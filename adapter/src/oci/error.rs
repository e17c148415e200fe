//! What can go wrong while an image is staged, and whose fault it is.

use super::document::{DocumentError, Kind};
use crate::archive::GateError;
use crate::problem::{Problem, sanitize};
use crate::run::Stopped;
use assay_schemas::Code;
use std::io;

/// Most characters of a message.
const MAX_MESSAGE: usize = 300;

/// Why an image could not be staged.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    /// Plain HTTP to a registry for which nobody allowed it.
    #[error("plain http is not allowed for this registry")]
    PlainHttp,
    /// The registry's address is one that may not be asked.
    #[error("the registry's address is not allowed")]
    AddressRefused,
    /// No URL can be made for the content.
    #[error("the registry URL cannot be used")]
    Url,
    /// The certificates that registries are checked against cannot be read.
    #[error("the certificates for registries cannot be read")]
    Trust(#[source] io::Error),
    /// The connection failed, or broke.
    #[error("the registry could not be reached, or the connection broke")]
    Io(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The registry refused the token.
    #[error("the registry refused the token with status {status}")]
    Auth {
        /// HTTP status.
        status: u16,
    },
    /// The registry does not have it.
    #[error("the registry does not have {what}")]
    Missing {
        /// What was asked for.
        what: String,
    },
    /// Any other status. Redirections are among them; none is followed.
    #[error("the registry answered with status {status}")]
    Status {
        /// HTTP status.
        status: u16,
    },
    /// An answer that is no proper HTTP, or is encoded though that was not asked for.
    #[error("the registry's answer is malformed: {reason}")]
    Response {
        /// What is wrong.
        reason: &'static str,
    },
    /// More bytes than the run may take.
    #[error("the image has {got} bytes or more, {limit} are allowed")]
    InputTooLarge {
        /// Bytes seen or announced.
        got: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// More descriptors than the run may read.
    #[error("the image has {got} descriptors or more, {limit} are allowed")]
    TooManyDescriptors {
        /// Descriptors seen.
        got: u64,
        /// Descriptors allowed.
        limit: u64,
    },
    /// A manifest over its bound.
    #[error("a manifest has more than {limit} bytes")]
    ManifestTooLarge {
        /// Bytes allowed.
        limit: u64,
    },
    /// A config over its bound.
    #[error("a config has {got} bytes, {limit} are allowed")]
    ConfigTooLarge {
        /// Bytes announced.
        got: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// A layer over the limit for one file.
    #[error("a layer has {got} bytes, {limit} are allowed for one file")]
    BlobTooLarge {
        /// Bytes announced.
        got: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Content of another size than its descriptor says.
    #[error("{what} has {got} bytes or more, its descriptor says {want}")]
    SizeMismatch {
        /// What was fetched.
        what: String,
        /// Bytes seen or announced.
        got: u64,
        /// Bytes expected.
        want: u64,
    },
    /// Content of another digest than its name.
    #[error("{what} does not have its digest")]
    DigestMismatch {
        /// What was fetched.
        what: String,
    },
    /// A manifest or an index that cannot be used.
    #[error("a manifest is not usable: {0}")]
    Manifest(#[source] DocumentError),
    /// One digest with two sizes or two media types.
    #[error("{digest} is described in two ways")]
    Contradiction {
        /// The digest.
        digest: String,
    },
    /// Indexes in indexes, too deep.
    #[error("indexes are nested deeper than {limit}")]
    IndexTooDeep {
        /// Levels allowed.
        limit: usize,
    },
    /// A config that cannot be used.
    #[error("a config is not usable: {0}")]
    Config(#[source] DocumentError),
    /// The digest names something else.
    #[error("the manifest is {0}, not an image")]
    NotAnImage(Kind),
    /// None of the platforms is there.
    #[error("none of the requested platforms is available")]
    NoPlatform,
    /// A layer of a type that is not read.
    #[error("a layer has the unsupported media type {media_type}")]
    LayerType {
        /// Sanitised media type.
        media_type: String,
    },
    /// A layer whose bytes are not what its media type says.
    #[error("a layer is no tar archive")]
    LayerFormat,
    /// The gate refused a layer.
    #[error("{0}")]
    Layer(#[source] GateError),
    /// The disk refused.
    #[error("the image cannot be stored")]
    Store(#[source] io::Error),
    /// The run ended first.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl OciError {
    /// The wire code.
    pub fn code(&self) -> Code {
        match self {
            Self::PlainHttp | Self::AddressRefused | Self::Url => Code::OciRegistryInvalid,
            Self::Trust(_) | Self::Store(_) => Code::OciStageIo,
            Self::Io(_) => Code::OciRegistryIo,
            Self::Auth { .. } => Code::OciRegistryAuthFailed,
            Self::Missing { .. } => Code::OciRegistryContentMissing,
            Self::Status { .. } => Code::OciRegistryScanFailed,
            Self::Response { .. } => Code::OciRegistryResponseInvalid,
            Self::InputTooLarge { .. } => Code::OciInputTooLarge,
            Self::TooManyDescriptors { .. } => Code::OciDescriptorLimit,
            Self::ManifestTooLarge { .. } => Code::OciManifestTooLarge,
            Self::ConfigTooLarge { .. } => Code::OciConfigTooLarge,
            Self::BlobTooLarge { .. } => Code::OciBlobTooLarge,
            Self::SizeMismatch { .. } => Code::OciBlobSizeMismatch,
            Self::DigestMismatch { .. } => Code::OciBlobDigestMismatch,
            Self::Manifest(_) | Self::Contradiction { .. } | Self::IndexTooDeep { .. } => {
                Code::OciManifestInvalid
            }
            Self::Config(_) => Code::OciConfigInvalid,
            Self::NotAnImage(_) | Self::NoPlatform => Code::OciScanFailed,
            Self::LayerType { .. } | Self::LayerFormat => Code::OciLayerInvalid,
            Self::Layer(error) => layer_code(error),
            Self::Stopped(stopped) => stopped.code(),
        }
    }

    /// A layer of a type that is not read.
    pub(super) fn layer_type(media_type: &str) -> Self {
        Self::LayerType {
            media_type: sanitize(media_type, 100),
        }
    }
}

/// The gate's own code, except that a broken layer is the image's defect and not that of an archive in it.
fn layer_code(error: &GateError) -> Code {
    match error {
        GateError::Malformed { place, .. }
        | GateError::Decoder { place, .. }
        | GateError::Unsupported { place, .. }
            if !place.path.contains("!/") =>
        {
            Code::OciLayerInvalid
        }
        GateError::Input(_) | GateError::Scratch(_) | GateError::Sink(_) => Code::OciStageIo,
        other => other.code(),
    }
}

impl From<OciError> for Problem {
    fn from(error: OciError) -> Self {
        // A parser's words may quote what it read.
        Self::new(error.code(), sanitize(&error.to_string(), MAX_MESSAGE)).caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use super::OciError;
    use crate::oci::document;
    use crate::problem::Problem;

    #[test]
    fn a_message_quotes_no_more_than_a_line_of_a_document() {
        let document = format!(r#"{{"schemaVersion":"\u001b{}"}}"#, "x".repeat(5000));
        let error = document::read(document.as_bytes(), None).unwrap_err();
        let problem = Problem::from(OciError::Manifest(error));
        assert!(problem.message.chars().count() <= 300, "{}", problem.message);
        assert!(!problem.message.contains('\u{1b}'));
    }
}
