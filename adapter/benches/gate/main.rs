//! The gate beside bare decompression of the same files with the same libraries.
//!
//! `gate DIRECTORY [large|small]` makes its samples there unless they exist and prints one JSON object a line for each:
//! `name`, `bare_seconds`, `gate_seconds` (CPU time of one pass, medians of passes in turns), `bytes` (expanded),
//! `entries`, `peak_bytes` (most memory of the gate at once, without what C libraries take for their windows).

mod bare;
mod samples;

use assay_adapter::archive::{Discard, GateLimits, Inspection, Profile, inspect};
use assay_adapter::run::RunContext;
use nix::time::{ClockId, clock_gettime};
use peak_alloc::PeakAlloc;
use samples::Sample;
use serde_json::json;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Passes of each kind, in turns.
const ROUNDS: usize = 3;

const LIMITS: GateLimits = GateLimits {
    max_entries: 200_000,
    max_expanded_bytes: 8 << 30,
    max_single_file_bytes: 4 << 30,
    max_nested_depth: 5,
};

fn main() -> Outcome<()> {
    // cargo adds arguments of its own, such as `--bench`.
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"));
    let directory = PathBuf::from(arguments.next().ok_or("which directory?")?);
    let only = arguments.next();
    for sample in samples::ALL
        .iter()
        .filter(|s| only.as_deref().is_none_or(|only| s.name.contains(only)))
    {
        let path = sample.ensure(&directory)?;
        println!("{}", measure(sample, &path)?);
    }
    Ok(())
}

fn measure(sample: &Sample, path: &Path) -> Outcome<serde_json::Value> {
    let mut bare = Vec::new();
    let mut gate = Vec::new();
    let mut peak = 0;
    let mut found = None;
    for _ in 0..ROUNDS {
        bare.push(cpu_time(|| bare::expand(sample.packing, path))?.1);
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let (inspection, seconds) = cpu_time(|| through_the_gate(path))?;
        peak = peak.max(MEMORY.peak_usage().saturating_sub(before));
        gate.push(seconds);
        found = Some(inspection);
    }
    let found = found.ok_or("no round")?;
    Ok(json!({
        "name": sample.name,
        "bare_seconds": median(&mut bare),
        "gate_seconds": median(&mut gate),
        "bytes": found.expanded_bytes,
        "entries": found.entries,
        "peak_bytes": peak,
    }))
}

fn through_the_gate(path: &Path) -> Outcome<Inspection> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let run = RunContext::with_timeout(Duration::from_hours(1));
    let scratch = std::env::temp_dir();
    Ok(inspect(
        &file,
        size,
        &scratch,
        &LIMITS,
        Profile::Package,
        &run,
        &mut Discard,
    )?)
}

/// What `work` gives, and the CPU time of this thread that it took: other programs on the machine do not count.
fn cpu_time<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(T, f64)> {
    let now = || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
    let start = now()?;
    let value = work()?;
    Ok((value, now()?.saturating_sub(start).as_secs_f64()))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
