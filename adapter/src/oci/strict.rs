//! JSON whose meaning does not depend on the reader: no object names a member twice, at any depth.

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// Any value without duplicate member names. The parser's own bound on depth (128) holds.
struct Unambiguous;

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without duplicate members")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("a member is named twice"));
            }
            members.next_value::<Self>()?;
        }
        Ok(self)
    }
}

/// Reads a document into `T` after making sure that every reader sees the same members in it.
pub(super) fn from_slice<'de, T: Deserialize<'de>>(document: &'de [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice::<Unambiguous>(document)?;
    serde_json::from_slice(document)
}

#[cfg(test)]
mod tests {
    use super::from_slice;
    use serde_json::Value;

    #[test]
    fn a_member_named_twice_is_refused_at_any_depth() {
        for good in [r#"{"a":1,"b":[{"a":null},{"a":-1.5}]}"#, "[]", "\"x\"", "true"] {
            assert!(from_slice::<Value>(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"b":[{"a":{"c":1,"c":2}}]}"#,
            r#"{"a":1} x"#,
            "",
        ] {
            assert!(from_slice::<Value>(bad.as_bytes()).is_err(), "{bad}");
        }
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert!(from_slice::<Value>(deep.as_bytes()).is_err());
    }
}
