//! What is left when the writer stops between any two steps, or any step fails.

use super::Layout;
use super::disk::{Disk, Host, Step};
use super::pointer::GenerationName;
use super::publish::FileFacts;
use super::record::{Hold, Published};
use super::store::{DatabaseError, Store};
use jiff::{Timestamp, ToSpan as _};
use nix::errno::Errno;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What happens at the step of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The process is killed before the step: nothing that follows has an effect.
    Killed,
    /// The process is killed in the middle of the step: half of what it writes is there.
    KilledHalfway,
    /// The step fails, and the process goes on.
    Fails(Errno),
    /// This step and every later one that takes space fail.
    DiskFull,
}

/// The host's disk without its waits: a killed process loses nothing that the kernel has.
#[derive(Debug)]
struct Quick;

impl Disk for Quick {
    fn perform(&self, step: Step<'_>) -> io::Result<()> {
        match step {
            Step::Sync(path) => fs::symlink_metadata(path).map(drop),
            step => Host.perform(step),
        }
    }
}

fn quick(root: &Path) -> Store {
    Store::with_disk(root, Arc::new(Quick))
}

/// A disk on which one step ends as the fault says.
#[derive(Debug)]
struct Faulty {
    at: usize,
    fault: Fault,
    done: AtomicUsize,
}

impl Disk for Faulty {
    fn perform(&self, step: Step<'_>) -> io::Result<()> {
        let index = self.done.fetch_add(1, Ordering::Relaxed);
        let takes_space = matches!(
            step,
            Step::MakeDirectories(_)
                | Step::MakePrivate(_)
                | Step::Create(_)
                | Step::Append(..)
                | Step::Sync(_)
        );
        match self.fault {
            _ if index < self.at => Quick.perform(step),
            Fault::KilledHalfway if index == self.at => {
                if let Step::Append(path, bytes) = step {
                    Quick.perform(Step::Append(path, &bytes[..bytes.len() / 2]))?;
                }
                Err(io::Error::other("killed"))
            }
            Fault::Killed | Fault::KilledHalfway => Err(io::Error::other("killed")),
            Fault::Fails(errno) if index == self.at => Err(errno.into()),
            Fault::DiskFull if takes_space => Err(Errno::ENOSPC.into()),
            Fault::Fails(_) | Fault::DiskFull => Quick.perform(step),
        }
    }
}

const FAULTS: &[Fault] = &[
    Fault::Killed,
    Fault::KilledHalfway,
    Fault::Fails(Errno::ENOSPC),
    Fault::Fails(Errno::EIO),
    Fault::DiskFull,
];

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn describe(facts: FileFacts) -> Published {
    Published {
        built: start(),
        revision: "r".to_owned(),
        schema: "v6".to_owned(),
        sha256: facts.sha256,
        bytes: facts.bytes,
        source: "test".to_owned(),
    }
}

/// One update as the updater does it: everything between the lock and its release. `content` tells databases apart.
fn update(store: &Store, content: &str, now: Timestamp) -> Result<(), DatabaseError> {
    store.prepare()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let lock = runtime
        .block_on(store.lock(Duration::ZERO))?
        .expect("nobody else writes");
    store.probe(&lock)?;
    store.sweep(&lock);
    let staging = store.stage(&lock)?;
    // The engine's part: each of its files is a step of its own, though no fault of ours can be put into one.
    let step = |step: Step<'_>| store.disk.perform(step).map_err(DatabaseError::io("filled"));
    let directory = staging.path().join("6");
    step(Step::MakePrivate(&directory))?;
    for name in ["vulnerability.db", "import.json"] {
        let path = directory.join(name);
        step(Step::Create(&path))?;
        step(Step::Append(&path, content.as_bytes()))?;
    }
    let outcome = store.publish(&lock, staging, now, describe);
    store.clean_up(&lock, now, Duration::from_hours(1));
    outcome.map(drop)
}

/// What a reader that comes now gets: the content of every file of the current generation.
fn read(root: &Path) -> Result<String, DatabaseError> {
    let current = quick(root).current()?;
    let contents: BTreeSet<String> = ["vulnerability.db", "import.json"]
        .map(|name| fs::read_to_string(current.path.join("6").join(name)).unwrap_or_default())
        .into();
    assert_eq!(contents.len(), 1, "a mix: {contents:?}");
    Ok(contents.into_iter().next().unwrap())
}

/// Everything below the directory, by its path from there.
fn names(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            found.push(entry.path().strip_prefix(root).unwrap().to_owned());
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            }
        }
    }
    found
}

/// Makes everything look as if hours had passed since it was written.
fn age(root: &Path) {
    for name in names(root) {
        let file = fs::File::open(root.join(name)).unwrap();
        let past = std::time::SystemTime::now() - Duration::from_hours(3);
        file.set_modified(past).unwrap();
    }
}

