//! What an engine's start costs beside a bare start of the same trivial program, in turns.
//!
//! Prints one JSON object a line for each way to hold an engine: `name`, `bare_seconds`, `held_seconds` (wall time from
//! before the start to the end, medians), `difference_seconds` (median of the paired differences), `rounds`.

use assay_adapter::engine::cage::{Limits, Mode, Sandbox};
use assay_adapter::engine::{EngineCommand, run};
use assay_adapter::run::RunContext;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Pairs of starts.
const ROUNDS: usize = 201;
/// Starts that are not measured.
const WARM_UP: usize = 10;
/// A program that does nothing.
const PROGRAM: &str = "/bin/true";

#[tokio::main]
async fn main() -> Outcome<()> {
    for (name, mode) in [("session", Mode::Off), ("sandbox", Mode::BestEffort)] {
        let directory = tempfile::tempdir()?;
        let command = command(directory.path(), mode);
        for _ in 0..WARM_UP {
            held(&command).await?;
            bare(directory.path()).await?;
        }
        let (mut bares, mut helds, mut differences) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            // Who goes first changes, so that neither always meets the warmer machine.
            let (bare_took, held_took) = if round % 2 == 0 {
                let bare_took = bare(directory.path()).await?;
                (bare_took, held(&command).await?)
            } else {
                let held_took = held(&command).await?;
                (bare(directory.path()).await?, held_took)
            };
            bares.push(bare_took);
            helds.push(held_took);
            differences.push(held_took - bare_took);
        }
        let line = json!({
            "name": name,
            "bare_seconds": median(&mut bares),
            "held_seconds": median(&mut helds),
            "difference_seconds": median(&mut differences),
            "rounds": ROUNDS,
        });
        println!("{line}");
    }
    Ok(())
}

fn command(directory: &Path, mode: Mode) -> EngineCommand {
    EngineCommand {
        launcher: PathBuf::from(env!("CARGO_BIN_EXE_assay-adapter")),
        executable: PROGRAM.into(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: directory.to_owned(),
        stdout_limit: 1 << 20,
        stderr_limit: 1 << 20,
        limits: Limits {
            file_size: 1 << 30,
            open_files: 1024,
            processes: 4096,
            cpu_seconds: 600,
            memory: 4 << 30,
        },
        sandbox: Sandbox {
            mode,
            readable: Vec::new(),
            writable: vec![directory.to_owned()],
            network: false,
        },
        ending: None,
    }
}

/// Seconds of a start in the cage.
async fn held(command: &EngineCommand) -> Outcome<f64> {
    let started = Instant::now();
    run(command, &RunContext::with_timeout(Duration::from_mins(1))).await?;
    Ok(started.elapsed().as_secs_f64())
}

/// Seconds of a start by the same runtime, with pipes that are read to their ends, and nothing else.
async fn bare(directory: &Path) -> Outcome<f64> {
    let started = Instant::now();
    let output = tokio::process::Command::new(PROGRAM)
        .env_clear()
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .await?;
    if !output.status.success() {
        return Err(format!("{PROGRAM}: {}", output.status).into());
    }
    Ok(started.elapsed().as_secs_f64())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
