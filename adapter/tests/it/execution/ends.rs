//! Everything that an engine may do, times everything that may end its run. After each, nothing is left.

use super::{FOREVER, FakeEngines, Inspector, begin, descendant, operate};
use crate::support::TestAdapter;
use assay_fixtures::fake_engine::{Action, Bomb};
use std::time::{Duration, Instant};

/// What an engine does, and what its run answers if nothing else ends it.
struct Deed {
    name: &'static str,
    actions: Vec<Action>,
    /// Status and code by itself, for a catalog and for a match.
    by_itself: [(u16, &'static str); 2],
    /// The engine ends by what it does, whatever comes after it.
    is_final: bool,
    /// It does not go when it is asked to.
    is_deaf: bool,
}

const WELL: (u16, &str) = (200, "");

impl Deed {
    /// A deed after which the engine goes on.
    fn lasting(name: &'static str, actions: impl Into<Vec<Action>>) -> Self {
        Self {
            name,
            actions: actions.into(),
            by_itself: [WELL; 2],
            is_final: false,
            is_deaf: false,
        }
    }

    /// A deed that ends the engine or its answer.
    fn last(name: &'static str, action: Action, by_itself: (u16, &'static str)) -> Self {
        Self {
            by_itself: [by_itself; 2],
            is_final: true,
            ..Self::lasting(name, [action])
        }
    }
}

/// Largest file that an engine of these tests may write: the scratch budget.
const SCRATCH: &str = "64MiB";

fn deeds(engines: &FakeEngines) -> Vec<Deed> {
    let stays = |own_session| descendant(engines, own_session).0;
    let file = |bytes| Action::WriteFile {
        path: "written".into(),
        bytes,
    };
    let too_large = (413, "SCANNER_OUTPUT_TOO_LARGE");
    let killed = (503, "SCANNER_PROCESS_KILLED");
    let invalid = [(422, "SYFT_SBOM_INVALID"), (422, "GRYPE_REPORT_INVALID")];
    vec![
        Deed::lasting("works", []),
        Deed {
            is_deaf: true,
            ..Deed::lasting("ignores TERM", [Action::IgnoreTerm])
        },
        Deed::lasting("leaves a child", [stays(false)]),
        Deed::lasting("flees into a session of its own", [stays(true)]),
        Deed::lasting("writes a file", [file(8 << 20)]),
        Deed::lasting("takes memory", [Action::Allocate(64 << 20)]),
        Deed {
            by_itself: invalid,
            ..Deed::lasting("closes stdout early", [Action::CloseStdout])
        },
        Deed {
            by_itself: invalid,
            ..Deed::lasting(
                "talks before its document",
                [Action::Stdout("no JSON".to_owned())],
            )
        },
        Deed::last("floods stdout", Action::FloodStdout(u64::MAX), too_large),
        Deed::last(
            "floods stderr",
            Action::FloodStderr(u64::MAX),
            (413, "SCANNER_STDERR_TOO_LARGE"),
        ),
        Deed::last("fills the disk", file(u64::MAX), too_large),
        Deed::last("fails", Action::Exit(3), (422, "SCANNER_PROCESS_FAILED")),
        Deed::last("crashes", Action::Signal("SIGABRT".to_owned()), killed),
        Deed::last("is killed", Action::Signal("SIGKILL".to_owned()), killed),
    ]
}

/// Name, document and what it answers, as in [`Deed`].
type NamedBomb = (&'static str, Bomb, [(u16, &'static str); 2]);

/// Documents that are an answer in themselves.
fn bombs() -> [NamedBomb; 3] {
    let invalid = [(422, "SYFT_SBOM_INVALID"), (422, "GRYPE_REPORT_INVALID")];
    [
        ("nests deeply", Bomb::Depth(1 << 20), invalid),
        ("has a huge name", Bomb::Name(6 << 20), invalid),
        ("has many items", Bomb::Items(100_000), [WELL, WELL]),
    ]
}

fn adapter(engines: &FakeEngines) -> TestAdapter {
    let adapter = engines.setup().with("max_scratch_bytes", SCRATCH).start();
    adapter.wait_ready();
    adapter
}

