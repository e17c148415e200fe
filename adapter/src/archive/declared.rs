//! What the declared artifact type promises about the bytes. Pure.
//!
//! The type never decides what the bytes are; but a package whose bytes are not of its type is broken or is meant to
//! be read differently by different readers, and both are refused.

use super::error::GateError;
use super::sniff::Format;
use assay_schemas::ArtifactType;

/// The formats that the bytes of a type may have; empty when the type promises nothing.
const fn promised(declared: ArtifactType) -> &'static [Format] {
    match declared {
        ArtifactType::TarGz | ArtifactType::Tgz | ArtifactType::Crate => &[Format::Gzip],
        ArtifactType::TarBz2 | ArtifactType::Tbz2 => &[Format::Bzip2],
        ArtifactType::TarXz | ArtifactType::Txz | ArtifactType::Xz => &[Format::Xz],
        ArtifactType::TarZst | ArtifactType::Tzst => &[Format::Zstd],
        ArtifactType::Tar | ArtifactType::Gem => &[Format::Tar],
        ArtifactType::Zip
        | ArtifactType::Jar
        | ArtifactType::War
        | ArtifactType::Ear
        | ArtifactType::Aar
        | ArtifactType::Whl
        | ArtifactType::Egg
        | ArtifactType::Nupkg
        | ArtifactType::Ipa => &[Format::Zip],
        ArtifactType::Rpm => &[Format::Rpm],
        ArtifactType::Deb => &[Format::Ar],
        // Alpine's packages are gzip, Android's are ZIP.
        ArtifactType::Apk => &[Format::Gzip, Format::Zip],
        // Conda has codes of its own for what is no package.
        _ => &[],
    }
}

/// Errors when the bytes are of another format than their type promises. A tar of no bytes has no entries.
///
/// # Errors
/// [`GateError::NotAsDeclared`].
pub fn check(declared: ArtifactType, found: Format, input_size: u64) -> Result<(), GateError> {
    let promised = promised(declared);
    let is_empty_tar = declared == ArtifactType::Tar && input_size == 0;
    if promised.is_empty() || promised.contains(&found) || is_empty_tar {
        return Ok(());
    }
    Err(GateError::NotAsDeclared { declared, found })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::archive::Format;
    use assay_schemas::ArtifactType;

    #[test]
    fn every_type_has_its_formats_and_no_other() {
        use ArtifactType as Type;
        const ALL: [Format; 16] = [
            Format::Zip,
            Format::Tar,
            Format::Ar,
            Format::Cpio,
            Format::Rpm,
            Format::Gzip,
            Format::Bzip2,
            Format::Xz,
            Format::Zstd,
            Format::Lzma,
            Format::SevenZip,
            Format::Rar,
            Format::Lz4,
            Format::Snappy,
            Format::Lzip,
            Format::Opaque,
        ];
        let cases: [(&[Type], &[Format]); 9] = [
            (&[Type::TarGz, Type::Tgz, Type::Crate], &[Format::Gzip]),
            (&[Type::TarBz2, Type::Tbz2], &[Format::Bzip2]),
            (&[Type::TarXz, Type::Txz, Type::Xz], &[Format::Xz]),
            (&[Type::TarZst, Type::Tzst], &[Format::Zstd]),
            (&[Type::Tar, Type::Gem], &[Format::Tar]),
            (
                &[
                    Type::Zip,
                    Type::Jar,
                    Type::War,
                    Type::Ear,
                    Type::Aar,
                    Type::Whl,
                    Type::Egg,
                    Type::Nupkg,
                    Type::Ipa,
                ],
                &[Format::Zip],
            ),
            (&[Type::Rpm], &[Format::Rpm]),
            (&[Type::Deb], &[Format::Ar]),
            (&[Type::Apk], &[Format::Gzip, Format::Zip]),
        ];
        for (types, formats) in cases {
            for &declared in types {
                for found in ALL {
                    let is_right = check(declared, found, 1).is_ok();
                    assert_eq!(is_right, formats.contains(&found), "{declared:?} {found}");
                }
                // Only a tar may have no bytes.
                assert_eq!(check(declared, Format::Opaque, 0).is_ok(), declared == Type::Tar);
            }
        }
    }

    #[test]
    fn bytes_are_of_the_format_that_their_type_promises() {
        let right = [
            (ArtifactType::TarGz, Format::Gzip),
            (ArtifactType::Jar, Format::Zip),
            (ArtifactType::Apk, Format::Zip),
            (ArtifactType::Apk, Format::Gzip),
            (ArtifactType::Unknown, Format::Opaque),
            (ArtifactType::Conda, Format::Opaque),
        ];
        for (declared, found) in right {
            assert!(check(declared, found, 1).is_ok(), "{declared:?} {found}");
        }
        let wrong = [
            (ArtifactType::TarGz, Format::Xz, "ARCHIVE_INVALID"),
            (ArtifactType::Zip, Format::Gzip, "ARCHIVE_INVALID"),
            (ArtifactType::Deb, Format::Opaque, "ARCHIVE_INVALID"),
            (ArtifactType::Rpm, Format::Opaque, "RPM_INVALID"),
        ];
        for (declared, found, code) in wrong {
            assert_eq!(
                check(declared, found, 1).unwrap_err().code().as_str(),
                code,
                "{declared:?} {found}"
            );
        }
        assert!(check(ArtifactType::Tar, Format::Opaque, 0).is_ok());
        assert!(check(ArtifactType::Tar, Format::Opaque, 1).is_err());
    }
}
