//! What the symbolic links of one archive would do together. Pure.

use std::collections::HashMap;

/// Most links that one resolution follows before it is taken for a loop, as the kernel does it.
const MAX_HOPS: u32 = 40;

/// Most path components that all resolutions of one archive walk; ordinary archives need a few per link.
const MAX_STEPS: u64 = 4_000_000;

/// The symbolic links of one archive. Grows with the entry cap only.
#[derive(Debug, Default)]
pub(super) struct Links(HashMap<Box<str>, Box<str>>);

impl Links {
    /// Notes a link. `name` has passed the path rules, `target` the link rules.
    pub(super) fn add(&mut self, name: &str, target: &str) {
        self.0.insert(name.into(), target.into());
    }

    /// Whether an entry named `name` would lie beneath a link, so that writing it would follow the link.
    pub(super) fn is_above(&self, name: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        name.match_indices('/')
            .filter_map(|(at, _)| name.get(..at))
            .any(|parent| self.0.contains_key(parent))
    }

    /// A link that leaves the root once links on its way are followed, or that takes absurdly long to follow.
    pub(super) fn escaping(&self) -> Option<&str> {
        // One link alone was checked lexically, and that is exact.
        if self.0.len() < 2 {
            return None;
        }
        let mut steps = 0;
        self.0
            .keys()
            .map(AsRef::as_ref)
            .find(|name| self.escapes(name, &mut steps))
    }

    /// Walks like the kernel. A loop leads nowhere and is harmless.
    fn escapes(&self, name: &str, steps: &mut u64) -> bool {
        let mut at: Vec<&str> = Vec::new();
        let mut todo: Vec<&str> = name.rsplit('/').collect();
        let mut hops = 0;
        while let Some(component) = todo.pop() {
            *steps += 1;
            if *steps > MAX_STEPS {
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
                    if let Some(target) = self.0.get(at.join("/").as_str()) {
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

#[cfg(test)]
mod tests {
    use super::Links;

    fn links(pairs: &[(&str, &str)]) -> Links {
        let mut links = Links::default();
        for (name, target) in pairs {
            links.add(name, target);
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
    fn entries_beneath_a_link() {
        let links = links(&[("a/link", "b")]);
        assert!(links.is_above("a/link/x"));
        assert!(links.is_above("a/link/x/y"));
        assert!(!links.is_above("a/link"));
        assert!(!links.is_above("a/linked/x"));
        assert!(!Links::default().is_above("a/b/c"));
    }
}
