//! Volumes are exchanged with other programs by the layout alone.

use super::{SBOM, Site, built, writable};
use std::path::Path;

/// A volume as another updater makes it: pointer and generation, nothing of ours.
fn foreign(site: &Site, hours_ago: i64) -> String {
    let name = "generation-1767225600000-0f0e0d0c-0b0a-4908-8706-050403020100";
    let donor = Site::new();
    donor.import(hours_ago);
    let made = donor.database().join("generations");
    let made = std::fs::read_dir(made).unwrap().next().unwrap().unwrap().path();
    let target = site.database().join("generations").join(name);
    std::fs::create_dir_all(target.join("6")).unwrap();
    for file in ["vulnerability.db", "import.json"] {
        std::fs::copy(made.join("6").join(file), target.join("6").join(file)).unwrap();
    }
    let pointer = format!("{name}\n2026-01-01T00:00:00.123456Z\n");
    std::fs::write(site.database().join(".kkrepo-db-current"), pointer).unwrap();
    name.to_owned()
}

#[test]
fn a_volume_of_another_program_is_read_verified_and_taken_over() {
    let site = Site::new();
    let name = foreign(&site, 30);
    let adapter = site.setup.start();
    adapter.wait_ready();
    let reply = adapter.match_sbom(SBOM.as_bytes(), &[]);
    assert_eq!(reply.status, 200, "{}", reply.json());
    assert_eq!(
        reply.json()["vulnerabilityDatabaseRevision"],
        built(30).to_string()
    );
    drop(adapter);
    let list = site.list();
    assert_eq!(list[0]["name"], name.as_str());
    assert_eq!(list[0]["built"], built(30).to_string());
    assert!(site.expect(0, &["database", "verify"]).contains("not noted"));
    site.import(20);
    assert_eq!(site.current(), built(20));
    site.expect(0, &["database", "rollback", &name]);
    assert_eq!(site.current(), built(30));
}

#[test]
fn a_read_only_mount_is_enough_to_read() {
    let site = Site::new();
    site.import(30);
    let database = site.database();
    let mount = format!(
        "mount --bind {0} {0} && mount -o remount,bind,ro {0} && ! touch {0}/x 2>/dev/null && exec \"$@\"",
        database.display()
    );
    let adapter = site
        .setup
        .clone()
        .through(&["/usr/bin/unshare", "-rm", "/bin/sh", "-c", &mount, "sh"])
        .with("sandbox", "off")
        .start();
    adapter.wait_ready();
    let reply = adapter.match_sbom(SBOM.as_bytes(), &[]);
    assert_eq!(reply.status, 200, "{}", reply.json());
    assert!(!adapter.log().contains("cannot be locked"), "{}", adapter.log());
}

/// An engine that is newer than the one that imported a database would rewrite it when it opens it.
#[test]
fn a_newer_engine_does_not_write_into_what_is_published() {
    let site = Site::new();
    let name = foreign(&site, 30);
    let directory = site.database().join("generations").join(name).join("6");
    let (database, import) = (directory.join("vulnerability.db"), directory.join("import.json"));
    let text = std::fs::read_to_string(&import).unwrap();
    let older = text.replace("v6.1.10", "v6.1.2");
    assert_ne!(text, older);
    for path in [&database, &import] {
        writable(path);
    }
    std::fs::write(&import, &older).unwrap();
    let before = std::fs::read(&database).unwrap();
    let adapter = site.setup.clone().with("sandbox", "required").start();
    adapter.wait_ready();
    let reply = adapter.match_sbom(SBOM.as_bytes(), &[]);
    assert_eq!(reply.status, 200, "{}", reply.json());
    assert_eq!(std::fs::read(&database).unwrap(), before);
    assert_eq!(std::fs::read_to_string(&import).unwrap(), older);
}

/// Reads a volume by the written rules and nothing else.
fn by_the_rules(database: &Path) -> String {
    let pointer = std::fs::read_to_string(database.join(".kkrepo-db-current")).unwrap();
    let lines: Vec<&str> = pointer.lines().collect();
    assert!(lines.len() >= 2);
    let (millis, id) = lines[0]
        .strip_prefix("generation-")
        .and_then(|rest| rest.split_once('-'))
        .unwrap();
    assert!(millis.bytes().all(|byte| byte.is_ascii_digit()));
    assert!(id.len() == 36 && id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()));
    lines[1].parse::<jiff::Timestamp>().unwrap();
    let generation = database.join("generations").join(lines[0]);
    assert!(generation.is_dir());
    assert!(generation.join("6/vulnerability.db").is_file());
    assert!(generation.join("6/import.json").is_file());
    for entry in std::fs::read_dir(database.join("generations")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with("generation-"), "{name}");
    }
    for entry in std::fs::read_dir(database.join(".coordination/retired")).unwrap() {
        let entry = entry.unwrap();
        assert!(database.join("generations").join(entry.file_name()).is_dir());
        let text = std::fs::read_to_string(entry.path()).unwrap();
        text.trim().parse::<jiff::Timestamp>().unwrap();
    }
    assert!(database.join(".coordination/.kkrepo-db-update.lock").is_file());
    lines[0].to_owned()
}

#[test]
fn our_volume_is_read_by_the_rules() {
    use std::os::unix::fs::PermissionsExt as _;
    let site = Site::new();
    for hours in [30, 20, 10] {
        site.import(hours);
        let name = by_the_rules(&site.database());
        // Readers may be other users.
        let directory = site.database().join("generations").join(name);
        for path in [directory.clone(), directory.join("6")] {
            let mode = std::fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode & 0o555, 0o555);
        }
        for file in ["vulnerability.db", "import.json"] {
            let mode = std::fs::metadata(directory.join("6").join(file))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o444);
        }
    }
    site.expect(0, &["database", "rollback"]);
    by_the_rules(&site.database());
}
