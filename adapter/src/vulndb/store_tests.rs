use super::{DatabaseError, Store};
use crate::vulndb::publish::FileFacts;
use crate::vulndb::record::Published;
use assay_schemas::Code;
use jiff::Timestamp;
use std::fs;
use std::time::Duration;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

async fn publish(store: &Store, content: &str, now: Timestamp) -> super::Generation {
    let lock = store.lock(Duration::ZERO).await.unwrap().unwrap();
    let staging = store.stage(&lock).unwrap();
    fs::create_dir(staging.path().join("6")).unwrap();
    fs::write(staging.path().join("6/vulnerability.db"), content).unwrap();
    store.publish(&lock, staging, now, described).unwrap()
}

fn described(facts: FileFacts) -> Published {
    Published {
        built: at("2026-01-01T00:00:00Z"),
        revision: "r".to_owned(),
        schema: "v6.1.10".to_owned(),
        sha256: facts.sha256,
        bytes: facts.bytes,
        source: "upstream".to_owned(),
    }
}

fn code(store: &Store) -> Code {
    store.current().unwrap_err().code()
}

#[tokio::test]
async fn a_published_generation_is_the_current_one() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::new(root.path());
    assert_eq!(code(&store), Code::DatabaseUnavailable);
    store.prepare().unwrap();
    assert_eq!(code(&store), Code::DatabaseUnavailable);

    let first = publish(&store, "one", at("2026-01-01T00:00:00Z")).await;
    assert_eq!(store.current().unwrap(), first);
    let second = publish(&store, "two", at("2026-01-02T00:00:00Z")).await;
    assert_eq!(store.current().unwrap(), second);
    // A reader that resolved the pointer before keeps its directory.
    assert_eq!(
        fs::read_to_string(first.path.join("6/vulnerability.db")).unwrap(),
        "one"
    );
    let names: Vec<_> = fs::read_dir(root.path().join("generations"))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[tokio::test]
async fn pointers_that_lead_nowhere_are_told() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::new(root.path());
    store.prepare().unwrap();
    let generation = publish(&store, "one", at("2026-01-01T00:00:00Z")).await;
    let pointer = root.path().join(".kkrepo-db-current");
    let good = fs::read_to_string(&pointer).unwrap();

    fs::write(&pointer, "nonsense\n").unwrap();
    assert_eq!(code(&store), Code::DatabasePointerInvalid);
    fs::write(&pointer, [0xff, 0xfe]).unwrap();
    assert_eq!(code(&store), Code::DatabasePointerInvalid);
    fs::write(&pointer, good).unwrap();
    let elsewhere = root.path().join("elsewhere");
    fs::rename(&generation.path, &elsewhere).unwrap();
    assert!(matches!(store.current(), Err(DatabaseError::GenerationMissing)));
    std::os::unix::fs::symlink(&elsewhere, &generation.path).unwrap();
    assert!(matches!(store.current(), Err(DatabaseError::GenerationMissing)));
}

#[tokio::test]
async fn a_second_writer_waits_or_gives_up() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::new(root.path());
    store.prepare().unwrap();
    let held = store.lock(Duration::ZERO).await.unwrap().unwrap();
    assert!(store.lock(Duration::from_millis(60)).await.unwrap().is_none());
    let waiting = tokio::spawn({
        let store = store.clone();
        async move { store.lock(Duration::from_secs(10)).await.unwrap().is_some() }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(held);
    assert!(waiting.await.unwrap());
}

#[tokio::test]
async fn abandoned_staging_leaves_the_old_pointer_good() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::new(root.path());
    store.prepare().unwrap();
    let first = publish(&store, "one", at("2026-01-01T00:00:00Z")).await;
    let lock = store.lock(Duration::ZERO).await.unwrap().unwrap();
    drop(store.stage(&lock).unwrap());
    assert_eq!(store.current().unwrap(), first);
    assert_eq!(fs::read_dir(root.path().join("generations")).unwrap().count(), 1);
}

#[tokio::test]
async fn clean_up_waits_for_readers() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::new(root.path());
    store.prepare().unwrap();
    let old = publish(&store, "one", at("2026-01-01T00:00:00Z")).await;
    let new = publish(&store, "two", at("2026-01-01T06:00:00Z")).await;
    let orphan = root
        .path()
        .join(".coordination/retired/generation-1-00000000-0000-0000-0000-000000000000");
    fs::write(&orphan, "2020-01-01T00:00:00Z").unwrap();
    let lock = store.lock(Duration::ZERO).await.unwrap().unwrap();
    let hour = Duration::from_hours(1);

    store.clean_up(&lock, at("2026-01-01T06:00:00Z"), hour);
    assert!(old.path.exists() && !orphan.exists());
    store.clean_up(&lock, at("2026-01-01T07:59:59Z"), hour);
    assert!(old.path.exists());
    store.clean_up(&lock, at("2026-01-01T08:00:00Z"), hour);
    assert!(!old.path.exists() && new.path.exists());
    assert_eq!(
        fs::read_dir(root.path().join(".coordination/retired"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn a_pointer_that_is_no_file_keeps_nobody_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let pointer = directory.path().join(".kkrepo-db-current");
    nix::unistd::mkfifo(&pointer, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let store = Store::new(directory.path());
    assert!(matches!(
        store.current(),
        Err(DatabaseError::PointerUnreadable(_))
    ));
    std::fs::remove_file(&pointer).unwrap();
    std::fs::create_dir(&pointer).unwrap();
    assert!(matches!(
        store.current(),
        Err(DatabaseError::PointerUnreadable(_))
    ));
}
