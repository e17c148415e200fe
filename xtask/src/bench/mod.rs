//! `cargo xtask bench`: figures beside their goals, each with what it is compared to, from one run.

mod adapter;
mod execution;
mod figure;
mod gate;
mod load;
mod nothing_due;
mod oci;
mod overhead;
mod processes;
mod raw;
mod upload;

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use serde::de::DeserializeOwned;

use crate::error::{Error, on};
use crate::process;
use crate::service::{Adapter, Options};
use crate::table;
use crate::workspace::Workspace;
use figure::Figure;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Area {
    /// The HTTP service around the engines.
    Adapter,
    /// Archive inspection alone.
    Gate,
    /// Image scans.
    Oci,
    /// Engine processes, cancel, database updates.
    Execution,
    /// Task leasing and finalization.
    ControlPlane,
    /// Policy evaluation.
    Policy,
    /// Search publication.
    Publication,
    /// Repeated work that caches should spare.
    Warm,
}

/// Measures, prints a table and, if asked, writes the list as JSON.
///
/// A missed goal is a result, not an error.
pub(crate) fn run(
    workspace: &Workspace,
    area: Area,
    only: Option<&str>,
    json: Option<&Path>,
) -> Result<(), Error> {
    let figures = match area {
        Area::Adapter => adapter::measure(workspace)?,
        Area::Oci => oci::measure(workspace)?,
        Area::Gate => gate::measure(workspace, only)?,
        Area::Execution => execution::measure(workspace)?,
        other => {
            let name = other
                .to_possible_value()
                .map_or_else(String::new, |value| value.get_name().to_owned());
            return Err(Error::NotBuiltYet(format!("bench {name}")));
        }
    };
    println!(
        "\n{}",
        table::render(
            &Figure::HEAD,
            &figures.iter().map(Figure::row).collect::<Vec<_>>()
        )
    );
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&figures).map_err(|source| Error::Json {
            what: "the list of figures".to_owned(),
            source,
        })?;
        fs::write(path, text + "\n").map_err(on("write", path))?;
    }
    Ok(())
}

/// A fresh, ready adapter for one part, stopped afterwards.
fn with_adapter<T>(options: &Options, part: impl FnOnce(&Adapter) -> Result<T, Error>) -> Result<T, Error> {
    let mut adapter = Adapter::start(options)?;
    adapter.wait_ready(Duration::from_millis(10))?;
    let result = part(&adapter)?;
    adapter.stop()?;
    Ok(result)
}

/// What a benchmark of the adapter's own prints, one JSON object a line.
fn own_benchmark<T: DeserializeOwned>(
    workspace: &Workspace,
    name: &str,
    arguments: &[&OsStr],
) -> Result<Vec<T>, Error> {
    let mut command = process::cargo(workspace);
    command
        .args([
            "bench",
            "--quiet",
            "--package",
            "assay-adapter",
            "--bench",
            name,
            "--",
        ])
        .args(arguments);
    let lines = process::output(&mut command)?;
    let objects = lines.lines().filter(|line| line.starts_with('{'));
    objects
        .map(|line| {
            serde_json::from_str(line).map_err(|source| Error::Json {
                what: format!("a line of the benchmark {name}"),
                source,
            })
        })
        .collect()
}

/// Head of a catalog request, without the empty line that ends it.
fn catalog_head(options: &Options, run: &str, sha256: &str, size: u64) -> String {
    let (listen, credential) = (options.listen, &options.credential);
    format!(
        "POST /v1/catalog HTTP/1.1\r\nHost: {listen}\r\nConnection: close\r\n\
         X-KKRepo-Scanner-Credential: {credential}\r\nX-KKRepo-API-Version: v1\r\nX-KKRepo-Run-ID: {run}\r\n\
         X-KKRepo-Expected-SHA256: {sha256}\r\nX-KKRepo-Expected-Size: {size}\r\nContent-Length: {size}\r\n"
    )
}
