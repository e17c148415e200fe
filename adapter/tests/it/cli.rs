//! The command line: what it prints, and how it ends.

use crate::fake::FakeEngines;
use crate::support::{CREDENTIAL, Setup, program};
use assay_fixtures::artifact::{self, Sample};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Output;
use tempfile::TempDir;

/// A shell's view of the program: settings, a work directory, and files to scan.
struct Shell {
    setup: Setup,
    directory: TempDir,
}

impl Shell {
    fn real() -> Self {
        Self::of(Setup::real())
    }

    fn bare() -> Self {
        Self::of(Setup::bare())
    }

    fn of(setup: Setup) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scratch = directory.path().join("scratch");
        Self {
            setup: setup.with("work_directory", scratch.to_str().unwrap()),
            directory,
        }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        program()
            .args(arguments)
            .args(self.setup.arguments())
            .output()
            .unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a sample under its own name.
    fn sample(&self, id: &str) -> (Sample, String) {
        let sample = artifact::all()
            .into_iter()
            .find(|sample| sample.id == id)
            .unwrap();
        let path = self.path(sample.file_name);
        std::fs::write(&path, &sample.bytes).unwrap();
        (sample, path.to_str().unwrap().to_owned())
    }

    /// Nothing stays in the work directory but what is remembered on purpose.
    fn assert_clean(&self) {
        let left: Vec<_> = std::fs::read_dir(self.path("scratch"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name != "provenance.json")
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

fn code(output: &Output) -> i32 {
    output
        .status
        .code()
        .unwrap_or_else(|| panic!("ended by a signal: {output:?}"))
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A complete sample with findings.
fn affected() -> &'static str {
    artifact::all()
        .into_iter()
        .find(|s| !s.advisories.is_empty() && s.completeness == "COMPLETE")
        .unwrap()
        .id
}

/// A complete sample with packages and without findings.
fn clean() -> &'static str {
    let is_clean = |s: &Sample| s.clean && !s.purls.is_empty() && s.completeness == "COMPLETE";
    artifact::all().into_iter().find(is_clean).unwrap().id
}

#[test]
fn every_format_of_a_scan_can_be_read() {
    let shell = Shell::real();
    let (sample, path) = shell.sample(affected());
    let scan = |format: &str| {
        let output = shell.run(&["scan", &path, "--format", format]);
        assert_eq!(code(&output), 0, "{format}: {output:?}");
        output
    };

    let table = out(&scan("table"));
    for text in sample.advisories {
        assert!(table.contains(text), "{text} is not in\n{table}");
    }
    assert!(!table.contains('\u{1b}'), "no colours without a terminal");

    let whole = serde_json::to_string(&json(&scan("json"))).unwrap();
    for text in sample.advisories {
        assert!(whole.contains(text), "{text} is not in {whole}");
    }

    let sbom = json(&scan("cyclonedx"));
    assert_eq!(sbom["bomFormat"], "CycloneDX");
    let purls = sbom["components"].as_array().unwrap();
    let has = |wanted: &str| {
        purls.iter().any(|c| {
            c["purl"]
                .as_str()
                .is_some_and(|purl| purl.split(['?', '#']).next() == Some(wanted))
        })
    };
    for purl in sample.purls {
        assert!(has(purl.split('?').next().unwrap()), "{purl} is not in {sbom}");
    }

    let sarif = json(&scan("sarif"));
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    for advisory in sample.advisories {
        assert!(
            results.iter().any(|r| r["ruleId"] == *advisory),
            "{advisory} is not in {sarif}"
        );
    }
    shell.assert_clean();
}

#[test]
fn several_sboms_need_a_directory() {
    let shell = Shell::real();
    let (one, two) = (shell.sample(affected()).1, shell.sample(clean()).1);
    let refused = shell.run(&["scan", &one, &two, "--format", "cyclonedx"]);
    assert_eq!((code(&refused), out(&refused)), (64, String::new()));
    let directory = shell.path("sboms");
    let output = shell.run(&[
        "scan",
        &one,
        &two,
        "--format",
        "cyclonedx",
        "--output",
        directory.to_str().unwrap(),
    ]);
    assert_eq!(code(&output), 0, "{output:?}");
    let documents: Vec<Value> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap())
        .collect();
    assert_eq!(documents.len(), 2);
    assert!(
        documents
            .iter()
            .all(|document| document["bomFormat"] == "CycloneDX")
    );
}

#[test]
fn the_exit_code_says_what_a_scan_found() {
    let shell = Shell::real();
    let (affected, clean) = (shell.sample(affected()).1, shell.sample(clean()).1);
    let (truncated, partial) = (shell.path("truncated.zip"), shell.path("partial"));
    std::fs::write(&truncated, b"PK\x03\x04").unwrap();
    // A JAR without anything that names a package.
    let jar = artifact::zip_of(&[("a.txt", b"a")]);
    std::fs::write(partial.with_extension("jar"), jar).unwrap();
    let (truncated, partial) = (
        truncated.to_str().unwrap().to_owned(),
        partial.with_extension("jar").to_str().unwrap().to_owned(),
    );
    let cases: &[(&[&str], i32)] = &[
        (&[&clean], 0),
        (&[&affected], 0),
        (&[&clean, "--fail-on", "unknown"], 0),
        (&[&affected, "--fail-on", "low"], 2),
        (&[&clean, &affected, "--fail-on", "low", "--fail-on-partial"], 2),
        (&[&clean, "--fail-on-partial"], 0),
        (&[&partial], 0),
        (&[&partial, "--fail-on-partial"], 3),
        (&[&partial, &affected, "--fail-on-partial", "--fail-on", "low"], 2),
        (&[&truncated], 1),
        (&[&truncated, &affected, "--fail-on", "low"], 1),
        (&[], 64),
        (&[&clean, "--fail-on", "dreadful"], 64),
        (&[&clean, "--format", "xml"], 64),
        (&[&clean, "--timeout", "0"], 64),
    ];
    for (arguments, want) in cases {
        let output = shell.run(&[&["scan"], *arguments].concat());
        assert_eq!(code(&output), *want, "{arguments:?}: {output:?}");
    }
    shell.assert_clean();
}

#[test]
fn a_path_that_cannot_be_scanned_is_named_and_does_not_stop_the_others() {
    let shell = Shell::real();
    let clean = shell.sample(clean()).1;
    let absent = shell.path("absent.jar").to_str().unwrap().to_owned();
    let directory = shell.directory.path().to_str().unwrap();
    for (path, said) in [
        (absent.as_str(), "INPUT_IO"),
        (directory, "SCANNER_REQUEST_INVALID"),
        // Nobody may read it, the superuser neither.
        ("/proc/self/mem", "INPUT_IO"),
        ("/dev/zero", "SCANNER_REQUEST_INVALID"),
    ] {
        let output = shell.run(&["scan", path, &clean, "--format", "json"]);
        assert_eq!(code(&output), 1, "{path}: {output:?}");
        let lines: Vec<_> = err(&output).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(path) && lines[0].contains(said), "{lines:?}");
        assert!(
            out(&output).contains("purl") || out(&output).contains("packageUrl"),
            "the other one is there"
        );
    }
    shell.assert_clean();
}

