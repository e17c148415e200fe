//! Every golden exchange of the wire contract against a live adapter.

use crate::fake::FakeEngines;
use crate::given::{
    self, ENGINE_BEHAVIOUR, Occupier, WITH_LITTLE_DISK, WITHOUT_DISK, copied_database, damage,
    database_status, deny_sessions, one_slot, own_executable, remove_stored, scratch_small,
    too_deep_for_conda, wait_queued,
};
use crate::support::{CREDENTIAL, Reply, Setup, TestAdapter, parse_reply};
use assay_fixtures::fake_engine::{Action, Script};
use assay_schemas::headers;
use assay_schemas::vectors::{Credential, Framing, Given, Request, Vector, directory, load_all};
use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

const DATABASE: &[Given] = &[
    Given::DatabaseMissing,
    Given::DatabasePointerBroken,
    Given::DatabaseWithoutProvenance,
    Given::DatabaseTooOld,
];
const ENGINE: &[Given] = &[
    Given::EngineMissing,
    Given::EngineVersionGarbled,
    Given::EngineCannotStart,
];
const CAPACITY: &[Given] = &[Given::CapacityExhausted, Given::CapacityExhaustedAndScratchSmall];
const CANCELLATION: &[Given] = &[Given::CancelledWhileQueued, Given::CancelledWhileRunning];
const ACTIVE: &[Given] = &[Given::RunActive, Given::RunActiveAndScratchSmall];
const SETTINGS: &[Given] = &[Given::ScratchSmall, Given::OutputCapSmall];
const DISK: &[Given] = &[
    Given::WorkDirectoryUnwritable,
    Given::InputDiskFull,
    Given::LayoutDiskFull,
    Given::CondaLayoutUnwritable,
];

/// What nobody can bring about from outside: no defect is known, and a switch that makes one has no place in the
/// program. The service's own tests exchange these with an operation that panics.
const NOT_EXCHANGED: &[&str] = &["catalog-defect", "match-defect"];

#[test]
fn only_the_listed_exchanges_are_left_out() {
    let reached: BTreeSet<Given> = [
        &[Given::Ready],
        DATABASE,
        &[Given::DatabaseCorrupt],
        ENGINE,
        ENGINE_BEHAVIOUR,
        CAPACITY,
        CANCELLATION,
    ]
    .into_iter()
    .chain([
        ACTIVE,
        SETTINGS,
        DISK,
        &[Given::SbomRemoved, Given::NoProcessGroups],
    ])
    .flatten()
    .copied()
    .collect();
    let vectors = load_all(directory()).unwrap();
    let left_out: Vec<_> = vectors.iter().filter(|v| !reached.contains(&v.given)).collect();
    assert!(left_out.iter().all(|v| v.given == Given::HandlerDefect));
    assert_eq!(
        left_out.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(),
        NOT_EXCHANGED
    );
}

/// The exchanges of a state; there are some.
fn of(given: Given) -> Vec<Vector> {
    let mut vectors = load_all(directory()).unwrap();
    vectors.retain(|vector| vector.given == given);
    assert!(!vectors.is_empty(), "no exchange is about {given:?}");
    vectors
}

/// What is wrong so far; a test fails with all of it when it ends.
#[derive(Default)]
struct Findings(Mutex<Vec<String>>);

impl Findings {
    /// Notes how the answer differs from the vector's expectation.
    fn note(&self, vector: &Vector, reply: Option<&Reply>) {
        let Some(reply) = reply else {
            if vector.request.framing != Framing::Broken {
                self.add(vector, "no answer");
            }
            return;
        };
        let body = String::from_utf8_lossy(&reply.bytes);
        if reply.status != vector.expect.status {
            // Another answer differs everywhere, which would hide what it is.
            return self.add(
                vector,
                &format!("{} instead of {}: {body}", reply.status, vector.expect.status),
            );
        }
        for difference in vector
            .expect
            .differences(reply.status, |name| reply.header(name), &reply.bytes)
        {
            let start: String = body.chars().take(300).collect();
            self.add(vector, &format!("{difference} in {start}"));
        }
        if let Some(schema) = &vector.expect.schema {
            let Ok(body) = serde_json::from_slice(&reply.bytes) else {
                return;
            };
            for error in validator(schema).iter_errors(&body) {
                self.add(
                    vector,
                    &format!("schema {schema}: {error} at {}", error.instance_path()),
                );
            }
        }
    }

