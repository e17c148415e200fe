//! `cargo xtask bench adapter`: the service around the engines.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::figure::{Figure, median};
use super::overhead::{self, Bare, LARGE_ROUNDS, SMALL_ROUNDS, Subject};
use super::processes::Counted;
use super::with_adapter;
use super::{load, nothing_due, upload};
use crate::error::{Error, on};
use crate::http::Input;
use crate::service::{Adapter, Options, credential, free_address};
use crate::workspace::{Profile, Workspace};
use crate::{adapter, database, demo};

/// Starts of which the median is taken.
const STARTS: usize = 11;
/// A service that settled before its memory is read.
const SETTLE: Duration = Duration::from_secs(2);
/// Files in the large artifact.
const LARGE_FILES: u32 = 4_000;
/// Bytes of each of them.
const LARGE_FILE_BYTES: usize = 32 << 10;

/// Measures everything on release builds, one part after the other.
pub(crate) fn measure(workspace: &Workspace) -> Result<Vec<Figure>, Error> {
    let (credential, _) = credential();
    let mut options = adapter::options(workspace, free_address()?, Profile::Release, credential, "bench")?;
    let scratch = workspace.target().join("run/bench");
    options.log = Some(scratch.join("adapter.log"));
    fs::create_dir_all(&scratch).map_err(on("create", &scratch))?;
    let directory = workspace.target().join("artifacts");
    let samples = demo::samples(workspace, &directory)?;
    let jar = directory.join(&demo::sample_of(&samples, "JAR")?.file);
    let jar_bytes = fs::read(&jar).map_err(on("read", &jar))?;

    say("starts");
    let mut figures = vec![start_to_ready(&options)?];
    say("updates with nothing due");
    figures.push(nothing_due::measure(&options, &scratch)?);
    say("catalog and match against the bare engines");
    figures.extend(overheads(&options, &scratch, &jar, &jar_bytes)?);
    say("engine processes");
    figures.extend(processes(&options, &scratch, &jar_bytes)?);
    say("readiness under load");
    figures.extend(with_adapter(&options, |_| {
        load::measure(options.listen, &options.credential)
    })?);
    say("a 1 GiB upload");
    figures.extend(uploads(&options, &scratch)?);
    Ok(figures)
}

fn say(part: &str) {
    eprintln!("measuring: {part}");
}

/// From spawn to the first ready answer, after one start that filled the provenance cache.
fn start_to_ready(options: &Options) -> Result<Figure, Error> {
    with_adapter(options, |_| Ok(()))?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let mut adapter = Adapter::start(options)?;
        adapter.wait_ready(Duration::from_millis(1))?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        adapter.stop()?;
    }
    Ok(Figure::new("adapter.start_to_ready", median(&times), "ms").at_most(150.0))
}

fn overheads(options: &Options, scratch: &Path, jar: &Path, jar_bytes: &[u8]) -> Result<Vec<Figure>, Error> {
    let generation = database::published_generation(&options.database)?;
    let bare = Bare {
        engines: &options.engines,
        generation: &generation,
        scratch,
    };
    let large = large_artifact(scratch)?;
    let large_bytes = fs::read(&large).map_err(on("read", &large))?;
    let small = Subject {
        name: "small",
        path: jar,
        bytes: jar_bytes,
        artifact_type: "JAR",
        rounds: SMALL_ROUNDS,
    };
    let large = Subject {
        name: "large",
        path: &large,
        bytes: &large_bytes,
        artifact_type: "TAR",
        rounds: LARGE_ROUNDS,
    };
    with_adapter(options, |adapter| {
        let mut figures = overhead::measure(adapter.client(), bare, small)?;
        figures.extend(overhead::measure(adapter.client(), bare, large)?);
        Ok(figures)
    })
}

fn processes(options: &Options, scratch: &Path, jar_bytes: &[u8]) -> Result<Vec<Figure>, Error> {
    let counted = Counted::install(&options.engines, &scratch.join("counted"))?;
    let options = Options {
        engines: counted.engines.clone(),
        // The stand-ins write where no engine may; how often they start does not depend on it.
        settings: vec![("SANDBOX", "off".to_owned())],
        ..options.clone()
    };
    let input = Input {
        bytes: jar_bytes,
        artifact_type: "JAR",
    };
    with_adapter(&options, |adapter| counted.measure(adapter.client(), input))
}

fn uploads(options: &Options, scratch: &Path) -> Result<Vec<Figure>, Error> {
    let path = scratch.join("1gib.bin");
    upload::make(&path)?;
    let figures = with_adapter(options, |adapter| {
        thread::sleep(SETTLE);
        upload::measure(adapter, options.listen, &options.credential, &path)
    });
    fs::remove_file(&path).map_err(on("remove", &path))?;
    figures
}

/// A tar of many source files among which a few lockfiles are found: 127 MiB, 4,050 entries.
fn large_artifact(scratch: &Path) -> Result<PathBuf, Error> {
    let path = scratch.join("large.tar");
    let file = File::create(&path).map_err(on("create", &path))?;
    let mut builder = tar::Builder::new(std::io::BufWriter::new(file));
    let mut append = |name: String, bytes: &[u8]| -> Result<(), Error> {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len().try_into().unwrap_or(u64::MAX));
        header.set_mode(0o644);
        builder
            .append_data(&mut header, name, bytes)
            .map_err(on("write", &path))
    };
    for index in 0..LARGE_FILES {
        let line = format!("export const value{index} = {index};\n");
        let mut text = line.repeat(LARGE_FILE_BYTES / line.len() + 1);
        text.truncate(LARGE_FILE_BYTES);
        append(
            format!("project/src/part{}/file{index}.js", index / 100),
            text.as_bytes(),
        )?;
    }
    for index in 0..50 {
        append(
            format!("project/tools/tool{index}/requirements.txt"),
            b"jinja2==2.4.1\nrequests==2.19.0\n",
        )?;
    }
    builder
        .into_inner()
        .map_err(on("write", &path))?
        .into_inner()
        .map_err(|error| on("write", &path)(error.into_error()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_large_artifact_is_large_and_well_formed() {
        let scratch = std::env::temp_dir().join(format!("large-{}", uuid::Uuid::new_v4()));
        fs::create_dir_all(&scratch).unwrap();
        let path = large_artifact(&scratch).unwrap();
        let mut archive = tar::Archive::new(File::open(&path).unwrap());
        assert_eq!(archive.entries().unwrap().map(Result::unwrap).count(), 4_050);
        assert!(fs::metadata(&path).unwrap().len() > 125 << 20);
        fs::remove_dir_all(&scratch).unwrap();
    }
}
