//! The body of every answer that is not a success.

use crate::Code;
use serde::{Deserialize, Serialize};

/// Error body: at most 64 KiB on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
pub struct ProblemBody {
    /// A [`Code`]'s wire text; unknown codes of newer adapters must be accepted by readers.
    #[cfg_attr(feature = "generate", schemars(regex(pattern = r"^[A-Z0-9_]{1,128}$")))]
    pub code: String,
    /// Text for a human. Not contract; carries no secret, no path of the server and no raw engine output.
    #[cfg_attr(feature = "generate", schemars(length(max = 16384)))]
    pub message: String,
    /// Whether the same request may succeed later or on another replica.
    pub retryable: bool,
}

impl ProblemBody {
    /// A body for `code`; the retryable flag is the code's own.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code: code.as_str().to_owned(),
            message: message.into(),
            retryable: code.retryable(),
        }
    }
}