    fn add(&self, vector: &Vector, what: &str) {
        self.0.lock().unwrap().push(format!("{}: {what}", vector.name));
    }

    /// Exchanges everything about `given` with this adapter.
    fn exchange_all(&self, given: Given, adapter: &TestAdapter) {
        for vector in of(given) {
            self.note(&vector, exchange(adapter, &vector.request).as_ref());
        }
    }
}

impl Drop for Findings {
    fn drop(&mut self) {
        let wrong = self.0.lock().unwrap();
        if !std::thread::panicking() {
            assert!(
                wrong.is_empty(),
                "{} differences:\n{}",
                wrong.len(),
                wrong.join("\n")
            );
        }
    }
}

fn validator(schema: &str) -> jsonschema::Validator {
    let path = directory()
        .parent()
        .unwrap()
        .join(format!("json/{schema}.schema.json"));
    let schema = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap()
}

/// Sends the request as it is described; `None` when the connection ends without an answer.
fn exchange(adapter: &TestAdapter, request: &Request) -> Option<Reply> {
    exchange_with(adapter, request, || ())
}

/// The same, with something that happens between head and body.
fn exchange_with(adapter: &TestAdapter, request: &Request, before_body: impl FnOnce()) -> Option<Reply> {
    let body = request.body_bytes().unwrap();
    let mut head = Vec::new();
    let mut line = |line: &str| {
        head.extend_from_slice(line.as_bytes());
        head.extend_from_slice(b"\r\n");
    };
    line(&format!("{} {} HTTP/1.1", request.method, request.path));
    line(&format!("Host: {}", adapter.address));
    match request.credential {
        Credential::Valid => line(&format!("{}: {CREDENTIAL}", headers::CREDENTIAL)),
        Credential::Wrong => line(&format!("{}: another-{CREDENTIAL}", headers::CREDENTIAL)),
        Credential::Absent => {}
    }
    for header in &request.headers {
        line(header);
    }
    let has_body = !body.is_empty() || ["POST", "PUT"].contains(&request.method.as_str());
    match request.framing {
        Framing::Chunked => line("Transfer-Encoding: chunked"),
        Framing::Length | Framing::Broken if has_body => line(&format!("Content-Length: {}", body.len())),
        Framing::Length | Framing::Broken => {}
    }
    line("");
    let mut stream = adapter.connect();
    stream.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(&head).unwrap();
    if request.header("expect").is_some() {
        let interim = read_head(&mut stream).unwrap();
        assert!(interim.starts_with(b"HTTP/1.1 100 "), "the body is not asked for");
    }
    before_body();
    // A refused body may end in a reset; the answer still counts.
    let _ = write_body(&mut stream, request.framing, &body);
    read_answer(&mut stream)
}

fn write_body(stream: &mut TcpStream, framing: Framing, body: &[u8]) -> io::Result<()> {
    match framing {
        Framing::Length => stream.write_all(body),
        Framing::Chunked => {
            for chunk in body.chunks(8 << 10) {
                write!(stream, "{:x}\r\n", chunk.len())?;
                stream.write_all(chunk)?;
                stream.write_all(b"\r\n")?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
        Framing::Broken => {
            stream.write_all(&body[..body.len() / 2])?;
            stream.shutdown(Shutdown::Write)
        }
    }
}

/// Reads one answer by its length and leaves the connection open.
fn read_answer(stream: &mut TcpStream) -> Option<Reply> {
    let head = read_head(stream)?;
    let mut reply = parse_reply(&head);
    let length = reply
        .header("content-length")
        .expect("every answer has a length")
        .parse()
        .unwrap();
    reply.bytes = vec![0; length];
    stream.read_exact(&mut reply.bytes).unwrap();
    Some(reply)
}

/// Reads to the end of a head; `None` when the connection ends first.
fn read_head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    Some(head)
}

#[test]
fn a_ready_adapter() {
    let findings = Findings::default();
    // With default limits two catalogs do not fit into the scratch budget at once, so one may have to wait.
    let adapter = Setup::real().with("admission_timeout", "1m").start();
    adapter.wait_ready();
    let queue = Mutex::new(of(Given::Ready).into_iter());
    std::thread::scope(|scope| {
        // As many as there are slots.
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(vector) = queue.lock().unwrap().next() else {
                        break;
                    };
                    findings.note(&vector, exchange(&adapter, &vector.request).as_ref());
                }
            });
        }
    });
}

