//! Engine processes per request, counted by executables that note their own start.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::figure::Figure;
use crate::demo::Catalog;
use crate::engines::Engines;
use crate::error::{Error, on};
use crate::http::{Client, Input};

/// Engines that write a line for every start and then become the real ones.
#[derive(Debug)]
pub(crate) struct Counted {
    /// To be configured instead of the real ones.
    pub(crate) engines: Engines,
    log: PathBuf,
}

impl Counted {
    /// Writes the two stand-ins.
    pub(crate) fn install(real: &Engines, directory: &Path) -> Result<Self, Error> {
        let log = directory.join("starts");
        fs::create_dir_all(directory).map_err(on("create", directory))?;
        fs::write(&log, "").map_err(on("write", &log))?;
        let stand_in = |name: &str, real: &Path| -> Result<PathBuf, Error> {
            let path = directory.join(name);
            let (log, real) = (quoted(&log), quoted(real));
            let text = format!("#!/bin/sh\necho {name} >> {log}\nexec {real} \"$@\"\n");
            fs::write(&path, text).map_err(on("write", &path))?;
            fs::set_permissions(&path, Permissions::from_mode(0o755))
                .map_err(on("make executable", &path))?;
            Ok(path)
        };
        let engines = Engines {
            syft: stand_in("syft", &real.syft)?,
            grype: stand_in("grype", &real.grype)?,
        };
        Ok(Self { engines, log })
    }

    /// Starts that one catalog and one match cause, on an adapter that is ready and has done each once.
    pub(crate) fn measure(&self, client: &Client, input: Input<'_>) -> Result<Vec<Figure>, Error> {
        let catalog: Catalog = client.catalog(input)?;
        let sbom = catalog.sbom()?;
        client.match_sbom::<serde_json::Value>(&sbom)?;

        let before = self.starts()?;
        client.catalog::<Catalog>(input)?;
        let cataloged = self.starts()?;
        client.match_sbom::<serde_json::Value>(&sbom)?;
        let matched = self.starts()?;
        let difference = |later: u32, earlier: u32| f64::from(later.saturating_sub(earlier));
        Ok(vec![
            Figure::new(
                "adapter.catalog.processes",
                difference(cataloged, before),
                "engine starts",
            )
            .at_most(1.0),
            Figure::new(
                "adapter.match.processes",
                difference(matched, cataloged),
                "engine starts",
            )
            .at_most(1.0),
        ])
    }

    fn starts(&self) -> Result<u32, Error> {
        let text = fs::read_to_string(&self.log).map_err(on("read", &self.log))?;
        Ok(u32::try_from(text.lines().count()).unwrap_or(u32::MAX))
    }
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn stand_ins_count_and_hand_everything_on() {
        let directory = std::env::temp_dir().join(format!("counted it's {}", uuid::Uuid::new_v4()));
        let real = Engines {
            syft: "/bin/echo".into(),
            grype: "/bin/echo".into(),
        };
        let counted = Counted::install(&real, &directory).unwrap();
        let output = Command::new(&counted.engines.syft)
            .args(["a b", "c"])
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"a b c\n");
        assert_eq!(counted.starts().unwrap(), 1);
        fs::remove_dir_all(directory).unwrap();
    }
}
