//! What the symbolic links of one archive would do together. Pure.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};

/// Most links that one resolution follows before it is taken for a loop, as the kernel does it.
const MAX_HOPS: u32 = 40;

/// Most bytes of path that all resolutions of one archive look up; ordinary archives need a few hundred per link.
const MAX_WORK: usize = 256 << 20;

/// Most bytes of names and targets that are kept of one archive; ordinary archives have a hundred per link.
const MAX_KEPT: usize = 4 << 20;

/// The symbolic links of one archive.
#[derive(Debug, Default)]
pub(super) struct Links {
    targets: HashMap<Box<str>, Box<str>>,
    hashes: Hashes,
    names: HashSet<u64>,
    kept: usize,
}

impl Links {
    /// Notes a link; false if the archive has more of them than can be kept. `name` has passed the path rules,
    /// `target` the link rules.
    #[must_use]
    pub(super) fn add(&mut self, name: &str, target: &str) -> bool {
        self.kept = self.kept.saturating_add(name.len()).saturating_add(target.len());
        if self.kept > MAX_KEPT {
            return false;
        }
        self.names.insert(self.hashes.whole(name));
        self.targets.insert(name.into(), target.into());
        true
    }

    /// Whether an entry named `name` would lie beneath a link, so that writing it would follow the link.
    pub(super) fn is_above(&self, name: &str) -> bool {
        !self.names.is_empty()
            && self
                .hashes
                .parents(name)
                .any(|parent| self.names.contains(&parent))
    }

    /// A link that leaves the root once links on its way are followed, or that takes absurdly long to follow.
    pub(super) fn escaping(&self) -> Option<&str> {
        // One link alone was checked lexically, and that is exact.
        if self.targets.len() < 2 {
            return None;
        }
        let mut work = 0;
        self.targets
            .keys()
            .map(AsRef::as_ref)
            .find(|name| self.escapes(name, &mut work))
    }

    /// Walks like the kernel. A loop leads nowhere and is harmless.
    fn escapes(&self, name: &str, work: &mut usize) -> bool {
        let mut at: Vec<&str> = Vec::new();
        let mut todo: Vec<&str> = name.rsplit('/').collect();
        let mut hops = 0;
        while let Some(component) = todo.pop() {
            *work += 1;
            if *work > MAX_WORK {
                return true;
            }
            match component {
                "" | "." => {}
                ".." => {
                    if at.pop().is_none() {
                        return true;
                    }
                }
                component => {
                    at.push(component);
                    let place = at.join("/");
                    *work += place.len();
                    if let Some(target) = self.targets.get(place.as_str()) {
                        hops += 1;
                        if hops > MAX_HOPS {
                            return false;
                        }
                        at.pop();
                        todo.extend(target.rsplit('/'));
                    }
                }
            }
        }
        false
    }
}

/// Hashes of paths, all of one path in one pass over it. The key is random, so nobody can aim at a collision.
#[derive(Debug, Default)]
pub(super) struct Hashes(RandomState);

impl Hashes {
    /// Of a path.
    pub(super) fn whole(&self, path: &str) -> u64 {
        let mut hasher = self.0.build_hasher();
        for (at, component) in path.split('/').enumerate() {
            next_component(&mut hasher, at, component);
        }
        hasher.finish()
    }

    /// Of every directory above a path, outermost first.
    pub(super) fn parents<'p>(&self, path: &'p str) -> impl Iterator<Item = u64> + use<'p> {
        let mut hasher = self.0.build_hasher();
        let above = path.rsplit_once('/').map(|(above, _)| above);
        let components = above.into_iter().flat_map(|above| above.split('/'));
        components.enumerate().map(move |(at, component)| {
            next_component(&mut hasher, at, component);
            hasher.finish()
        })
    }
}

fn next_component(hasher: &mut impl Hasher, at: usize, component: &str) {
    if at > 0 {
        hasher.write_u8(b'/');
    }
    hasher.write(component.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{Hashes, Links, MAX_KEPT};

    fn links(pairs: &[(&str, &str)]) -> Links {
        let mut links = Links::default();
        for (name, target) in pairs {
            assert!(links.add(name, target));
        }
        links
    }

    #[test]
    fn links_that_stay_inside_together() {
        for pairs in [
            &[("a", "b"), ("b", "a")][..],
            &[("lib/x.so", "x.so.1"), ("lib/x.so.1", "x.so.1.2")],
            &[("current", "v/1"), ("v/1/up", "../2")],
            &[("a/b", ".."), ("c", "a/b/a/d")],
        ] {
            assert_eq!(links(pairs).escaping(), None, "{pairs:?}");
        }
    }

    #[test]
    fn a_link_over_a_link_may_leave() {
        // x/y is the root; from there one step up is outside, though "x/y/../.." looks like the root.
        assert_eq!(links(&[("x/y", ".."), ("z", "x/y/../..")]).escaping(), Some("z"));
    }

    #[test]
    fn a_link_that_leaves_is_found_among_others() {
        let several = links(&[("x/y", ".."), ("z", "x/y/../.."), ("a", "b"), ("c", "d")]);
        assert_eq!(several.escaping(), Some("z"));
    }

    #[test]
    fn as_many_links_are_followed_as_the_kernel_follows() {
        // "z" is one more, and "x/y" the last.
        for (chain, leaves) in [(38, true), (39, false)] {
            let mut links = links(&[("x/y", ".."), ("z", "x/y/../..")]);
            for at in 0..chain {
                let next = if at + 1 == chain {
                    "z".to_owned()
                } else {
                    format!("c{}", at + 1)
                };
                assert!(links.add(&format!("c{at}"), &next));
            }
            assert_eq!(links.escapes("c0", &mut 0), leaves, "{chain}");
        }
    }

    #[test]
    fn entries_beneath_a_link() {
        let links = links(&[("a/link", "b")]);
        assert!(links.is_above("a/link/x"));
        assert!(links.is_above("a/link/x/y"));
        assert!(!links.is_above("a/link"));
        assert!(!links.is_above("a/linked/x"));
        assert!(!Links::default().is_above("a/b/c"));
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let long = "x".repeat(1 << 20);
        let mut links = Links::default();
        for _ in 0..MAX_KEPT >> 20 {
            assert!(links.add("", &long));
        }
        assert!(!links.add("a", ""));
    }

    #[test]
    fn every_directory_above_has_the_hash_that_it_has_by_itself() {
        let hashes = Hashes::default();
        let parents: Vec<u64> = hashes.parents("a/bc/d").collect();
        assert_eq!(parents, [hashes.whole("a"), hashes.whole("a/bc")]);
        assert_eq!(hashes.parents("a").count(), 0);
        assert_ne!(hashes.whole("a/bc"), hashes.whole("ab/c"));
        assert_ne!(hashes.whole("a/b"), hashes.whole("ab"));
    }
}
