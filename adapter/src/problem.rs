//! Any module's error on its way to the client: one stable code, one public message, the cause for the log.

use crate::run::Stopped;
use assay_schemas::{Code, ProblemBody};

/// A failed request.
///
/// `Display` gives the public message. The cause is for the log only; it never reaches the client.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The stable code; status and retryable flag follow from it.
    pub code: Code,
    /// Public text: no path of the server, no secret, no unsanitised input.
    pub message: String,
    /// What happened underneath.
    #[source]
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Problem {
    /// A problem without a cause.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            cause: None,
        }
    }

    /// The same with the error underneath it.
    #[must_use]
    pub fn caused_by(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// The wire body.
    pub fn body(&self) -> ProblemBody {
        ProblemBody::new(self.code, self.message.clone())
    }
}

impl From<Stopped> for Problem {
    fn from(stopped: Stopped) -> Self {
        Self::new(stopped.code(), stopped.to_string())
    }
}

/// Text from outside made fit for a message or a log line: line breaks and tabs become one space, other control
/// characters `?`, and at most `limit` characters remain.
pub fn sanitize(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut last_was_break = false;
    let mut length = 0;
    for c in text.chars() {
        let is_break = matches!(c, '\r' | '\n' | '\t');
        if is_break && last_was_break {
            continue;
        }
        last_was_break = is_break;
        out.push(match c {
            _ if is_break => ' ',
            // Bidirectional overrides could reorder what a terminal shows.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '?',
            c if c.is_control() => '?',
            c => c,
        });
        length += 1;
        if length >= limit {
            break;
        }
    }
    out
}

/// An error and what is underneath it, for the log: sanitised, at most 2000 characters.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    sanitize(&text, 2000)
}

#[cfg(test)]
mod tests {
    use super::sanitize;

    #[test]
    fn control_characters_never_survive() {
        assert_eq!(sanitize("a\r\n\tb\u{1b}[31mc\u{202e}d", 100), "a b?[31mc?d");
        assert_eq!(sanitize("aaaa", 2), "aa");
        assert_eq!(sanitize("", 2), "");
    }
}
