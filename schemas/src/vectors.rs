//! The golden exchanges of `vectors/*.json`: a request, the state that the server must be in, and what it answers.
//!
//! A file is one [`Vector`]. Servers are tested by sending the request, clients by serving the example.

use crate::Code;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// Name of the file without `.json`.
    pub name: String,
    /// What it shows.
    pub about: String,
    /// The state that the server must be in.
    #[serde(default)]
    pub given: Given,
    /// What is sent.
    pub request: Request,
    /// What comes back.
    pub expect: Expectation,
}

/// The state of the server under test. All but [`Given::Ready`] need a harness that brings it about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Given {
    /// Engines and database usable, nothing running, default settings.
    #[default]
    Ready,
    /// No database generation is published.
    DatabaseMissing,
    /// The pointer file names no generation.
    DatabasePointerBroken,
    /// The database says neither its revision nor its build time.
    DatabaseWithoutProvenance,
    /// The database is older than the allowed age.
    DatabaseTooOld,
    /// Ready, but the matcher reports that it cannot read the database.
    DatabaseCorrupt,
    /// Ready, but the matcher reports that the database is too old.
    DatabaseExpires,
    /// An engine's executable does not exist.
    EngineMissing,
    /// An engine's version output is not JSON.
    EngineVersionGarbled,
    /// Ready, but the engine's executable has gone since.
    EngineCannotStart,
    /// The engine ends with a status other than 0 and says nothing.
    EngineExitsNonzero,
    /// The engine is ended by a signal.
    EngineExitsBySignal,
    /// The engine says that it ran out of memory and ends with a status other than 0.
    EngineOutOfMemory,
    /// The engine says that no space is left and ends with a status other than 0.
    EngineDiskFull,
    /// The engine writes more to standard output than the cap.
    EngineFloodsStdout,
    /// The engine writes more to standard error than the cap.
    EngineFloodsStderr,
    /// The engine runs for longer than the request's time.
    EngineStalls,
    /// The engine ends well, but its document is not JSON.
    EngineWritesGarbage,
    /// The engine ends well with a document without components.
    EngineFindsNothing,
    /// All slots and all places in the queue are taken.
    CapacityExhausted,
    /// The run is cancelled while it waits for a slot.
    CancelledWhileQueued,
    /// The run is cancelled while its engine works.
    CancelledWhileRunning,
    /// A run with the id `vector-active` is active.
    RunActive,
    /// The scratch budget is one mebibyte.
    ScratchSmall,
    /// [`Given::RunActive`] and [`Given::ScratchSmall`].
    RunActiveAndScratchSmall,
    /// [`Given::CapacityExhausted`] and [`Given::ScratchSmall`].
    CapacityExhaustedAndScratchSmall,
    /// No directory can be made in the work directory.
    WorkDirectoryUnwritable,
    /// The file of the input cannot be written.
    InputDiskFull,
    /// Files for the cataloguer of more than 512 bytes cannot be written.
    LayoutDiskFull,
    /// Somebody removes the stored SBOM while it arrives.
    SbomRemoved,
    /// The directory for a Conda index cannot be written.
    CondaLayoutUnwritable,
    /// The cap of engine documents is 1024 bytes.
    OutputCapSmall,
    /// The handler has a defect. None is known, so only a handler that is made to fail can show it.
    HandlerDefect,
    /// The platform has no process groups.
    NoProcessGroups,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Target of the request line, not to be normalised.
    pub path: String,
    /// Which credential header goes with it.
    #[serde(default)]
    pub credential: Credential,
    /// `Name: value`, in order, possibly with repeated names. Without host, credential and framing.
    #[serde(default)]
    pub headers: Vec<String>,
    /// How the body is delimited.
    #[serde(default)]
    pub framing: Framing,
    /// Pieces whose concatenation is the body; empty for none.
    #[serde(default)]
    pub body: Vec<Piece>,
}

impl Request {
    /// Name and value of each header, the value without surrounding blanks.
    pub fn header_pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers
            .iter()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name, value.trim()))
    }

    /// The value of the first header with this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.header_pairs()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The body.
    pub fn body_bytes(&self) -> Result<Vec<u8>, base64::DecodeError> {
        let mut bytes = Vec::new();
        for piece in &self.body {
            match piece {
                Piece::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                Piece::Base64(text) => bytes.extend(STANDARD.decode(text)?),
                Piece::Repeat { byte, count } => bytes.resize(bytes.len() + count, *byte),
            }
        }
        Ok(bytes)
    }
}

