//! A database that opens and is still not one to work with.

use super::{SBOM, Site, built, change, ending, shown};
use serde_json::Value;

fn report(site: &Site) -> Value {
    let path = site.database().join(".coordination/rejected/report.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_database_without_what_everybody_knows_is_set_aside() {
    let site = Site::new();
    site.import(30);
    for hours in [20, 10] {
        let file = site.make(hours);
        change(&file, "DELETE FROM affected_package_handles");
        let output = site.run(&["update-database", "--import", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(65), "{}", shown(&output));
        assert_eq!(ending(&output).1, "canary_incomplete");
        // The last one, and no other.
        let report = report(&site);
        assert_eq!(report["stagedBuilt"], built(hours).to_string().as_str());
        assert_eq!(report["trials"][0]["staged"], 0);
        assert!(
            report["trials"][0]["missing"]
                .to_string()
                .contains("CVE-2021-44228")
        );
    }
    assert_eq!(site.current(), built(30));
    site.assert_no_staging();
    let kept = site.database().join(".coordination/rejected");
    assert!(kept.join("database/6/vulnerability.db").exists());
    assert_eq!(std::fs::read_dir(kept).unwrap().count(), 2);
    assert_eq!(site.list().len(), 1, "the layout of others knows nothing of it");
}

#[test]
fn findings_that_come_and_go_are_bounded_and_an_operator_may_insist() {
    let site = Site::new();
    let golden = site.path("golden");
    std::fs::create_dir(&golden).unwrap();
    std::fs::write(golden.join("log4j.json"), SBOM).unwrap();
    let expectations = r#"{"log4j.json":["GHSA-jfh8-c2jp-5v3q"]}"#;
    std::fs::write(golden.join("expectations.json"), expectations).unwrap();
    let site = site
        .with("db_canary_directory", golden.to_str().unwrap())
        .with("db_canary_max_swing_percent", "0");
    site.import(30);
    let file = site.make(20);
    // One finding of four is lost.
    change(
        &file,
        "DELETE FROM affected_package_handles WHERE vulnerability_id IN
         (SELECT id FROM vulnerability_handles WHERE name = 'GHSA-7rjr-3q55-vv33')",
    );
    let import = |more: &[&str]| {
        let arguments = [&["update-database", "--import", file.to_str().unwrap()], more].concat();
        site.run(&arguments)
    };
    let output = import(&["--set", "db_canary_max_swing=0"]);
    assert_eq!(output.status.code(), Some(65), "{}", shown(&output));
    assert_eq!(ending(&output).1, "canary_swing");
    let trial = &report(&site)["trials"][0];
    assert_eq!(
        (&trial["appeared"], &trial["disappeared"], &trial["allowed"]),
        (&0.into(), &1.into(), &0.into())
    );
    assert_eq!(site.current(), built(30));
    let output = import(&["--set", "db_canary_max_swing=0", "--force"]);
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    assert_eq!(site.current(), built(20));
}

#[test]
fn a_golden_set_that_cannot_be_read_is_a_mistake_in_the_settings() {
    let site = Site::new();
    let absent = site.text("absent");
    let site = site.with("db_canary_directory", &absent);
    let file = site.make(30);
    site.expect(64, &["update-database", "--import", file.to_str().unwrap()]);
    assert_eq!(site.pointer(), "");
    site.assert_no_staging();
}

#[test]
fn an_older_database_is_refused_unless_an_operator_insists() {
    let site = Site::new();
    site.import(20);
    let old = site.make(30);
    let output = site.run(&["update-database", "--import", old.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(65), "{}", shown(&output));
    assert_eq!(ending(&output).1, "older");
    let source = format!("db_update_sources={}", old.display());
    let output = site.run(&["update-database", "--set", &source]);
    assert_eq!(output.status.code(), Some(65), "{}", shown(&output));
    assert_eq!(site.current(), built(20));
    // Such a source is left alone for a while.
    let output = site.run(&["update-database", "--set", &source]);
    assert_eq!(ending(&output), ("not_due".to_owned(), "backing_off".to_owned()));
    site.expect(0, &["database", "import", old.to_str().unwrap(), "--force"]);
    assert_eq!(site.current(), built(30));
    site.assert_no_staging();
}
