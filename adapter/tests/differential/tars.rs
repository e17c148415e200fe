//! tars and CPIO archives of GNU tar, libarchive, Python, GNU cpio and 7-Zip.

use crate::recipe::{Recipe, recipe};
use crate::tree::Tree::{self, Hard, Large, Links, Long, Many, Sparse, Text};

const SHORT: &[Tree] = &[Text, Links, Many, Large];
const ALL: &[Tree] = &[Text, Long, Links, Many, Large];

/// Suffix, and the option of GNU tar and of libarchive.
const COMPRESSIONS: [(&str, &str); 5] = [
    (".tar.gz", "--gzip"),
    (".tar.bz2", "--bzip2"),
    (".tar.xz", "--xz"),
    (".tar.zst", "--zstd"),
    (".tar.lzma", "--lzma"),
];

pub(crate) fn recipes() -> Vec<Recipe> {
    [gnu(), libarchive(), python(), cpio()].concat()
}

fn gnu() -> Vec<Recipe> {
    let mut recipes = Vec::new();
    for (format, trees) in [
        ("v7", SHORT),
        ("oldgnu", ALL),
        ("gnu", ALL),
        ("ustar", SHORT),
        ("posix", ALL),
    ] {
        let make = format!("tar --format={format} -cf \"$OUT\"");
        recipes.push(recipe(".tar", trees, format!("{make} .")));
        recipes.push(recipe(".tar", &[Text], format!("{make} --numeric-owner -b 1 *")));
        recipes.push(recipe(".tar", &[Hard], format!("{make} .")).with_hard_links());
    }
    for (suffix, option) in COMPRESSIONS {
        // GNU tar's own choice of a program for lzma differs between systems.
        let option = option.replace("--lzma", "-I 'xz --format=lzma'");
        let script = format!("tar -c {option} -f \"$OUT\" .");
        recipes.push(recipe(suffix, &[Text, Many, Large], script));
    }
    for options in [
        "--format=gnu --sparse",
        "--format=oldgnu --sparse",
        "--format=posix --sparse --sparse-version=0.0",
        "--format=posix --sparse --sparse-version=0.1",
        "--format=posix --sparse --sparse-version=1.0",
    ] {
        recipes.push(recipe(
            ".tar",
            &[Sparse, Text],
            format!("tar {options} -cf \"$OUT\" ."),
        ));
    }
    for options in [
        "--hard-dereference",
        "--xattrs --acls --format=posix",
        "--format=posix --pax-option=globexthdr.name=g,comment=hello",
        "--format=posix --pax-option=delete=mtime,exthdr.name=%d/%f",
        "--format=posix --mtime=1960-01-01",
        "--format=gnu --mtime=2500-01-01 --owner=root:3000000",
        "--label=volume",
        "--transform=s,^,./a/./b/,",
    ] {
        let script = format!("tar {options} -cf \"$OUT\" *");
        recipes.push(recipe(".tar", &[Text, Many], script));
    }
    recipes.push(recipe(
        ".tar",
        &[Text, Many],
        "tar -cf \"$OUT\" * && echo more >more && tar -rf \"$OUT\" more && echo again >more && tar -rf \"$OUT\" more",
    ));
    recipes
}

fn libarchive() -> Vec<Recipe> {
    let mut recipes = Vec::new();
    for (format, trees) in [
        ("v7tar", SHORT),
        ("ustar", SHORT),
        ("pax", ALL),
        ("paxr", ALL),
        ("gnutar", ALL),
    ] {
        let make = format!("bsdtar --format={format} -cf \"$OUT\"");
        recipes.push(recipe(".tar", trees, format!("{make} .")));
        recipes.push(recipe(".tar", &[Hard], format!("{make} *")).with_hard_links());
    }
    recipes.push(recipe(".tar", &[Sparse], "bsdtar --format=pax -cf \"$OUT\" ."));
    for (suffix, option) in COMPRESSIONS {
        let script = format!("bsdtar -c {option} -f \"$OUT\" .");
        recipes.push(recipe(suffix, &[Text, Large], script));
    }
    for format in ["newc", "odc"] {
        let script = format!("bsdtar --format={format} -cf \"$OUT\" .");
        recipes.push(recipe(cpio_suffix(format), ALL, script));
    }
    recipes
}

fn python() -> Vec<Recipe> {
    let mut recipes = Vec::new();
    for (format, trees) in [("USTAR", SHORT), ("GNU", ALL), ("PAX", ALL)] {
        for (suffix, mode) in [
            (".tar", "w"),
            (".tar.gz", "w:gz"),
            (".tar.bz2", "w:bz2"),
            (".tar.xz", "w:xz"),
        ] {
            let program = format!(
                "import os, tarfile; t = tarfile.open(os.environ['OUT'], '{mode}', format=tarfile.{format}_FORMAT); \
                 t.add('.'); t.close()"
            );
            recipes.push(recipe(suffix, trees, format!("python3 -c \"{program}\"")));
        }
    }
    recipes.push(recipe(
        ".tar.gz",
        ALL,
        "python3 -m tarfile -c \"$TMP/a.tar.gz\" * && mv \"$TMP/a.tar.gz\" \"$OUT\"",
    ));
    recipes
}

fn cpio() -> Vec<Recipe> {
    let mut recipes = Vec::new();
    for format in ["newc", "crc", "odc"] {
        let script = format!("find . | cpio -o -H {format} --quiet >\"$OUT\"");
        recipes.push(recipe(cpio_suffix(format), ALL, script));
    }
    for format in ["ustar", "tar"] {
        let script = format!("find . | cpio -o -H {format} --quiet >\"$OUT\"");
        recipes.push(recipe(".tar", SHORT, script));
    }
    let script = "7z a -ttar \"$TMP/a.tar\" . >&2 && mv \"$TMP/a.tar\" \"$OUT\"";
    recipes.push(recipe(".tar", &[Text, Long, Many, Large], script));
    recipes
}

const fn cpio_suffix(format: &str) -> &'static str {
    match format.as_bytes() {
        b"odc" | b"crc" => ".portable.cpio",
        _ => ".cpio",
    }
}
