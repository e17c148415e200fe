//! Texts of named elements of a small XML manifest. Document types and entities of its own are refused.

use super::{ManifestError, text};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::BTreeMap;

/// Deepest element that is followed.
const MAX_DEPTH: usize = 64;

const MALFORMED: ManifestError = ManifestError::Malformed { format: "XML" };

/// The first text of each wanted element; a path is the local names from the root, joined by `/`.
pub(super) fn texts<'w>(
    bytes: &[u8],
    wanted: &[&'w str],
) -> Result<BTreeMap<&'w str, String>, ManifestError> {
    let mut reader = Reader::from_str(text(bytes, "XML")?);
    let mut found: BTreeMap<&'w str, String> = BTreeMap::new();
    let mut path: Vec<String> = Vec::new();
    let mut current: Option<(&'w str, String)> = None;
    loop {
        match reader.read_event().map_err(|_| MALFORMED)? {
            Event::Start(start) => {
                if path.len() >= MAX_DEPTH {
                    return Err(MALFORMED);
                }
                path.push(start.local_name().into_inner().to_owned());
                let here = path.join("/");
                current = wanted
                    .iter()
                    .find(|w| **w == here && !found.contains_key(**w))
                    .map(|w| (*w, String::new()));
            }
            Event::End(_) => {
                path.pop();
                if let Some((name, value)) = current.take() {
                    found.insert(name, value.trim().to_owned());
                }
            }
            Event::Text(content) => {
                if let Some((_, value)) = &mut current {
                    value.push_str(&content);
                }
            }
            Event::CData(content) => {
                if let Some((_, value)) = &mut current {
                    value.push_str(&content);
                }
            }
            // No identifier needs one, and refusing them leaves nothing to expand.
            Event::GeneralRef(_) if current.is_some() => return Err(MALFORMED),
            Event::Eof if path.is_empty() => return Ok(found),
            Event::DocType(_) | Event::Eof => return Err(MALFORMED),
            _ => {}
        }
    }
}