/// Which credential goes with a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Credential {
    /// The server's own.
    #[default]
    Valid,
    /// Another one.
    Wrong,
    /// No header.
    Absent,
}

/// How a body is delimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// `Content-Length`, also for an empty body of a `POST` or `PUT`.
    #[default]
    Length,
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// `Content-Length` of the whole body, half of it, then the sending side is shut down. A server may close such a
    /// connection without an answer; if it answers, then as expected.
    Broken,
}

/// A piece of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Piece {
    /// UTF-8 text.
    Text(String),
    /// Padded standard Base64.
    Base64(String),
    /// One byte many times.
    Repeat {
        /// The byte.
        byte: u8,
        /// How many times.
        count: usize,
    },
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// HTTP status.
    pub status: u16,
    /// Error code, for answers that are not a success.
    #[serde(default)]
    pub code: Option<Code>,
    /// Retryable flag, for answers that are not a success.
    #[serde(default)]
    pub retryable: Option<bool>,
    /// Lower-case header name and a regular expression that its value matches.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// JSON pointer and type of the member there.
    #[serde(default)]
    pub fields: BTreeMap<String, JsonType>,
    /// JSON pointer and the value there.
    #[serde(default)]
    pub values: BTreeMap<String, Value>,
    /// Name of the schema of `json/` that the body obeys; none when the body is not JSON.
    #[serde(default)]
    pub schema: Option<String>,
    /// A body as it may come.
    #[serde(default)]
    pub example: Option<Value>,
}

/// Type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names of JSON")]
pub enum JsonType {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
    Null,
}

impl JsonType {
    /// Whether `value` is of this type; an integer is also a number.
    pub fn holds(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
            Self::Null => value.is_null(),
        }
    }
}

impl Expectation {
    /// Every way in which an answer differs from the expectation; empty when it is as expected.
    ///
    /// `header` gives the value of a header by its lower-case name. The body's schema is the caller's to check.
    pub fn differences<'a>(
        &self,
        status: u16,
        header: impl Fn(&str) -> Option<&'a str>,
        body: &[u8],
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        if status != self.status {
            wrong.push(format!("status {status}, expected {}", self.status));
        }
        for (name, pattern) in &self.headers {
            let got = header(name);
            match regex::Regex::new(pattern) {
                Ok(pattern) if got.is_some_and(|value| pattern.is_match(value)) => {}
                Ok(_) => wrong.push(format!("header {name} is {got:?}, expected {pattern}")),
                Err(error) => wrong.push(format!("pattern of header {name}: {error}")),
            }
        }
        if self.schema.is_some() {
            match serde_json::from_slice(body) {
                Ok(body) => self.body_differences(&body, &mut wrong),
                Err(error) => wrong.push(format!("body is not JSON: {error}")),
            }
        }
        wrong
    }

    fn body_differences(&self, body: &Value, wrong: &mut Vec<String>) {
        let code = self.code.map(|code| Value::from(code.as_str()));
        let flags = [("/code", code), ("/retryable", self.retryable.map(Value::from))];
        let flags = flags
            .iter()
            .filter_map(|(at, want)| want.as_ref().map(|want| (*at, want)));
        let values = self.values.iter().map(|(at, want)| (at.as_str(), want));
        for (at, want) in flags.chain(values) {
            let got = body.pointer(at);
            if got != Some(want) {
                wrong.push(format!("{at} is {got:?}, expected {want}"));
            }
        }
        for (at, want) in &self.fields {
            let got = body.pointer(at);
            if !got.is_some_and(|value| want.holds(value)) {
                wrong.push(format!("{at} is {got:?}, expected a value of type {want:?}"));
            }
        }
    }
}

/// Why vectors could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or the directory could not be read.
    #[error("{path}: {error}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file is not a vector.
    #[error("{path}: {error}")]
    Parse {
        /// Which.
        path: PathBuf,
        /// Why.
        error: serde_json::Error,
    },
}

/// The directory of this crate's own vectors, as it was at build time.
pub fn directory() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/vectors"))
}

/// Every vector of a directory, in the order of their names.
pub fn load_all(directory: &Path) -> Result<Vec<Vector>, LoadError> {
    let read_error = |path: &Path| {
        let path = path.to_owned();
        move |error| LoadError::Read { path, error }
    };
    let mut vectors = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(read_error(directory))? {
        let path = entry.map_err(read_error(directory))?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(read_error(&path))?;
        let vector = serde_json::from_str(&text).map_err(|error| LoadError::Parse { path, error })?;
        vectors.push(vector);
    }
    vectors.sort_by(|a: &Vector, b: &Vector| a.name.cmp(&b.name));
    Ok(vectors)
}
