//! Body stream to file: counted and hashed in the same pass, never held whole.

use crate::problem::Problem;
use crate::run::{RunContext, Stopped};
use crate::spool::{self, Pace, Writer};
use assay_schemas::Code;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, Write as _};
use std::time::Duration;
use tokio::sync::mpsc;

/// Blocks in flight between the socket and the disk. A block is at most the connection's read buffer.
const BLOCKS_IN_FLIGHT: usize = 8;

/// A body that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Bytes stored.
    pub size: u64,
    /// Lower-case hexadecimal SHA-256 of them.
    pub sha256: String,
}

/// What holds a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Most bytes of it.
    pub limit: u64,
    /// How many of its bytes are stored; what comes after them is hashed and counted all the same.
    pub kept: u64,
    /// Longest silence in it.
    pub stall: Duration,
}

/// Why a body was not stored.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// More bytes than allowed.
    #[error("the input is larger than {limit} bytes")]
    TooLarge {
        /// Effective limit, bytes.
        limit: u64,
    },
    /// The client broke off, or its framing is wrong.
    #[error("the input broke off")]
    BrokenOff(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The client sent nothing for too long.
    #[error("nothing arrived for {0:?}")]
    Stalled(Duration),
    /// The disk refused.
    #[error("the input cannot be stored")]
    Store(#[source] io::Error),
    /// The run ended first.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl From<UploadError> for Problem {
    fn from(error: UploadError) -> Self {
        let code = match &error {
            UploadError::TooLarge { .. } => Code::InputTooLarge,
            UploadError::BrokenOff(_) | UploadError::Stalled(_) | UploadError::Store(_) => Code::InputIo,
            UploadError::Stopped(stopped) => stopped.code(),
        };
        Self::new(code, error.to_string()).caused_by(error)
    }
}

/// Stores a body of at most `limit` bytes in `file`.
///
/// Socket, hash and disk work on different blocks at the same time. `stall` bounds each silence, the run everything.
/// A body that announces more than `limit` bytes is refused before any of it is read.
///
/// # Errors
/// [`UploadError`]. The file's content is then unspecified.
pub async fn receive<B>(
    body: &mut B,
    file: File,
    limit: u64,
    stall: Duration,
    run: &RunContext,
) -> Result<Received, UploadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    // Nobody reads along.
    let (writer, _) = spool::growing();
    let bounds = Bounds {
        limit,
        kept: limit,
        stall,
    };
    receive_for_reader(body, file, writer, bounds, run).await
}

/// The same while somebody reads the file along with it, who is not left far behind.
///
/// On any outcome the writer has ended when this returns, so that the reader has all bytes that will come.
///
/// # Errors
/// [`UploadError`]. The file's content is then unspecified.
pub async fn receive_for_reader<B>(
    body: &mut B,
    file: File,
    spool: Writer,
    bounds: Bounds,
    run: &RunContext,
) -> Result<Received, UploadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let limit = bounds.limit;
    if body.size_hint().lower() > limit {
        return Err(UploadError::TooLarge { limit });
    }
    let (to_disk, disk) = mpsc::channel::<Bytes>(BLOCKS_IN_FLIGHT);
    let (to_hash, hash) = mpsc::channel::<Bytes>(BLOCKS_IN_FLIGHT);
    let pace = spool.pace();
    let writer = tokio::task::spawn_blocking(move || write_all(file, disk, &spool, bounds.kept));
    let hasher = tokio::task::spawn_blocking(move || hash_all(hash));
    let outcome = run
        .bound(take_in(body, [to_hash, to_disk], pace, limit, bounds.stall))
        .await;
    // Their channels are closed now, so both end soon.
    let written = writer
        .await
        .map_err(|error| UploadError::Store(io::Error::other(error)))?;
    let sha256 = hasher
        .await
        .map_err(|error| UploadError::Store(io::Error::other(error)))?;
    let size = outcome??;
    written.map_err(UploadError::Store)?;
    Ok(Received { size, sha256 })
}

/// Hands every block to all of `takers`; gives the bytes in all.
async fn take_in<B>(
    body: &mut B,
    takers: [mpsc::Sender<Bytes>; 2],
    mut pace: Pace,
    limit: u64,
    stall: Duration,
) -> Result<u64, UploadError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut size: u64 = 0;
    loop {
        pace.room(size).await;
        let frame = match tokio::time::timeout(stall, body.frame()).await {
            Err(_) => return Err(UploadError::Stalled(stall)),
            Ok(None) => return Ok(size),
            Ok(Some(Err(error))) => return Err(UploadError::BrokenOff(error.into())),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(block) = frame.into_data() else { continue };
        size = size.saturating_add(block.len() as u64);
        if size > limit {
            return Err(UploadError::TooLarge { limit });
        }
        for taker in &takers {
            // A closed channel means that the writer failed; its own error says why.
            if taker.send(block.clone()).await.is_err() {
                return Ok(size);
            }
        }
    }
}

