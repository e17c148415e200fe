//! Decompression with nothing else: what a pass through the gate is compared to.

use crate::Outcome;
use crate::samples::Packing;
use flate2::{Crc, Decompress, FlushDecompress, Status};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

/// As large as the gate's own.
const BUFFER: usize = 128 << 10;

/// Decompresses all of a file and drops what comes out; gives its bytes.
pub(crate) fn expand(packing: Packing, path: &Path) -> Outcome<u64> {
    let file = BufReader::with_capacity(BUFFER, File::open(path)?);
    match packing {
        Packing::Gzip => discard(flate2::bufread::MultiGzDecoder::new(file)),
        Packing::Zstd => discard(zstd::stream::read::Decoder::with_buffer(file)?),
        Packing::Xz => discard(xz2::bufread::XzDecoder::new(file)),
        Packing::Zip => zip_entries(path),
    }
}

fn discard(mut content: impl Read) -> Outcome<u64> {
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        match content.read(&mut buffer)? {
            0 => return Ok(bytes),
            count => bytes += u64::try_from(count)?,
        }
    }
}

/// Inflates entry after entry by the local headers, which are trusted, and sums them up. Reads the file whole: a bare
/// reader of a trusted file may.
fn zip_entries(path: &Path) -> Outcome<u64> {
    let file = std::fs::read(path)?;
    let mut rest = &file[..];
    let mut inflate = Decompress::new(false);
    let mut out = vec![0; BUFFER];
    let mut bytes = 0;
    while let Some(header) = rest.strip_prefix(b"PK\x03\x04") {
        let field = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let compressed = field(14) | field(16) << 16;
        let crc = u32::try_from(field(10) | field(12) << 16)?;
        let start = 26 + field(22) + field(24);
        let mut data = &header[start..start + compressed];
        rest = &header[start + compressed..];
        let mut sum = Crc::new();
        if field(4) == 0 {
            sum.update(data);
            bytes += u64::try_from(data.len())?;
        } else {
            inflate.reset(false);
            loop {
                let (read, written) = (inflate.total_in(), inflate.total_out());
                let status = inflate.decompress(data, &mut out, FlushDecompress::Finish)?;
                data = &data[usize::try_from(inflate.total_in() - read)?..];
                let count = usize::try_from(inflate.total_out() - written)?;
                sum.update(&out[..count]);
                bytes += u64::try_from(count)?;
                if status == Status::StreamEnd {
                    break;
                }
            }
        }
        if sum.sum() != crc {
            return Err("a wrong checksum".into());
        }
    }
    Ok(bytes)
}
