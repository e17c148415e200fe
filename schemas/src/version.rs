//! Constants that every answer carries, and the capability digest.

use sha2::{Digest as _, Sha256};

/// The only API version.
pub const API_VERSION: &str = "v1";
/// Name of the adapter profile.
pub const ADAPTER_NAME: &str = "syft-grype-v1";
/// Version of the adapter profile.
pub const ADAPTER_VERSION: &str = "1";
/// Name of the cataloguing engine.
pub const CATALOG_ENGINE: &str = "syft";
/// Name of the matching engine.
pub const MATCHER_ENGINE: &str = "grype";
/// Operations in contract order.
pub const OPERATIONS: &[&str] = &["CATALOG", "MATCH", "OCI_SCAN", "CANCEL"];
/// Target classifications in contract order.
pub const TARGET_CLASSIFICATIONS: &[&str] = &["ARCHIVE", "PACKAGE", "MANIFEST", "RAW_FILE", "OCI_IMAGE"];

/// The digest that all replicas of one deployment share: a function of the caps and of how documents are made.
///
/// `tokens` names each way in which this adapter's documents differ from the plain contract; with none of them the
/// result is the contract's own digest.
pub fn capability_digest(max_input_bytes: i64, max_output_bytes: i64, tokens: &[&str]) -> String {
    let (input, output) = (max_input_bytes.to_string(), max_output_bytes.to_string());
    let mut parts = vec![
        API_VERSION,
        ADAPTER_NAME,
        &input,
        &output,
        "catalog",
        "match",
        "oci-scan",
        "cancel",
        "conda-meta-v1",
    ];
    parts.extend_from_slice(tokens);
    hex::encode(Sha256::digest(parts.join("\0")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_contracts_vector_holds_without_tokens() {
        assert_eq!(
            super::capability_digest(2_147_483_648, 16_777_216, &[]),
            "9663a299cc075011dfeacac07c416b9a4ff7d830f7657d6b9304861fd45c8884"
        );
    }

    #[test]
    fn a_token_changes_the_digest() {
        assert_ne!(
            super::capability_digest(1, 1, &["x"]),
            super::capability_digest(1, 1, &[])
        );
    }
}
