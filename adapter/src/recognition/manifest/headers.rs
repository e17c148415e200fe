//! RFC 822 style headers: Python metadata, Debian control files, Java manifests.

use super::{MAX_MANIFEST_BYTES, ManifestError};
use mailparse::MailHeader;

/// The headers before the first empty line.
pub(super) fn headers(bytes: &[u8]) -> Result<Vec<MailHeader<'_>>, ManifestError> {
    if bytes.len() > MAX_MANIFEST_BYTES {
        return Err(ManifestError::TooLarge {
            limit: MAX_MANIFEST_BYTES,
        });
    }
    mailparse::parse_headers(bytes)
        .map(|(headers, _)| headers)
        .map_err(|_| ManifestError::Malformed { format: "headers" })
}

/// The value of the first header of this name, in any case, as UTF-8. Encoded words are not decoded: none of these
/// formats has them.
pub(super) fn value<'a>(headers: &'a [MailHeader<'_>], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|h| h.get_key_raw().eq_ignore_ascii_case(name.as_bytes()))
        .and_then(|h| std::str::from_utf8(h.get_value_raw()).ok())
        .map(str::trim)
}
