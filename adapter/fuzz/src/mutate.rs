//! How an input becomes another: bytes as the fuzzer likes them, whole archives anew, one archive inside another, the
//! inside of a compressed one; then checksums are put right more often than not.

use super::build::{self, Kind, Part};
use super::compress::{Codec, decompress};
use super::repair;
use super::target::Target;
use fastrand::Rng;

impl Target {
    /// Changes `data[..size]` in place and gives its new size, at most `max`. `bytewise` is the fuzzer's own change.
    pub fn mutate(
        self,
        data: &mut [u8],
        size: usize,
        max: usize,
        seed: u32,
        mut bytewise: impl FnMut(&mut [u8], usize, usize) -> usize,
    ) -> usize {
        let max = max.min(data.len());
        if !self.reads_archives() {
            return bytewise(data, size, max);
        }
        let mut rng = Rng::with_seed(u64::from(seed));
        let old = data.get(..size).unwrap_or_default();
        let made = match rng.u8(..64) {
            0 => Some(self.fresh(&mut rng)),
            1 => Some(self.nested(&mut rng, old)),
            2 | 3 => inside(&mut rng, old, &mut bytewise),
            _ => None,
        };
        let size = match made.filter(|made| !made.is_empty() && made.len() <= max) {
            Some(made) => {
                for (to, from) in data.iter_mut().zip(&made) {
                    *to = *from;
                }
                made.len()
            }
            None => bytewise(data, size, max),
        };
        if rng.u8(..8) != 0 {
            repair::repair(&mut rng, data.get_mut(..size).unwrap_or_default());
        }
        size
    }

    /// A new archive of this target's format.
    pub fn fresh(self, rng: &mut Rng) -> Vec<u8> {
        let parts = build::parts(rng);
        self.container(rng, &parts)
    }

    fn container(self, rng: &mut Rng, parts: &[Part]) -> Vec<u8> {
        let tar_in = |rng: &mut Rng, codec| {
            let tar = build::tar(rng, parts);
            build::compressed(rng, codec, &tar)
        };
        match self {
            Self::Zip => build::zip(rng, parts),
            Self::Tar => build::tar(rng, parts),
            Self::Gzip | Self::Apk => tar_in(rng, Codec::Gzip),
            Self::Bzip2 => tar_in(rng, Codec::Bzip2),
            Self::Xz => tar_in(rng, Codec::Xz),
            Self::Lzma => tar_in(rng, Codec::Lzma),
            Self::Zstd => tar_in(rng, Codec::Zstd),
            Self::Ar => build::ar(parts),
            Self::Cpio => build::cpio(rng, parts),
            Self::Rpm => {
                let mut payload = build::cpio(rng, parts);
                if rng.bool() {
                    payload = build::compressed(rng, Codec::Gzip, &payload);
                }
                build::rpm(rng, &payload)
            }
            Self::Conda if rng.bool() => tar_in(rng, Codec::Bzip2),
            Self::Conda => {
                let payload = tar_in(rng, Codec::Zstd);
                let part = |name: &str, data: &[u8]| Part {
                    name: name.into(),
                    kind: Kind::File,
                    data: data.to_vec(),
                };
                let parts = [
                    part("metadata.json", b"{\"conda_pkg_format_version\": 2}"),
                    part("info-a-1-0.tar.zst", &payload),
                    part("pkg-a-1-0.tar.zst", &payload),
                ];
                build::zip(rng, &parts)
            }
            _ => {
                const ARCHIVES: [Target; 11] = [
                    Target::Zip,
                    Target::Tar,
                    Target::Gzip,
                    Target::Bzip2,
                    Target::Xz,
                    Target::Lzma,
                    Target::Zstd,
                    Target::Ar,
                    Target::Cpio,
                    Target::Rpm,
                    Target::Conda,
                ];
                let format = rng.choice(ARCHIVES).unwrap_or(Target::Zip);
                format.container(rng, parts)
            }
        }
    }

    /// `old` as an entry beside others.
    fn nested(self, rng: &mut Rng, old: &[u8]) -> Vec<u8> {
        const NAMES: [&str; 9] = [
            "in",
            "a.jar",
            "a.tar",
            "a.gz",
            "a.lzma",
            "a.deb",
            "a.zst",
            "data.tar.gz",
            "d/a.zip",
        ];
        let mut parts = build::parts(rng);
        let name = rng.choice(NAMES).unwrap_or("in");
        let at = rng.usize(..=parts.len());
        parts.insert(
            at,
            Part {
                name: name.into(),
                kind: Kind::File,
                data: old.to_vec(),
            },
        );
        self.container(rng, &parts)
    }
}

/// Changes what a compressed input decompresses to, and compresses it again.
fn inside(
    rng: &mut Rng,
    old: &[u8],
    bytewise: &mut impl FnMut(&mut [u8], usize, usize) -> usize,
) -> Option<Vec<u8>> {
    let (codec, mut plain) = decompress(old)?;
    let size = plain.len();
    let max = size + 64;
    plain.resize(max, 0);
    let size = bytewise(&mut plain, size, max).min(max);
    plain.truncate(size);
    repair::repair(rng, &mut plain);
    Some(build::compressed(rng, codec, &plain))
}
