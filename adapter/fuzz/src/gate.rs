//! The gate, and what must be true of its verdict whatever the bytes are.

use super::heap::bounded;
use assay_adapter::archive::{
    Entry, EntryKind, EntrySink, Gate, GateError, GateLimits, Growth, Input, Inspection, Interest, Profile,
    inspect,
};
use assay_adapter::recognition::{Collector, LayoutLimits, RecognitionError, Recognized, RootFacts};
use assay_adapter::run::RunContext;
use assay_schemas::{ArtifactType, Code};
use std::cell::Cell;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Small, so that every limit is met often.
const LIMITS: GateLimits = GateLimits {
    max_entries: 64,
    max_expanded_bytes: 256 << 10,
    max_single_file_bytes: 128 << 10,
    max_nested_depth: 3,
};
/// Far away: what an execution may cost is measured by other means.
const DEADLINE: Duration = Duration::from_hours(1);
/// Most bytes that an input may expand to by the ratio alone, as the contract has it.
const RATIO: u64 = 1000;
const RATIO_FLOOR_BYTES: u64 = 1 << 20;

/// Who listens to the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sink {
    /// Our own listener, which checks what it hears.
    Listen,
    /// Recognition, and what it concludes.
    Recognise,
}

/// Runs the gate over `bytes` once; for some of the inputs again, to compare.
#[inline(always)]
#[allow(clippy::inline_always, reason = "see `Target::run`")]
pub(super) fn check(bytes: &[u8], profile: Profile, sink: Sink) {
    STAGE.with(|stage| {
        let Some(stage) = stage else { return };
        stage.load(bytes);
        match sink {
            Sink::Listen => stage.listen(bytes, profile),
            Sink::Recognise => stage.recognise(bytes),
        }
    });
}

thread_local! {
    static STAGE: Option<Stage> = Stage::new().ok();
}

/// A file that every execution of a thread overwrites, and a place for temporary files, both in memory if possible.
struct Stage {
    file: File,
    /// Bytes that the file has.
    length: Cell<u64>,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> io::Result<Self> {
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        Ok(Self {
            file: tempfile::tempfile_in(&root)?,
            length: Cell::new(0),
            folder: tempfile::tempdir_in(root)?,
        })
    }

    fn load(&self, bytes: &[u8]) {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let before = self.length.replace(length);
        let cut = if length < before {
            self.file.set_len(length)
        } else {
            Ok(())
        };
        cut.and_then(|()| self.file.write_all_at(bytes, 0))
            .expect("memory for the input");
    }

