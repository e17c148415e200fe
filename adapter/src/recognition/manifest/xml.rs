//! Texts of named elements of a small XML manifest, or attributes of one. Document types and entities of its own are refused.

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

/// The attributes of the first element at this path.
pub(super) fn attributes(bytes: &[u8], wanted: &str) -> Result<BTreeMap<String, String>, ManifestError> {
    let mut reader = Reader::from_str(text(bytes, "XML")?);
    let mut path: Vec<String> = Vec::new();
    loop {
        let event = reader.read_event().map_err(|_| MALFORMED)?;
        if let Event::Start(element) | Event::Empty(element) = &event {
            if path.len() >= MAX_DEPTH {
                return Err(MALFORMED);
            }
            path.push(element.local_name().into_inner().to_owned());
            if path.join("/") == wanted {
                return element
                    .attributes()
                    .map(|attribute| {
                        let attribute = attribute.map_err(|_| MALFORMED)?;
                        // As above: nothing is expanded.
                        if attribute.value.contains('&') {
                            return Err(MALFORMED);
                        }
                        let key = attribute.key.local_name().into_inner().to_owned();
                        Ok((key, attribute.value.into_owned()))
                    })
                    .collect();
            }
        }
        match event {
            Event::End(_) | Event::Empty(_) => _ = path.pop(),
            Event::DocType(_) | Event::Eof => return Err(MALFORMED),
            _ => {}
        }
    }
}