fn write_all(mut file: File, mut blocks: mpsc::Receiver<Bytes>, spool: &Writer, kept: u64) -> io::Result<()> {
    let mut room = kept;
    while let Some(mut block) = blocks.blocking_recv() {
        block.truncate(usize::try_from(room).unwrap_or(usize::MAX));
        file.write_all(&block)?;
        let stored = block.len() as u64;
        room = room.saturating_sub(stored);
        spool.wrote(stored);
    }
    Ok(())
}

fn hash_all(mut blocks: mpsc::Receiver<Bytes>) -> String {
    let mut hash = Sha256::new();
    while let Some(block) = blocks.blocking_recv() {
        hash.update(&block);
    }
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Received, UploadError, receive, receive_for_reader};
    use crate::run::RunContext;
    use bytes::Bytes;
    use http_body_util::{Full, StreamBody};
    use hyper::body::{Body, Frame, SizeHint};
    use std::convert::Infallible;
    use std::io::{Read as _, Seek as _};
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    const STALL: Duration = Duration::from_secs(5);

    fn content(file: &mut std::fs::File) -> String {
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[tokio::test]
    async fn a_body_is_stored_counted_and_hashed() {
        let mut file = tempfile::tempfile().unwrap();
        let run = RunContext::with_timeout(STALL);
        let mut body = Full::new(Bytes::from_static(b"abc"));
        let got = receive(&mut body, file.try_clone().unwrap(), 3, STALL, &run)
            .await
            .unwrap();
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned();
        assert_eq!(got, Received { size: 3, sha256 });
        assert_eq!(content(&mut file), "abc");
    }

    #[tokio::test]
    async fn what_is_not_kept_is_hashed_and_counted() {
        let mut file = tempfile::tempfile().unwrap();
        let run = RunContext::with_timeout(STALL);
        let blocks = ["a", "b", "c"].map(|text| Ok::<_, Infallible>(Frame::data(Bytes::from(text))));
        let mut body = StreamBody::new(futures_util::stream::iter(blocks));
        let bounds = Bounds {
            limit: 3,
            kept: 2,
            stall: STALL,
        };
        let (spool, _) = crate::spool::growing();
        let got = receive_for_reader(&mut body, file.try_clone().unwrap(), spool, bounds, &run)
            .await
            .unwrap();
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned();
        assert_eq!(got, Received { size: 3, sha256 });
        assert_eq!(content(&mut file), "ab");
    }

    #[tokio::test]
    async fn one_byte_over_the_limit_is_too_large() {
        let run = RunContext::with_timeout(STALL);
        let block = Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"abcd")));
        let mut body = StreamBody::new(futures_util::stream::iter([block]));
        assert_eq!(body.size_hint().lower(), 0, "its length is not announced");
        let error = receive(&mut body, tempfile::tempfile().unwrap(), 3, STALL, &run)
            .await
            .unwrap_err();
        assert!(matches!(error, UploadError::TooLarge { limit: 3 }));
    }

    /// Announces its length; nobody may ask for its bytes.
    struct Announced(u64);

    impl Body for Announced {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            panic!("the body is read")
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0)
        }
    }

    #[tokio::test]
    async fn a_length_over_the_limit_is_too_large_before_anything_is_read() {
        let run = RunContext::with_timeout(STALL);
        let file = tempfile::tempfile().unwrap();
        let error = receive(&mut Announced(4), file, 3, STALL, &run)
            .await
            .unwrap_err();
        assert!(matches!(error, UploadError::TooLarge { limit: 3 }));
    }

    #[tokio::test]
    async fn a_silent_client_is_given_up() {
        let (sender, mut body) = http_body_util::channel::Channel::<Bytes, std::io::Error>::new(1);
        let run = RunContext::with_timeout(STALL);
        let short = Duration::from_millis(10);
        let error = receive(&mut body, tempfile::tempfile().unwrap(), 3, short, &run)
            .await
            .unwrap_err();
        assert!(matches!(error, UploadError::Stalled(_)));
        drop(sender);
    }

    #[tokio::test]
    async fn a_full_disk_is_an_error_of_the_store() {
        let run = RunContext::with_timeout(STALL);
        let mut body = Full::new(Bytes::from_static(b"abcd"));
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let error = receive(&mut body, full, 10, STALL, &run).await.unwrap_err();
        assert!(matches!(error, UploadError::Store(_)), "{error:?}");
    }
}
