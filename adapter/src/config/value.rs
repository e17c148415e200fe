//! Text of one setting to its value.

use super::keys::Kind;
use bytesize::ByteSize;
use std::time::Duration;

/// Why a text is not a value of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Not a whole number.
    #[error("is not a whole number")]
    Integer,
    /// Not a size.
    #[error("is not a size such as 1048576, 16MiB or 7GiB")]
    Bytes,
    /// Not a duration.
    #[error("is not a duration such as 500ms, 10s, 1m, 6h, PT6H or plain milliseconds")]
    Duration,
    /// Not a boolean.
    #[error("is not true or false")]
    Bool,
    /// Not one of the listed words.
    #[error("is not one of {0}")]
    Choice(String),
    /// Outside the bounds.
    #[error("is outside {0}..={1}")]
    OutOfBounds(i64, i64),
    /// Needed and absent.
    #[error("is required")]
    Missing,
}

/// The number behind a text: itself, bytes, milliseconds, or 0 and 1 for a boolean. `None` for kinds without one.
pub fn number(kind: Kind, text: &str) -> Result<Option<i64>, ValueError> {
    match kind {
        Kind::Text | Kind::Path | Kind::Secret => Ok(None),
        Kind::Choice(words) if words.contains(&text) => Ok(None),
        Kind::Choice(words) => Err(ValueError::Choice(words.join(", "))),
        Kind::Integer => text.trim().parse().map(Some).map_err(|_| ValueError::Integer),
        Kind::Bool => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(Some(1)),
            "false" => Ok(Some(0)),
            _ => Err(ValueError::Bool),
        },
        Kind::Bytes => bytes(text).map(Some).ok_or(ValueError::Bytes),
        Kind::Duration => milliseconds(text).map(Some).ok_or(ValueError::Duration),
    }
}

fn bytes(text: &str) -> Option<i64> {
    let text = text.trim();
    // A plain number may be negative, so that bounds can be applied to it; `ByteSize` takes units.
    text.parse()
        .ok()
        .or_else(|| i64::try_from(text.parse::<ByteSize>().ok()?.as_u64()).ok())
}

fn milliseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(plain) = text.parse::<i64>() {
        return Some(plain);
    }
    let span: jiff::SignedDuration = text.parse().ok()?;
    i64::try_from(span.as_millis()).ok()
}

/// The duration of a number of milliseconds; negative counts as zero.
pub fn duration(milliseconds: i64) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::{Kind, ValueError, number};

    #[test]
    fn sizes_take_units_and_plain_numbers() {
        for (text, want) in [
            ("7GiB", 7 << 30),
            ("16MiB", 16 << 20),
            ("1048576", 1 << 20),
            (" 64KiB ", 64 << 10),
            ("1MB", 1_000_000),
            ("-1", -1),
        ] {
            assert_eq!(number(Kind::Bytes, text), Ok(Some(want)), "{text}");
        }
        for text in ["", "GiB", "1XB", "nine"] {
            assert_eq!(number(Kind::Bytes, text), Err(ValueError::Bytes), "{text}");
        }
    }

    #[test]
    fn durations_take_the_contracts_forms() {
        for (text, want) in [
            ("10s", 10_000),
            ("1m", 60_000),
            ("6h", 21_600_000),
            ("500ms", 500),
            ("1500", 1500),
            ("PT6H", 21_600_000),
            ("0", 0),
        ] {
            assert_eq!(number(Kind::Duration, text), Ok(Some(want)), "{text}");
        }
        for text in ["", "soon", "1 fortnight"] {
            assert_eq!(number(Kind::Duration, text), Err(ValueError::Duration), "{text}");
        }
    }
}
