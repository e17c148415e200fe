//! Rules for entry names and link targets. Pure functions over raw bytes.

use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

/// Most bytes of an entry name or a link target.
pub const MAX_PATH_BYTES: usize = 4096;
/// Most bytes of one path component; no file system that engines run on takes more.
pub const MAX_COMPONENT_BYTES: usize = 255;

/// How strict the rules are; which one applies follows from the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// ZIP family: a backslash is a separator to some readers, so it is refused.
    Portable,
    /// tar, ar and CPIO: a backslash is an ordinary character unless reading it as a separator changes where the
    /// name leads.
    Posix,
    /// Payloads of system packages and image layers: only what POSIX itself gives a meaning to.
    System,
}

/// Why a name or target is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// No characters, or blanks only.
    #[error("it is empty")]
    Empty,
    /// A NUL byte: two readers would see two names.
    #[error("it contains NUL")]
    Nul,
    /// Longer than [`MAX_PATH_BYTES`].
    #[error("it has {got} bytes, the limit is {MAX_PATH_BYTES}")]
    TooLong {
        /// Bytes of the name.
        got: usize,
    },
    /// A component longer than [`MAX_COMPONENT_BYTES`].
    #[error("a component has {got} bytes, the limit is {MAX_COMPONENT_BYTES}")]
    ComponentTooLong {
        /// Bytes of the component.
        got: usize,
    },
    /// Starts at a root: `/`, `C:/`, `\\server`.
    #[error("it is absolute")]
    Absolute,
    /// A `..` component, or a target that leaves the root.
    #[error("it leaves the archive's root")]
    Parent,
    /// A backslash where it may be a separator.
    #[error("it contains a backslash")]
    Backslash,
    /// A character that looks like a separator, or becomes one when normalised.
    #[error("it contains a look-alike of a separator")]
    LookAlike,
}

impl PathFault {
    /// Whether the name would lead elsewhere, rather than nowhere.
    pub const fn is_escape(self) -> bool {
        matches!(
            self,
            Self::Absolute | Self::Parent | Self::Backslash | Self::LookAlike
        )
    }
}

/// A name that passed the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafePath<'a> {
    text: Cow<'a, str>,
    directory: bool,
}

impl SafePath<'_> {
    /// `/`-separated, relative, without `.`, `..` or empty components; empty for the archive's root itself. Bytes that
    /// are not UTF-8 are shown as U+FFFD.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the raw name ended in a slash.
    pub fn names_directory(&self) -> bool {
        self.directory
    }
}

/// Checks an entry name.
pub fn check_name(raw: &[u8], rules: Rules) -> Result<SafePath<'_>, PathFault> {
    check_characters(raw, rules)?;
    if raw.split(|&b| b == b'/').any(|component| component == b"..") {
        return Err(PathFault::Parent);
    }
    Ok(SafePath {
        text: normalise(raw),
        directory: raw.ends_with(b"/"),
    })
}

/// Checks a symbolic link's target: relative, and inside the root when resolved lexically from the directory of
/// `entry`. Under [`Rules::System`] an absolute target is a fact of the installed system: it resolves against the root.
pub fn check_symlink_target(entry: &str, raw: &[u8], rules: Rules) -> Result<(), PathFault> {
    let target = check_target(raw, rules)?;
    let parents = if target.absolute {
        0
    } else {
        entry.split('/').count().saturating_sub(1)
    };
    resolve(parents, target.raw, rules)
}

/// Checks a hard link's target, which resolves against the archive's root.
pub fn check_hard_link_target(raw: &[u8], rules: Rules) -> Result<(), PathFault> {
    let target = check_target(raw, rules)?;
    resolve(0, target.raw, rules)
}

struct Target<'a> {
    raw: &'a [u8],
    absolute: bool,
}

