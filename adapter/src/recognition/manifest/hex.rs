//! `metadata.config` of a Hex package: Erlang terms as text, each a pair of a key and a value.
//!
//! No crate reads the textual form, only the binary one. What is needed of it is little: pairs of two strings.

use super::{ManifestError, text};
use crate::recognition::identity::{Coordinates, Ecosystem};
use std::collections::BTreeMap;

/// Coordinates of a Hex package.
pub fn hex(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let pairs = pairs(text(bytes, "Erlang terms")?);
    let value = |key: &str| pairs.get(key).map(String::as_str);
    Coordinates::new(Ecosystem::Hex, value("name"), value("version"))
}

/// The pairs `{<<"key">>,<<"value">>}.` at the top; other terms are skipped.
fn pairs(text: &str) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    let mut depth = 0_usize;
    // The strings of the term so far, and whether it is more than a pair of them.
    let mut strings: Vec<String> = Vec::new();
    let mut is_plain = true;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => while chars.next().is_some_and(|c| c != '\n') {},
            '"' => {
                let string = quoted(&mut chars);
                if strings.len() < 2 {
                    strings.push(string);
                } else {
                    is_plain = false;
                }
                is_plain &= depth == 1;
            }
            '{' | '[' => depth += 1,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                is_plain &= c == '}' && depth == 0;
            }
            '.' if depth == 0 => {
                if let ([key, value], true) = (strings.as_slice(), is_plain) {
                    pairs.entry(key.clone()).or_insert_with(|| value.clone());
                }
                strings.clear();
                is_plain = true;
            }
            _ => {}
        }
    }
    pairs
}

/// The rest of a string; an escaped character stands for itself, as quotation mark and backslash do.
fn quoted(chars: &mut std::str::Chars<'_>) -> String {
    let mut string = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => string.extend(chars.next()),
            other => string.push(other),
        }
    }
    string
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn table() {
        let cases = [
            (
                "{<<\"app\">>,<<\"plug\">>}.\n{<<\"requirements\">>,\n [[{<<\"name\">>,<<\"mime\">>},{<<\"version\">>,<<\"~> 1.0\">>}]]}.\n{<<\"name\">>,<<\"plug\">>}.\n{<<\"version\">>,<<\"1.3.4\">>}.\n",
                Some("pkg:hex/plug@1.3.4"),
            ),
            (
                "%% coding: utf-8 \"x\n{<<\"version\"/utf8>>, <<\"0.1.0\"/utf8>>}.\n{<<\"name\"/utf8>>, <<\"a\"/utf8>>}.",
                Some("pkg:hex/a@0.1.0"),
            ),
            (
                "{<<\"description\">>,<<\"says \\\"name\\\". }.\">>}.\n{<<\"name\">>,<<\"a\">>}.\n{<<\"version\">>,<<\"1\">>}.",
                Some("pkg:hex/a@1"),
            ),
            ("{<<\"name\">>,[<<\"a\">>]}.\n{<<\"version\">>,<<\"1\">>}.", None),
            ("{<<\"name\">>,<<\"a\">>}", None),
            ("{<<\"name\">>,<<\"a", None),
            ("", None),
        ];
        for (text, want) in cases {
            let got = hex(text.as_bytes()).and_then(|c| c.purl()).ok();
            assert_eq!(got.as_deref(), want, "{text}");
        }
        assert!(hex("[".repeat(1_000_000).as_bytes()).is_err());
    }
}
