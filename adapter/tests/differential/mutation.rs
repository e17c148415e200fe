//! Seeded damage to archives, aimed at their headers.

use fastrand::Rng;

/// Values at which readers part.
const EDGES: [u32; 12] = [
    0,
    1,
    7,
    8,
    0x7f,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
];

/// How the format is built, as far as damage to it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Blocks of 512 bytes whose headers have a checksum.
    Tar,
    /// Headers with a signature of `PK`.
    Zip,
    /// Anything else.
    Other,
}

/// Changes an archive a few times; `donor` is another one of any format.
pub(crate) fn mutate(original: &[u8], shape: Shape, donor: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let times = if random.bool() { 1 } else { random.usize(2..=4) };
    for _ in 0..times {
        once(&mut bytes, shape, donor, random);
    }
    // A wrong checksum ends most readers at once, and then nothing is learnt.
    if shape == Shape::Tar && random.u8(..) < 220 {
        correct_checksums(&mut bytes);
    }
    bytes
}

fn once(bytes: &mut Vec<u8>, shape: Shape, donor: &[u8], random: &mut Rng) {
    if bytes.is_empty() {
        return;
    }
    let at = place(bytes, shape, random);
    match random.u8(..16) {
        0..4 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = match random.u8(..4) {
                    0 => *byte ^ (1 << random.u8(..8)),
                    1 => byte.wrapping_add(1),
                    2 => b"/\\.\0 017xgLKS23"[random.usize(..15)],
                    _ => random.u8(..),
                };
            }
        }
        4..8 => {
            let value = EDGES[random.usize(..EDGES.len())].to_le_bytes();
            let width = [1, 2, 4][random.usize(..3)];
            let end = bytes.len().min(at + width);
            bytes[at..end].copy_from_slice(&value[..end - at]);
        }
        8 => bytes.truncate(at),
        9 => {
            let range = range(bytes.len(), shape, random);
            bytes.drain(range);
        }
        10 | 11 => {
            let copied = bytes[range(bytes.len(), shape, random)].to_vec();
            let to = aligned(at, shape);
            bytes.splice(to..to, copied);
        }
        12 | 13 => {
            let part = donor[range(donor.len(), shape, random)].to_vec();
            let to = aligned(at, shape);
            let end = bytes.len().min(to + part.len());
            bytes.splice(to..end, part);
        }
        14 => bytes.extend_from_slice(donor),
        _ => number_field(bytes, shape, at, random),
    }
}

/// Mostly a place in a header.
fn place(bytes: &[u8], shape: Shape, random: &mut Rng) -> usize {
    let anywhere = random.usize(..bytes.len());
    if random.u8(..) < 60 {
        return anywhere;
    }
    let found = match shape {
        Shape::Tar => aligned(anywhere, shape) + random.usize(..360),
        Shape::Zip => {
            let rest = &bytes[anywhere..];
            let header = rest.windows(2).position(|pair| pair == b"PK").unwrap_or(0);
            anywhere + header + random.usize(..60)
        }
        // Headers come first.
        Shape::Other => random.usize(..bytes.len().min(700)),
    };
    found.min(bytes.len() - 1)
}

fn aligned(at: usize, shape: Shape) -> usize {
    if shape == Shape::Tar { at / 512 * 512 } else { at }
}

fn range(length: usize, shape: Shape, random: &mut Rng) -> std::ops::Range<usize> {
    let start = aligned(random.usize(..length), shape);
    let most = if shape == Shape::Tar { 2048 } else { 200 };
    let end = start + aligned(random.usize(1..=most).max(512), shape).min(most);
    start..end.min(length)
}

/// Another number where the format has one as text: the size of a tar member, or digits at the place.
fn number_field(bytes: &mut [u8], shape: Shape, at: usize, random: &mut Rng) {
    let start = if shape == Shape::Tar {
        aligned(at, shape) + 124
    } else {
        at
    };
    let value = [0_u64, 1, 511, 512, 513, 1024, 4096, 1 << 33][random.usize(..8)];
    let text = format!("{value:011o}");
    if let Some(field) = bytes.get_mut(start..start + text.len()) {
        field.copy_from_slice(text.as_bytes());
    }
}

fn correct_checksums(bytes: &mut [u8]) {
    for block in bytes.chunks_exact_mut(512) {
        if block[257..262] == *b"ustar" {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().copied().map(u32::from).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
}
