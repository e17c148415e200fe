//! Compressed tars and single files of the compressors themselves, in more than one member, frame or stream.

use crate::recipe::{Recipe, recipe};
use crate::tree::Tree::{Large, Text};

const COMMANDS: &[(&str, &str)] = &[
    (".gz", "gzip -1n"),
    (".gz", "gzip -9"),
    (".gz", "pigz -p 2 -b 128"),
    (".gz", "pigz -p 2 -i -b 128"),
    (".bz2", "bzip2 -1"),
    (".bz2", "bzip2 -9"),
    (".xz", "xz -0"),
    (".xz", "xz -9 --check=none"),
    (".xz", "xz --check=crc32"),
    (".xz", "xz --check=sha256"),
    (".xz", "xz --block-size=100000"),
    (".xz", "xz -T2 --block-size=100000"),
    (".xz", "xz --x86 --lzma2"),
    (".xz", "xz --delta=dist=4 --lzma2"),
    (".zst", "zstd -1"),
    (".zst", "zstd -19"),
    (".zst", "zstd --no-check"),
    (".zst", "zstd --long=24"),
    (".zst", "zstd -T2 --fast=3"),
];

pub(crate) fn recipes() -> Vec<Recipe> {
    let mut recipes = Vec::new();
    for (suffix, command) in COMMANDS {
        let tar = tar_suffix(suffix);
        let pack = "tar -cf \"$TMP/t\" .";
        recipes.push(recipe(
            tar,
            &[Text, Large],
            format!("{pack}; {command} -c <\"$TMP/t\" >\"$OUT\""),
        ));
        // Cut in three, and each compressed by itself.
        recipes.push(recipe(
            tar,
            &[Text, Large],
            format!(
                "{pack}; split -n 3 \"$TMP/t\" \"$TMP/part-\"; \
                 for p in \"$TMP\"/part-*; do {command} -c <\"$p\"; done >\"$OUT\""
            ),
        ));
        recipes.push(recipe(
            suffix,
            &[Large],
            format!("{command} -c <text.log >\"$OUT\""),
        ));
    }
    for (suffix, kind) in [(".gz", "gzip"), (".bz2", "bzip2"), (".xz", "xz")] {
        let script = format!("7z a -t{kind} \"$TMP/a\" text.log >&2; mv \"$TMP/a\"* \"$OUT\"");
        recipes.push(recipe(suffix, &[Large], script));
    }
    recipes
}

fn tar_suffix(suffix: &str) -> &'static str {
    match suffix {
        ".gz" => ".tar.gz",
        ".bz2" => ".tar.bz2",
        ".xz" => ".tar.xz",
        _ => ".tar.zst",
    }
}