/// Nothing is there but what the layout has for these generations.
fn assert_tidy(root: &Path, generations: usize, context: &str) {
    let store = quick(root);
    let names = names(root);
    let is_stray = |name: &&PathBuf| {
        let last = name.file_name().unwrap().to_string_lossy().into_owned();
        last.starts_with(".staging-") || last.contains(".tmp-") || last.starts_with(".probe-")
    };
    let strays: Vec<_> = names.iter().filter(is_stray).collect();
    assert!(strays.is_empty(), "{context}: {strays:?}");
    assert_eq!(store.generations().len(), generations, "{context}: {names:?}");
    let current = store.current().unwrap().name;
    let count = |directory: PathBuf| fs::read_dir(directory).unwrap().count();
    assert_eq!(
        count(store.layout().published()),
        generations,
        "{context}: {names:?}"
    );
    assert!(!store.layout().retired().join(current.as_str()).exists());
}

/// A directory in which `old` is published, and one before it, which may go with the next update.
fn published() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    update(&quick(root.path()), "older", start() - 24.hours()).unwrap();
    update(&quick(root.path()), "old", start()).unwrap();
    assert_eq!(read(root.path()).unwrap(), "old");
    root
}

fn faulty(root: &Path, at: usize, fault: Fault) -> (Store, Arc<Faulty>) {
    let disk = Arc::new(Faulty {
        at,
        fault,
        done: AtomicUsize::new(0),
    });
    (Store::with_disk(root, disk.clone()), disk)
}

/// How many steps this takes when nothing fails.
fn steps_of(work: impl Fn(&Store)) -> usize {
    let root = published();
    let (store, disk) = faulty(root.path(), usize::MAX, Fault::Killed);
    work(&store);
    disk.done.load(Ordering::Relaxed)
}

#[test]
fn wherever_an_update_stops_readers_have_a_whole_database_and_the_next_update_repairs() {
    let later = start() + 6.hours();
    let steps = steps_of(|store| update(store, "new", later).unwrap());
    assert!(steps > 20, "{steps} steps");
    for fault in FAULTS {
        let mut replaced = 0;
        for at in 0..steps {
            let context = format!("{fault:?} at step {at}");
            let root = published();
            let (store, _) = faulty(root.path(), at, *fault);
            let outcome = update(&store, "new", later);
            drop(store);
            let seen = read(root.path()).unwrap_or_else(|error| panic!("{context}: {error}"));
            match outcome {
                Ok(()) => assert_eq!(seen, "new", "{context}"),
                Err(_) => assert!(seen == "old" || seen == "new", "{context}: {seen}"),
            }
            replaced += usize::from(seen == "new");

            // What the process has left becomes an orphan, and generations that nobody names wait for their readers.
            age(root.path());
            let store = quick(root.path());
            update(&store, "next", start() + 12.hours()).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(read(root.path()).unwrap(), "next", "{context}");
            update(&store, "last", start() + 24.hours()).unwrap();
            // Those that the update before has marked are gone now; the one before is still to be read.
            assert_tidy(root.path(), 2, &context);
        }
        // The pointer is one of the last steps, but not the very last.
        assert!(
            (1..steps / 2).contains(&replaced),
            "{fault:?}: {replaced} of {steps}"
        );
    }
}

#[test]
fn wherever_a_first_update_stops_there_is_nothing_or_a_whole_database() {
    let root = tempfile::tempdir().unwrap();
    let (store, disk) = faulty(root.path(), usize::MAX, Fault::Killed);
    update(&store, "new", start()).unwrap();
    for at in 0..disk.done.load(Ordering::Relaxed) {
        for fault in FAULTS {
            let root = tempfile::tempdir().unwrap();
            let (store, _) = faulty(root.path(), at, *fault);
            let outcome = update(&store, "new", start());
            match read(root.path()) {
                Ok(seen) => assert_eq!(seen, "new", "{fault:?} at step {at}"),
                Err(error) => {
                    assert!(
                        matches!(error, DatabaseError::Unavailable),
                        "{fault:?} at step {at}: {error}"
                    );
                    assert!(outcome.is_err());
                }
            }
            update(&quick(root.path()), "next", start() + 6.hours()).unwrap();
            assert_eq!(read(root.path()).unwrap(), "next");
        }
    }
}

