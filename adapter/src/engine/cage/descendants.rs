//! Who descends from whom, as `/proc` tells it. The reading is pure; one function looks at the system.

use std::collections::BTreeMap;
use std::io;

/// A process in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    /// Its id.
    pub(crate) pid: i32,
    /// Its parent's id.
    pub(crate) parent: i32,
    /// Whether it is dead and only waits to be reaped.
    pub(crate) zombie: bool,
}

/// Reads `/proc/<pid>/stat`: the id, a name in parentheses that may hold anything, state and parent.
pub(crate) fn parse_stat(stat: &str) -> Option<Process> {
    let (pid, _) = stat.split_once(' ')?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    Some(Process {
        pid: pid.parse().ok()?,
        parent: fields.next()?.parse().ok()?,
        zombie: matches!(state, "Z" | "X" | "x"),
    })
}

/// The descendants of `root` that are alive, children before their own children. A process under a dead parent that
/// nobody has reaped yet still counts as its descendant.
pub(crate) fn descendants(processes: &[Process], root: i32) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<&Process>> = BTreeMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut waiting = vec![root];
    while let Some(parent) = waiting.pop() {
        // Taken out, so that a table read while it changed cannot lead in circles.
        for process in children.remove(&parent).unwrap_or_default() {
            if !process.zombie {
                found.push(process.pid);
            }
            waiting.push(process.pid);
        }
    }
    found
}

/// All processes that this one can see.
///
/// # Errors
/// When `/proc` cannot be listed. A process that ends meanwhile is left out.
pub(crate) fn processes() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let is_process = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        if is_process {
            // The name in it may be no text.
            let stat = std::fs::read(entry.path().join("stat")).unwrap_or_default();
            found.extend(parse_stat(&String::from_utf8_lossy(&stat)));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{Process, descendants, parse_stat, processes};

    fn process(pid: i32, parent: i32) -> Process {
        Process {
            pid,
            parent,
            zombie: false,
        }
    }

    #[test]
    fn a_name_may_hold_anything() {
        assert_eq!(parse_stat("12 (a) R 7) b) S 3 77 77 0"), Some(process(12, 3)));
        let zombie = parse_stat("13 (a\nb) Z 3 77 77 0").unwrap();
        assert!(zombie.zombie);
        for broken in ["", "12", "12 (a", "12 (a) S", "x (a) S 3", "12 (a) S y"] {
            assert_eq!(parse_stat(broken), None, "{broken}");
        }
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_strangers_are_not() {
        let dead = Process {
            zombie: true,
            ..process(5, 2)
        };
        let table = [
            process(2, 1),
            process(3, 1),
            dead,
            process(6, 5),
            process(7, 6),
            process(8, 3),
        ];
        let mut found = descendants(&table, 2);
        found.sort_unstable();
        assert_eq!(found, [6, 7]);
        assert_eq!(descendants(&table, 8), Vec::<i32>::new());
    }

    #[test]
    fn a_table_that_leads_in_circles_ends() {
        assert_eq!(descendants(&[process(2, 3), process(3, 2)], 2), [3, 2]);
    }

    #[test]
    fn this_process_is_seen() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(processes().unwrap().iter().any(|process| process.pid == own));
    }
}