#[test]
fn a_scan_without_engines_fails() {
    let shell = Shell::bare();
    let path = shell.sample(clean()).1;
    let output = shell.run(&["scan", &path]);
    assert_eq!((code(&output), out(&output)), (1, String::new()));
    assert!(err(&output).contains("SCANNER_PROCESS_IO"), "{output:?}");
    shell.assert_clean();
}

#[test]
fn check_shows_what_counts_and_no_secret() {
    let ready = Shell::of(Setup::real().with("service_credential", CREDENTIAL));
    let output = ready.run(&["check"]);
    assert_eq!(code(&output), 0, "{output:?}");
    let text = out(&output);
    assert!(
        text.contains("service_credential = (redacted)") && !text.contains(CREDENTIAL),
        "{text}"
    );
    assert!(
        text.contains("syft version: 1.57.1") && text.ends_with("ready to serve\n"),
        "{text}"
    );

    let output = Shell::bare().run(&["check"]);
    assert_eq!(code(&output), 1);
    let text = out(&output);
    for missing in [
        "service_credential: is required",
        "syft_executable: the syft executable is missing",
        "grype_executable: the grype executable is missing",
        "db_directory: no vulnerability database is published (SCANNER_DATABASE_UNAVAILABLE)",
    ] {
        let is_said = text
            .lines()
            .any(|line| line.starts_with("missing: ") && line.contains(missing));
        assert!(is_said, "{missing} is not in\n{text}");
    }

    let settings = Setup::bare()
        .with(
            "work_directory",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml/scratch"),
        )
        .arguments();
    let output = program().arg("check").args(settings).output().unwrap();
    assert_eq!(code(&output), 1);
    let text = out(&output);
    assert!(
        text.contains("missing: work_directory: cannot make a private directory"),
        "{text}"
    );

    // The cataloguer skips what is mounted there, so an inventory would be empty without a word.
    let settings = Setup::bare()
        .with("work_directory", "/dev/shm/scratch")
        .arguments();
    let output = program().arg("check").args(settings).output().unwrap();
    assert_eq!(code(&output), 64);
    assert!(err(&output).contains("work_directory"), "{}", err(&output));
}

