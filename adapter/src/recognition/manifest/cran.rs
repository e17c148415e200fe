//! `DESCRIPTION` of an R package, source or binary.

use super::ManifestError;
use super::headers::{headers, value};
use crate::recognition::identity::{Coordinates, Ecosystem};

/// Coordinates of an R package.
pub fn cran(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let headers = headers(bytes)?;
    Coordinates::new(
        Ecosystem::Cran,
        value(&headers, "Package"),
        value(&headers, "Version"),
    )
}

#[cfg(test)]
mod tests {
    use super::cran;

    #[test]
    fn table() {
        let cases = [
            (
                "Package: commonmark\nVersion: 1.7-1\nTitle: A\n    sample\nAuthors@R: c(\n    person(\"A\"))\nRepository: CRAN\n",
                Some("pkg:cran/commonmark@1.7-1"),
            ),
            ("Package: commonmark\n", None),
            ("Version: 1\n", None),
            ("A description in prose.\n", None),
            ("", None),
        ];
        for (text, want) in cases {
            let got = cran(text.as_bytes()).and_then(|c| c.purl()).ok();
            assert_eq!(got.as_deref(), want, "{text}");
        }
    }
}
