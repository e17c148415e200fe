//! Byte sources of the readers: files by position, buffered streams that can look ahead, bounded views.

use super::input::Input;
use std::io::{self, BufRead, ErrorKind, Read};

/// Size of every layer's buffer, bytes; also the block after which budget and deadline are looked at.
pub(super) const BUFFER_BYTES: usize = 128 << 10;

/// Bytes that can be looked at before they are taken.
pub(super) trait Source: BufRead {
    /// At least `wanted` bytes, or all that are left if fewer. `wanted` is at most [`BUFFER_BYTES`].
    fn peek(&mut self, wanted: usize) -> io::Result<&[u8]>;
}

/// A reader with a look-ahead buffer.
pub(super) struct Stream<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
}

impl<R: Read> Stream<R> {
    pub(super) fn new(reader: R) -> Self {
        Self::with_buffer(reader, Vec::new())
    }

    /// Uses the memory of `buffer`, whatever it holds.
    pub(super) fn with_buffer(reader: R, mut buffer: Vec<u8>) -> Self {
        buffer.resize(BUFFER_BYTES, 0);
        Self {
            reader,
            buffer,
            start: 0,
            end: 0,
            ended: false,
        }
    }

    /// Gives the buffer back for the next stream.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads once more behind what is buffered.
    fn refill(&mut self) -> io::Result<()> {
        let Some(space) = self.buffer.get_mut(self.end..).filter(|space| !space.is_empty()) else {
            return Ok(());
        };
        match self.reader.read(space) {
            Ok(0) => self.ended = true,
            Ok(count) => self.end += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl<R: Read> Source for Stream<R> {
    fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        debug_assert!(wanted <= BUFFER_BYTES, "look-ahead larger than the buffer");
        if self.end - self.start < wanted && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        while self.end - self.start < wanted.min(BUFFER_BYTES) && !self.ended {
            self.refill()?;
        }
        Ok(self.buffered())
    }
}

impl<R: Read> BufRead for Stream<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            while self.end == 0 && !self.ended {
                self.refill()?;
            }
        }
        Ok(self.buffered())
    }

    fn consume(&mut self, amount: usize) {
        self.start = (self.start + amount).min(self.end);
    }
}

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

/// The next `remaining` bytes of a source, which must exist.
pub(super) struct Limited<'s> {
    source: &'s mut dyn Source,
    remaining: u64,
}

impl<'s> Limited<'s> {
    pub(super) fn new(source: &'s mut dyn Source, length: u64) -> Self {
        Self {
            source,
            remaining: length,
        }
    }

    fn remaining_usize(&self) -> usize {
        usize::try_from(self.remaining).unwrap_or(usize::MAX)
    }
}

impl Source for Limited<'_> {
    fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        let most = self.remaining_usize();
        let bytes = self.source.peek(wanted.min(most))?;
        Ok(bytes.get(..most).unwrap_or(bytes))
    }
}

impl BufRead for Limited<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.remaining == 0 {
            return Ok(&[]);
        }
        let most = self.remaining_usize();
        let bytes = self.source.fill_buf()?;
        if bytes.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes.get(..most).unwrap_or(bytes))
    }

    fn consume(&mut self, amount: usize) {
        self.source.consume(amount);
        self.remaining = self
            .remaining
            .saturating_sub(u64::try_from(amount).unwrap_or(u64::MAX));
    }
}

impl Read for Limited<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

/// A range of a file, read by position and buffered; the position can be moved.
pub(super) struct FileWindow<'f> {
    input: Input<'f>,
    buffer: Vec<u8>,
    /// File offset of `buffer[0]`.
    base: u64,
    filled: usize,
    position: u64,
    end: u64,
}

impl<'f> FileWindow<'f> {
    /// All of an input.
    pub(super) fn new(input: Input<'f>) -> Self {
        let buffer = usize::try_from(input.size()).map_or(BUFFER_BYTES, |size| size.min(BUFFER_BYTES));
        Self {
            input,
            buffer: vec![0; buffer],
            base: 0,
            filled: 0,
            position: 0,
            end: input.size(),
        }
    }

    /// Continues at `position` and ends before `end`.
    pub(super) fn seek(&mut self, position: u64, end: u64) {
        self.position = position;
        self.end = end;
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    fn buffered(&self) -> &[u8] {
        let start = self
            .position
            .checked_sub(self.base)
            .and_then(|n| usize::try_from(n).ok());
        let left = usize::try_from(self.end.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let bytes = start
            .and_then(|start| self.buffer.get(..self.filled)?.get(start..))
            .unwrap_or_default();
        bytes.get(..left).unwrap_or(bytes)
    }

    /// Reads on so that at least `wanted` bytes are buffered, or all that are left in the range.
    fn refill(&mut self, wanted: usize) -> io::Result<()> {
        let left = self.end.saturating_sub(self.position);
        if u64::try_from(self.buffered().len()) == Ok(left) {
            // All of the range is here; what is buffered behind it is wanted next.
            return Ok(());
        }
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).min(left);
        let arrived = self
            .input
            .arrived(self.position, self.position.saturating_add(wanted))?;
        let there = usize::try_from(arrived.saturating_sub(self.position)).unwrap_or(usize::MAX);
        self.base = self.position;
        self.filled = 0;
        // Reads past `end` are fine: neighbours are usually wanted next.
        let most = there.min(self.buffer.len());
        let space = self.buffer.get_mut(..most).unwrap_or_default();
        self.filled = self.input.read_at(space, self.position)?;
        Ok(())
    }

    /// The next `count` bytes, or fewer at the end. `count` is at most [`BUFFER_BYTES`].
    pub(super) fn next_bytes(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.buffered().len() < count {
            self.refill(count)?;
        }
        let length = self.buffered().len().min(count);
        let start = usize::try_from(self.position.saturating_sub(self.base)).unwrap_or(usize::MAX);
        self.position = self.position.saturating_add(u64::try_from(length).unwrap_or(0));
        Ok(self
            .buffer
            .get(start..start.saturating_add(length))
            .unwrap_or_default())
    }
}

impl Source for FileWindow<'_> {
    fn peek(&mut self, wanted: usize) -> io::Result<&[u8]> {
        if self.buffered().len() < wanted {
            self.refill(wanted)?;
        }
        Ok(self.buffered())
    }
}

