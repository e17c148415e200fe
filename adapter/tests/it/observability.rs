//! What operators see: metrics that their tools accept, and traces that continue those of callers.

use crate::fake::FakeEngines;
use crate::support::eventually;
use nix::sys::signal::Signal;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// A collector of traces: takes OTLP over HTTP and keeps the spans.
struct Collector {
    url: String,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let spans: Arc<Mutex<Vec<Span>>> = Arc::default();
        std::thread::spawn({
            let spans = Arc::clone(&spans);
            move || {
                for stream in listener.incoming().flatten() {
                    let spans = Arc::clone(&spans);
                    std::thread::spawn(move || {
                        let mut reader = BufReader::new(&stream);
                        while let Some(body) = read_request(&mut reader) {
                            let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
                            let resources = request.resource_spans.into_iter();
                            let found = resources.flat_map(|r| r.scope_spans).flat_map(|s| s.spans);
                            spans.lock().unwrap().extend(found);
                            let _ = (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                        }
                    });
                }
            }
        });
        Self { url, spans }
    }

    fn spans(&self) -> Vec<Span> {
        self.spans.lock().unwrap().clone()
    }
}

/// The body of the next request on a connection.
fn read_request(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = 0;
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    assert!(line.starts_with("POST /v1/traces "), "{line}");
    loop {
        line.clear();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(':') {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap();
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Some(body)
}

#[test]
fn a_run_continues_its_callers_trace_and_its_stages_are_spans() {
    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const CALLER: &str = "00f067aa0ba902b7";
    let collector = Collector::start();
    let engines = FakeEngines::new();
    let adapter = engines.setup().with("otlp_endpoint", &collector.url).start();
    adapter.wait_ready();
    let traceparent = format!("00-{TRACE}-{CALLER}-01");
    let reply = adapter.catalog(
        "",
        b"any bytes at all",
        &[("traceparent", &traceparent), ("x-kkrepo-run-id", "traced")],
    );
    assert_eq!(reply.status, 200, "{}", reply.json());
    let without = adapter.catalog("", b"any bytes at all", &[]);
    assert_eq!(without.status, 200);
    // What is left is sent at the end.
    assert_eq!(adapter.stop(Signal::SIGTERM), Some(0));
    let of_the_trace = || -> Vec<Span> {
        let spans = collector.spans().into_iter();
        spans
            .filter(|span| hex::encode(&span.trace_id) == TRACE)
            .collect()
    };
    eventually("the spans", || {
        of_the_trace().iter().any(|span| span.name == "run")
    });
    let spans = of_the_trace();
    let run = spans.iter().find(|span| span.name == "run").unwrap();
    assert_eq!(hex::encode(&run.parent_span_id), CALLER);
    assert!(
        run.attributes
            .iter()
            .any(|a| a.key == "run_id" && format!("{:?}", a.value).contains("traced")),
        "{:?}",
        run.attributes
    );
    for stage in ["receive", "inspect", "engine", "parse"] {
        let span = spans
            .iter()
            .find(|span| span.name == stage)
            .unwrap_or_else(|| panic!("no {stage}"));
        assert_eq!(span.parent_span_id, run.span_id, "{stage}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        assert!(
            run.start_time_unix_nano <= span.start_time_unix_nano + 1_000_000,
            "{stage}"
        );
    }
    let others: Vec<Span> = collector.spans();
    let others = others
        .iter()
        .filter(|span| span.name == "run" && hex::encode(&span.trace_id) != TRACE);
    assert_eq!(others.count(), 1, "a run without a caller's trace has its own");
}

#[test]
fn a_collector_that_is_not_there_harms_nobody() {
    let engines = FakeEngines::new();
    let adapter = engines
        .setup()
        .with("otlp_endpoint", "http://127.0.0.1:9")
        .start();
    adapter.wait_ready();
    assert_eq!(adapter.catalog("", b"any bytes at all", &[]).status, 200);
    assert_eq!(adapter.stop(Signal::SIGTERM), Some(0));
}

/// What the adapter serves after one of everything.
fn exposition() -> String {
    let engines = FakeEngines::new();
    let adapter = engines.start();
    adapter.wait_ready();
    assert_eq!(adapter.catalog("", b"any bytes at all", &[]).status, 200);
    String::from_utf8(adapter.get("/actuator/prometheus").bytes).unwrap()
}

#[test]
fn prometheus_accepts_the_metrics_and_the_rules() {
    let mut check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check
        .stdin
        .take()
        .unwrap()
        .write_all(exposition().as_bytes())
        .unwrap();
    let output = check.wait_with_output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.trim(), "", "promtool has something to say");
    for (verb, file) in [
        ("check", "monitoring/alerts.yaml"),
        ("test", "monitoring/alerts.test.yaml"),
    ] {
        let output = Command::new("promtool")
            .args([verb, "rules"])
            .arg(deploy(file))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{verb}: {said}");
    }
}

fn deploy(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .join("deploy")
        .join(name)
}

/// Names of metrics in a text of queries.
fn metrics_in(text: &str) -> std::collections::BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("kkrepo_scanner_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn dashboard_and_rules_ask_only_for_metrics_that_there_are() {
    let served = exposition();
    let dashboard = std::fs::read_to_string(deploy("monitoring/dashboard.json")).unwrap();
    let parsed: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert!(parsed["panels"].as_array().unwrap().len() >= 8);
    let rules = std::fs::read_to_string(deploy("monitoring/alerts.yaml")).unwrap();
    let asked = metrics_in(&(dashboard + &rules));
    assert!(asked.len() >= 8, "{asked:?}");
    let missing: Vec<_> = asked
        .iter()
        .filter(|name| !served.contains(&format!("\n{name}")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}\n{served}");
}
