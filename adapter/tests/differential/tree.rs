//! Folders of files that real tools pack.

use std::fs;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::Path;

/// What is in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tree {
    /// Small files of all sorts of names, an empty one, an empty folder.
    Text,
    /// Names longer than old headers can hold.
    Long,
    /// Symbolic links that stay inside.
    Links,
    /// Hard links.
    Hard,
    /// A file with holes.
    Sparse,
    /// Hundreds of files.
    Many,
    /// One file that compresses and one that does not.
    Large,
}

impl Tree {
    /// Makes the folder's content.
    pub(crate) fn make(self, root: &Path) {
        match self {
            Self::Text => {
                fs::create_dir_all(root.join("dir/sub")).unwrap();
                fs::create_dir(root.join("void")).unwrap();
                write(root, "a.txt", b"some text\n");
                write(root, "empty", b"");
                write(root, "dir/with space.md", &b"# words\n".repeat(100));
                write(root, "dir/sub/\u{fc}n\u{ef}-c\u{f6}d\u{e9}.txt", b"names\n");
                write(root, "dir/sub/noise.bin", &noise(10_000));
                write(root, "tool.sh", b"#!/bin/sh\nexit 0\n");
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(root.join("tool.sh"), mode).unwrap();
            }
            Self::Long => {
                let deep = ["folder"; 14].join("/");
                fs::create_dir_all(root.join(&deep)).unwrap();
                write(root, &format!("{deep}/short"), b"x");
                write(root, &format!("{deep}/{}", "n".repeat(120)), b"long name\n");
                write(root, &"m".repeat(200), b"long component\n");
                symlink("m".repeat(200), root.join("far")).unwrap();
                let deeper = [deep.as_str(), &["subfolder"; 20].join("/")].concat();
                fs::create_dir_all(root.join(&deeper)).unwrap();
                write(root, &format!("{deeper}/file"), b"deep\n");
            }
            Self::Links => {
                fs::create_dir(root.join("lib")).unwrap();
                write(root, "lib/libx.so.1.2", b"\x7fELF");
                symlink("libx.so.1.2", root.join("lib/libx.so.1")).unwrap();
                symlink("libx.so.1", root.join("lib/libx.so")).unwrap();
                symlink("lib", root.join("lib64")).unwrap();
                symlink("../lib/nowhere", root.join("lib/dangling")).unwrap();
            }
            Self::Hard => {
                write(root, "first", &noise(3000));
                fs::hard_link(root.join("first"), root.join("second")).unwrap();
                fs::hard_link(root.join("first"), root.join("third")).unwrap();
                write(root, "zlast", b"end\n");
            }
            Self::Sparse => {
                let file = fs::File::create(root.join("disk.img")).unwrap();
                for at in [0, 300_000, 900_000] {
                    file.write_all_at(&noise(5000), at).unwrap();
                }
                file.set_len(1 << 20).unwrap();
                let holes = fs::File::create(root.join("holes.img")).unwrap();
                for at in 0..40 {
                    holes.write_all_at(b"island", at * 20_000).unwrap();
                }
                write(root, "z.txt", b"after\n");
            }
            Self::Many => {
                for number in 0..300 {
                    let folder = format!("f{}", number % 7);
                    fs::create_dir_all(root.join(&folder)).unwrap();
                    write(root, &format!("{folder}/{number:04}.txt"), folder.as_bytes());
                }
            }
            Self::Large => {
                let lines: Vec<_> = (0..60_000)
                    .map(|number| format!("line {number} of a log\n"))
                    .collect();
                write(root, "text.log", lines.concat().as_bytes());
                write(root, "noise.bin", &noise(300_000));
            }
        }
    }
}

fn write(root: &Path, name: &str, content: &[u8]) {
    fs::write(root.join(name), content).unwrap();
}

fn noise(length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(u64::try_from(length).unwrap());
    std::iter::repeat_with(|| random.u8(..)).take(length).collect()
}