impl BufRead for FileWindow<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.buffered().is_empty() {
            self.refill(1)?;
        }
        Ok(self.buffered())
    }

    fn consume(&mut self, amount: usize) {
        self.position = self.position.saturating_add(u64::try_from(amount).unwrap_or(0));
    }
}

impl Read for FileWindow<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

/// Takes exactly `N` bytes; none if the source has ended.
pub(super) fn take_block<const N: usize>(source: &mut dyn Source) -> io::Result<Option<[u8; N]>> {
    let bytes = source.peek(N)?;
    let Some((block, _)) = bytes.split_first_chunk::<N>() else {
        return if bytes.is_empty() {
            Ok(None)
        } else {
            Err(ErrorKind::UnexpectedEof.into())
        };
    };
    let block = *block;
    source.consume(N);
    Ok(Some(block))
}

/// Takes `length` bytes into memory that grows only as they arrive. The caller has bounded `length`.
pub(super) fn take_bytes(source: &mut dyn Source, length: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    Limited::new(source, length).read_to_end(&mut out)?;
    Ok(out)
}

/// Drops `length` bytes, which must exist.
pub(super) fn skip(source: &mut dyn Source, length: u64) -> io::Result<()> {
    let mut limited = Limited::new(source, length);
    loop {
        let count = limited.fill_buf()?.len();
        if count == 0 {
            return Ok(());
        }
        limited.consume(count);
    }
}

/// Takes everything that is left; false if any byte of it is not zero.
pub(super) fn rest_is_zero(source: &mut dyn Source) -> io::Result<bool> {
    loop {
        let bytes = source.fill_buf()?;
        if bytes.is_empty() {
            return Ok(true);
        }
        if bytes.iter().any(|&b| b != 0) {
            return Ok(false);
        }
        let count = bytes.len();
        source.consume(count);
    }
}

fn read_buffered(source: &mut impl BufRead, out: &mut [u8]) -> io::Result<usize> {
    let bytes = source.fill_buf()?;
    let count = bytes.len().min(out.len());
    if let (Some(to), Some(from)) = (out.get_mut(..count), bytes.get(..count)) {
        to.copy_from_slice(from);
    }
    source.consume(count);
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::{BUFFER_BYTES, FileWindow, Input, Limited, Source, Stream, rest_is_zero, skip, take_block};
    use std::io::{BufRead, ErrorKind, Read, Write};

    /// Gives one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let n = out.len().min(1);
            self.0.read(&mut out[..n])
        }
    }

    #[test]
    fn looking_ahead_takes_nothing() {
        let data: Vec<u8> = (0..=255).cycle().take(BUFFER_BYTES * 2 + 7).collect();
        let mut stream = Stream::new(Slow(&data));
        assert!(stream.peek(512).unwrap().starts_with(&data[..512]));
        let mut out = Vec::new();
        loop {
            let _ = stream.peek(300).unwrap();
            let mut chunk = [0; 1000];
            let n = stream.read(&mut chunk).unwrap();
            if n == 0 {
                break;
            }
            out.extend_from_slice(&chunk[..n]);
        }
        assert_eq!(out, data);
    }

    #[test]
    fn a_bounded_view_ends_at_its_bound_or_complains() {
        let mut stream = Stream::new(&b"abcdef"[..]);
        let mut view = Limited::new(&mut stream, 4);
        assert_eq!(view.peek(10).unwrap(), b"abcd");
        let mut out = Vec::new();
        view.read_to_end(&mut out).unwrap();
        assert_eq!(out, b"abcd");
        assert_eq!(skip(&mut stream, 3).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn blocks_and_padding() {
        let mut stream = Stream::new(&b"ab\0\0\0"[..]);
        assert_eq!(take_block::<2>(&mut stream).unwrap(), Some(*b"ab"));
        assert!(rest_is_zero(&mut stream).unwrap());
        assert_eq!(take_block::<2>(&mut stream).unwrap(), None);
        let mut stream = Stream::new(&b"a"[..]);
        assert!(take_block::<2>(&mut stream).is_err());
    }

    #[test]
    fn a_file_window_can_be_moved() {
        let mut file = tempfile::tempfile().unwrap();
        let data: Vec<u8> = (0..=250).cycle().take(BUFFER_BYTES * 2).collect();
        file.write_all(&data).unwrap();
        let mut window = FileWindow::new(Input::complete(&file, data.len() as u64));
        assert_eq!(window.next_bytes(4).unwrap(), &data[..4]);
        window.seek(BUFFER_BYTES as u64 - 2, data.len() as u64);
        assert_eq!(
            window.next_bytes(8).unwrap(),
            &data[BUFFER_BYTES - 2..BUFFER_BYTES + 6]
        );
        window.seek(1, 4);
        let mut out = Vec::new();
        window.read_to_end(&mut out).unwrap();
        assert_eq!(out, &data[1..4]);
        assert!(window.fill_buf().unwrap().is_empty());
        assert_eq!(window.position(), 4);
    }
}
