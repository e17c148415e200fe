//! Which images of an index are scanned. The index only shortlists; the config of each child decides.

use super::document::{EntryKind, IndexEntry};
use super::platform::Platform;

/// What is wanted of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// These platforms, distinct, in the order of the request.
    Required(Vec<Platform>),
    /// Every platform, in the order of the index, up to [`assay_schemas::oci::MAX_PLATFORMS`].
    All,
}

/// Deepest index: the one that the request names is the first level.
pub const MAX_INDEX_DEPTH: usize = 3;

impl Selection {
    /// Whether an index inside an index may hold something wanted. One that promises nothing may hold anything.
    pub fn may_hold(&self, entry: &IndexEntry) -> bool {
        let is_wanted = |platform: &Platform| match self {
            Self::Required(wanted) => wanted.iter().any(|wanted| wanted.accepts(platform)),
            Self::All => true,
        };
        entry.kind == EntryKind::Index && entry.platform.as_ref().is_none_or(is_wanted)
    }
}

/// The entries that may be an image of this platform, in index order.
pub fn candidates<'e>(
    entries: &'e [IndexEntry],
    wanted: &'e Platform,
) -> impl Iterator<Item = &'e IndexEntry> {
    images(entries).filter(|entry| {
        entry
            .platform
            .as_ref()
            .is_some_and(|platform| wanted.accepts(platform))
    })
}

/// The entries that may be an image, in index order. Those without a platform may be one of any.
pub fn images(entries: &[IndexEntry]) -> impl Iterator<Item = &IndexEntry> {
    entries.iter().filter(|entry| {
        entry.kind == EntryKind::Manifest && entry.platform.as_ref().is_none_or(Platform::is_recognisable)
    })
}

#[cfg(test)]
mod tests {
    use super::{Selection, candidates, images};
    use crate::oci::digest::Digest;
    use crate::oci::document::{Blob, EntryKind, IndexEntry, Kind};
    use crate::oci::platform::Platform;

    fn entry(kind: EntryKind, platform: Option<&str>) -> IndexEntry {
        IndexEntry {
            blob: Blob {
                media_type: String::new(),
                digest: Digest::parse(&format!("sha256:{}", "0".repeat(64))).unwrap(),
                size: 0,
            },
            platform: platform.map(|text| Platform::parse(text).unwrap()),
            kind,
        }
    }

    #[test]
    fn only_manifests_that_promise_the_platform_are_candidates() {
        let entries = [
            entry(EntryKind::Manifest, Some("linux/arm64")),
            entry(EntryKind::Manifest, None),
            entry(EntryKind::Companion(Kind::Attestation), Some("linux/amd64")),
            entry(EntryKind::Index, Some("linux/amd64")),
            entry(EntryKind::Manifest, Some("linux/amd64/v2")),
            entry(EntryKind::Manifest, Some("linux/amd64")),
        ];
        let wanted = Platform::parse("linux/amd64").unwrap();
        let found: Vec<_> = candidates(&entries, &wanted).collect();
        assert_eq!(found, [&entries[4], &entries[5]]);
        assert_eq!(images(&entries).count(), 4, "one without a platform among them");
    }

    #[test]
    fn an_inner_index_is_opened_unless_it_promises_something_else() {
        let wanted = Selection::Required(vec![Platform::parse("linux/amd64").unwrap()]);
        let cases = [
            (EntryKind::Index, None, true),
            (EntryKind::Index, Some("linux/amd64"), true),
            (EntryKind::Index, Some("linux/arm64"), false),
            (EntryKind::Manifest, None, false),
        ];
        for (kind, platform, want) in cases {
            assert_eq!(
                wanted.may_hold(&entry(kind, platform)),
                want,
                "{kind:?} {platform:?}"
            );
            let is_index = kind == EntryKind::Index;
            assert_eq!(Selection::All.may_hold(&entry(kind, platform)), is_index);
        }
    }
}