#[test]
fn wherever_a_rollback_stops_one_of_both_is_current() {
    let (second, third) = (start() + 6.hours(), start() + 7.hours());
    let prepare = || {
        let root = published();
        update(&quick(root.path()), "bad", second).unwrap();
        root
    };
    let back = |store: &Store| -> Result<(), DatabaseError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let lock = runtime.block_on(store.lock(Duration::ZERO))?.unwrap();
        let current = store.current()?;
        let target = store
            .generations()
            .into_iter()
            .find(|one| *one != current)
            .unwrap();
        let hold = Hold {
            built: start(),
            sha256: None,
            generation: current.name.to_string(),
            since: third,
        };
        store.roll_back(&lock, &target, Some(&hold), third).map(drop)
    };
    let root = prepare();
    let (store, disk) = faulty(root.path(), usize::MAX, Fault::Killed);
    back(&store).unwrap();
    assert_eq!(read(root.path()).unwrap(), "old");
    let steps = disk.done.load(Ordering::Relaxed);
    for at in 0..steps {
        for fault in FAULTS {
            let context = format!("{fault:?} at step {at} of {steps}");
            let root = prepare();
            let (store, _) = faulty(root.path(), at, *fault);
            let outcome = back(&store);
            let seen = read(root.path()).unwrap_or_else(|error| panic!("{context}: {error}"));
            let store = quick(root.path());
            let held: Option<Hold> = store.record(&store.layout().hold());
            match seen.as_str() {
                "old" => assert!(held.is_some(), "{context}: the next update would undo it"),
                seen => assert!(outcome.is_err() && seen == "bad", "{context}: {seen}"),
            }
            back(&store).unwrap();
            age(root.path());
            update(&store, "last", start() + 48.hours()).unwrap();
            assert_tidy(root.path(), 3, &context);
        }
    }
}

#[test]
fn wherever_setting_aside_stops_the_current_one_stays_and_one_is_kept_at_most() {
    let aside = |store: &Store, content: &str| -> Result<(), DatabaseError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let lock = runtime.block_on(store.lock(Duration::ZERO))?.unwrap();
        store.sweep(&lock);
        let staging = store.stage(&lock)?;
        fs::write(staging.path().join("vulnerability.db"), content).unwrap();
        store.set_aside(&lock, staging, &content).map(drop)
    };
    let kept = |root: &Path| {
        let place = Layout::new(root).rejected();
        let read = |name: &str| fs::read_to_string(place.join(name)).ok();
        (read("database/vulnerability.db"), read("report.json"))
    };
    let root = published();
    aside(&quick(root.path()), "first").unwrap();
    let (store, disk) = faulty(root.path(), usize::MAX, Fault::Killed);
    aside(&store, "second").unwrap();
    assert_eq!(
        kept(root.path()),
        (Some("second".to_owned()), Some("\"second\"".to_owned()))
    );
    let steps = disk.done.load(Ordering::Relaxed);
    assert!(steps > 8, "{steps} steps");
    for at in 0..steps {
        for fault in FAULTS {
            let context = format!("{fault:?} at step {at} of {steps}");
            let root = published();
            aside(&quick(root.path()), "first").unwrap();
            let (store, _) = faulty(root.path(), at, *fault);
            let outcome = aside(&store, "second");
            assert_eq!(read(root.path()).unwrap(), "old", "{context}");
            // A report is never beside the database of another one.
            if let (Some(database), Some(report)) = kept(root.path()) {
                assert_eq!(report, format!("\"{database}\""), "{context}");
                assert!(outcome.is_err() || database == "second", "{context}");
            }
            age(root.path());
            aside(&quick(root.path()), "third").unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(kept(root.path()).0.as_deref(), Some("third"), "{context}");
            assert_tidy(root.path(), 2, &context);
        }
    }
}

/// A crash of the machine, unlike one of the process, loses what was not synced: everything must be on disk before
/// something names it.
#[test]
fn nothing_is_named_before_it_is_on_disk() {
    #[derive(Debug, Default)]
    struct Noted(std::sync::Mutex<Vec<String>>);
    impl Disk for Noted {
        fn perform(&self, step: Step<'_>) -> io::Result<()> {
            let name = |path: &Path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                if GenerationName::parse(&name).is_some() {
                    return "GENERATION".to_owned();
                }
                match name.split_once('-') {
                    Some((kind, _)) if name.starts_with('.') && kind != ".kkrepo" => kind.to_owned(),
                    _ => name
                        .split(".tmp-")
                        .collect::<Vec<_>>()
                        .first()
                        .unwrap()
                        .to_string(),
                }
            };
            let line = match step {
                Step::Sync(path) => Some(format!("sync {}", name(path))),
                Step::Rename(from, to) => Some(format!("{} becomes {}", name(from), name(to))),
                _ => None,
            };
            self.0.lock().unwrap().extend(line);
            Host.perform(step)
        }
    }
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().join("ROOT");
    let disk = Arc::new(Noted::default());
    update(&Store::with_disk(&root, disk.clone()), "new", start()).unwrap();
    let lines = disk.0.lock().unwrap().clone();
    let mut files = lines[..2].to_vec();
    files.sort();
    assert_eq!(files, ["sync import.json", "sync vulnerability.db"]);
    insta::assert_snapshot!(lines[2..].join("\n"), @r"
    sync 6
    sync .staging
    sync .tmp
    .tmp becomes GENERATION
    .staging becomes GENERATION
    sync generations
    sync .kkrepo-db-current
    .kkrepo-db-current becomes .kkrepo-db-current
    sync ROOT
    ");
    assert_eq!(Layout::new(&root).pointer(), root.join(".kkrepo-db-current"));
}
