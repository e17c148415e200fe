//! Archives of pseudo-random words, the same on every machine.

use crate::Outcome;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;

/// How a sample is compressed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
    Xz,
    Zip,
}

/// An archive to make.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) name: &'static str,
    pub(crate) packing: Packing,
    files: u32,
    file_bytes: usize,
    /// Packages whose manifests lie among the files.
    packages: u32,
}

const fn sample(
    name: &'static str,
    packing: Packing,
    files: u32,
    file_bytes: usize,
    packages: u32,
) -> Sample {
    Sample {
        name,
        packing,
        files,
        file_bytes,
        packages,
    }
}

/// 1 GiB of text in files of 64 KiB, very many small files, and the two of which whole requests are measured.
pub(crate) const ALL: [Sample; 6] = [
    sample("tar.gz", Packing::Gzip, 16 << 10, 64 << 10, 0),
    sample("tar.zst", Packing::Zstd, 16 << 10, 64 << 10, 0),
    sample("tar.xz", Packing::Xz, 16 << 10, 64 << 10, 0),
    sample("zip", Packing::Zip, 100_000, 2 << 10, 0),
    sample("request.zip", Packing::Zip, 99_000, 1, 250),
    sample("request.tar.gz", Packing::Gzip, 30_000, 10_000, 250),
];

impl Sample {
    /// Makes it in `directory` unless it is there.
    pub(crate) fn ensure(&self, directory: &Path) -> Outcome<PathBuf> {
        let path = directory.join(format!("gate.{}", self.name));
        if !path.exists() {
            std::fs::create_dir_all(directory)?;
            let part = path.with_extension("part");
            let file = BufWriter::with_capacity(1 << 20, File::create(&part)?);
            self.write(file)?.flush()?;
            std::fs::rename(part, &path)?;
        }
        Ok(path)
    }

    fn write(&self, file: BufWriter<File>) -> Outcome<BufWriter<File>> {
        Ok(match self.packing {
            Packing::Gzip => {
                let level = flate2::Compression::new(6);
                self.tar(flate2::write::GzEncoder::new(file, level))?.finish()?
            }
            Packing::Zstd => self.tar(zstd::stream::write::Encoder::new(file, 3)?)?.finish()?,
            Packing::Xz => self.tar(xz2::write::XzEncoder::new(file, 1))?.finish()?,
            Packing::Zip => self.zip(file)?,
        })
    }

    fn tar<W: Write>(&self, writer: W) -> io::Result<W> {
        let mut builder = tar::Builder::new(writer);
        let mut words = Words::new();
        let mut text = Vec::new();
        for index in 0..self.files {
            words.fill(&mut text, self.file_bytes);
            let mut header = tar::Header::new_ustar();
            header.set_size(u64::try_from(text.len()).unwrap_or_default());
            header.set_mode(0o644);
            builder.append_data(&mut header, file_name(index), &text[..])?;
        }
        for (name, content) in self.manifests() {
            let mut header = tar::Header::new_ustar();
            header.set_size(u64::try_from(content.len()).unwrap_or_default());
            header.set_mode(0o644);
            builder.append_data(&mut header, name, content.as_bytes())?;
        }
        builder.into_inner()
    }

    fn zip(&self, file: BufWriter<File>) -> Outcome<BufWriter<File>> {
        let mut writer = zip::ZipWriter::new(file);
        let mut words = Words::new();
        let mut text = Vec::new();
        for index in 0..self.files {
            words.fill(&mut text, self.file_bytes);
            writer.start_file(file_name(index), SimpleFileOptions::default())?;
            writer.write_all(&text)?;
        }
        for (name, content) in self.manifests() {
            writer.start_file(name, SimpleFileOptions::default())?;
            writer.write_all(content.as_bytes())?;
        }
        Ok(writer.finish()?)
    }

    /// Installed packages of three ecosystems.
    fn manifests(&self) -> impl Iterator<Item = (String, String)> {
        (0..self.packages).flat_map(|n| {
            [
                (
                    format!("project/node_modules/left-pad-{n}/package.json"),
                    format!(r#"{{"name":"left-pad-{n}","version":"1.3.{n}","license":"MIT"}}"#),
                ),
                (
                    format!("project/site-packages/requests_{n}-2.19.{n}.dist-info/METADATA"),
                    format!("Metadata-Version: 2.1\nName: requests-{n}\nVersion: 2.19.{n}\n\nText.\n"),
                ),
                (
                    format!("project/crates/c{n}/Cargo.lock"),
                    format!("version = 3\n\n[[package]]\nname = \"serde-{n}\"\nversion = \"1.0.{n}\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n"),
                ),
            ]
        })
    }
}

fn file_name(index: u32) -> String {
    format!("project/src/part{}/file{index}.js", index / 100)
}

/// A stream of words from a small vocabulary: text compresses about as well.
struct Words(fastrand::Rng);

impl Words {
    fn new() -> Self {
        Self(fastrand::Rng::with_seed(7))
    }

    fn fill(&mut self, text: &mut Vec<u8>, bytes: usize) {
        text.clear();
        while text.len() < bytes {
            let word = self.0.u32(..2048);
            text.extend_from_slice(format!("{:x}", word.wrapping_mul(2_654_435_761)).as_bytes());
            text.push(if self.0.u32(..8) == 0 { b'\n' } else { b' ' });
        }
        text.truncate(bytes);
    }
}
