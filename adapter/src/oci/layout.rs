//! Blobs on disk, and the image layouts that the cataloguer reads.

use super::digest::Digest;
use super::document::Blob;
use super::platform::Platform;
use serde_json::json;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Name of the layout inside the directory of one platform.
pub const LAYOUT: &str = "layout";

/// The verified blobs of one run.
#[derive(Debug, Clone)]
pub struct Store {
    incoming: PathBuf,
    blobs: PathBuf,
}

impl Store {
    /// An empty store in a directory of its own.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let store = Self {
            incoming: directory.join("incoming"),
            blobs: directory.join("blobs"),
        };
        fs::create_dir(&store.incoming)?;
        fs::create_dir(&store.blobs)?;
        Ok(store)
    }

    /// A file for content that is not verified yet.
    ///
    /// # Errors
    /// Those of the file system; the same digest twice is an error.
    pub fn begin(&self, digest: &Digest) -> io::Result<File> {
        File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(self.incoming.join(digest.hex()))
    }

    /// Gives verified content its name.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn finish(&self, digest: &Digest) -> io::Result<()> {
        fs::rename(self.incoming.join(digest.hex()), self.blobs.join(digest.hex()))
    }

    /// Stores verified content that is at hand.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn put(&self, digest: &Digest, content: &[u8]) -> io::Result<()> {
        fs::write(self.blobs.join(digest.hex()), content)
    }

    /// Verified content; a manifest or a config, which are small.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn get(&self, digest: &Digest) -> io::Result<Vec<u8>> {
        fs::read(self.blobs.join(digest.hex()))
    }

    /// Writes a layout with this image alone into `directory`. Its blobs are the store's, under a second name.
    ///
    /// # Errors
    /// Those of the file system, such as a blob that was never stored.
    pub fn lay_out<'b>(
        &self,
        directory: &Path,
        manifest: &'b Blob,
        platform: &Platform,
        blobs: impl IntoIterator<Item = &'b Digest>,
    ) -> io::Result<()> {
        let layout = directory.join(LAYOUT);
        let names = layout.join("blobs").join("sha256");
        fs::create_dir_all(&names)?;
        for digest in std::iter::once(&manifest.digest).chain(blobs) {
            let name = names.join(digest.hex());
            match fs::hard_link(self.blobs.join(digest.hex()), name) {
                // A layer may be there twice.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => other?,
            }
        }
        let mut described = json!({ "os": platform.os(), "architecture": platform.architecture() });
        if let (Some(variant), Some(members)) = (platform.variant(), described.as_object_mut()) {
            members.insert("variant".to_owned(), variant.into());
        }
        let index = json!({
            "schemaVersion": 2,
            "manifests": [{
                "mediaType": manifest.media_type,
                "digest": manifest.digest.as_str(),
                "size": manifest.size,
                "platform": described,
            }],
        });
        fs::write(layout.join("index.json"), index.to_string())?;
        fs::write(layout.join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::Store;
    use crate::oci::digest::Digest;
    use crate::oci::document::Blob;
    use crate::oci::platform::Platform;
    use std::io::Write as _;

    fn digest(digit: &str) -> Digest {
        Digest::parse(&format!("sha256:{}", digit.repeat(64))).unwrap()
    }

    #[test]
    fn a_layout_holds_exactly_the_blobs_of_its_image() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::create(directory.path()).unwrap();
        for digit in ["1", "2", "3"] {
            store.put(&digest(digit), digit.as_bytes()).unwrap();
        }
        let mut file = store.begin(&digest("4")).unwrap();
        file.write_all(b"4").unwrap();
        assert!(store.begin(&digest("4")).is_err(), "one writer only");
        store.finish(&digest("4")).unwrap();
        let manifest = Blob {
            media_type: "m".to_owned(),
            digest: digest("1"),
            size: 1,
        };
        let platform = Platform::parse("linux/arm/v7").unwrap();
        let target = directory.path().join("platform");
        store
            .lay_out(
                &target,
                &manifest,
                &platform,
                &[digest("2"), digest("4"), digest("4")],
            )
            .unwrap();
        let mut names: Vec<_> = std::fs::read_dir(target.join("layout/blobs/sha256"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["1".repeat(64), "2".repeat(64), "4".repeat(64)]);
        let index: serde_json::Value =
            serde_json::from_slice(&std::fs::read(target.join("layout/index.json")).unwrap()).unwrap();
        assert_eq!(index["manifests"][0]["platform"]["variant"], "v7");
        assert!(
            store
                .lay_out(
                    &directory.path().join("other"),
                    &manifest,
                    &platform,
                    &[digest("5")]
                )
                .is_err()
        );
    }
}
