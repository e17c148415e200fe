//! Compressed streams: every member, frame and stream of them, in bounded memory.

use super::DECODER_MEMORY_BYTES;
use super::sniff::Format;
use super::stream::{Source, rest_is_zero};
use std::io::{self, BufRead, ErrorKind, Read};
use xz2::stream as xz;

/// 128 MiB windows at most.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Bytes that a decoder sees at once.
const BLOCK_BYTES: usize = 32 << 10;

/// Decompresses all of a source.
///
/// A decoder that fails loses what it has made since it was called, so what comes out before an error would depend on how
/// the input was cut into pieces; [`Blocks`] sees to it that this depends on nothing but the input.
///
/// After the last gzip member or bzip2 stream only zero padding may follow; xz and zstd define their own padding
/// (stream padding, skippable frames), and anything else there is an error too.
pub(super) struct Decoder<'s> {
    state: State<'s>,
}

enum State<'s> {
    Gzip(flate2::bufread::GzDecoder<Blocks<'s>>),
    Bzip2(bzip2::bufread::BzDecoder<Blocks<'s>>),
    Xz(xz2::bufread::XzDecoder<Blocks<'s>>),
    Zstd(zstd::stream::read::Decoder<'static, Blocks<'s>>),
    Done,
}

impl<'s> Decoder<'s> {
    /// A decoder for `format`, which must be a compressed one.
    pub(super) fn new(format: Format, source: &'s mut dyn Source) -> io::Result<Self> {
        let source = Blocks { source, left: 0 };
        let state = match format {
            Format::Gzip => State::Gzip(flate2::bufread::GzDecoder::new(source)),
            Format::Bzip2 => State::Bzip2(bzip2::bufread::BzDecoder::new(source)),
            Format::Xz => {
                let stream = xz::Stream::new_stream_decoder(DECODER_MEMORY_BYTES, xz::CONCATENATED)?;
                State::Xz(xz2::bufread::XzDecoder::new_stream(source, stream))
            }
            Format::Lzma => {
                let stream = xz::Stream::new_lzma_decoder(DECODER_MEMORY_BYTES)?;
                State::Xz(xz2::bufread::XzDecoder::new_stream(source, stream))
            }
            Format::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                State::Zstd(decoder)
            }
            _ => return Err(io::Error::new(ErrorKind::Unsupported, "not a compressed format")),
        };
        Ok(Self { state })
    }
}

impl Read for Decoder<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let count = match &mut self.state {
                State::Gzip(decoder) => decoder.read(out)?,
                State::Bzip2(decoder) => decoder.read(out)?,
                State::Xz(decoder) => decoder.read(out)?,
                State::Zstd(decoder) => decoder.read(out)?,
                State::Done => return Ok(0),
            };
            if count > 0 {
                return Ok(count);
            }
            // An empty member, or the end of one.
            self.state = match std::mem::replace(&mut self.state, State::Done) {
                State::Gzip(decoder) => next_member(decoder.into_inner(), flate2::bufread::GzDecoder::new)?
                    .map_or(State::Done, State::Gzip),
                State::Bzip2(decoder) => next_member(decoder.into_inner(), bzip2::bufread::BzDecoder::new)?
                    .map_or(State::Done, State::Bzip2),
                State::Xz(decoder) => end(decoder.into_inner().source)?,
                State::Zstd(decoder) => end(decoder.into_inner().source)?,
                State::Done => State::Done,
            };
        }
    }
}

/// The decoder for the next member, if there is one.
fn next_member<'s, D>(
    mut source: Blocks<'s>,
    decoder: impl FnOnce(Blocks<'s>) -> D,
) -> io::Result<Option<D>> {
    match source.fill_buf()?.first() {
        None => Ok(None),
        Some(0) => end(source.source).map(|_| None),
        Some(_) => Ok(Some(decoder(source))),
    }
}

/// Only zeros may be left.
fn end(source: &mut dyn Source) -> io::Result<State<'_>> {
    if rest_is_zero(source)? {
        return Ok(State::Done);
    }
    Err(io::Error::new(
        ErrorKind::InvalidData,
        "data after the end of the compressed stream",
    ))
}

/// A source in pieces that begin at multiples of [`BLOCK_BYTES`] from where it began, whatever its own buffer holds.
struct Blocks<'s> {
    source: &'s mut dyn Source,
    /// Bytes of the current block that are not consumed.
    left: usize,
}

impl BufRead for Blocks<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            self.left = self.source.peek(BLOCK_BYTES)?.len().min(BLOCK_BYTES);
        }
        let bytes = self.source.fill_buf()?;
        Ok(bytes.get(..self.left).unwrap_or(bytes))
    }

    fn consume(&mut self, amount: usize) {
        self.source.consume(amount);
        self.left = self.left.saturating_sub(amount);
    }
}

impl Read for Blocks<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let count = bytes.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..count), bytes.get(..count)) {
            to.copy_from_slice(from);
        }
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sniff::Format;
    use super::super::stream::Stream;
    use super::Decoder;
    use std::io::Read;

    /// Gives so many bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let n = out.len().min(self.1);
            self.0.read(&mut out[..n])
        }
    }

    #[test]
    fn what_comes_out_before_an_error_depends_on_the_input_alone() {
        // A stored block and then one of a type that there is not: to one call with all of it, the first is lost.
        let mut broken = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 0, 0x88, 0x13, 0x77, 0xec];
        broken.resize(broken.len() + 5000, b'x');
        broken.push(7);
        let before_the_error = |bytes: &[u8], step| {
            let mut source = Stream::new(Slow(bytes, step));
            let mut decoder = Decoder::new(Format::Gzip, &mut source).unwrap();
            let mut out = Vec::new();
            assert!(decoder.read_to_end(&mut out).is_err());
            out
        };
        let whole = before_the_error(&broken, usize::MAX);
        for step in [1, 7, 512, 4096] {
            assert_eq!(before_the_error(&broken, step), whole, "{step}");
        }
    }
}
