//! `cargo xtask database`: the offline vulnerability database, published in the adapter's own layout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::engines::Engines;
use crate::error::{Error, on};
use crate::process;
use crate::workspace::{Profile, Workspace};

/// Grype refuses a database built more than five days ago; a day leaves no one near that.
const FRESH: Duration = Duration::from_hours(24);

/// The file that names the published generation.
pub(crate) const POINTER: &str = ".kkrepo-db-current";

/// Makes sure that a fresh database of today's facts is published; gives its directory.
pub(crate) fn prepare(workspace: &Workspace, engines: &Engines, profile: Profile) -> Result<PathBuf, Error> {
    let directory = workspace.database();
    let stamp = workspace.target().join("database.stamp");
    let key = facts_key(&workspace.root().join("fixtures"))?;
    if is_fresh(&directory.join(POINTER)) && fs::read_to_string(&stamp).is_ok_and(|found| found == key) {
        return Ok(directory);
    }

    eprintln!("building the offline vulnerability database");
    let made = workspace.target().join("vulnerability.db");
    // Its summary is for programs; what is wrong goes to standard error.
    process::output(process::fixture_program(workspace, "build-database").arg(&made))?;
    process::build_adapter(workspace, profile)?;
    fs::create_dir_all(&directory).map_err(on("create", &directory))?;
    import(workspace, engines, profile, &made, &directory)?;
    fs::remove_file(&made).map_err(on("remove", &made))?;
    fs::write(&stamp, &key).map_err(on("write", &stamp))?;
    Ok(directory)
}

fn import(
    workspace: &Workspace,
    engines: &Engines,
    profile: Profile,
    made: &Path,
    directory: &Path,
) -> Result<(), Error> {
    let mut command = Command::new(workspace.adapter(profile));
    command.args(["update-database", "--import"]).arg(made);
    command.env("KKREPO_SCANNER_DB_DIRECTORY", directory);
    command.env("KKREPO_SCANNER_SYFT_EXECUTABLE", &engines.syft);
    command.env("KKREPO_SCANNER_GRYPE_EXECUTABLE", &engines.grype);
    process::run(&mut command)
}

/// The directory of the published generation itself, as Grype takes it for its cache directory.
pub(crate) fn published_generation(directory: &Path) -> Result<PathBuf, Error> {
    let pointer = directory.join(POINTER);
    let text = fs::read_to_string(&pointer).map_err(on("read", &pointer))?;
    let name = text.lines().next().unwrap_or_default().trim();
    let generation = directory.join("generations").join(name);
    if name.is_empty() || !generation.is_dir() {
        return Err(Error::Unexpected {
            what: "the database pointer",
            why: format!("it names {name:?}"),
        });
    }
    Ok(generation)
}

fn is_fresh(pointer: &Path) -> bool {
    let published = fs::metadata(pointer).and_then(|metadata| metadata.modified());
    published.is_ok_and(|published| {
        // A publication in the future means that the clock was set: better build again.
        SystemTime::now()
            .duration_since(published)
            .is_ok_and(|age| age < FRESH)
    })
}

/// SHA-256 over the names and contents of everything that makes the database.
fn facts_key(fixtures: &Path) -> Result<String, Error> {
    let mut files = Vec::new();
    collect(fixtures, &fixtures.join("engines"), &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(file.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update(fs::read(&file).map_err(on("read", &file))?);
        hash.update([0]);
    }
    Ok(hex::encode(hash.finalize()))
}

fn collect(directory: &Path, except: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(directory).map_err(on("list", directory))? {
        let path = entry.map_err(on("list", directory))?.path();
        if path == except {
            continue;
        }
        if path.is_dir() {
            collect(&path, except, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_follows_the_facts_and_not_the_engines() {
        let root = std::env::temp_dir().join(format!("facts-key-{}", uuid::Uuid::new_v4()));
        fs::create_dir_all(root.join("engines")).unwrap();
        fs::create_dir_all(root.join("database")).unwrap();
        fs::write(root.join("database/facts"), "1").unwrap();
        let first = facts_key(&root).unwrap();
        fs::write(root.join("engines/go.mod"), "x").unwrap();
        assert_eq!(first, facts_key(&root).unwrap());
        fs::write(root.join("database/facts"), "2").unwrap();
        assert_ne!(first, facts_key(&root).unwrap());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn only_a_name_of_an_existing_generation_is_taken() {
        let root = std::env::temp_dir().join(format!("pointer-{}", uuid::Uuid::new_v4()));
        fs::create_dir_all(root.join("generations/generation-1-a")).unwrap();
        for (pointer, good) in [
            ("generation-1-a\n2026-01-01T00:00:00Z\n", true),
            ("generation-2-b\nx\n", false),
            ("", false),
        ] {
            fs::write(root.join(POINTER), pointer).unwrap();
            assert_eq!(published_generation(&root).is_ok(), good, "{pointer:?}");
        }
        assert!(is_fresh(&root.join(POINTER)));
        assert!(!is_fresh(&root.join("no such file")));
        fs::remove_dir_all(&root).unwrap();
    }
}
