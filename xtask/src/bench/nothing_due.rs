//! Database updates with nothing to do: what a schedule starts every few minutes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::figure::{Figure, median};
use crate::database::{POINTER, published_generation};
use crate::error::{Error, on};
use crate::process;
use crate::service::Options;

/// Runs of which the median is taken.
const RUNS: usize = 21;

/// Wall time of an update-only run that finds the database young enough, from its start to its end.
pub(crate) fn measure(options: &Options, scratch: &Path) -> Result<Figure, Error> {
    let directory = scratch.join("nothing-due");
    let current = published_generation(&options.database)?;
    let name = current.file_name().unwrap_or_default();
    let copy = directory.join("generations").join(name);
    fs::create_dir_all(copy.join("6")).map_err(on("create", &copy))?;
    for file in ["vulnerability.db", "import.json"] {
        let from = current.join("6").join(file);
        fs::copy(&from, copy.join("6").join(file)).map_err(on("copy", &from))?;
    }
    let pointer = directory.join(POINTER);
    let original = options.database.join(POINTER);
    let text = fs::read_to_string(&original).map_err(on("read", &original))?;
    fs::write(&pointer, &text).map_err(on("write", &pointer))?;

    let mut times = Vec::new();
    for _ in 0..RUNS {
        let mut command = Command::new(&options.executable);
        command
            .env("KKREPO_SCANNER_DATABASE_UPDATE_ONLY", "true")
            // Young enough, however long ago it was published.
            .env("KKREPO_SCANNER_DB_UPDATE_INTERVAL", "8760h")
            .env("KKREPO_SCANNER_DB_DIRECTORY", &directory)
            .env("KKREPO_SCANNER_WORK_DIRECTORY", scratch.join("nothing-due-work"))
            .env("KKREPO_SCANNER_GRYPE_EXECUTABLE", &options.engines.grype)
            .env("KKREPO_SCANNER_LOG_LEVEL", "error");
        let start = Instant::now();
        process::output(&mut command)?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    let left = fs::read_to_string(&pointer).map_err(on("read", &pointer))?;
    if left != text {
        return Err(Error::Unexpected {
            what: "an update with nothing due",
            why: "it published something".to_owned(),
        });
    }
    fs::remove_dir_all(&directory).map_err(on("remove", &directory))?;
    Ok(Figure::new("adapter.update.nothing_due", median(&times), "ms").at_most(50.0))
}
