//! Which images of an index are scanned. The index only shortlists; the config of each child decides.

use super::document::{EntryKind, IndexEntry};
use super::platform::Platform;

/// Deepest index: the one that the request names is the first level.
pub const MAX_INDEX_DEPTH: usize = 3;

/// The entries that may be an image of this platform, in index order.
pub fn candidates<'e>(
    entries: &'e [IndexEntry],
    wanted: &'e Platform,
) -> impl Iterator<Item = &'e IndexEntry> {
    entries.iter().filter(move |entry| {
        entry.kind == EntryKind::Manifest
            && entry
                .platform
                .as_ref()
                .is_some_and(|platform| wanted.accepts(platform))
    })
}

/// Whether an index inside an index may hold one of these platforms. One that promises nothing may hold any.
pub fn may_hold(entry: &IndexEntry, wanted: &[Platform]) -> bool {
    entry.kind == EntryKind::Index
        && entry
            .platform
            .as_ref()
            .is_none_or(|platform| wanted.iter().any(|wanted| wanted.accepts(platform)))
}

#[cfg(test)]
mod tests {
    use super::{candidates, may_hold};
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
    }

    #[test]
    fn an_inner_index_is_opened_unless_it_promises_something_else() {
        let wanted = [Platform::parse("linux/amd64").unwrap()];
        let cases = [
            (EntryKind::Index, None, true),
            (EntryKind::Index, Some("linux/amd64"), true),
            (EntryKind::Index, Some("linux/arm64"), false),
            (EntryKind::Manifest, None, false),
        ];
        for (kind, platform, want) in cases {
            assert_eq!(
                may_hold(&entry(kind, platform), &wanted),
                want,
                "{kind:?} {platform:?}"
            );
        }
    }
}
