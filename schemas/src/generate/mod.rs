//! Generation of `openapi.yaml` and `json/*.schema.json` from the wire types.

mod json;
mod openapi;
mod parameters;

use std::path::{Path, PathBuf};

/// One generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// Path below the crate's directory.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
}

/// How a file on disk differs from what would be generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Drift {
    /// The file does not exist or cannot be read.
    #[error("{0} is missing")]
    Missing(PathBuf),
    /// The file has another text.
    #[error("{0} differs from the types")]
    Differs(PathBuf),
    /// A schema that no type stands behind any more.
    #[error("{0} is not generated from any type")]
    Stray(PathBuf),
}

/// Every generated file, in the order of its path.
pub fn all() -> Vec<Generated> {
    let mut files: Vec<Generated> = json::documents()
        .into_iter()
        .map(|(name, schema)| Generated {
            path: Path::new("json").join(format!("{name}.schema.json")),
            text: format!("{schema:#}\n"),
        })
        .collect();
    files.push(Generated {
        path: "openapi.yaml".into(),
        text: openapi::yaml(),
    });
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Compares the files below `directory` with what [`all`] gives.
pub fn drift(directory: &Path) -> Vec<Drift> {
    let wanted = all();
    let mut found: Vec<Drift> = wanted
        .iter()
        .filter_map(|file| match std::fs::read_to_string(directory.join(&file.path)) {
            Ok(text) if text == file.text => None,
            Ok(_) => Some(Drift::Differs(file.path.clone())),
            Err(_) => Some(Drift::Missing(file.path.clone())),
        })
        .collect();
    let on_disk = std::fs::read_dir(directory.join("json")).into_iter().flatten();
    for entry in on_disk.flatten() {
        let path = Path::new("json").join(entry.file_name());
        if !wanted.iter().any(|file| file.path == path) {
            found.push(Drift::Stray(path));
        }
    }
    found
}

/// Writes every file of [`all`] below `directory`.
pub fn write(directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory.join("json"))?;
    for file in all() {
        std::fs::write(directory.join(file.path), file.text)?;
    }
    Ok(())
}
