//! All counters of one run across every nesting level. Pure: no IO, no clock.

use super::{ENTRY_RATIO_FLOOR_BYTES, EXPANSION_RATIO};

/// Bounds of one inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateLimits {
    /// Most entries over all nesting levels, directories included. Past it: `ARCHIVE_ENTRY_LIMIT`.
    pub max_entries: u64,
    /// Most bytes over all nesting levels, counted where they leave a decompressor or a plain container.
    /// Past it: `ARCHIVE_EXPANDED_LIMIT`.
    pub max_expanded_bytes: u64,
    /// Most bytes of one file, declared or real. Past it: `ARCHIVE_ENTRY_TOO_LARGE`.
    pub max_single_file_bytes: u64,
    /// Deepest archive inside an archive; the artifact itself is at depth 0, so 0 forbids any. At most 10 in
    /// practice. Past it: `ARCHIVE_NESTING_LIMIT`.
    pub max_nested_depth: u32,
}

/// What a charge went over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Overrun {
    /// Too many entries.
    #[error("more than {limit} archive entries")]
    Entries {
        /// Most entries allowed.
        limit: u64,
    },
    /// Too many bytes in all.
    #[error("archive expands to {got} bytes or more, the limit is {limit}")]
    Expanded {
        /// Bytes so far.
        got: u64,
        /// Most bytes allowed.
        limit: u64,
    },
    /// Too many bytes for the size of the input.
    #[error("{input} bytes of input expand to {got} bytes or more, the limit is {limit}")]
    Ratio {
        /// Bytes so far.
        got: u64,
        /// Size of the input, bytes.
        input: u64,
        /// Most bytes allowed for an input of this size.
        limit: u64,
    },
    /// One entry declares too many bytes for its compressed size.
    #[error("{compressed} compressed bytes declare {got} bytes, more than {EXPANSION_RATIO} times")]
    EntryRatio {
        /// Declared size, bytes.
        got: u64,
        /// Compressed size, bytes.
        compressed: u64,
    },
    /// One file is too large.
    #[error("a file of {got} bytes or more, the limit is {limit}")]
    File {
        /// Declared size, or bytes seen so far.
        got: u64,
        /// Most bytes allowed.
        limit: u64,
    },
    /// Archives inside archives, too deep.
    #[error("an archive nested deeper than {limit}")]
    Nesting {
        /// Deepest level allowed.
        limit: u32,
    },
}

/// The running totals of one run.
#[derive(Debug, Clone)]
pub struct Budget {
    limits: GateLimits,
    input_bytes: u64,
    ratio_limit: u64,
    entries: u64,
    expanded_bytes: u64,
    nested_archives: u64,
}

impl Budget {
    /// A fresh budget for an input of `input_bytes`.
    pub fn new(limits: GateLimits, input_bytes: u64) -> Self {
        let ratio_limit = input_bytes
            .saturating_mul(EXPANSION_RATIO)
            .max(ENTRY_RATIO_FLOOR_BYTES);
        Self {
            limits,
            input_bytes,
            ratio_limit,
            entries: 0,
            expanded_bytes: 0,
            nested_archives: 0,
        }
    }

    /// Counts one more entry and gives its index, from 0.
    pub fn charge_entry(&mut self) -> Result<u64, Overrun> {
        if self.entries >= self.limits.max_entries {
            return Err(Overrun::Entries {
                limit: self.limits.max_entries,
            });
        }
        let index = self.entries;
        self.entries += 1;
        Ok(index)
    }

    /// Counts `bytes` more expanded bytes.
    pub fn charge_bytes(&mut self, bytes: u64) -> Result<(), Overrun> {
        let got = self.expanded_bytes.saturating_add(bytes);
        if got > self.limits.max_expanded_bytes {
            return Err(Overrun::Expanded {
                got,
                limit: self.limits.max_expanded_bytes,
            });
        }
        if got > self.ratio_limit {
            return Err(Overrun::Ratio {
                got,
                input: self.input_bytes,
                limit: self.ratio_limit,
            });
        }
        self.expanded_bytes = got;
        Ok(())
    }

    /// Whether one file may have `bytes`.
    pub fn check_file(&self, bytes: u64) -> Result<(), Overrun> {
        let limit = self.limits.max_single_file_bytes;
        if bytes > limit {
            return Err(Overrun::File { got: bytes, limit });
        }
        Ok(())
    }

    /// Whether an entry may declare to expand from `compressed` to `expanded` bytes. Small entries may always.
    pub fn check_entry_ratio(&self, expanded: u64, compressed: u64) -> Result<(), Overrun> {
        let allowed = compressed
            .saturating_mul(EXPANSION_RATIO)
            .max(ENTRY_RATIO_FLOOR_BYTES);
        if expanded > allowed {
            return Err(Overrun::EntryRatio {
                got: expanded,
                compressed,
            });
        }
        Ok(())
    }

