//! Whole archives through the gate.

use super::{
    Container, Entry, EntryKind, EntrySink, GateError, GateLimits, Inspection, Interest, Profile, inspect,
};
use crate::run::RunContext;
use assay_schemas::Code;
use std::io::{self, Write};
use std::time::Duration;

mod growing;
mod hostile;
mod legal;
mod sparse;
mod tar_headers;
mod zip_ends;
mod zip_records;

const LIMITS: GateLimits = GateLimits {
    max_entries: 100,
    max_expanded_bytes: 64 << 20,
    max_single_file_bytes: 32 << 20,
    max_nested_depth: 3,
};

/// Notes every entry as `container!/path`, with what it is; keeps contents whose path ends with `.txt`.
#[derive(Default)]
struct Recorder {
    seen: Vec<String>,
    contents: Vec<Vec<u8>>,
    rpms: Vec<String>,
    wants_all: bool,
    /// No engine gets any of the files.
    keeps_all: bool,
    open: bool,
}

impl EntrySink for Recorder {
    fn begin(&mut self, entry: &Entry<'_>) -> Interest {
        assert!(!self.open, "an entry begins while another is handed over");
        let mut path = entry.within.join("!/");
        if !path.is_empty() {
            path.push_str("!/");
        }
        path.push_str(entry.path);
        match entry.kind {
            EntryKind::File => {}
            EntryKind::Directory => path.push('/'),
            EntryKind::Symlink { target } => path = format!("{path} -> {target}"),
            EntryKind::HardLink { target } => path = format!("{path} => {target}"),
        }
        if entry.container == Container::Compressed {
            path.push_str(" (decompressed)");
        }
        self.seen.push(path);
        let wanted =
            entry.kind == EntryKind::File && (self.wants_all || super::sniff::has_suffix(entry.path, ".txt"));
        if wanted {
            self.open = true;
            self.contents.push(Vec::new());
            Interest::Content
        } else {
            Interest::Skip
        }
    }

    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        assert!(self.open, "content without an entry");
        self.contents.last_mut().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        assert!(std::mem::take(&mut self.open), "an end without a beginning");
        Ok(())
    }

    fn is_handed_on(&self) -> bool {
        !self.keeps_all
    }

    fn abandon(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.open) {
            self.contents.pop();
        }
        Ok(())
    }

    fn rpm(&mut self, _: &[String], metadata: &rpm::PackageMetadata) {
        self.rpms.push(metadata.get_name().unwrap().to_owned());
    }
}

fn run(
    bytes: &[u8],
    limits: &GateLimits,
    profile: Profile,
    sink: &mut dyn EntrySink,
) -> Result<Inspection, GateError> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let context = RunContext::with_timeout(Duration::from_mins(1));
    let size = u64::try_from(bytes.len()).unwrap();
    let result = inspect(&file, size, scratch.path(), limits, profile, &context, sink);
    assert_eq!(
        std::fs::read_dir(scratch.path()).unwrap().count(),
        0,
        "nothing stays in scratch"
    );
    result
}

/// Inspects bytes that must pass.
fn passes(bytes: &[u8]) -> (Inspection, Recorder) {
    let mut recorder = Recorder::default();
    let inspection = run(bytes, &LIMITS, Profile::Package, &mut recorder);
    (inspection.unwrap(), recorder)
}

/// Inspects bytes that must be refused; gives the code.
fn refused_with(bytes: &[u8], limits: &GateLimits) -> Code {
    let result = run(bytes, limits, Profile::Package, &mut Recorder::default());
    let error = result.expect_err("the gate let it pass");
    assert!(error.to_string().len() < 600);
    error.code()
}

fn refused(bytes: &[u8]) -> Code {
    refused_with(bytes, &LIMITS)
}

/// A tar of regular files, with end marker.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, data) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(data.len()).unwrap());
        header.set_mode(0o644);
        builder.append_data(&mut header, name, *data).unwrap();
    }
    builder.into_inner().unwrap()
}

/// One raw tar record: a header as given, and padded data. Nothing is checked.
fn tar_record(name: &[u8], type_flag: u8, link: &[u8], size: u64, data: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    let raw = header.as_old_mut();
    raw.name[..name.len()].copy_from_slice(name);
    raw.linkname[..link.len()].copy_from_slice(link);
    raw.linkflag = [type_flag];
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    let mut out = header.as_bytes().to_vec();
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(512), 0);
    out
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for (name, data) in files {
        writer
            .start_file(*name, zip::write::SimpleFileOptions::default())
            .unwrap();
        writer.write_all(data).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// The same ZIP with these attributes in every central record, as if made on Unix.
fn with_unix_mode(mut zip: Vec<u8>, mode: u32, dos: u32) -> Vec<u8> {
    let records: Vec<_> = zip
        .windows(4)
        .enumerate()
        .filter_map(|(at, bytes)| (bytes == b"PK\x01\x02").then_some(at))
        .collect();
    assert!(!records.is_empty());
    for at in records {
        zip[at + 5] = 3;
        zip[at + 38..at + 42].copy_from_slice(&(mode << 16 | dos).to_le_bytes());
    }
    zip
}

/// Unix `ar`.
fn ar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = ar::Builder::new(Vec::new());
    for (name, data) in files {
        let header = ar::Header::new(name.as_bytes().to_vec(), u64::try_from(data.len()).unwrap());
        builder.append(&header, *data).unwrap();
    }
    builder.into_inner().unwrap()
}

/// A newc record.
fn cpio_record(name: &str, mode: u32, data: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "070701{:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}",
        1,
        0,
        0,
        1,
        0,
        data.len(),
        0,
        0,
        0,
        0,
        name.len() + 1,
        0
    )
    .into_bytes();
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(data);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

fn cpio(records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = records.concat();
    out.extend(cpio_record("TRAILER!!!", 0, b""));
    out
}

/// An RPM header structure of string entries.
fn rpm_header(strings: &[(u32, &str)]) -> Vec<u8> {
    let mut index = Vec::new();
    let mut store = Vec::new();
    for (tag, text) in strings {
        for word in [*tag, 6, u32::try_from(store.len()).unwrap(), 1] {
            index.extend_from_slice(&word.to_be_bytes());
        }
        store.extend_from_slice(text.as_bytes());
        store.push(0);
    }
    let mut out = vec![0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
    out.extend_from_slice(&u32::try_from(strings.len()).unwrap().to_be_bytes());
    out.extend_from_slice(&u32::try_from(store.len()).unwrap().to_be_bytes());
    out.extend(index);
    out.extend(store);
    out
}

/// An RPM named `demo`.
fn rpm_package(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0xed, 0xab, 0xee, 0xdb, 3, 0];
    out.resize(96, 0);
    out.extend(rpm_header(&[(1000, "x")]));
    out.resize(out.len().next_multiple_of(8), 0);
    out.extend(rpm_header(&[(1000, "demo"), (1001, "1.0")]));
    out.extend_from_slice(payload);
    out
}
