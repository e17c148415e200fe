//! What an operator does with generations.

use super::{Site, built, change, ending, shown, writable};
use crate::support::{executable, parse_reply};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

/// `database serve` of a site.
pub(super) struct Served {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Served {
    pub(super) fn of(site: &Site) -> Self {
        let mut child = site
            .command(&["database", "serve", "--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert_ne!(lines.read_line(&mut line).unwrap(), 0, "ended at start");
            let fields: Value = serde_json::from_str(&line).unwrap_or_default();
            if fields["message"] == "listening" {
                break fields["address"].as_str().unwrap().parse().unwrap();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, address }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn ask(&self, method: &str, path: &str) -> crate::support::Reply {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        parse_reply(&bytes)
    }

    fn stop(mut self) -> Option<i32> {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_rollback_holds_until_there_is_something_newer() {
    let site = Site::new();
    site.import(30);
    site.import(20);
    assert_eq!(site.current(), built(20));
    site.expect(0, &["database", "rollback"]);
    assert_eq!(site.current(), built(30));
    assert!(site.expect(0, &["database", "verify"]).contains("as published"));

    // The source still has what was rolled back from.
    let bad = site.make(20);
    let source = ["--set", &format!("db_update_sources={}", bad.display())];
    let update = |source: &[&str]| {
        let output = site.run(&[&["update-database"], source].concat());
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
        ending(&output)
    };
    assert_eq!(update(&source), ("not_due".to_owned(), "held".to_owned()));
    assert_eq!(site.current(), built(30));

    let newer = site.make(10);
    let source = ["--set", &format!("db_update_sources={}", newer.display())];
    assert_eq!(update(&source).1, "updated");
    assert_eq!(site.current(), built(10));
    assert!(!site.database().join(".coordination/hold.json").exists());

    // Back by name, and forth again: that undoes the hold.
    let name_of = |hours: i64| {
        let list = site.list();
        let entry = list
            .iter()
            .find(|entry| entry["built"] == built(hours).to_string().as_str());
        entry.unwrap()["name"].as_str().unwrap().to_owned()
    };
    site.expect(0, &["database", "rollback", &name_of(30)]);
    assert!(site.database().join(".coordination/hold.json").exists());
    site.expect(0, &["database", "rollback", &name_of(10)]);
    assert!(!site.database().join(".coordination/hold.json").exists());
    assert_eq!(site.current(), built(10));
}

#[test]
fn what_is_missing_or_damaged_does_not_become_current() {
    let site = Site::new();
    site.expect(65, &["database", "verify"]);
    site.import(30);
    let before = site.pointer();
    site.expect(65, &["database", "rollback"]);
    site.expect(
        65,
        &[
            "database",
            "rollback",
            "generation-1-00000000-0000-0000-0000-000000000000",
        ],
    );
    site.expect(65, &["database", "rollback", "../elsewhere"]);
    assert_eq!(site.pointer(), before);
    site.import(20);
    let list = site.list();
    assert_eq!(list.len(), 2);
    let old = list[1]["name"].as_str().unwrap();
    assert_eq!(list[1]["current"], false);
    // One byte: the file stays a database.
    let path = site
        .database()
        .join("generations")
        .join(old)
        .join("6/vulnerability.db");
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    writable(&path);
    std::fs::write(&path, bytes).unwrap();
    site.expect(65, &["database", "verify", old]);
    site.expect(65, &["database", "rollback", old]);
    assert_eq!(site.current(), built(20));
    let table = site.expect(0, &["database", "list"]);
    assert!(table.contains(old) && table.contains("CURRENT"), "{table}");
}

#[test]
fn what_is_not_what_was_published_is_seen_even_when_the_engine_is_content() {
    let site = Site::new();
    site.import(30);
    let other = Site::new();
    let file = other.make(29);
    change(&file, "DELETE FROM affected_package_handles");
    other.expect(
        0,
        &[
            "database",
            "import",
            file.to_str().unwrap(),
            "--set",
            "db_canary_directory=none",
        ],
    );
    let directory = |site: &Site| {
        let name = site.list()[0]["name"].as_str().unwrap().to_owned();
        site.database().join("generations").join(name).join("6")
    };
    for name in ["vulnerability.db", "import.json"] {
        writable(&directory(&site).join(name));
        std::fs::copy(directory(&other).join(name), directory(&site).join(name)).unwrap();
    }
    let output = site.run(&["database", "verify"]);
    assert_eq!(output.status.code(), Some(65), "{}", shown(&output));
    assert!(shown(&output).contains("was published"), "{}", shown(&output));
}

#[test]
fn an_archive_carries_a_generation_to_another_site() {
    let site = Site::new();
    site.import(30);
    for name in ["a.tar.zst", "a.tar.gz"] {
        let (other, file) = (Site::new(), site.text(name));
        site.expect(0, &["database", "export", &file]);
        other.expect(0, &["database", "import", &file]);
        assert_eq!(other.current(), built(30));
        let verified = other.expect(0, &["database", "verify", "--format", "json"]);
        let verified: Value = serde_json::from_str(&verified).unwrap();
        assert_eq!(verified["asPublished"], true);
        assert_eq!(verified["source"], file.as_str());
    }
    site.expect(64, &["database", "export", &site.text("a.zip")]);
    // The same as a source, in a directory of archives.
    let third = Site::new().with("db_update_sources", site.path(".").to_str().unwrap());
    third.expect(0, &["update-database"]);
    assert_eq!(third.current(), built(30));
}

#[test]
fn one_site_feeds_another_over_http() {
    let (first, second) = (Site::new(), Site::new());
    first.import(30);
    let served = Served::of(&first);
    let second = second.with("db_update_sources", &served.url());
    second.expect(0, &["update-database"]);
    assert_eq!(second.current(), built(30));

    // Nothing newer: the same generation counts as published now, and nothing is downloaded.
    let before = second.pointer();
    let output = second.run(&["update-database"]);
    assert_eq!(ending(&output), ("updated".to_owned(), "unchanged".to_owned()));
    let after = second.pointer();
    assert_eq!(before.lines().next(), after.lines().next());
    assert_ne!(before, after);

    // Published meanwhile: the server notices by itself.
    first.import(20);
    second.expect(0, &["update-database"]);
    assert_eq!(second.current(), built(20));

    let latest = served.ask("GET", "/v6/latest.json");
    assert_eq!(latest.status, 200);
    let name = latest.json()["path"].as_str().unwrap().to_owned();
    let head = served.ask("HEAD", &format!("/v6/{name}"));
    let whole = served.ask("GET", &format!("/v6/{name}"));
    assert_eq!((head.status, head.bytes.len()), (200, 0));
    assert_eq!(
        head.header("content-length"),
        Some(whole.bytes.len().to_string().as_str())
    );
    for (method, path, status) in [
        ("POST", "/v6/latest.json", 405),
        ("DELETE", "/v6/latest.json", 405),
        ("GET", "/", 404),
        ("GET", "/v6/", 404),
        ("GET", "/v6/../../etc/passwd", 404),
        ("GET", "/v6/vulnerability.db", 404),
    ] {
        assert_eq!(served.ask(method, path).status, status, "{method} {path}");
    }
    assert_eq!(served.stop(), Some(0));
    let work: Vec<_> = std::fs::read_dir(first.path("work"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name != "provenance.json")
        .collect();
    assert!(work.is_empty(), "{work:?}");
}

#[test]
fn update_only_mode_keeps_its_distance_whatever_the_schedule() {
    let site = Site::new();
    site.import(30);
    let before = site.pointer();
    let output = std::process::Command::new(executable())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("KKREPO_SCANNER_DATABASE_UPDATE_ONLY", "true")
        .args(site.setup.arguments())
        .args(["--set", &format!("db_update_sources={}", site.make(10).display())])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    assert_eq!(ending(&output).1, "not_due");
    assert_eq!(site.pointer(), before);
}
