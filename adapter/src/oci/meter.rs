//! What one run may take from a registry: bytes and descriptors, counted before they are asked for.

use super::OciError;
use assay_schemas::ResourceLimits;

/// Most bytes of a manifest or index, whatever the limits say: what registries have to accept.
pub const MAX_MANIFEST_BYTES: u64 = 4 << 20;
/// Most bytes of a config.
pub const MAX_CONFIG_BYTES: u64 = 16 << 20;
/// Most descriptors, whatever the limits say.
pub const MAX_DESCRIPTORS: u64 = 100_000;

/// The running totals of one run.
#[derive(Debug, Clone)]
pub struct Meter {
    max_bytes: u64,
    max_single: u64,
    max_descriptors: u64,
    bytes: u64,
    descriptors: u64,
}

impl Meter {
    /// Nothing counted yet.
    pub fn new(limits: &ResourceLimits) -> Self {
        let bytes = |value: i64| u64::try_from(value).unwrap_or(0);
        Self {
            max_bytes: bytes(limits.max_input_bytes),
            max_single: bytes(limits.max_single_file_bytes),
            max_descriptors: bytes(i64::from(limits.max_archive_entries)).min(MAX_DESCRIPTORS),
            bytes: 0,
            descriptors: 0,
        }
    }

    /// Counts content that is about to be fetched, or was.
    ///
    /// # Errors
    /// [`OciError::InputTooLarge`].
    pub fn charge_bytes(&mut self, bytes: u64) -> Result<(), OciError> {
        let got = self.bytes.saturating_add(bytes);
        if got > self.max_bytes {
            return Err(OciError::InputTooLarge {
                got,
                limit: self.max_bytes,
            });
        }
        self.bytes = got;
        Ok(())
    }

    /// Counts references to content.
    ///
    /// # Errors
    /// [`OciError::TooManyDescriptors`].
    pub fn charge_descriptors(&mut self, count: usize) -> Result<(), OciError> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let got = self.descriptors.saturating_add(count);
        if got > self.max_descriptors {
            return Err(OciError::TooManyDescriptors {
                got,
                limit: self.max_descriptors,
            });
        }
        self.descriptors = got;
        Ok(())
    }

    /// Most bytes that a manifest of unknown size may have now.
    pub fn manifest_allowance(&self) -> u64 {
        MAX_MANIFEST_BYTES
            .min(self.max_single)
            .min(self.max_bytes.saturating_sub(self.bytes))
    }

    /// Whether a manifest may have `size` bytes.
    ///
    /// # Errors
    /// [`OciError::ManifestTooLarge`].
    pub fn check_manifest(&self, size: u64) -> Result<(), OciError> {
        let limit = MAX_MANIFEST_BYTES.min(self.max_single);
        if size > limit {
            return Err(OciError::ManifestTooLarge { limit });
        }
        Ok(())
    }

    /// Whether a config may have `size` bytes.
    ///
    /// # Errors
    /// [`OciError::ConfigTooLarge`].
    pub fn check_config(&self, size: u64) -> Result<(), OciError> {
        let limit = MAX_CONFIG_BYTES.min(self.max_single);
        if size > limit {
            return Err(OciError::ConfigTooLarge { got: size, limit });
        }
        Ok(())
    }

    /// Whether a layer may have `size` bytes, compressed as it is.
    ///
    /// # Errors
    /// [`OciError::BlobTooLarge`].
    pub fn check_blob(&self, size: u64) -> Result<(), OciError> {
        if size > self.max_single {
            return Err(OciError::BlobTooLarge {
                got: size,
                limit: self.max_single,
            });
        }
        Ok(())
    }

    /// Bytes counted so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_DESCRIPTORS, Meter};
    use assay_schemas::{Code, ResourceLimits};
    use proptest::prelude::*;

    fn limits(input: i64, entries: i32, single: i64) -> ResourceLimits {
        ResourceLimits {
            max_input_bytes: input,
            max_archive_entries: entries,
            max_uncompressed_bytes: 1,
            max_single_file_bytes: single,
            max_nested_depth: 0,
            timeout_seconds: 1,
        }
    }

    #[test]
    fn every_limit_holds_at_its_edge_and_breaks_one_past_it() {
        let mut meter = Meter::new(&limits(100, 3, 60));
        assert!(meter.charge_bytes(100).is_ok());
        assert_eq!(meter.charge_bytes(1).unwrap_err().code(), Code::OciInputTooLarge);
        assert_eq!(meter.manifest_allowance(), 0);
        assert!(meter.charge_descriptors(3).is_ok());
        assert_eq!(
            meter.charge_descriptors(1).unwrap_err().code(),
            Code::OciDescriptorLimit
        );
        assert!(meter.check_blob(60).is_ok());
        assert_eq!(meter.check_blob(61).unwrap_err().code(), Code::OciBlobTooLarge);
        let large = Meter::new(&limits(i64::MAX, i32::MAX, i64::MAX));
        for (check, limit, code) in [
            (
                large.check_manifest(4 << 20).is_ok(),
                large.check_manifest((4 << 20) + 1),
                Code::OciManifestTooLarge,
            ),
            (
                large.check_config(16 << 20).is_ok(),
                large.check_config((16 << 20) + 1),
                Code::OciConfigTooLarge,
            ),
        ] {
            assert!(check);
            assert_eq!(limit.unwrap_err().code(), code);
        }
        assert_eq!(large.manifest_allowance(), 4 << 20);
        let mut large = large;
        assert!(
            large
                .charge_descriptors(usize::try_from(MAX_DESCRIPTORS).unwrap())
                .is_ok()
        );
        assert!(large.charge_descriptors(1).is_err());
    }

    proptest! {
        #[test]
        fn no_series_of_charges_passes_a_limit(charges in prop::collection::vec(any::<u64>().prop_map(|n| n % 50), 0..40)) {
            let mut meter = Meter::new(&limits(200, 1, 1));
            let mut sum = 0;
            for bytes in charges {
                if meter.charge_bytes(bytes).is_ok() {
                    sum += bytes;
                }
                prop_assert_eq!(meter.bytes(), sum);
                prop_assert!(sum <= 200);
            }
        }
    }
}