    fn inspect(
        &self,
        bytes: &[u8],
        profile: Profile,
        sink: &mut dyn EntrySink,
    ) -> Result<Inspection, GateError> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let run = RunContext::with_timeout(DEADLINE);
        inspect(&self.file, size, self.folder.path(), &LIMITS, profile, &run, sink)
    }

    /// The same for a file that grows by `step` bytes whenever more are waited for.
    fn inspect_arriving(
        &self,
        bytes: &[u8],
        step: usize,
        profile: Profile,
        sink: &mut dyn EntrySink,
    ) -> Result<Inspection, GateError> {
        self.file.set_len(0).expect("memory for the input");
        let growth = Arriving {
            file: &self.file,
            bytes,
            step,
            written: Cell::new(0),
        };
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let run = RunContext::with_timeout(DEADLINE);
        let gate = Gate::new(LIMITS, size, self.folder.path(), profile, &run);
        gate.inspect(Input::growing(&self.file, size, &growth), sink)
    }

    fn listen(&self, bytes: &[u8], profile: Profile) {
        let sample = sample(bytes);
        let wants = if sample & 1 == 0 {
            Interest::Content
        } else {
            Interest::Skip
        };
        let (verdict, heard) = bounded(|| {
            let mut listener = Listener::new(wants);
            let verdict = self.inspect(bytes, profile, &mut listener);
            listener.check(&verdict);
            (verdict, listener.heard.finish())
        });
        judge(&verdict, bytes);
        // One bit has said what is wanted; the next four say what is compared.
        let comparison = (sample >> 1) % 16;
        if comparison == 0 {
            let mut listener = Listener::new(wants);
            let again = self.inspect(bytes, profile, &mut listener);
            assert_eq!(shown(&verdict), shown(&again), "two runs, two verdicts");
            assert_eq!(heard, listener.heard.finish(), "two runs, two lists of entries");
        } else if comparison == 1 {
            let other = if wants == Interest::Skip {
                Interest::Content
            } else {
                Interest::Skip
            };
            let again = self.inspect(bytes, profile, &mut Listener::new(other));
            // A listener that wants an archive has it copied before it is opened. Of two faults another one is met
            // first then, so a broken archive that is given up may be given up sooner, or be refused by a budget that
            // its inside passes. Nothing of that is left when nothing was given up.
            if let Ok(inspection) = verdict
                && inspection.unopened == 0
            {
                assert_eq!(Some(inspection), again.ok(), "the verdict depends on who listens");
            }
        } else if comparison == 2 {
            let step = usize::try_from(sample >> 8).unwrap_or(0) % 700 + 1;
            let mut listener = Listener::new(wants);
            let again = self.inspect_arriving(bytes, step, profile, &mut listener);
            let passes = verdict.is_ok();
            assert_eq!(
                verdict.ok(),
                again.ok(),
                "the verdict depends on how the bytes arrive"
            );
            let heard_again = listener.heard.finish();
            assert!(
                !passes || heard == heard_again,
                "the entries depend on how the bytes arrive"
            );
        }
    }

    fn recognise(&self, bytes: &[u8]) {
        let layout = self.folder.path().join("layout");
        let recognised = bounded(|| self.recognise_once(bytes, &layout));
        if sample(bytes).is_multiple_of(16) {
            let again = self.recognise_once(bytes, &layout);
            assert_eq!(
                format!("{recognised:?}"),
                format!("{again:?}"),
                "two runs, two results"
            );
        }
    }

    fn recognise_once(&self, bytes: &[u8], layout: &Path) -> Result<Conclusion, GateError> {
        const TYPES: [ArtifactType; 4] = [
            ArtifactType::Unknown,
            ArtifactType::Conda,
            ArtifactType::Jar,
            ArtifactType::Apk,
        ];
        let hint = usize::try_from(sample(bytes) >> 8).unwrap_or(0) % TYPES.len();
        let limits = LayoutLimits {
            files: 64,
            file_bytes: 64 << 10,
            total_bytes: 128 << 10,
        };
        let hint = TYPES.get(hint).copied().unwrap_or(ArtifactType::Unknown);
        let mut collector = Collector::new(hint, layout, limits, None);
        let verdict = self.inspect(bytes, Profile::Package, &mut collector);
        judge(&verdict, bytes);
        let concluded = verdict.map(|inspection| self.conclude(&inspection, collector, bytes, layout));
        match std::fs::remove_dir_all(layout) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                panic!("the layout cannot be removed: {error}")
            }
            _ => concluded,
        }
    }

    fn conclude(
        &self,
        inspection: &Inspection,
        collector: Collector<'_>,
        bytes: &[u8],
        layout: &Path,
    ) -> Conclusion {
        // The artifact has no name here, as recognition may link or copy it.
        let path = PathBuf::from(format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&self.file)
        ));
        let facts = RootFacts {
            is_opaque: inspection.entries == 0 && !inspection.format.is_archive(),
            is_rpm: inspection.format == assay_adapter::archive::Format::Rpm,
            input_bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            path: &path,
        };
        let recognised = collector.finish(&facts);
        if let Ok(recognised) = &recognised {
            assert!(
                recognised.reasons.len() <= 64,
                "more reasons than the contract has"
            );
            assert!(recognised.laid_out_files <= 64 + 8, "more files than allowed");
            for identity in &recognised.identities {
                assert!(
                    identity.purl.starts_with("pkg:"),
                    "{:?} is no package URL",
                    identity.purl
                );
            }
            let links = escapes(layout);
            assert!(links.is_empty(), "the layout leads outside at {links:?}");
        }
        recognised
    }
}

/// What recognition makes of an artifact that passes.
type Conclusion = Result<Recognized, RecognitionError>;

/// An upload of which the gate asks for more.
#[derive(Debug)]
struct Arriving<'b> {
    file: &'b File,
    bytes: &'b [u8],
    step: usize,
    written: Cell<usize>,
}

impl Growth for Arriving<'_> {
    fn wait(&self, until: u64) -> u64 {
        let until = usize::try_from(until).unwrap_or(usize::MAX).min(self.bytes.len());
        while self.written.get() < until {
            let at = self.written.get();
            let end = self.bytes.len().min(at + self.step);
            let offset = u64::try_from(at).unwrap_or(u64::MAX);
            let part = self.bytes.get(at..end).unwrap_or_default();
            self.file
                .write_all_at(part, offset)
                .expect("memory for the input");
            self.written.set(end);
        }
        u64::try_from(self.written.get()).unwrap_or(u64::MAX)
    }

    fn reached(&self, _: u64) {}
}

