//! Resource limits: as asked, as capped by the server, and the scratch estimate made from them.

use serde::{Deserialize, Serialize};

/// Most archive entries that a request may ask for.
pub const ENTRIES_CEILING: i32 = 1_000_000;
/// Deepest nesting that a request may ask for.
pub const DEPTH_CEILING: i32 = 10;
/// Longest run that a request may ask for, seconds.
pub const TIMEOUT_CEILING_SECONDS: i32 = 3600;

/// Limits of one run. Times in seconds, sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "generate", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResourceLimits {
    /// Most bytes of input, > 0.
    #[cfg_attr(feature = "generate", schemars(range(min = 1)))]
    pub max_input_bytes: i64,
    /// Most archive entries over all nesting levels, > 0.
    #[cfg_attr(feature = "generate", schemars(range(min = 1)))]
    pub max_archive_entries: i32,
    /// Most bytes after decompression over all nesting levels, > 0.
    #[cfg_attr(feature = "generate", schemars(range(min = 1)))]
    pub max_uncompressed_bytes: i64,
    /// Most bytes of one file inside the artifact, > 0.
    #[cfg_attr(feature = "generate", schemars(range(min = 1)))]
    pub max_single_file_bytes: i64,
    /// Deepest level of archives inside archives, >= 0.
    #[cfg_attr(feature = "generate", schemars(range(min = 0)))]
    pub max_nested_depth: i32,
    /// End-to-end time, seconds, > 0.
    #[cfg_attr(feature = "generate", schemars(range(min = 1)))]
    pub timeout_seconds: i32,
}

/// A limit that is not positive (or, for the depth, negative).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("limit {name} must be {bound}, got {got}")]
pub struct LimitOutOfRange {
    /// Wire name of the member.
    pub name: &'static str,
    /// The bound in words.
    pub bound: &'static str,
    /// The value that was asked for.
    pub got: i64,
}

/// What a request asked for; an absent value takes the server's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestedLimits {
    /// See [`ResourceLimits::max_input_bytes`].
    pub max_input_bytes: Option<i64>,
    /// See [`ResourceLimits::max_archive_entries`].
    pub max_archive_entries: Option<i32>,
    /// See [`ResourceLimits::max_uncompressed_bytes`].
    pub max_uncompressed_bytes: Option<i64>,
    /// See [`ResourceLimits::max_single_file_bytes`].
    pub max_single_file_bytes: Option<i64>,
    /// See [`ResourceLimits::max_nested_depth`].
    pub max_nested_depth: Option<i32>,
    /// See [`ResourceLimits::timeout_seconds`].
    pub timeout_seconds: Option<i32>,
}

impl RequestedLimits {
    /// Fills absent values with the contract's defaults for a server whose input cap is `max_input_bytes`.
    pub fn or_defaults(self, max_input_bytes: i64) -> ResourceLimits {
        ResourceLimits {
            max_input_bytes: self.max_input_bytes.unwrap_or(max_input_bytes),
            max_archive_entries: self.max_archive_entries.unwrap_or(100_000),
            max_uncompressed_bytes: self
                .max_uncompressed_bytes
                .unwrap_or(max_input_bytes.saturating_mul(2)),
            max_single_file_bytes: self.max_single_file_bytes.unwrap_or(max_input_bytes),
            max_nested_depth: self.max_nested_depth.unwrap_or(2),
            timeout_seconds: self.timeout_seconds.unwrap_or(600),
        }
    }
}

impl From<ResourceLimits> for RequestedLimits {
    fn from(limits: ResourceLimits) -> Self {
        Self {
            max_input_bytes: Some(limits.max_input_bytes),
            max_archive_entries: Some(limits.max_archive_entries),
            max_uncompressed_bytes: Some(limits.max_uncompressed_bytes),
            max_single_file_bytes: Some(limits.max_single_file_bytes),
            max_nested_depth: Some(limits.max_nested_depth),
            timeout_seconds: Some(limits.timeout_seconds),
        }
    }
}

/// What the server allows at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    /// Configured input cap, bytes.
    pub max_input_bytes: i64,
    /// Configured cap of one engine document, bytes.
    pub max_output_bytes: i64,
    /// Configured cap of engine diagnostics, bytes.
    pub max_stderr_bytes: i64,
}