    /// Opens an archive that was found in an archive at `depth`; gives the depth of its entries.
    pub fn descend(&mut self, depth: u32) -> Result<u32, Overrun> {
        if depth >= self.limits.max_nested_depth {
            return Err(Overrun::Nesting {
                limit: self.limits.max_nested_depth,
            });
        }
        self.nested_archives = self.nested_archives.saturating_add(1);
        Ok(depth.saturating_add(1))
    }

    /// Entries so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Expanded bytes so far.
    pub fn expanded_bytes(&self) -> u64 {
        self.expanded_bytes
    }

    /// Archives opened inside archives so far.
    pub fn nested_archives(&self) -> u64 {
        self.nested_archives
    }

    /// Most bytes that one file may have.
    pub fn max_single_file_bytes(&self) -> u64 {
        self.limits.max_single_file_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, GateLimits, Overrun};
    use proptest::prelude::*;

    const LIMITS: GateLimits = GateLimits {
        max_entries: 3,
        max_expanded_bytes: 2 << 20,
        max_single_file_bytes: 100,
        max_nested_depth: 2,
    };

    #[test]
    fn exactly_the_entry_limit_is_allowed() {
        let mut budget = Budget::new(LIMITS, 1 << 30);
        for index in 0..3 {
            assert_eq!(budget.charge_entry(), Ok(index));
        }
        assert_eq!(budget.charge_entry(), Err(Overrun::Entries { limit: 3 }));
        assert_eq!(budget.entries(), 3);
    }

    #[test]
    fn exactly_the_byte_limit_is_allowed() {
        for (bytes, fits) in [((2 << 20) - 1, true), (2 << 20, true), ((2 << 20) + 1, false)] {
            let mut budget = Budget::new(LIMITS, 1 << 30);
            assert_eq!(budget.charge_bytes(bytes).is_ok(), fits, "{bytes}");
        }
        let mut budget = Budget::new(LIMITS, 1 << 30);
        budget.charge_bytes(2 << 20).unwrap();
        assert!(matches!(budget.charge_bytes(1), Err(Overrun::Expanded { .. })));
        assert!(matches!(
            budget.charge_bytes(u64::MAX),
            Err(Overrun::Expanded { .. })
        ));
    }

    #[test]
    fn a_small_input_may_expand_to_the_floor_and_a_larger_one_a_thousandfold() {
        for (input, limit) in [
            (0, 1 << 20),
            (1048, 1 << 20),
            (1049, 1_049_000),
            (1500, 1_500_000),
        ] {
            for (bytes, fits) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
                let mut budget = Budget::new(LIMITS, input);
                assert_eq!(budget.charge_bytes(bytes).is_ok(), fits, "{input} {bytes}");
            }
        }
    }

    #[test]
    fn an_entry_may_declare_the_floor_and_a_thousand_times_its_size() {
        let budget = Budget::new(LIMITS, 0);
        assert!(budget.check_entry_ratio(1 << 20, 1).is_ok());
        assert!(budget.check_entry_ratio((1 << 20) + 1, 1).is_err());
        assert!(budget.check_entry_ratio(2_000_000, 2000).is_ok());
        assert!(budget.check_entry_ratio(2_000_001, 2000).is_err());
        assert!(budget.check_entry_ratio(u64::MAX, u64::MAX).is_ok());
    }

    #[test]
    fn one_file_and_nesting_at_their_limits() {
        let mut budget = Budget::new(LIMITS, 0);
        assert_eq!(budget.max_single_file_bytes(), 100);
        assert!(budget.check_file(99).is_ok());
        assert!(budget.check_file(100).is_ok());
        assert!(budget.check_file(101).is_err());
        assert_eq!(budget.descend(0), Ok(1));
        assert_eq!(budget.descend(1), Ok(2));
        assert_eq!(budget.descend(2), Err(Overrun::Nesting { limit: 2 }));
        assert_eq!(budget.nested_archives(), 2);
    }

    proptest! {
        #[test]
        fn no_series_of_charges_passes_a_limit(charges in prop::collection::vec(any::<u64>().prop_map(|n| n % (1 << 21)), 0..40), input in 0u64..4000) {
            let mut budget = Budget::new(LIMITS, input);
            let mut sum = 0u64;
            for bytes in charges {
                if budget.charge_bytes(bytes).is_ok() {
                    sum += bytes;
                }
                let _ = budget.charge_entry();
                prop_assert_eq!(budget.expanded_bytes(), sum);
                prop_assert!(sum <= LIMITS.max_expanded_bytes);
                prop_assert!(sum <= (input * 1000).max(1 << 20));
                prop_assert!(budget.entries() <= LIMITS.max_entries);
            }
        }
    }
}