fn check_target(raw: &[u8], rules: Rules) -> Result<Target<'_>, PathFault> {
    if rules == Rules::System {
        let relative = raw
            .iter()
            .position(|&b| b != b'/')
            .map_or(&[] as &[u8], |start| raw.get(start..).unwrap_or_default());
        let absolute = raw.starts_with(b"/");
        if !(absolute && relative.is_empty()) {
            check_characters(relative, rules)?;
        }
        return Ok(Target {
            raw: relative,
            absolute,
        });
    }
    check_characters(raw, rules)?;
    Ok(Target { raw, absolute: false })
}

/// Walks `target` from a directory `depth` levels below the root.
fn resolve(depth: usize, target: &[u8], rules: Rules) -> Result<(), PathFault> {
    let is_separator = |&b: &u8| b == b'/' || (b == b'\\' && rules != Rules::System);
    let mut depth = depth;
    for component in target.split(is_separator) {
        match component {
            b"" | b"." => {}
            b".." => depth = depth.checked_sub(1).ok_or(PathFault::Parent)?,
            _ => depth += 1,
        }
    }
    Ok(())
}

/// The rules that names and targets share: everything but `..`.
fn check_characters(raw: &[u8], rules: Rules) -> Result<(), PathFault> {
    if raw.iter().all(u8::is_ascii_whitespace) {
        return Err(PathFault::Empty);
    }
    if raw.contains(&0) {
        return Err(PathFault::Nul);
    }
    if raw.len() > MAX_PATH_BYTES {
        return Err(PathFault::TooLong { got: raw.len() });
    }
    if let Some(long) = raw.split(|&b| b == b'/').find(|c| c.len() > MAX_COMPONENT_BYTES) {
        return Err(PathFault::ComponentTooLong { got: long.len() });
    }
    if raw.starts_with(b"/") {
        return Err(PathFault::Absolute);
    }
    if rules == Rules::System {
        return Ok(());
    }
    let start = beginning(raw);
    if let [drive, b':', b'/' | b'\\', ..] = start
        && drive.is_ascii_alphabetic()
    {
        return Err(PathFault::Absolute);
    }
    if raw.contains(&b'\\') {
        let leads_elsewhere =
            start.starts_with(b"\\") || raw.split(|&b| b == b'/' || b == b'\\').any(|c| c == b"..");
        if rules == Rules::Portable || leads_elsewhere {
            return Err(PathFault::Backslash);
        }
    }
    if raw.is_ascii() {
        return Ok(());
    }
    check_look_alikes(&String::from_utf8_lossy(raw))
}

/// A relative name without the `.` and empty components before its first other one, which go when it is normalised.
fn beginning(raw: &[u8]) -> &[u8] {
    let mut rest = raw;
    while let Some(after) = rest.strip_prefix(b"./").or_else(|| rest.strip_prefix(b"/")) {
        rest = after;
    }
    rest
}

/// Refuses U+2215 and U+2044, and names in which compatibility normalisation makes a separator or a `..` component
/// that was not there. ("½" alone normalises to a text with U+2044, which is no separator.)
fn check_look_alikes(text: &str) -> Result<(), PathFault> {
    if text.contains(['\u{2215}', '\u{2044}']) {
        return Err(PathFault::LookAlike);
    }
    let is_separator = |c: char| c == '/' || c == '\\';
    let parents = |text: &str| text.split(is_separator).filter(|c| *c == "..").count();
    let separators = |text: &str| text.chars().filter(|&c| is_separator(c)).count();
    let folded: String = text.nfkc().collect();
    if separators(&folded) != separators(text) || parents(&folded) != parents(text) {
        return Err(PathFault::LookAlike);
    }
    Ok(())
}

