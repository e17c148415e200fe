//! JSON from outside: one streaming pass that holds it to the contract's bounds, and slices of it without a tree.
//!
//! After [`check`] has passed, values are read as [`RawValue`] slices of the document: nothing is copied until a
//! field is wanted, and everything that is not wanted goes back out byte for byte. Skipping a value is iterative, so
//! depth costs no stack.

use serde::Deserializer as _;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use struson::reader::{JsonReader, JsonStreamReader, ReaderError, ReaderSettings, ValueType};

/// Bounds of one engine document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonLimits {
    /// Whole document, bytes.
    pub document_bytes: u64,
    /// Member names, scalars, and both ends of each object and array.
    pub tokens: u64,
    /// Open objects and arrays at one time.
    pub depth: u32,
    /// Length of one number, characters.
    pub number_chars: usize,
    /// Length of one text, UTF-16 units as the contract's client counts them.
    pub string_units: usize,
    /// Length of one member name, UTF-16 units.
    pub name_units: usize,
}

impl JsonLimits {
    /// The contract's bounds for SBOMs and reports, on both sides of the wire.
    pub const ENGINE: Self = Self {
        document_bytes: 128 << 20,
        tokens: 2_000_000,
        depth: 256,
        number_chars: 1000,
        string_units: 64 << 10,
        name_units: 4 << 10,
    };
}

/// A document that breaks a bound, or is no JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// Too many bytes.
    #[error("document has {got} bytes, {limit} are allowed")]
    DocumentTooLarge {
        /// Bytes seen.
        got: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Too many tokens.
    #[error("document has more than {limit} tokens")]
    TooManyTokens {
        /// Tokens allowed.
        limit: u64,
    },
    /// Nested too deeply.
    #[error("document is nested more than {limit} levels deep")]
    TooDeep {
        /// Levels allowed.
        limit: u32,
    },
    /// A number with too many characters.
    #[error("number of {got} characters, {limit} are allowed")]
    NumberTooLong {
        /// Characters seen.
        got: usize,
        /// Characters allowed.
        limit: usize,
    },
    /// A text that is too long.
    #[error("text of {got} units, {limit} are allowed")]
    StringTooLong {
        /// Units seen.
        got: usize,
        /// Units allowed.
        limit: usize,
    },
    /// A member name that is too long.
    #[error("member name of {got} units, {limit} are allowed")]
    NameTooLong {
        /// Units seen.
        got: usize,
        /// Units allowed.
        limit: usize,
    },
    /// Not one JSON value.
    #[error("not a JSON document: {reason}")]
    Malformed {
        /// The parser's words.
        reason: String,
    },
}

/// Holds `document` to `limits` and gives its number of tokens.
pub fn check(document: &[u8], limits: &JsonLimits) -> Result<u64, JsonError> {
    let got = u64::try_from(document.len()).unwrap_or(u64::MAX);
    if got > limits.document_bytes {
        return Err(JsonError::DocumentTooLarge {
            got,
            limit: limits.document_bytes,
        });
    }
    let settings = ReaderSettings {
        track_path: false,
        // Ours, so that the bound has its own error.
        max_nesting_depth: None,
        restrict_number_values: false,
        ..ReaderSettings::default()
    };
    let mut walk = Walk {
        reader: JsonStreamReader::new_custom(document, settings),
        limits,
        tokens: 0,
    };
    walk.run()?;
    let tokens = walk.tokens;
    walk.reader.consume_trailing_whitespace().map_err(malformed)?;
    Ok(tokens)
}

fn malformed(error: impl Into<ReaderError>) -> JsonError {
    JsonError::Malformed {
        reason: error.into().to_string(),
    }
}

struct Walk<'a> {
    reader: JsonStreamReader<&'a [u8]>,
    limits: &'a JsonLimits,
    tokens: u64,
}

