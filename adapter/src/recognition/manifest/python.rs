//! `METADATA` of a wheel, `PKG-INFO` of a source distribution or egg (core metadata).

use super::ManifestError;
use super::headers::{headers, value};
use crate::recognition::identity::{Coordinates, Ecosystem};

/// Coordinates of a Python distribution.
pub fn python(bytes: &[u8]) -> Result<Coordinates, ManifestError> {
    let headers = headers(bytes)?;
    if value(&headers, "Metadata-Version").is_none() {
        return Err(ManifestError::Malformed {
            format: "core metadata",
        });
    }
    // As PEP 503 has it: runs of `-`, `_` and `.` are one dash in the name of an index, and purl follows.
    Coordinates::new(
        Ecosystem::Pypi,
        value(&headers, "Name"),
        value(&headers, "Version"),
    )
}

#[cfg(test)]
mod tests {
    use super::python;

    #[test]
    fn table() {
        let cases: [(&[u8], Option<&str>); 8] = [
            (
                b"Metadata-Version: 2.1\nName: Jinja2\nVersion: 2.11.2\nSummary: x\n\nbody\nName: evil\n",
                Some("pkg:pypi/jinja2@2.11.2"),
            ),
            (
                b"Metadata-Version: 2.1\r\nName: a_b\r\nVersion: 1.0\r\n\r\n",
                Some("pkg:pypi/a-b@1.0"),
            ),
            (
                b"Metadata-Version: 1.0\nDescription: long\n  more\nNAME: x\nVersion: 1",
                Some("pkg:pypi/x@1"),
            ),
            (b"Name: x\nVersion: 1\n", None),
            (b"Metadata-Version: 2.1\nName: x\n", None),
            (b"Metadata-Version: 2.1\nName: \xff\xfe\nVersion: 1\n", None),
            (b"Metadata-Version: 2.1\nName: a b\nVersion: 1\n", None),
            (b"", None),
        ];
        for (bytes, want) in cases {
            let got = python(bytes).and_then(|c| c.purl()).ok();
            assert_eq!(got.as_deref(), want, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
