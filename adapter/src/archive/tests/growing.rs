//! An input that is inspected while it is still being written.

use super::super::{Gate, GateError, Inspection, Profile};
use super::super::{Growth, Input};
use super::{LIMITS, Recorder, ar, cpio, cpio_record, gzip, run, tar, tar_record, zip};
use crate::run::RunContext;
use assay_schemas::Code;
use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::time::Duration;

/// Grows by `step` bytes whenever somebody waits, up to what there is of it.
#[derive(Debug)]
struct Slow<'b> {
    file: &'b File,
    bytes: &'b [u8],
    step: usize,
    written: Cell<usize>,
    whole: Cell<bool>,
}

impl Growth for Slow<'_> {
    fn wait(&self, until: u64) -> u64 {
        let until = usize::try_from(until).unwrap();
        while self.written.get() < until.min(self.bytes.len()) {
            let rest = &self.bytes[self.written.get()..];
            let next = &rest[..rest.len().min(self.step)];
            let mut file = self.file;
            file.write_all(next).unwrap();
            self.written.set(self.written.get() + next.len());
        }
        self.written.get() as u64
    }

    fn reached(&self, position: u64) {
        self.whole.set(self.whole.get() || position == u64::MAX);
    }
}

/// Inspects `bytes` as they come. Whether they were wanted whole before any entry was known.
fn grown(
    bytes: &[u8],
    announced: usize,
    step: usize,
    sink: &mut Recorder,
) -> (Result<Inspection, GateError>, bool) {
    let file = tempfile::tempfile().unwrap();
    let growth = Slow {
        file: &file,
        bytes,
        step,
        written: Cell::new(0),
        whole: Cell::new(false),
    };
    let scratch = tempfile::tempdir().unwrap();
    let context = RunContext::with_timeout(Duration::from_mins(1));
    let gate = Gate::new(
        LIMITS,
        announced as u64,
        scratch.path(),
        Profile::Package,
        &context,
    );
    let found = gate.inspect(Input::growing(&file, announced as u64, &growth), sink);
    (found, growth.whole.get())
}

fn samples() -> Vec<(Vec<u8>, bool)> {
    let text: Vec<u8> = (0..400_000u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let plain = tar(&[
        ("a.txt", b"1"),
        ("b.txt", &text),
        ("c.zip", &zip(&[("d.txt", b"2")])),
    ]);
    vec![
        (gzip(&plain), false),
        ([gzip(&plain), gzip(b"")].concat(), false),
        (zstd::encode_all(&plain[..], 1).unwrap(), false),
        (plain, false),
        (ar(&[("debian-binary", b"2.0\n"), ("x.txt", &text)]), false),
        (cpio(&[cpio_record("a.txt", 0o100_644, &text)]), false),
        (zip(&[("a.txt", &text)]), true),
        (text, true),
        (tar_record(b"../x", b'0', b"", 1, b"1"), false),
        (gzip(b"cut off")[..12].to_vec(), false),
        (Vec::new(), true),
    ]
}

#[test]
fn growing_bytes_are_judged_like_those_that_are_there() {
    for (at, (bytes, wanted_whole)) in samples().into_iter().enumerate() {
        let mut recorder = Recorder::default();
        let at_once = run(&bytes, &LIMITS, Profile::Package, &mut recorder);
        for step in [1_000, 77_777, 10 << 20] {
            let mut other = Recorder::default();
            let (found, whole) = grown(&bytes, bytes.len(), step, &mut other);
            assert_eq!(
                found.as_ref().map_err(GateError::code).ok(),
                at_once.as_ref().ok(),
                "sample {at}, step {step}"
            );
            assert_eq!(
                found.err().map(|e| e.code()),
                at_once.as_ref().err().map(GateError::code)
            );
            assert_eq!(other.seen, recorder.seen, "sample {at}, step {step}");
            assert_eq!(other.contents, recorder.contents, "sample {at}, step {step}");
            assert_eq!(whole, wanted_whole, "sample {at}");
        }
    }
}

#[test]
fn an_input_that_ends_before_its_announced_size_is_an_error_of_the_input() {
    for (bytes, _) in samples() {
        let (found, _) = grown(&bytes, bytes.len() + 1, 77_777, &mut Recorder::default());
        let code = found.expect_err("it passed").code();
        assert!(
            matches!(code, Code::InputIo | Code::ArchivePathEscape),
            "{code:?}"
        );
    }
}
