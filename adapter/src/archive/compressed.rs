//! Compressed streams: every member, frame and stream of them, in bounded memory.

use super::DECODER_MEMORY_BYTES;
use super::sniff::Format;
use super::stream::{Source, rest_is_zero};
use std::io::{self, ErrorKind, Read};
use xz2::stream as xz;

/// 128 MiB windows at most.
const ZSTD_WINDOW_LOG_MAX: u32 = 27;

/// Decompresses all of a source.
///
/// After the last gzip member or bzip2 stream only zero padding may follow; xz and zstd define their own padding
/// (stream padding, skippable frames), and anything else there is an error too.
pub(super) struct Decoder<'s> {
    state: State<'s>,
}

enum State<'s> {
    Gzip(flate2::bufread::GzDecoder<&'s mut dyn Source>),
    Bzip2(bzip2::bufread::BzDecoder<&'s mut dyn Source>),
    Xz(xz2::bufread::XzDecoder<&'s mut dyn Source>),
    Zstd(zstd::stream::read::Decoder<'static, &'s mut dyn Source>),
    Done,
}

impl<'s> Decoder<'s> {
    /// A decoder for `format`, which must be a compressed one.
    pub(super) fn new(format: Format, source: &'s mut dyn Source) -> io::Result<Self> {
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
                State::Xz(decoder) => end(decoder.into_inner())?,
                State::Zstd(decoder) => end(decoder.into_inner())?,
                State::Done => State::Done,
            };
        }
    }
}

/// The decoder for the next member, if there is one.
fn next_member<'s, D>(
    source: &'s mut dyn Source,
    decoder: impl FnOnce(&'s mut dyn Source) -> D,
) -> io::Result<Option<D>> {
    match source.fill_buf()?.first() {
        None => Ok(None),
        Some(0) => end(source).map(|_| None),
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
