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

use std::fs;
use std::path::Path;

use clap::ValueEnum;

use crate::error::{Error, on};
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
