//! `cargo xtask bench execution`: how engines start and end, who is turned away, and what many clients get.

mod cancel;
mod refusals;
mod start;
mod throughput;

use std::fs;

use super::figure::Figure;
use crate::error::{Error, on};
use crate::service::{credential, free_address};
use crate::workspace::{Profile, Workspace};
use crate::{adapter, demo};

/// Measures everything on release builds, one part after the other.
pub(super) fn measure(workspace: &Workspace) -> Result<Vec<Figure>, Error> {
    let scratch = workspace.target().join("run/bench");
    fs::create_dir_all(&scratch).map_err(on("create", &scratch))?;
    let (credential, _) = credential();
    let mut options = adapter::options(workspace, free_address()?, Profile::Release, credential, "bench")?;
    options.log = Some(scratch.join("adapter.log"));
    let artifacts = workspace.target().join("artifacts");
    let samples = demo::samples(workspace, &artifacts)?;
    let jar = artifacts.join(&demo::sample_of(&samples, "JAR")?.file);
    let jar = fs::read(&jar).map_err(on("read", &jar))?;

    eprintln!("measuring: starts in the cage");
    let mut figures = start::measure(workspace)?;
    eprintln!("measuring: from the cancellation to the last process");
    figures.extend(cancel::measure(&options, &scratch)?);
    eprintln!("measuring: a thousand clients that wait in vain");
    figures.extend(refusals::measure(&options)?);
    eprintln!("measuring: two and eight clients against two slots");
    figures.extend(throughput::measure(&options, &jar)?);
    Ok(figures)
}
