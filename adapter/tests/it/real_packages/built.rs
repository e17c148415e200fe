//! RPMs made by the real builder: every payload codec, symbolic and hard links, an epoch and a module.

use super::Package;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Name and rpm's own flags of each payload codec.
const CODECS: [(&str, &str); 7] = [
    ("gzip", "w9.gzdio"),
    ("bzip2", "w9.bzdio"),
    ("xz", "w6.xzdio"),
    ("xz-threads", "w6T2.xzdio"),
    ("lzma", "w6.lzdio"),
    ("zstd", "w19.zstdio"),
    ("none", "w.ufdio"),
];

/// What the builder is asked for.
const SPECIFICATION: &str = "Name: sample-CODEC
Version: 1.2.3
Release: 4.el9
Epoch: 2
Summary: A library with its links
License: MIT
Vendor: Red Hat, Inc.
ModularityLabel: sample:1:9020240101000000:abcdef12
%global debug_package %{nil}
%global __strip /bin/true
%global _build_id_links none
%description
A library, the links by which programs find it, and a file under two names.
%install
mkdir -p %{buildroot}/usr/lib64 %{buildroot}/usr/share/sample
printf 'a library' > %{buildroot}/usr/lib64/libsample.so.1.2.3
ln -s libsample.so.1.2.3 %{buildroot}/usr/lib64/libsample.so.1
ln -s /usr/lib64/libsample.so.1 %{buildroot}/usr/lib64/libsample.so
printf 'one file' > %{buildroot}/usr/share/sample/one
ln %{buildroot}/usr/share/sample/one %{buildroot}/usr/share/sample/two
%files
/usr/lib64/libsample.so*
/usr/share/sample
";

/// Builds all of them below `directory`, anew at each call.
pub(crate) fn rpms(directory: &Path) -> Vec<Package> {
    std::fs::create_dir_all(directory).unwrap();
    let directory = directory.canonicalize().unwrap();
    CODECS
        .iter()
        .map(|(codec, flags)| Package {
            artifact_type: "RPM",
            file: build(&directory, codec, flags),
            distribution: "",
            purl: format!("pkg:rpm/redhat/sample-{codec}@1.2.3-4.el9"),
            qualifiers: vec![
                "epoch=2",
                "distro=rhel-9",
                "rpmmod=sample:1:9020240101000000:abcdef12",
            ],
        })
        .collect()
}

fn build(directory: &Path, codec: &str, flags: &str) -> PathBuf {
    let specification = directory.join(format!("{codec}.spec"));
    std::fs::write(&specification, SPECIFICATION.replace("CODEC", codec)).unwrap();
    let output = Command::new("rpmbuild")
        .args(["-bb", "--quiet", "--target", "x86_64", "--define"])
        .arg(format!("_topdir {}", directory.join("top").display()))
        .args(["--define", &format!("_binary_payload {flags}")])
        .arg(&specification)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("rpmbuild cannot be run: {error}"));
    assert!(
        output.status.success(),
        "{codec}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    directory.join(format!("top/RPMS/x86_64/sample-{codec}-1.2.3-4.el9.x86_64.rpm"))
}
