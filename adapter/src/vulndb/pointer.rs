//! Names of generations and the pointer file.

use jiff::Timestamp;
use std::fmt;
use uuid::Uuid;

/// Name of a generation's directory: `generation-<epoch ms>-<uuid>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GenerationName(String);

impl GenerationName {
    /// A new name.
    pub fn new(published: Timestamp, id: Uuid) -> Self {
        Self(format!(
            "generation-{}-{}",
            published.as_millisecond().max(0),
            id.hyphenated()
        ))
    }

    /// The name in `text`, when it is one: `^generation-[0-9]+-[0-9a-f-]{36}$`.
    pub fn parse(text: &str) -> Option<Self> {
        let (millis, id) = text.strip_prefix("generation-")?.split_once('-')?;
        let is_name = !millis.is_empty()
            && millis.bytes().all(|b| b.is_ascii_digit())
            && id.len() == 36
            && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'-'));
        is_name.then(|| Self(text.to_owned()))
    }

    /// The time in the name; `None` when no clock goes that far.
    pub fn published(&self) -> Option<Timestamp> {
        let millis = self.0.strip_prefix("generation-")?.split('-').next()?;
        Timestamp::from_millisecond(millis.parse().ok()?).ok()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GenerationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The content of the pointer file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// The current generation.
    pub name: GenerationName,
    /// When it was published.
    pub published: Timestamp,
}

/// Why a pointer file cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PointerError {
    /// Fewer than two lines.
    #[error("pointer has {lines} lines, two are needed")]
    TooShort {
        /// Lines seen.
        lines: usize,
    },
    /// The first line is no generation name.
    #[error("pointer does not name a generation")]
    NameInvalid,
    /// The second line is no instant.
    #[error("pointer has no publication time")]
    TimeInvalid,
}

impl Pointer {
    /// Reads the file's content. Lines after the second are left to newer writers.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        let mut lines = text.lines();
        let (Some(name), Some(published)) = (lines.next(), lines.next()) else {
            return Err(PointerError::TooShort {
                lines: text.lines().count(),
            });
        };
        Ok(Self {
            name: GenerationName::parse(name.trim()).ok_or(PointerError::NameInvalid)?,
            published: published.trim().parse().map_err(|_| PointerError::TimeInvalid)?,
        })
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.name, self.published)
    }
}

#[cfg(test)]
mod tests {
    use super::{GenerationName, Pointer, PointerError};
    use uuid::Uuid;

    const NAME: &str = "generation-1767225600000-00000000-0000-0000-0000-000000000000";

    #[test]
    fn a_pointer_round_trips() {
        let published = "2026-01-01T00:00:00Z".parse().unwrap();
        let pointer = Pointer {
            name: GenerationName::new(published, Uuid::nil()),
            published,
        };
        assert_eq!(pointer.to_string(), format!("{NAME}\n2026-01-01T00:00:00Z\n"));
        assert_eq!(Pointer::parse(&pointer.to_string()), Ok(pointer));
    }

    #[test]
    fn bad_pointers_are_told_apart() {
        let cases = [
            (String::new(), PointerError::TooShort { lines: 0 }),
            (NAME.to_owned(), PointerError::TooShort { lines: 1 }),
            (
                format!("../{NAME}\n2026-01-01T00:00:00Z"),
                PointerError::NameInvalid,
            ),
            (format!("{NAME}\nyesterday"), PointerError::TimeInvalid),
        ];
        for (text, want) in cases {
            assert_eq!(Pointer::parse(&text), Err(want), "{text}");
        }
        assert!(Pointer::parse(&format!("{NAME}\r\n2026-01-01T00:00:00Z\nmore\n")).is_ok());
    }

    #[test]
    fn only_plain_names_are_names() {
        for bad in [
            "",
            "generation-",
            "generation--00000000-0000-0000-0000-000000000000",
            "generation-1-00000000-0000-0000-0000-00000000000",
            "generation-1-00000000-0000-0000-0000-0000000000000",
            "generation-1-0000000G-0000-0000-0000-000000000000",
            "generation-1x-00000000-0000-0000-0000-000000000000",
            "generation-1-../00000-0000-0000-0000-000000000000",
        ] {
            assert_eq!(GenerationName::parse(bad), None, "{bad}");
        }
        assert!(GenerationName::parse(NAME).is_some());
    }
}
