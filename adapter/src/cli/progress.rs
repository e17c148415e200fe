//! Progress of a one-shot scan on standard error, when that is a terminal.

use super::scan::frame;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use hyper::body::Frame;
use indicatif::{ProgressBar, ProgressStyle};
use std::io;
use std::path::Path;
use std::time::Duration;

/// One file's progress. Draws nothing when standard error is no terminal.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    name: String,
}

impl Progress {
    /// Progress of the file at `path`.
    pub(super) fn new(path: &Path) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        Self {
            bar: ProgressBar::new_spinner(),
            name: crate::problem::sanitize(&name, 60),
        }
    }

    /// The file of this many bytes is being read.
    pub(super) fn reading(&self, size: u64) {
        self.bar.set_length(size);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:24} {bytes}/{total_bytes}") {
            self.bar.set_style(style);
        }
        self.bar.set_message(format!("{}: reading", self.name));
    }

    /// The blocks of a file, counted and turned into body frames.
    pub(super) fn count<S>(&self, blocks: S) -> impl Stream<Item = io::Result<Frame<Bytes>>> + Unpin + use<S>
    where
        S: Stream<Item = io::Result<Bytes>> + Unpin,
    {
        let bar = self.bar.clone();
        blocks.map(move |block| {
            if let Ok(block) = &block {
                bar.inc(block.len() as u64);
            }
            frame(block)
        })
    }

    /// An engine runs.
    pub(super) fn stage(&self, what: &str) {
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            self.bar.set_style(style);
        }
        self.bar.set_message(format!("{}: {what}", self.name));
        self.bar.enable_steady_tick(Duration::from_millis(100));
    }

    /// Removes the line.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