#[test]
fn each_wrong_setting_is_one_line() {
    let shell = Shell::bare();
    let file = shell.path("settings.toml");
    std::fs::write(&file, "no_such_setting = 1\nmax_connections = 0\n").unwrap();
    for verb in [
        &["serve"][..],
        &["check"],
        &["scan", "x"],
        &["update-database"],
        &["health"],
    ] {
        let output = program()
            .args(verb)
            .args(["--config", file.to_str().unwrap(), "--set", "log_level=loud"])
            .env("SERVER_PORT", "many")
            .env("KKREPO_SCANNER_IDLE_TIMEOUT", "soon")
            .output()
            .unwrap();
        assert_eq!((code(&output), out(&output)), (64, String::new()), "{verb:?}");
        let lines = err(&output);
        let about = [
            "no_such_setting",
            "max_connections",
            "log_level",
            "SERVER_PORT",
            "KKREPO_SCANNER_IDLE_TIMEOUT",
        ];
        assert_eq!(lines.lines().count(), about.len(), "{lines}");
        for name in about {
            let named = lines
                .lines()
                .filter(|line| line.starts_with(&format!("assay-adapter: {name}: ")))
                .count();
            assert_eq!(named, 1, "{name} in\n{lines}");
        }
    }
}

#[test]
fn serving_without_a_credential_is_refused() {
    let output = Shell::bare().run(&["serve"]);
    assert_eq!(code(&output), 64);
    assert_eq!(
        err(&output),
        "assay-adapter: service_credential: is required to serve\n"
    );
}

#[test]
fn a_command_line_that_is_none_is_refused() {
    for arguments in [
        &["fly"][..],
        &["serve", "--listen", "nowhere"],
        &["check", "--set"],
        &["health", "now"],
    ] {
        let output = program().args(arguments).output().unwrap();
        assert_eq!(code(&output), 64, "{arguments:?}: {output:?}");
    }
    for arguments in [&["--help"][..], &["scan", "--help"], &["--version"]] {
        let output = program().args(arguments).output().unwrap();
        assert_eq!(code(&output), 0, "{arguments:?}");
        assert!(!out(&output).is_empty());
    }
}

