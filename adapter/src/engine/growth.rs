//! Whether a download still comes: the bytes that a job writes, watched from outside, because the engine's own
//! time limits do not hold.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often is looked, at most.
const LOOK: Duration = Duration::from_secs(1);

/// The slowest that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinimumRate {
    /// Bytes a second, on average over a window; 0 lets everything pass.
    pub bytes_per_second: u64,
    /// The window.
    pub window: Duration,
}

impl MinimumRate {
    /// Bytes that have to come within one window.
    pub fn bytes(self) -> u64 {
        u64::try_from(u128::from(self.bytes_per_second) * self.window.as_millis() / 1000).unwrap_or(u64::MAX)
    }

    /// Ends when less than the rate has come to these directories over one whole window; gives what came. Never, when
    /// everything may pass.
    pub async fn missed(self, directories: &[PathBuf]) -> u64 {
        if self.bytes_per_second == 0 {
            return std::future::pending().await;
        }
        let mut growth = Growth::new(self, Instant::now(), size_of(directories));
        loop {
            tokio::time::sleep((self.window / 4).min(LOOK)).await;
            if let Some(grown) = growth.look(Instant::now(), size_of(directories)) {
                return grown;
            }
        }
    }
}

/// The bytes that have come since the window began. Bytes that go, because an archive is unpacked and removed, take
/// nothing away.
#[derive(Debug, Clone, Copy)]
struct Growth {
    rate: MinimumRate,
    began: Instant,
    last: u64,
    grown: u64,
}

impl Growth {
    fn new(rate: MinimumRate, now: Instant, size: u64) -> Self {
        Self {
            rate,
            began: now,
            last: size,
            grown: 0,
        }
    }

    /// What came within a whole window, if that was too little. A window ends as soon as enough has come.
    fn look(&mut self, now: Instant, size: u64) -> Option<u64> {
        self.grown = self.grown.saturating_add(size.saturating_sub(self.last));
        self.last = size;
        if self.grown >= self.rate.bytes() {
            *self = Self::new(self.rate, now, size);
        }
        (now.duration_since(self.began) >= self.rate.window).then_some(self.grown)
    }
}

/// Bytes of all files below the directories; what goes while it is counted does not count.
fn size_of(directories: &[PathBuf]) -> u64 {
    fn below(directory: &Path) -> u64 {
        let Ok(entries) = fs::read_dir(directory) else {
            return 0;
        };
        let sizes = entries.flatten().map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => below(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        });
        sizes.fold(0, u64::saturating_add)
    }
    directories
        .iter()
        .map(|directory| below(directory))
        .fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::{Growth, MinimumRate, size_of};
    use std::time::{Duration, Instant};

    const RATE: MinimumRate = MinimumRate {
        bytes_per_second: 100,
        window: Duration::from_secs(10),
    };

    #[test]
    fn a_window_without_enough_ends_it() {
        // Seconds and bytes there, and what is said of them.
        let cases: &[&[(u64, u64, Option<u64>)]] = &[
            &[(5, 0, None), (10, 999, Some(999))],
            &[
                (5, 0, None),
                (10, 1000, None),
                (19, 1999, None),
                (20, 1999, Some(999)),
            ],
            &[(9, 1000, None), (18, 2000, None), (27, 3000, None)],
            // The archive went when it was unpacked.
            &[
                (4, 900, None),
                (5, 0, None),
                (6, 200, None),
                (15, 200, None),
                (16, 200, Some(0)),
            ],
        ];
        for case in cases {
            let start = Instant::now();
            let mut growth = Growth::new(RATE, start, 0);
            for (second, size, want) in *case {
                let now = start + Duration::from_secs(*second);
                assert_eq!(growth.look(now, *size), *want, "{case:?} at {second} s");
            }
        }
    }

    #[test]
    fn sizes_are_those_of_all_files_below() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("a")).unwrap();
        std::fs::write(root.path().join("a/b"), [0; 7]).unwrap();
        std::fs::write(root.path().join("c"), [0; 5]).unwrap();
        assert_eq!(size_of(&[root.path().to_owned(), root.path().join("absent")]), 12);
    }
}