/// Whatever in the layout is neither a directory nor a regular file.
fn escapes(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => todo.push(entry.path()),
                Ok(kind) if kind.is_file() => {}
                _ => found.push(entry.path()),
            }
        }
    }
    found
}

/// A verdict is a refusal of the bytes or a list inside the limits, never trouble of the host.
fn judge(verdict: &Result<Inspection, GateError>, bytes: &[u8]) {
    match verdict {
        Ok(inspection) => {
            let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            assert!(inspection.entries <= LIMITS.max_entries, "{inspection:?}");
            assert!(
                inspection.expanded_bytes <= LIMITS.max_expanded_bytes,
                "{inspection:?}"
            );
            assert!(
                inspection.expanded_bytes <= size.saturating_mul(RATIO).max(RATIO_FLOOR_BYTES),
                "{inspection:?}"
            );
        }
        Err(error) => {
            let blames_host = matches!(
                error.code(),
                Code::WorkspaceIo | Code::InputIo | Code::Timeout | Code::Interrupted
            );
            assert!(!blames_host, "the bytes are at fault, but it says: {error:?}");
            let message = error.to_string();
            assert!(message.len() < 600, "a message of {} bytes", message.len());
            assert!(!message.contains(char::is_control), "{message:?}");
        }
    }
}

fn shown(verdict: &Result<Inspection, GateError>) -> String {
    match verdict {
        Ok(inspection) => format!("{inspection:?}"),
        Err(error) => format!("{:?} {error}", error.code()),
    }
}

/// A cheap number that depends on the bytes alone.
fn sample(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.len().hash(&mut hasher);
    bytes.rchunks(64).next().hash(&mut hasher);
    hasher.finish()
}

/// Checks the protocol and the promises about names and sizes.
struct Listener {
    wants: Interest,
    heard: DefaultHasher,
    begun: u64,
    bytes: u64,
    /// Bytes so far of the entry that is being handed over.
    open: Option<u64>,
}

impl Listener {
    fn new(wants: Interest) -> Self {
        Self {
            wants,
            heard: DefaultHasher::new(),
            begun: 0,
            bytes: 0,
            open: None,
        }
    }

    fn check(&self, verdict: &Result<Inspection, GateError>) {
        assert!(
            self.begun <= LIMITS.max_entries,
            "{} entries announced",
            self.begun
        );
        assert!(
            self.bytes <= LIMITS.max_expanded_bytes,
            "{} bytes handed over",
            self.bytes
        );
        if let Ok(inspection) = verdict {
            assert!(self.begun <= inspection.entries, "entries that were not counted");
            assert!(
                self.bytes <= inspection.expanded_bytes,
                "bytes that were not counted"
            );
            assert!(self.open.is_none(), "an entry without its end");
        }
    }
}

impl EntrySink for Listener {
    fn begin(&mut self, entry: &Entry<'_>) -> Interest {
        self.begun += 1;
        assert!(
            self.open.is_none(),
            "an entry begins while another is handed over"
        );
        for part in entry.path.split('/') {
            assert!(!matches!(part, "" | "." | ".."), "the path {:?}", entry.path);
        }
        assert!(!entry.path.contains('\0'), "the path {:?}", entry.path);
        let deepest = 2 * usize::try_from(LIMITS.max_nested_depth).unwrap_or(0) + 1;
        assert!(entry.within.len() <= deepest, "{:?} is too deep", entry.within);
        entry.path.hash(&mut self.heard);
        entry.within.hash(&mut self.heard);
        entry.declared_size.hash(&mut self.heard);
        if entry.kind != EntryKind::File {
            return Interest::Skip;
        }
        if self.wants == Interest::Content {
            self.open = Some(0);
        }
        self.wants
    }

    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bytes += count;
        let so_far = self.open.as_mut().expect("content of an entry that has begun");
        *so_far += count;
        assert!(*so_far <= LIMITS.max_single_file_bytes, "a file over its limit");
        // By bytes alone: how they are cut into pieces is nobody's business.
        self.heard.write(bytes);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.open.take().expect("an end of an entry that has begun");
        Ok(())
    }

    fn abandon(&mut self) -> io::Result<()> {
        self.open = None;
        Ok(())
    }

    fn rpm(&mut self, within: &[String], metadata: &rpm::PackageMetadata) {
        within.hash(&mut self.heard);
        // Whoever listens will ask for these.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = (metadata.get_name().is_ok(), metadata.get_version().is_ok());
        }));
    }
}
