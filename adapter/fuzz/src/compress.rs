//! Bounded decompression and small compressions, for changes that have to get past checksums.

use std::io::{Read, Write};
use xz2::stream as xz;

/// Compressed formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// gzip.
    Gzip,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// LZMA-alone.
    Lzma,
    /// zstd.
    Zstd,
}

/// Most bytes that are decompressed.
const MOST: u64 = 64 << 10;

/// By the first bytes.
pub(super) fn codec(bytes: &[u8]) -> Option<Codec> {
    match bytes {
        [0x1f, 0x8b, ..] => Some(Codec::Gzip),
        [b'B', b'Z', b'h', ..] => Some(Codec::Bzip2),
        [0xfd, b'7', b'z', ..] => Some(Codec::Xz),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Codec::Zstd),
        [0x5d, 0, 0, ..] => Some(Codec::Lzma),
        _ => None,
    }
}

/// What comes out, as far as it is sound and small.
pub fn decompress(bytes: &[u8]) -> Option<(Codec, Vec<u8>)> {
    const MEMORY: u64 = 16 << 20;
    let codec = codec(bytes)?;
    let reader: Box<dyn Read + '_> = match codec {
        Codec::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(bytes)),
        Codec::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(bytes)),
        Codec::Xz => {
            let stream = xz::Stream::new_stream_decoder(MEMORY, xz::CONCATENATED).ok()?;
            Box::new(xz2::bufread::XzDecoder::new_stream(bytes, stream))
        }
        Codec::Lzma => {
            let stream = xz::Stream::new_lzma_decoder(MEMORY).ok()?;
            Box::new(xz2::bufread::XzDecoder::new_stream(bytes, stream))
        }
        Codec::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).ok()?;
            decoder.window_log_max(20).ok()?;
            Box::new(decoder)
        }
    };
    let mut plain = Vec::new();
    // What was read before an error is good enough.
    let _ = reader.take(MOST).read_to_end(&mut plain);
    (!plain.is_empty()).then_some((codec, plain))
}

/// One member, stream or frame.
pub(super) fn compress(codec: Codec, plain: &[u8]) -> Option<Vec<u8>> {
    match codec {
        Codec::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(plain).ok()?;
            encoder.finish().ok()
        }
        Codec::Bzip2 => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(plain).ok()?;
            encoder.finish().ok()
        }
        Codec::Xz => {
            let mut filters = xz::Filters::new();
            filters.lzma2(&window(4 << 10)?);
            // Without a checksum of the content, single bytes of it can be changed.
            let stream = xz::Stream::new_stream_encoder(&filters, xz::Check::None).ok()?;
            through(stream, plain)
        }
        Codec::Lzma => through(xz::Stream::new_lzma_encoder(&window(64 << 10)?).ok()?, plain),
        Codec::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).ok()?;
            encoder.window_log(10).ok()?;
            encoder.write_all(plain).ok()?;
            encoder.finish().ok()
        }
    }
}

/// Small windows: whoever decompresses allocates them, and it is the time to do so that executions are made of. LZMA
/// without a container is recognised by a size of no less than 64 KiB.
fn window(bytes: u32) -> Option<xz::LzmaOptions> {
    let mut options = xz::LzmaOptions::new_preset(0).ok()?;
    options.dict_size(bytes);
    Some(options)
}

fn through(stream: xz::Stream, plain: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = xz2::write::XzEncoder::new_stream(Vec::new(), stream);
    encoder.write_all(plain).ok()?;
    encoder.finish().ok()
}
