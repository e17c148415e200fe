//! One generation as an archive in the layout that the matcher imports and downloads: the database file, and nothing
//! else. Equal databases give equal archives.

use super::Layout;
use super::publish::FileFacts;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Name of the database in an archive.
const MEMBER: &str = "vulnerability.db";
/// How hard zstd tries: archives are made once for many downloads, but somebody waits for the first.
const ZSTD_LEVEL: i32 = 6;

/// How an archive is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.tar.zst`
    Zstd,
    /// `.tar.gz`
    Gzip,
}

impl Format {
    /// By the end of the file's name, as the matcher decides.
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        if name.ends_with(".tar.zst") {
            Some(Self::Zstd)
        } else if name.ends_with(".tar.gz") {
            Some(Self::Gzip)
        } else {
            None
        }
    }
}

/// Writes the archive of a generation's directory to `target`, which appears when it is complete. Blocking.
///
/// # Errors
/// What the host says.
pub fn write(generation: &Path, target: &Path, format: Format) -> io::Result<FileFacts> {
    let directory = target
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(directory)?;
    let mut database = File::open(Layout::database(generation))?;
    let out = BufWriter::with_capacity(1 << 20, file.as_file());
    match format {
        Format::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(out, ZSTD_LEVEL)?;
            encoder.include_checksum(true)?;
            fill(&mut encoder, &mut database)?;
            encoder.finish()?.flush()?;
        }
        Format::Gzip => {
            let mut encoder = GzEncoder::new(out, Compression::default());
            fill(&mut encoder, &mut database)?;
            encoder.finish()?.flush()?;
        }
    }
    file.as_file().sync_all()?;
    file.persist(target)?;
    FileFacts::of(target)
}

fn fill(out: impl Write, database: &mut File) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(database.metadata()?.len());
    header.set_mode(0o644);
    header.set_mtime(0);
    let mut archive = tar::Builder::new(out);
    archive.append_data(&mut header, MEMBER, database)?;
    archive.into_inner()?.flush()
}

#[cfg(test)]
mod tests {
    use super::{Format, write};
    use std::fs::{self, File};
    use std::io::Read as _;
    use std::path::Path;

    #[test]
    fn archives_hold_the_database_and_equal_each_other() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("6")).unwrap();
        fs::write(root.path().join("6/vulnerability.db"), "content").unwrap();
        fs::write(root.path().join("6/import.json"), "{}").unwrap();
        for (name, format) in [("a.tar.zst", Format::Zstd), ("a.tar.gz", Format::Gzip)] {
            let path = root.path().join(name);
            assert_eq!(Format::of(&path), Some(format));
            let facts = write(root.path(), &path, format).unwrap();
            assert_eq!(facts, write(root.path(), &path, format).unwrap());
            let file = File::open(&path).unwrap();
            let plain: Box<dyn std::io::Read> = match format {
                Format::Zstd => Box::new(zstd::stream::read::Decoder::new(file).unwrap()),
                Format::Gzip => Box::new(flate2::read::GzDecoder::new(file)),
            };
            let mut archive = tar::Archive::new(plain);
            let contents: Vec<(String, String)> = archive
                .entries()
                .unwrap()
                .map(|entry| {
                    let mut entry = entry.unwrap();
                    let mut text = String::new();
                    entry.read_to_string(&mut text).unwrap();
                    (entry.path().unwrap().display().to_string(), text)
                })
                .collect();
            assert_eq!(contents, [("vulnerability.db".to_owned(), "content".to_owned())]);
        }
        assert_eq!(Format::of(Path::new("a.zip")), None);
        assert!(
            write(
                &root.path().join("absent"),
                &root.path().join("b.tar.gz"),
                Format::Gzip
            )
            .is_err()
        );
        assert!(!root.path().join("b.tar.gz").exists());
    }
}
