//! Proves from outside that a run has left nothing: no process, descriptor, file, slot or reserved byte.

use crate::fake::FakeEngines;
use crate::support::TestAdapter;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What may stay in the scratch directory.
const PROVENANCE: &str = "provenance.json";

/// The adapter as it was when nothing ran.
pub(super) struct Inspector<'a> {
    adapter: &'a TestAdapter,
    programs: Option<PathBuf>,
    descriptors: usize,
}

impl<'a> Inspector<'a> {
    /// Takes note of an adapter that is idle and has done everything once.
    pub(super) fn of(adapter: &'a TestAdapter, engines: Option<&FakeEngines>) -> Self {
        let mut inspector = Self {
            adapter,
            programs: engines.map(|engines| engines.path("").canonicalize().unwrap()),
            descriptors: usize::MAX,
        };
        inspector.assert_nothing_left("before the first run");
        inspector.descriptors = descriptors(adapter.id());
        inspector
    }

    /// Waits until nothing is left of any run.
    pub(super) fn assert_nothing_left(&self, after: &str) {
        let started = Instant::now();
        loop {
            let left = self.left();
            if left.is_empty() {
                return;
            }
            let waited = started.elapsed();
            assert!(waited < Duration::from_secs(20), "left after {after}: {left:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// How often a run has ended for this reason.
    pub(super) fn endings(&self, reason: &str) -> u64 {
        let name = format!("kkrepo_scanner_run_ending_seconds_count{{reason=\"{reason}\"}}");
        self.adapter.metrics().count(&name)
    }

    fn left(&self) -> Vec<String> {
        let mut left = Vec::new();
        let processes = processes();
        for pid in descendants(&processes, self.adapter.id()) {
            left.push(format!("process {pid} (zombies count)"));
        }
        if let Some(programs) = &self.programs {
            // Whatever has escaped from the adapter's family still runs the engine's program.
            let runs_engine = |pid: u32| {
                std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.starts_with(programs))
            };
            let escaped = processes.iter().filter(|(pid, _)| runs_engine(*pid));
            left.extend(escaped.map(|(pid, _)| format!("engine process {pid}")));
        }
        left.extend(files(&self.adapter.scratch()));
        let metrics = self.adapter.metrics();
        for name in [
            "active",
            "queued",
            "scratch_reserved_bytes",
            "answer_memory_reserved_bytes",
        ] {
            let value = metrics.count(&format!("kkrepo_scanner_{name}"));
            if value != 0 {
                left.push(format!("{name} {value}"));
            }
        }
        let started = metrics.count("kkrepo_scanner_runs_started_total");
        let ended = metrics.count("kkrepo_scanner_runs_ended_total");
        if started != ended {
            left.push(format!("{started} runs started, {ended} ended"));
        }
        let descriptors = descriptors(self.adapter.id());
        if descriptors > self.descriptors {
            left.push(format!("{descriptors} descriptors, {} before", self.descriptors));
        }
        left
    }
}

/// Open descriptors of a process.
pub(super) fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Resident memory of a process, KiB.
pub(super) fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Everything below a scratch directory that belongs to a run.
fn files(scratch: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(scratch).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != PROVENANCE)
        .map(|name| format!("file {name}"))
        .collect()
}

/// Ids of all processes, with their parents'.
fn processes() -> Vec<(u32, u32)> {
    let parse = |entry: std::fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(entry.path().join("stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat).into_owned();
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((pid, parent))
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(parse)
        .collect()
}

fn descendants(processes: &[(u32, u32)], root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut index = 0;
    while let Some(&parent) = found.get(index) {
        let children = processes
            .iter()
            .filter(|(pid, of)| *of == parent && !found.contains(pid));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        found.extend(children);
        index += 1;
    }
    found.split_off(1)
}