fn normalise(raw: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(raw);
    let is_plain = text.split('/').all(|c| !c.is_empty() && c != ".");
    if is_plain {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    for component in text.split('/').filter(|c| !c.is_empty() && *c != ".") {
        if !out.is_empty() {
            out.push('/');
        }
        out.push_str(component);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::{PathFault, Rules, check_hard_link_target, check_name, check_symlink_target};
    use proptest::prelude::*;

    const ALL: [Rules; 3] = [Rules::Portable, Rules::Posix, Rules::System];

    #[test]
    fn names_that_every_container_may_carry() {
        let cases = [
            ("a", "a", false),
            ("a/b", "a/b", false),
            ("./a//b/", "a/b", true),
            ("a/.", "a", false),
            ("./", "", true),
            (".", "", false),
            ("..a/b..", "..a/b..", false),
            ("...", "...", false),
            ("a b", "a b", false),
            ("½ cup", "½ cup", false),
            ("c:d", "c:d", false),
            ("Icon\r", "Icon\r", false),
            ("e\u{301}", "e\u{301}", false),
        ];
        for (raw, expected, directory) in cases {
            for rules in ALL {
                let path = check_name(raw.as_bytes(), rules).unwrap();
                assert_eq!(path.as_str(), expected, "{raw:?}");
                assert_eq!(path.names_directory(), directory, "{raw:?}");
            }
        }
        assert_eq!(
            check_name(b"caf\xe9", Rules::Portable).unwrap().as_str(),
            "caf\u{fffd}"
        );
    }

    #[test]
    fn names_that_no_container_may_carry() {
        let long = "x".repeat(256);
        let deep = "x/".repeat(2049);
        let cases = [
            ("", PathFault::Empty),
            (" \t", PathFault::Empty),
            ("a\0b", PathFault::Nul),
            ("/a", PathFault::Absolute),
            ("//a", PathFault::Absolute),
            ("..", PathFault::Parent),
            ("../a", PathFault::Parent),
            ("a/../b", PathFault::Parent),
            ("a/..", PathFault::Parent),
            (&long, PathFault::ComponentTooLong { got: 256 }),
            (&deep, PathFault::TooLong { got: 4098 }),
        ];
        for (raw, fault) in cases {
            for rules in ALL {
                assert_eq!(check_name(raw.as_bytes(), rules), Err(fault), "{raw:?} {rules:?}");
            }
        }
        let longest = "x".repeat(255);
        assert!(check_name(longest.as_bytes(), Rules::Portable).is_ok());
    }

    #[test]
    fn lengths_at_their_bounds() {
        let component = "c".repeat(255);
        // 4096 bytes with the slash at its end.
        let path = format!("{component}/").repeat(16);
        for rules in ALL {
            assert!(check_name(component.as_bytes(), rules).is_ok());
            assert_eq!(
                check_name(format!("a/{component}c").as_bytes(), rules),
                Err(PathFault::ComponentTooLong { got: 256 })
            );
            assert!(check_name(path.as_bytes(), rules).is_ok());
            assert_eq!(
                check_name(format!("{path}/").as_bytes(), rules),
                Err(PathFault::TooLong { got: 4097 })
            );
        }
    }

    #[test]
    fn empty_and_dot_components_of_a_target_lead_nowhere() {
        for rules in ALL {
            for (target, inside) in [
                (&b"./.."[..], false),
                (b"x//../..", false),
                (b"./x/./..", true),
                (b"x/../.", true),
                (b"x/../..", false),
                (b"x/y/../../z", true),
            ] {
                let outcome = check_symlink_target("link", target, rules);
                assert_eq!(outcome.is_ok(), inside, "{target:?} {rules:?}");
                assert_eq!(check_hard_link_target(target, rules), outcome);
                // One directory further down there is room for one step up.
                assert!(check_symlink_target("d/link", target, rules).is_ok());
            }
        }
    }

    #[test]
    fn names_that_depend_on_the_container() {
        // Accepted under Portable, Posix, System.
        let cases = [
            ("a\\b", [false, true, true]),
            ("system-x\\x2dy.slice", [false, true, true]),
            ("..\\a", [false, false, true]),
            ("a/b\\..\\..\\c", [false, false, true]),
            ("\\\\server\\share", [false, false, true]),
            ("C:/a", [false, false, true]),
            ("c:\\a", [false, false, true]),
            (".//./C:/a", [false, false, true]),
            ("./c:\\a", [false, false, true]),
            ("./\\a", [false, false, true]),
            ("./a\\b", [false, true, true]),
            ("./C:", [true, true, true]),
            ("a\u{2215}b", [false, false, true]),
            ("a\u{2044}b", [false, false, true]),
            ("safe\u{ff0f}..\u{ff0f}x", [false, false, true]),
            ("a\u{ff3c}b", [false, false, true]),
            ("\u{2025}/a", [false, false, true]),
            ("\u{ff0e}\u{ff0e}/a", [false, false, true]),
        ];
        for (raw, accepted) in cases {
            for (rules, accepted) in ALL.into_iter().zip(accepted) {
                assert_eq!(
                    check_name(raw.as_bytes(), rules).is_ok(),
                    accepted,
                    "{raw:?} {rules:?}"
                );
            }
        }
    }

    #[test]
    fn symlink_targets_resolve_from_the_entrys_directory() {
        // entry, target, accepted under Posix, under System
        let cases = [
            ("a/b", "c", true, true),
            ("a/b", "../c", true, true),
            ("a/b", "../../c", false, false),
            ("b", "..", false, false),
            ("b", ".", true, true),
            ("a/b", "../x/../../y", false, false),
            ("a/b", "/etc/passwd", false, true),
            ("a/b", "/", false, true),
            ("a/b", "/../x", false, false),
            ("a/b", "", false, false),
            ("a/b", "..\\..\\c", false, true),
            ("a/b", "C:\\x", false, true),
        ];
        for (entry, target, posix, system) in cases {
            for (rules, accepted) in [(Rules::Posix, posix), (Rules::System, system)] {
                assert_eq!(
                    check_symlink_target(entry, target.as_bytes(), rules).is_ok(),
                    accepted,
                    "{entry} -> {target:?} {rules:?}"
                );
            }
        }
    }

    #[test]
    fn hard_link_targets_resolve_from_the_root() {
        assert!(check_hard_link_target(b"a/b", Rules::Posix).is_ok());
        assert!(check_hard_link_target(b"./a/../b", Rules::Posix).is_ok());
        assert!(check_hard_link_target(b"../b", Rules::Posix).is_err());
        assert!(check_hard_link_target(b"/b", Rules::Posix).is_err());
        assert!(check_hard_link_target(b"/b", Rules::System).is_ok());
        assert!(check_hard_link_target(b"a/../../b", Rules::System).is_err());
    }

    fn hostile_name() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop::sample::select(vec![
            "a", ".", "..", "/", "\\", "\u{ff0f}", "\u{2025}", "\0", " ", "C:", "\u{e9}", "\u{2044}",
        ]);
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn an_accepted_name_stays_inside(raw in hostile_name(), which in 0usize..3) {
            let rules = ALL[which];
            if let Ok(path) = check_name(&raw, rules) {
                prop_assert!(!path.as_str().starts_with('/'));
                prop_assert!(path.as_str().is_empty() || path.as_str().split('/').all(|c| !c.is_empty() && c != "." && c != ".."));
                // Checking the result again changes nothing.
                if !path.as_str().trim().is_empty() {
                    let again = check_name(path.as_str().as_bytes(), rules).unwrap();
                    prop_assert_eq!(again.as_str(), path.as_str());
                }
            }
        }

        #[test]
        fn any_bytes_are_judged_without_a_panic(raw in prop::collection::vec(any::<u8>(), 0..300)) {
            for rules in ALL {
                let _ = check_name(&raw, rules);
                let _ = check_symlink_target("a/b", &raw, rules);
                let _ = check_hard_link_target(&raw, rules);
            }
        }
    }
}