impl ResourceLimits {
    /// Checks every member, all together; the first wrong one in table order is named.
    pub fn validate(&self) -> Result<(), LimitOutOfRange> {
        let positive = [
            ("maxInputBytes", self.max_input_bytes),
            ("maxArchiveEntries", i64::from(self.max_archive_entries)),
            ("maxUncompressedBytes", self.max_uncompressed_bytes),
            ("maxSingleFileBytes", self.max_single_file_bytes),
        ];
        for (name, got) in positive {
            if got <= 0 {
                return Err(LimitOutOfRange {
                    name,
                    bound: "greater than 0",
                    got,
                });
            }
        }
        if self.max_nested_depth < 0 {
            let got = i64::from(self.max_nested_depth);
            return Err(LimitOutOfRange {
                name: "maxNestedDepth",
                bound: "0 or more",
                got,
            });
        }
        if self.timeout_seconds <= 0 {
            let got = i64::from(self.timeout_seconds);
            return Err(LimitOutOfRange {
                name: "timeoutSeconds",
                bound: "greater than 0",
                got,
            });
        }
        Ok(())
    }

    /// The effective limits: the smaller of what was asked and what the server allows.
    #[must_use]
    pub fn lowered_to(self, ceiling: &Ceiling) -> Self {
        Self {
            max_input_bytes: self.max_input_bytes.min(ceiling.max_input_bytes),
            max_archive_entries: self.max_archive_entries.min(ENTRIES_CEILING),
            max_uncompressed_bytes: self
                .max_uncompressed_bytes
                .min(ceiling.max_input_bytes.saturating_mul(4)),
            max_single_file_bytes: self.max_single_file_bytes.min(ceiling.max_input_bytes),
            max_nested_depth: self.max_nested_depth.min(DEPTH_CEILING),
            timeout_seconds: self.timeout_seconds.min(TIMEOUT_CEILING_SECONDS),
        }
    }

    /// Bytes of scratch that a run with these effective limits may use, rounded up to whole MiB and returned in MiB.
    ///
    /// input + min(uncompressed, single file x depth) + 3 x output + stderr, all saturating; at least 1.
    pub fn scratch_mebibytes(&self, ceiling: &Ceiling) -> u64 {
        const MIB: i64 = 1 << 20;
        let nested = self.max_uncompressed_bytes.min(
            self.max_single_file_bytes
                .saturating_mul(i64::from(self.max_nested_depth)),
        );
        let total = self
            .max_input_bytes
            .saturating_add(nested)
            .saturating_add(ceiling.max_output_bytes.saturating_mul(3))
            .saturating_add(ceiling.max_stderr_bytes);
        let mebibytes = total / MIB + i64::from(total % MIB != 0);
        u64::try_from(mebibytes).unwrap_or(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ceiling, RequestedLimits, ResourceLimits};

    const CEILING: Ceiling = Ceiling {
        max_input_bytes: 2 << 30,
        max_output_bytes: 1 << 20,
        max_stderr_bytes: 1 << 20,
    };

    #[test]
    fn the_contracts_example_reserves_28_mebibytes() {
        let limits = ResourceLimits {
            max_input_bytes: 16 << 20,
            max_archive_entries: 1,
            max_uncompressed_bytes: 16 << 20,
            max_single_file_bytes: 8 << 20,
            max_nested_depth: 1,
            timeout_seconds: 1,
        };
        assert_eq!(limits.lowered_to(&CEILING).scratch_mebibytes(&CEILING), 28);
    }

    #[test]
    fn the_default_profile_reserves_4145_mebibytes() {
        let ceiling = Ceiling {
            max_output_bytes: 16 << 20,
            max_stderr_bytes: 256 << 10,
            ..CEILING
        };
        let limits = ResourceLimits {
            max_input_bytes: 1 << 30,
            max_archive_entries: 100_000,
            max_uncompressed_bytes: 10 << 30,
            max_single_file_bytes: 1 << 30,
            max_nested_depth: 3,
            timeout_seconds: 600,
        };
        assert_eq!(limits.lowered_to(&ceiling).scratch_mebibytes(&ceiling), 4145);
    }

    #[test]
    fn huge_requests_saturate_and_are_capped() {
        let limits = RequestedLimits {
            max_uncompressed_bytes: Some(i64::MAX),
            ..Default::default()
        };
        let ceiling = Ceiling {
            max_input_bytes: i64::MAX / 2,
            ..CEILING
        };
        let effective = limits.or_defaults(ceiling.max_input_bytes).lowered_to(&ceiling);
        assert_eq!(effective.max_uncompressed_bytes, i64::MAX);
        assert!(effective.scratch_mebibytes(&ceiling) > 0);
    }

    #[test]
    fn zero_depth_is_legal_and_zero_bytes_are_not() {
        let mut limits = RequestedLimits::default().or_defaults(1 << 20);
        limits.max_nested_depth = 0;
        assert!(limits.validate().is_ok());
        limits.max_input_bytes = 0;
        assert_eq!(limits.validate().unwrap_err().name, "maxInputBytes");
    }
}