/// Limits that fit into the small scratch budget.
const SMALL: [(&str, &str); 2] = [
    ("x-kkrepo-max-input-bytes", "1024"),
    ("x-kkrepo-max-uncompressed-bytes", "1024"),
];

fn all_ends(operation: &'static str) {
    let engines = FakeEngines::new();
    let adapter = adapter(&engines);
    let which = usize::from(operation == "match");
    let reply = operate(&adapter, operation, &SMALL);
    assert_eq!(reply.status, 200, "{}", reply.json());
    let inspector = Inspector::of(&adapter, Some(&engines));
    for deed in deeds(&engines) {
        let name = format!("{operation}: an engine that {}", deed.name);
        let by_itself = deed.by_itself[which];
        let expect = |status: u16, code: &str, ordered: Option<(u16, &str)>| {
            let got = (status, code);
            let fits = got == by_itself || ordered.is_some_and(|ordered| got == ordered);
            // What ends by itself may do so before the order comes; what goes on is always ended by it.
            let fits = fits && (deed.is_final || ordered.is_none_or(|ordered| got == ordered));
            assert!(fits, "{name}: {got:?}");
        };

        // By itself.
        engines.scans_do([deed.actions.as_slice(), &[Action::Default]].concat());
        let reply = operate(&adapter, operation, &SMALL);
        let code = if reply.status == 200 {
            String::new()
        } else {
            reply.code()
        };
        expect(reply.status, &code, None);
        inspector.assert_nothing_left(&name);

        let goes_on = [deed.actions.as_slice(), &[FOREVER]].concat();
        let after = |what: &str| format!("{name}, {what}");

        // Cancelled.
        engines.scans_do_after_record(goes_on.clone());
        let started = Instant::now();
        let change = [SMALL.as_slice(), &[("x-kkrepo-run-id", "to-cancel")]].concat();
        let reply = std::thread::scope(|scope| {
            let answer = scope.spawn(|| operate(&adapter, operation, &change));
            engines.recorded();
            adapter.cancel("to-cancel");
            answer.join().unwrap()
        });
        expect(reply.status, &reply.code(), Some((503, "SCANNER_INTERRUPTED")));
        inspector.assert_nothing_left(&after("cancelled"));
        let grace = Duration::from_secs(if deed.is_deaf { 2 } else { 0 });
        assert!(started.elapsed() < grace + Duration::from_secs(8), "{name}");

        // Its client goes away.
        engines.scans_do_after_record(goes_on.clone());
        let before = inspector.endings("disconnect");
        let stream = begin(&adapter, operation);
        engines.recorded();
        drop(stream);
        inspector.assert_nothing_left(&after("left alone"));
        if !deed.is_final {
            let after = inspector.endings("disconnect");
            assert_eq!(after, before + 1, "{name}");
        }

        // Out of time.
        engines.scans_do(goes_on);
        let change = [SMALL.as_slice(), &[("x-kkrepo-timeout-seconds", "1")]].concat();
        let reply = operate(&adapter, operation, &change);
        expect(reply.status, &reply.code(), Some((504, "SCANNER_TIMEOUT")));
        inspector.assert_nothing_left(&after("out of time"));
    }
    for (name, bomb, by_itself) in bombs() {
        engines.scans_do([Action::JsonBomb(bomb)]);
        let reply = operate(&adapter, operation, &SMALL);
        let code = if reply.status == 200 {
            String::new()
        } else {
            reply.code()
        };
        let (status, expected) = by_itself[which];
        assert_eq!(
            (reply.status, code.as_str()),
            (status, expected),
            "{operation}: {name}"
        );
        inspector.assert_nothing_left(name);
    }
    for reason in ["cancel", "disconnect", "deadline"] {
        assert!(inspector.endings(reason) >= 8, "{reason}");
    }
}

#[test]
fn a_catalog_leaves_nothing_however_it_ends() {
    all_ends("catalog");
}

#[test]
fn a_match_leaves_nothing_however_it_ends() {
    all_ends("match");
}