impl Walk<'_> {
    fn run(&mut self) -> Result<(), JsonError> {
        // The kinds of the open containers: true for an object.
        let mut open: Vec<bool> = Vec::new();
        loop {
            match open.last().copied() {
                Some(is_object) if !self.reader.has_next().map_err(malformed)? => {
                    open.pop();
                    self.count()?;
                    let end = if is_object {
                        self.reader.end_object()
                    } else {
                        self.reader.end_array()
                    };
                    end.map_err(malformed)?;
                    if open.is_empty() {
                        return Ok(());
                    }
                }
                inside => {
                    if inside == Some(true) {
                        self.name()?;
                    }
                    if let Some(is_object) = self.value()? {
                        if open.len() >= usize::try_from(self.limits.depth).unwrap_or(usize::MAX) {
                            return Err(JsonError::TooDeep {
                                limit: self.limits.depth,
                            });
                        }
                        open.push(is_object);
                    } else if open.is_empty() {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn count(&mut self) -> Result<(), JsonError> {
        self.tokens += 1;
        if self.tokens > self.limits.tokens {
            return Err(JsonError::TooManyTokens {
                limit: self.limits.tokens,
            });
        }
        Ok(())
    }

    fn name(&mut self) -> Result<(), JsonError> {
        self.count()?;
        let name = self.reader.next_name().map_err(malformed)?;
        let limit = self.limits.name_units;
        match units_over(name, limit) {
            Some(got) => Err(JsonError::NameTooLong { got, limit }),
            None => Ok(()),
        }
    }

    /// Reads a scalar, or opens a container and tells its kind.
    fn value(&mut self) -> Result<Option<bool>, JsonError> {
        self.count()?;
        match self.reader.peek().map_err(malformed)? {
            ValueType::Object => {
                self.reader.begin_object().map_err(malformed)?;
                return Ok(Some(true));
            }
            ValueType::Array => {
                self.reader.begin_array().map_err(malformed)?;
                return Ok(Some(false));
            }
            ValueType::String => {
                let text = self.reader.next_str().map_err(malformed)?;
                let limit = self.limits.string_units;
                if let Some(got) = units_over(text, limit) {
                    return Err(JsonError::StringTooLong { got, limit });
                }
            }
            ValueType::Number => {
                let number = self.reader.next_number_as_str().map_err(malformed)?;
                let limit = self.limits.number_chars;
                if number.len() > limit {
                    return Err(JsonError::NumberTooLong {
                        got: number.len(),
                        limit,
                    });
                }
            }
            ValueType::Boolean => {
                self.reader.next_bool().map_err(malformed)?;
            }
            ValueType::Null => self.reader.next_null().map_err(malformed)?,
        }
        Ok(None)
    }
}

/// The length in UTF-16 units when it is over `limit`. UTF-8 is never shorter than UTF-16, so short texts cost nothing.
fn units_over(text: &str, limit: usize) -> Option<usize> {
    if text.len() <= limit {
        return None;
    }
    Some(text.encode_utf16().count()).filter(|units| *units > limit)
}

/// Members of an object in document order; `None` when the value is no object.
pub fn members(value: &RawValue) -> Option<Vec<(String, &RawValue)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    serde_json::Deserializer::from_str(value.get())
        .deserialize_map(Members)
        .ok()
}

/// Items of an array; `None` when the value is no array.
pub fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    struct Items;
    impl<'de> Visitor<'de> for Items {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = seq.next_element()? {
                items.push(item);
            }
            Ok(items)
        }
    }
    serde_json::Deserializer::from_str(value.get())
        .deserialize_seq(Items)
        .ok()
}

/// The text of a string; `None` for any other kind of value.
pub fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// The value of a number; `None` for any other kind of value.
pub fn number(value: &RawValue) -> Option<f64> {
    serde_json::from_str(value.get()).ok()
}

/// An object whose members can be asked for by name; of members with the same name the last counts.
#[derive(Debug, Clone, Default)]
pub struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Object<'a> {
    /// The object in `value`; without members when it is no object.
    pub fn of(value: &'a RawValue) -> Self {
        Self(members(value).unwrap_or_default())
    }

    /// The member's value.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(n, _)| n == name).map(|(_, v)| *v)
    }

    /// The member's text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(text)
    }

    /// The member as an object; without members when it is none.
    #[must_use]
    pub fn object(&self, name: &str) -> Self {
        self.get(name).map(Self::of).unwrap_or_default()
    }

    /// The member's items; empty when it is no array.
    pub fn items(&self, name: &str) -> Vec<&'a RawValue> {
        self.get(name).and_then(items).unwrap_or_default()
    }

    /// All members in document order.
    pub fn members(&self) -> &[(String, &'a RawValue)] {
        &self.0
    }
}

impl<'a> From<Vec<(String, &'a RawValue)>> for Object<'a> {
    fn from(members: Vec<(String, &'a RawValue)>) -> Self {
        Self(members)
    }
}

