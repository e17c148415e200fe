//! A running `fixtures/differential`.

use serde::Deserialize;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What the other side saw.
#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    pub(crate) entries: Option<Vec<Entry>>,
    /// Empty when it came to the end.
    pub(crate) error: String,
}

/// One entry of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) within: Option<Vec<String>>,
    /// Base64; null for none.
    pub(crate) name: Option<String>,
    pub(crate) kind: String,
    pub(crate) target: String,
    pub(crate) size: u64,
    pub(crate) sha256: String,
}

/// Ends when it is dropped, as its input does.
pub(crate) struct Reader {
    child: Child,
    requests: Option<ChildStdin>,
    answers: ChildStdout,
}

impl Reader {
    /// Starts the program that `ASSAY_READER` names.
    pub(crate) fn start() -> Self {
        let executable = std::env::var_os("ASSAY_READER")
            .expect("ASSAY_READER must name the reader: run these tests with `cargo xtask test`");
        let executable = std::path::absolute(PathBuf::from(executable)).unwrap();
        let mut child = Command::new(executable)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            requests: child.stdin.take(),
            answers: child.stdout.take().unwrap(),
            child,
        }
    }

    /// Lists content that Syft would meet under a name with this suffix.
    pub(crate) fn list(&mut self, name: &str, content: &[u8]) -> Answer {
        let requests = self.requests.as_mut().unwrap();
        for block in [name.as_bytes(), content] {
            let length = u32::try_from(block.len()).unwrap();
            requests.write_all(&length.to_be_bytes()).unwrap();
            requests.write_all(block).unwrap();
        }
        requests.flush().unwrap();
        let mut length = [0; 4];
        self.answers.read_exact(&mut length).unwrap();
        let mut answer = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
        self.answers.read_exact(&mut answer).unwrap();
        serde_json::from_slice(&answer).unwrap()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.requests = None;
        let _ = self.child.wait();
    }
}
