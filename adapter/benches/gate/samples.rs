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
}

/// 1 GiB of text in files of 64 KiB, and very many small files.
pub(crate) const ALL: [Sample; 4] = [
    Sample {
        name: "tar.gz",
        packing: Packing::Gzip,
        files: 16 << 10,
        file_bytes: 64 << 10,
    },
    Sample {
        name: "tar.zst",
        packing: Packing::Zstd,
        files: 16 << 10,
        file_bytes: 64 << 10,
    },
    Sample {
        name: "tar.xz",
        packing: Packing::Xz,
        files: 16 << 10,
        file_bytes: 64 << 10,
    },
    Sample {
        name: "zip",
        packing: Packing::Zip,
        files: 100_000,
        file_bytes: 2 << 10,
    },
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
        Ok(writer.finish()?)
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
