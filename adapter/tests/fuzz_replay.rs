//! The fuzz targets without a fuzzer, on the stable toolchain: every input that was kept, every first input, and a
//! fixed series of random changes of those.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use harness::Target;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[path = "../fuzz/src/lib.rs"]
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "shared with the fuzzer, which uses more of it"
)]
mod harness;
#[path = "../fuzz/src/seeds.rs"]
#[allow(unreachable_pub, reason = "shared")]
mod seeds;

/// Longest input, bytes.
const MAX_BYTES: usize = 8 << 10;

/// The harness measures the heap of the process, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kept(target: Target) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz_corpus");
    let files = std::fs::read_dir(folder.join(target.name())).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_kept_input_gets_a_verdict_inside_the_bounds() {
    let _alone = alone();
    for target in Target::ALL {
        let files = kept(target);
        assert!(!files.is_empty(), "{} keeps no input", target.name());
        for file in files {
            println!("{}", file.display());
            target.run(&std::fs::read(&file).unwrap());
        }
    }
}

#[test]
fn every_first_input_gets_a_verdict_inside_the_bounds() {
    let _alone = alone();
    for target in Target::ALL {
        let seeds = seeds::seeds(target);
        assert!(
            seeds.len() >= 3,
            "{} has {} first inputs",
            target.name(),
            seeds.len()
        );
        for (name, bytes) in seeds {
            println!("{} {name}", target.name());
            target.run(&bytes);
        }
    }
}

#[test]
fn random_changes_get_a_verdict_inside_the_bounds() {
    let _alone = alone();
    for target in Target::ALL {
        let seeds = seeds::seeds(target);
        let config = Config {
            cases: 32,
            failure_persistence: None,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let changes = (
            any::<prop::sample::Index>(),
            prop::collection::vec(any::<u32>(), 1..5),
        );
        let outcome = runner.run(&changes, |(seed, changes)| {
            let (_, bytes) = seed.get(&seeds);
            let mut data = bytes.clone();
            let mut size = data.len();
            data.resize(MAX_BYTES, 0);
            for change in changes {
                size = target.mutate(&mut data, size, MAX_BYTES, change, |data, size, max| {
                    bytewise(u64::from(change), data, size, max)
                });
            }
            target.run(&data[..size]);
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{}: {error}", target.name());
        }
    }
}

/// A small change of bytes: one replaced, a few inserted, some lost.
fn bytewise(seed: u64, data: &mut [u8], size: usize, max: usize) -> usize {
    let mut rng = fastrand::Rng::with_seed(seed);
    let at = rng.usize(..size.max(1));
    let length = rng.usize(1..9);
    match rng.u8(..4) {
        0 if size + length <= max => {
            data.copy_within(at..size, at + length);
            rng.fill(&mut data[at..at + length]);
            size + length
        }
        1 if size > at + length => {
            data.copy_within(at + length..size, at);
            size - length
        }
        _ => {
            if let Some(byte) = data[..size].get_mut(at) {
                *byte = *rng
                    .choice(&[0, 1, 0x7f, 0x80, 0xff, b'/', b'.', rng.clone().u8(..)])
                    .unwrap();
            }
            size
        }
    }
}
