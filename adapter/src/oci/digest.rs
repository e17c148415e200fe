//! The digests that name content.

use sha2::{Digest as _, Sha256};
use std::fmt;

const PREFIX: &str = "sha256:";

/// `sha256:` and 64 lower-case hexadecimal digits. Other algorithms are not accepted: neither the contract nor the
/// cataloguer knows them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(String);

impl Digest {
    /// The digest in this text, if it is exactly one.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix(PREFIX)?;
        let is_digest = hex.len() == 64
            && hex
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        is_digest.then(|| Self(text.to_owned()))
    }

    /// The digest of this content.
    pub fn of(content: &[u8]) -> Self {
        Self(format!("{PREFIX}{}", hex::encode(Sha256::digest(content))))
    }

    /// With its algorithm.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hexadecimal digits alone; fit for a file name.
    pub fn hex(&self) -> &str {
        self.0.strip_prefix(PREFIX).unwrap_or(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;

    #[test]
    fn only_the_canonical_form_of_sha256_is_a_digest() {
        let good = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(Digest::parse(&good).unwrap().hex(), "0a".repeat(32));
        for bad in [
            String::new(),
            "latest".to_owned(),
            "0a".repeat(32),
            format!("sha256:{}", "0A".repeat(32)),
            format!("sha256:{}", "0a".repeat(31)),
            format!("sha256:{}/", "0a".repeat(31)),
            format!("sha512:{}", "0a".repeat(64)),
            format!("{good} "),
        ] {
            assert_eq!(Digest::parse(&bad), None, "{bad}");
        }
    }
}