#[test]
fn without_a_usable_database() {
    let findings = Findings::default();
    let engines = FakeEngines::new();
    let adapter = engines
        .setup()
        .with("db_max_age", "120h")
        .with("readiness_cache", "0")
        .start();
    for given in DATABASE {
        // Each state has a generation of its own, because what is known of one does not change.
        engines.publish();
        match given {
            Given::DatabaseMissing => std::fs::remove_file(engines.pointer()).unwrap(),
            Given::DatabasePointerBroken => {
                engines.point("generations/../../elsewhere\n2026-01-01T00:00:00Z\n");
            }
            Given::DatabaseWithoutProvenance => {
                engines.behave(&database_status(
                    r#"{"path":"/fake/6/vulnerability.db","valid":true}"#,
                ));
            }
            Given::DatabaseTooOld => {
                let old = r#"{"schemaVersion":"v6.1.10","built":"2020-01-01T00:00:00Z","valid":true}"#;
                engines.behave(&database_status(old));
            }
            other => panic!("{other:?} is no state of the database"),
        }
        findings.exchange_all(*given, &adapter);
    }
}

#[test]
fn a_real_database_that_is_too_old() {
    let findings = Findings::default();
    let adapter = Setup::real().with("db_max_age", "1ms").start();
    findings.exchange_all(Given::DatabaseTooOld, &adapter);
}

#[test]
fn a_real_database_that_is_damaged_while_it_is_in_use() {
    let findings = Findings::default();
    let copy = copied_database();
    let adapter = Setup::real()
        .with("db_directory", copy.path().to_str().unwrap())
        .start();
    adapter.wait_ready();
    damage(copy.path());
    findings.exchange_all(Given::DatabaseCorrupt, &adapter);
}

#[test]
fn without_usable_engines() {
    let findings = Findings::default();
    for given in ENGINE {
        let engines = FakeEngines::new();
        let adapter = match given {
            Given::EngineMissing => engines
                .setup()
                .with("syft_executable", "/nonexistent/syft")
                .start(),
            Given::EngineVersionGarbled => {
                let garbled = Action::Stdout("syft 1.57.1".to_owned());
                engines.behave(&Script::default().on("version", [garbled]));
                engines.setup().start()
            }
            Given::EngineCannotStart => {
                let adapter = engines.start();
                for name in ["syft", "grype"] {
                    std::fs::remove_file(engines.path(name)).unwrap();
                }
                adapter
            }
            other => panic!("{other:?} is no state of the engines"),
        };
        findings.exchange_all(*given, &adapter);
    }
}

#[test]
fn on_a_host_without_sessions() {
    let findings = Findings::default();
    let engines = FakeEngines::new();
    let own = own_executable(&engines.path("."));
    let adapter = engines.setup().from(&own).start();
    adapter.wait_ready();
    deny_sessions(&own);
    findings.exchange_all(Given::NoProcessGroups, &adapter);
    assert_eq!(adapter.run_directories(), Vec::<String>::new());
}

#[test]
fn engines_that_misbehave() {
    let findings = Findings::default();
    let engines = FakeEngines::new();
    let adapter = engines.start();
    for given in ENGINE_BEHAVIOUR {
        engines.scans_do(given::behaviour(*given));
        findings.exchange_all(*given, &adapter);
    }
    assert_eq!(adapter.run_directories(), Vec::<String>::new());
}

