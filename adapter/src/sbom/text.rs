//! Text from documents, cut to the contract's lengths.

/// Cap of fields that the contract does not name, code points.
pub const DEFAULT_CAP: usize = 16_384;

/// `text` without NUL characters, at most `cap` code points.
pub fn capped(text: &str, cap: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(cap).collect()
}

/// As [`capped`]; `None` when nothing but white space is left.
pub fn field(text: Option<String>, cap: usize) -> Option<String> {
    let text = capped(&text?, cap);
    (!text.trim().is_empty()).then_some(text)
}

/// As [`capped`], but in UTF-8 bytes and never inside a character.
pub fn capped_bytes(text: &str, cap: usize) -> String {
    let mut text: String = text.chars().filter(|c| *c != '\0').collect();
    text.truncate(text.floor_char_boundary(cap));
    text
}

/// Adds `value` unless it is blank, already there, or the list holds `cap` items.
pub fn push_distinct(list: &mut Vec<String>, value: Option<String>, cap: usize) {
    if list.len() >= cap {
        return;
    }
    if let Some(value) = field(value, DEFAULT_CAP)
        && !list.contains(&value)
    {
        list.push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::{capped, capped_bytes, field, push_distinct};

    #[test]
    fn caps_count_characters_or_bytes_and_never_split_one() {
        assert_eq!(capped("a\0\u{1f600}\u{1f600}", 2), "a\u{1f600}");
        assert_eq!(capped_bytes("a\0\u{e9}\u{e9}", 4), "a\u{e9}");
        assert_eq!(field(Some(" \0".into()), 9), None);
        assert_eq!(field(None, 9), None);
    }

    #[test]
    fn lists_stay_distinct_and_bounded() {
        let mut list = Vec::new();
        for value in ["a", "", "a", "b", "c"] {
            push_distinct(&mut list, Some(value.to_owned()), 2);
        }
        assert_eq!(list, ["a", "b"]);
    }
}