#[test]
fn health_asks_the_adapter_on_this_machine() {
    let adapter = Setup::bare().start();
    let ask = |arguments: &[&str], port: u16| {
        code(
            &program()
                .args(arguments)
                .env("SERVER_PORT", port.to_string())
                .output()
                .unwrap(),
        )
    };
    assert_eq!(ask(&["health"], adapter.address.port()), 0);
    assert_eq!(ask(&["health", "--ready"], adapter.address.port()), 1);
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    assert_eq!(ask(&["health"], free), 1);
}

#[test]
fn an_update_without_a_source_fails_and_publishes_nothing() {
    let shell = Shell::real();
    let database = shell.path("database");
    let shell = Shell {
        setup: shell
            .setup
            .clone()
            .with("db_directory", database.to_str().unwrap()),
        ..shell
    };
    let absent = shell.path("absent.db");
    for arguments in [
        &["update-database", "--import", absent.to_str().unwrap()][..],
        // Nobody listens on the port of discarded data.
        &[
            "update-database",
            "--set",
            "db_update_url=http://127.0.0.1:9/databases",
        ],
    ] {
        let output = shell.run(arguments);
        assert_eq!(code(&output), 1, "{output:?}");
        assert!(
            err(&output).contains("the database was not updated"),
            "{output:?}"
        );
    }
    assert!(!database.join(".kkrepo-db-current").exists());
    assert_eq!(
        std::fs::read_dir(database.join("generations")).unwrap().count(),
        0
    );
    shell.assert_clean();
}

#[test]
fn an_update_asks_the_configured_source() {
    let source = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = source.local_addr().unwrap();
    let url = format!("http://{address}/mirror");
    let shell = Shell::real();
    let database = shell.path("database");
    let shell = Shell {
        setup: shell
            .setup
            .clone()
            .with("db_directory", database.to_str().unwrap())
            .with("db_update_url", &url),
        ..shell
    };
    let asked = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = source.accept().unwrap();
        let mut head = [0; 4096];
        let length = stream.read(&mut head).unwrap();
        stream
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .unwrap();
        String::from_utf8_lossy(&head[..length]).into_owned()
    });
    let output = shell.run(&["update-database"]);
    assert_eq!(code(&output), 1, "{output:?}");
    // Where nobody asked, this ends the wait.
    let _ = std::net::TcpStream::connect(address);
    let asked = asked.join().unwrap();
    assert!(asked.contains(" /mirror/v6/latest.json "), "{asked}");
}

#[test]
fn an_update_beside_another_one_says_so() {
    let engines = FakeEngines::new();
    let coordination = engines.database().join(".coordination");
    std::fs::create_dir_all(&coordination).unwrap();
    let lock = std::fs::File::create(coordination.join(".kkrepo-db-update.lock")).unwrap();
    let shell = Shell::of(
        engines
            .setup()
            .with("database_update_lock_timeout", "0")
            .with("db_update_interval", "0"),
    );
    lock.lock().unwrap();
    assert_eq!(code(&shell.run(&["update-database"])), 75);
    lock.unlock().unwrap();
    assert_eq!(code(&shell.run(&["update-database"])), 0);
}

#[test]
fn an_update_that_is_not_due_leaves_everything_as_it_is() {
    let engines = FakeEngines::new();
    let now = jiff::Timestamp::now();
    let text = std::fs::read_to_string(engines.pointer()).unwrap();
    engines.point(&format!("{}\n{now}\n", text.lines().next().unwrap()));
    let before = std::fs::read(engines.pointer()).unwrap();
    let shell = Shell::of(engines.setup());
    assert_eq!(code(&shell.run(&["update-database"])), 0);
    assert_eq!(std::fs::read(engines.pointer()).unwrap(), before);
    assert_eq!(
        code(&shell.run(&["update-database", "--set", "db_update_interval=0"])),
        0
    );
    assert_ne!(std::fs::read(engines.pointer()).unwrap(), before);
    assert!(engines.database().join(".coordination").is_dir());
}