#[test]
fn without_capacity() {
    let findings = Findings::default();
    for given in CAPACITY {
        let engines = FakeEngines::new();
        let setup = one_slot(engines.setup());
        let adapter = match given {
            Given::CapacityExhaustedAndScratchSmall => scratch_small(setup).start(),
            _ => setup.start(),
        };
        adapter.wait_ready();
        let running = Occupier::running(&adapter, &engines, "running");
        let queued = Occupier::queued(&adapter);
        findings.exchange_all(*given, &adapter);
        queued.end(&adapter);
        running.end(&adapter);
    }
}

#[test]
fn cancelled_from_outside() {
    let findings = Findings::default();
    let engines = FakeEngines::new();
    let adapter = one_slot(engines.setup()).start();
    adapter.wait_ready();
    for given in CANCELLATION {
        for vector in of(*given) {
            let run = vector.request.header(headers::RUN_ID).unwrap();
            let occupier = (*given == Given::CancelledWhileQueued)
                .then(|| Occupier::running(&adapter, &engines, "running"));
            if occupier.is_none() {
                engines.scans_stall();
            }
            let reply = std::thread::scope(|scope| {
                let answer = scope.spawn(|| exchange(&adapter, &vector.request));
                match &occupier {
                    Some(_) => wait_queued(&adapter),
                    None => drop(engines.recorded()),
                }
                assert!(adapter.cancel(run));
                answer.join().unwrap()
            });
            findings.note(&vector, reply.as_ref());
            if let Some(occupier) = occupier {
                occupier.end(&adapter);
            }
        }
    }
}

#[test]
fn while_a_run_of_the_same_name_is_active() {
    let findings = Findings::default();
    for given in ACTIVE {
        let engines = FakeEngines::new();
        let adapter = match given {
            Given::RunActiveAndScratchSmall => scratch_small(engines.setup()).start(),
            _ => engines.setup().start(),
        };
        adapter.wait_ready();
        for vector in of(*given) {
            // Anew for each, because one of them ends it.
            let active = Occupier::running(&adapter, &engines, "vector-active");
            findings.note(&vector, exchange(&adapter, &vector.request).as_ref());
            active.end(&adapter);
        }
    }
}

#[test]
fn with_small_settings() {
    let findings = Findings::default();
    for given in SETTINGS {
        let setup = match given {
            Given::ScratchSmall => Setup::real().with("max_scratch_bytes", "1MiB"),
            _ => Setup::real().with("max_output_bytes", "1024"),
        };
        let adapter = setup.start();
        adapter.wait_ready();
        findings.exchange_all(*given, &adapter);
    }
}

#[test]
fn without_a_usable_disk() {
    let findings = Findings::default();
    let root = tempfile::tempdir().unwrap();
    let engines = FakeEngines::new();
    // An adapter that cannot write cannot ask its engines either, so another one has done it before.
    let cache = root.path().join("provenance.json");
    let setup = engines.setup().with("provenance_cache", cache.to_str().unwrap());
    setup.start().wait_ready();
    for given in DISK {
        let adapter = match given {
            Given::WorkDirectoryUnwritable => setup.start(),
            Given::InputDiskFull => setup.clone().through(WITHOUT_DISK).start(),
            Given::LayoutDiskFull => setup.clone().through(WITH_LITTLE_DISK).start(),
            _ => {
                let deep = too_deep_for_conda(root.path());
                setup
                    .clone()
                    .with("work_directory", deep.to_str().unwrap())
                    .start()
            }
        };
        adapter.wait_ready();
        if *given == Given::WorkDirectoryUnwritable {
            // A file in its place stops every user, the superuser too.
            let _ = std::fs::remove_dir_all(adapter.scratch());
            std::fs::write(adapter.scratch(), "").unwrap();
        }
        findings.exchange_all(*given, &adapter);
    }
}

#[test]
fn while_somebody_cleans_up() {
    let findings = Findings::default();
    let engines = FakeEngines::new();
    let adapter = engines.start();
    adapter.wait_ready();
    for vector in of(Given::SbomRemoved) {
        let reply = exchange_with(&adapter, &vector.request, || remove_stored(&adapter.scratch()));
        findings.note(&vector, reply.as_ref());
    }
    assert_eq!(adapter.run_directories(), Vec::<String>::new());
}
