//! A real updater, killed at any moment.

use super::{Site, ending};
use assay_adapter::vulndb::publish::FileFacts;
use assay_adapter::vulndb::record::Published;
use assay_adapter::vulndb::{Layout, Store};
use std::process::Stdio;
use std::time::{Duration, Instant};

const SEED: u64 = 0x06_0005;
const ROUNDS: u64 = 30;

#[test]
fn an_updater_that_is_killed_leaves_a_whole_database() {
    let site = Site::new();
    let files = [site.make(30), site.make(29)];
    let started = Instant::now();
    site.expect(0, &["update-database", "--import", files[0].to_str().unwrap()]);
    let whole = started.elapsed();
    let store = Store::new(site.database());
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut cut_short = 0;
    for round in 0..ROUNDS {
        let file = &files[usize::from(round % 2 == 0)];
        let mut child = site
            .command(&["update-database", "--force", "--import", file.to_str().unwrap()])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(whole.mul_f64(random.f64()));
        child.kill().unwrap();
        cut_short += u32::from(child.wait().unwrap().code().is_none());

        let context = format!("seed {SEED}, round {round}");
        let current = store
            .current()
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        let noted: Published = store
            .record(&store.record_of(&current.name))
            .unwrap_or_else(|| panic!("{context}: no record"));
        let found = FileFacts::of(&Layout::database(&current.path)).unwrap();
        assert_eq!(noted.sha256, found.sha256, "{context}");
    }
    assert!(
        cut_short > 5,
        "only {cut_short} were killed before they had ended"
    );

    // What they have left is an orphan an hour later; the next update removes it and publishes.
    for entry in std::fs::read_dir(site.database().join("generations")).unwrap() {
        let past = std::time::SystemTime::now() - Duration::from_hours(3);
        let directory = std::fs::File::open(entry.unwrap().path()).unwrap();
        directory.set_modified(past).unwrap();
    }
    let output = site.run(&[
        "update-database",
        "--force",
        "--import",
        files[1].to_str().unwrap(),
    ]);
    assert_eq!(ending(&output).1, "updated");
    site.assert_no_staging();
    site.expect(0, &["database", "verify"]);
}
