//! Whatever bytes the gate accepts, Syft's readers see the same in them.
//!
//! `ASSAY_MUTATIONS` sets how many are tried, `ASSAY_SEED` where to begin; each failure names its number, which as the
//! seed with one mutation makes it again. `ASSAY_KEEP` names a directory for the bytes of failures.

use crate::listing::{Theirs, first_difference, ours, theirs};
use crate::mutation::{Shape, mutate};
use crate::reader::Reader;
use assay_adapter::archive::{Profile, declared};
use assay_fixtures::hostile::{self, Verdict};
use assay_schemas::ArtifactType;
use fastrand::Rng;

/// Enough for every change, seconds on any machine.
const DEFAULT_MUTATIONS: u64 = 4000;

struct Base {
    id: &'static str,
    suffix: &'static str,
    artifact_type: ArtifactType,
    shape: Shape,
    bytes: Vec<u8>,
}

#[test]
fn what_the_gate_accepts_is_listed_alike() {
    let bases = bases();
    let mut reader = Reader::start();
    let (mut accepted, mut wrong) = (0, Vec::new());
    let first = number("ASSAY_SEED").unwrap_or(0);
    let count = number("ASSAY_MUTATIONS").unwrap_or(DEFAULT_MUTATIONS);
    for seed in first..first + count {
        let mut random = Rng::with_seed(seed);
        let base = &bases[random.usize(..bases.len())];
        let donor = &bases[random.usize(..bases.len())];
        let bytes = mutate(&base.bytes, base.shape, &donor.bytes, &mut random);
        match disagreement(&mut reader, base, &bytes) {
            Outcome::Refused => {}
            Outcome::Alike => accepted += 1,
            Outcome::Different(text) => {
                keep(seed, base, &bytes);
                wrong.push(format!("seed {seed}, {}: {text}", base.id));
            }
        }
    }
    println!("{count} mutations, {accepted} accepted and alike");
    assert!(
        accepted > count / 50,
        "only {accepted} of {count} were accepted: nothing is tested"
    );
    assert!(
        wrong.is_empty(),
        "{} of {count} mutations:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

enum Outcome {
    Refused,
    Alike,
    Different(String),
}

fn disagreement(reader: &mut Reader, base: &Base, bytes: &[u8]) -> Outcome {
    let Ok(ours) = ours(base.suffix, bytes, Profile::Package) else {
        return Outcome::Refused;
    };
    let size = u64::try_from(bytes.len()).unwrap();
    if declared::check(base.artifact_type, ours.inspection.format, size).is_err() {
        return Outcome::Refused;
    }
    let theirs = theirs(reader, base.suffix, bytes);
    if !theirs.error.is_empty() && is_harmless(base, &theirs) && ours.entries.starts_with(&theirs.entries) {
        return Outcome::Alike;
    }
    match first_difference(&ours.entries, &theirs.entries) {
        Some(difference) => Outcome::Different(format!("{difference} [{}]", theirs.error)),
        None if !theirs.error.is_empty() => Outcome::Different(format!("they failed: {}", theirs.error)),
        None => Outcome::Alike,
    }
}

/// Whether a reader that gives up earlier than the gate misses nothing that matters: of a tar only files are handed on,
/// never the tar, of an RPM's payload nothing, and a deb whose archives cannot be read makes the answer partial.
fn is_harmless(base: &Base, theirs: &Theirs) -> bool {
    base.suffix.contains(".tar") || base.suffix == ".deb" || theirs.error.starts_with("payload: ")
}

/// The legal ones among the small cases.
fn bases() -> Vec<Base> {
    let cases = hostile::all().into_iter();
    let legal = cases.filter(|case| matches!(case.verdict, Verdict::Accept { .. }));
    legal
        .filter_map(|case| {
            let artifact_type = ArtifactType::parse(case.artifact_type).unwrap();
            let bytes = (case.make)();
            let (suffix, shape) = form(artifact_type, &bytes)?;
            (bytes.len() < 20_000).then_some(Base {
                id: case.id,
                suffix,
                artifact_type,
                shape,
                bytes,
            })
        })
        .collect()
}

/// How Syft would meet an artifact of this type.
fn form(artifact_type: ArtifactType, bytes: &[u8]) -> Option<(&'static str, Shape)> {
    use ArtifactType as T;
    let is_gzip = bytes.starts_with(&[0x1f, 0x8b]);
    Some(match artifact_type {
        T::Tar | T::Gem => (".tar", Shape::Tar),
        T::TarGz | T::Tgz | T::Crate => (".tar.gz", Shape::Other),
        T::Apk if is_gzip => (".tar.gz", Shape::Other),
        T::TarXz => (".tar.xz", Shape::Other),
        T::TarBz2 => (".tar.bz2", Shape::Other),
        T::TarZst => (".tar.zst", Shape::Other),
        T::Zip | T::Jar | T::War | T::Ear | T::Whl | T::Nupkg | T::Apk => (".zip", Shape::Zip),
        T::Rpm => (".rpm", Shape::Other),
        T::Deb => (".deb", Shape::Other),
        _ => return None,
    })
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

fn keep(seed: u64, base: &Base, bytes: &[u8]) {
    if let Some(directory) = std::env::var_os("ASSAY_KEEP") {
        let name = format!("{seed}-{}{}", base.id, base.suffix);
        std::fs::write(std::path::Path::new(&directory).join(name), bytes).unwrap();
    }
}