/// `value` without the members at `paths`; everything else byte for byte.
pub fn without(value: &RawValue, paths: &[&[&str]]) -> String {
    let Some(members) = members(value) else {
        return value.get().to_owned();
    };
    let mut writer = ObjectWriter::default();
    for (name, member) in members {
        let below: Vec<&[&str]> = paths
            .iter()
            .filter_map(|path| path.split_first())
            .filter(|(head, _)| **head == name)
            .map(|(_, rest)| rest)
            .collect();
        if below.iter().any(|rest| rest.is_empty()) {
            continue;
        }
        if below.is_empty() {
            writer.member(&name, member.get());
        } else {
            writer.member(&name, &without(member, &below));
        }
    }
    writer.finish()
}

/// Writes one object out of finished pieces of JSON.
#[derive(Debug, Default)]
pub struct ObjectWriter(String);

impl ObjectWriter {
    /// Adds a member whose value is JSON already.
    pub fn member(&mut self, name: &str, json: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&quoted(name));
        self.0.push(':');
        self.0.push_str(json);
    }

    /// The object's text.
    pub fn finish(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('{');
        }
        self.0.push('}');
        self.0
    }
}

/// A text as a JSON string.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The document as one value. Call [`check`] first.
pub fn root(document: &[u8]) -> Result<&RawValue, JsonError> {
    serde_json::from_slice(document).map_err(|error| JsonError::Malformed {
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::{JsonError, JsonLimits, Object, check, members, root, without};
    use proptest::prelude::*;

    const SMALL: JsonLimits = JsonLimits {
        document_bytes: 60,
        tokens: 8,
        depth: 2,
        number_chars: 4,
        string_units: 5,
        name_units: 3,
    };

    #[test]
    fn every_bound_holds_at_its_edge_and_breaks_one_past_it() {
        let long = format!("\"{}\"", "x".repeat(59));
        let cases: &[(&str, Result<u64, &str>)] = &[
            ("[]", Ok(2)),
            ("7", Ok(1)),
            (r#"{"abc":"12345"}"#, Ok(4)),
            (r#"{"abcd":1}"#, Err("NameTooLong { got: 4, limit: 3 }")),
            (r#""123456""#, Err("StringTooLong { got: 6, limit: 5 }")),
            ("\"\u{1f600}\u{1f600}a\"", Ok(1)),
            ("1234", Ok(1)),
            ("12345", Err("NumberTooLong { got: 5, limit: 4 }")),
            ("[[1]]", Ok(5)),
            ("[[[1]]]", Err("TooDeep { limit: 2 }")),
            ("[1,2,3,4,5,6]", Ok(8)),
            ("[1,2,3,4,5,6,7]", Err("TooManyTokens { limit: 8 }")),
            (&long, Err("DocumentTooLarge { got: 61, limit: 60 }")),
            ("[] []", Err("Malformed")),
            ("{\"a\":}", Err("Malformed")),
            ("", Err("Malformed")),
        ];
        for (document, want) in cases {
            match (check(document.as_bytes(), &SMALL), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, *want, "{document}"),
                (Err(got), Err(want)) => assert!(format!("{got:?}").starts_with(want), "{document}: {got:?}"),
                (got, want) => panic!("{document}: {got:?}, not {want:?}"),
            }
        }
        assert!(matches!(
            check(b"\"\xff\"", &SMALL),
            Err(JsonError::Malformed { .. })
        ));
    }

    #[test]
    fn depth_up_to_the_contracts_bound_costs_no_stack() {
        let deep = format!("{}1{}", "[".repeat(256), "]".repeat(256));
        assert_eq!(check(deep.as_bytes(), &JsonLimits::ENGINE), Ok(513));
        let holder = format!("{{\"a\":{deep},\"b\":2}}");
        let value = root(holder.as_bytes()).unwrap();
        assert_eq!(Object::of(value).get("b").unwrap().get(), "2");
    }

    #[test]
    fn removal_leaves_the_rest_byte_for_byte() {
        let value = root(br#"{"a": 1.50, "m":{"t":"x","k":[ 1 ]}, "t":2}"#).unwrap();
        assert_eq!(
            without(value, &[&["m", "t"], &["a"]]),
            r#"{"m":{"k":[ 1 ]},"t":2}"#
        );
        assert_eq!(
            without(value, &[&["m", "x"], &["none"]]),
            r#"{"a":1.50,"m":{"t":"x","k":[ 1 ]},"t":2}"#
        );
    }

    #[test]
    fn other_kinds_of_value_are_no_objects() {
        for json in ["[]", "null", "\"{}\"", "7"] {
            assert!(members(root(json.as_bytes()).unwrap()).is_none(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let ours = check(&bytes, &JsonLimits::ENGINE).is_ok();
            // What passes is JSON to the second reader as well.
            if ours {
                prop_assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok());
            }
        }
    }
}
