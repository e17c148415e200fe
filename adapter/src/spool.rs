//! A file that one side still writes while another already reads it.
//!
//! The writer is never more than [`READ_AHEAD`] bytes ahead of a reader, so that the reader has little left to do when
//! the last byte is there. A reader that wants the file whole, or that has gone, holds nobody up.

use crate::archive::Growth;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Most bytes that are taken in before the reader has come near them.
pub const READ_AHEAD: u64 = 256 << 10;

/// What both sides know of the file.
#[derive(Debug)]
struct Spool {
    written: Mutex<Written>,
    grown: Condvar,
    /// Where the reader is; bytes before it are not read again.
    read: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Written {
    bytes: u64,
    ended: bool,
}

/// The two ends of a file that has no bytes yet.
pub fn growing() -> (Writer, Reader) {
    let spool = Arc::new(Spool {
        written: Mutex::default(),
        grown: Condvar::new(),
        read: watch::Sender::new(0),
    });
    (Writer(Arc::clone(&spool)), Reader(spool))
}

impl Spool {
    fn written(&self) -> MutexGuard<'_, Written> {
        // Every write to it is a single assignment, so a panic elsewhere leaves nothing half done.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer's end. Once it is dropped the file is as long as it will be.
#[derive(Debug)]
pub struct Writer(Arc<Spool>);

impl Writer {
    /// Notes that `count` more bytes are in the file.
    pub fn wrote(&self, count: u64) {
        let mut written = self.0.written();
        written.bytes = written.bytes.saturating_add(count);
        drop(written);
        self.0.grown.notify_all();
    }

    /// What paces whoever hands bytes to the writer.
    pub fn pace(&self) -> Pace {
        Pace(self.0.read.subscribe())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.written().ended = true;
        self.0.grown.notify_all();
    }
}

/// Holds back what would run too far ahead of the reader.
#[derive(Debug)]
pub struct Pace(watch::Receiver<u64>);

impl Pace {
    /// Returns once the reader is within [`READ_AHEAD`] bytes of `taken`, or has gone.
    pub async fn room(&mut self, taken: u64) {
        // An error means that nobody can read any more.
        let _ = self
            .0
            .wait_for(|&read| taken.saturating_sub(read) <= READ_AHEAD)
            .await;
    }
}

/// The reader's end. Once it is dropped it holds nobody up.
#[derive(Debug)]
pub struct Reader(Arc<Spool>);

impl Growth for Reader {
    fn wait(&self, until: u64) -> u64 {
        let written = self.0.written();
        let waits = |written: &mut Written| written.bytes < until && !written.ended;
        let written = self.0.grown.wait_while(written, waits);
        written.unwrap_or_else(PoisonError::into_inner).bytes
    }

    fn reached(&self, position: u64) {
        self.0.read.send_if_modified(|read| {
            let is_ahead = position > *read;
            *read = position.max(*read);
            is_ahead
        });
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.reached(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::{Growth, READ_AHEAD, growing};
    use std::time::Duration;
    use tokio::time::timeout;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_reader_waits_for_bytes_and_for_the_end() {
        let (writer, reader) = growing();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| (reader.wait(3), reader.wait(10)));
            writer.wrote(2);
            writer.wrote(2);
            drop(writer);
            let (first, last) = waits.join().unwrap();
            assert!(first >= 3, "{first}");
            assert_eq!(last, 4, "the end came before the tenth byte");
        });
        assert_eq!(reader.wait(u64::MAX), 4);
    }

    #[tokio::test]
    async fn a_writer_is_held_back_until_the_reader_comes_near_or_goes() {
        let (writer, reader) = growing();
        let mut pace = writer.pace();
        timeout(LONG, pace.room(READ_AHEAD)).await.unwrap();
        timeout(SHORT, pace.room(READ_AHEAD + 1)).await.unwrap_err();
        reader.reached(1);
        timeout(LONG, pace.room(READ_AHEAD + 1)).await.unwrap();
        reader.reached(0);
        timeout(LONG, pace.room(READ_AHEAD + 1)).await.unwrap();
        timeout(SHORT, pace.room(u64::MAX)).await.unwrap_err();
        drop(reader);
        timeout(LONG, pace.room(u64::MAX)).await.unwrap();
    }
}
