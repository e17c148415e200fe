//! ZIPs of Info-ZIP, Python, Java, libarchive and 7-Zip.

use crate::recipe::{Recipe, recipe};
use crate::tree::Tree::{self, Large, Links, Long, Many, Text};

const PLAIN: &[Tree] = &[Text, Long, Many, Large];

pub(crate) fn recipes() -> Vec<Recipe> {
    let info_zip = [
        "zip -qr \"$OUT\" .",
        "zip -q0r \"$OUT\" .",
        "zip -q9rD \"$OUT\" .",
        "zip -qrX \"$OUT\" .",
        "zip -qr -fz \"$OUT\" .",
        // To a pipe: descriptors, and for what cannot be sought, ZIP64 fields.
        "zip -qr - . | cat >\"$OUT\"",
        "zip -q0r - . | cat >\"$OUT\"",
        "zip -qr -Z bzip2 \"$OUT\" .",
        "echo comment | zip -qrz \"$OUT\" . 2>&1",
        "zip -qr a.zip . && zip -q -d a.zip empty* 2>&1 || true; zip -q a.zip -r . && mv a.zip \"$OUT\"",
    ];
    let mut recipes: Vec<_> = info_zip
        .map(|script| recipe(".zip", PLAIN, keep_name(script)))
        .to_vec();
    recipes.push(recipe(".zip", &[Links, Text], keep_name("zip -qry \"$OUT\" .")));
    recipes.push(recipe(
        ".zip",
        PLAIN,
        // A stub in front, with offsets that are then put right, or not.
        "zip -qr \"$TMP/a.zip\" . && (echo '#!/bin/sh'; cat \"$TMP/a.zip\") >\"$TMP/b.zip\" && zip -qA \"$TMP/b.zip\" \
         && mv \"$TMP/b.zip\" \"$OUT\"",
    ));
    recipes.push(recipe(
        ".zip",
        PLAIN,
        "zip -qr \"$TMP/a.zip\" . && (echo '#!/bin/sh'; cat \"$TMP/a.zip\") >\"$OUT\"",
    ));
    for method in ["STORED", "DEFLATED", "BZIP2"] {
        recipes.push(python(method, "open(out, 'wb')", "False"));
        recipes.push(python(method, "open(out, 'wb')", "True"));
        recipes.push(python(method, "Pipe(open(out, 'wb'))", "False"));
    }
    recipes.push(recipe(".zip", PLAIN, "python3 -m zipfile -c \"$OUT\" *"));
    for options in ["cf", "c0f", "cfM", "--create --date=2020-01-01T00:00:00Z --file"] {
        recipes.push(recipe(".zip", PLAIN, format!("jar {options} \"$OUT\" .")));
    }
    recipes.push(recipe(
        ".zip",
        &[Text, Many],
        "jar cf \"$OUT\" . && echo more >more && jar uf \"$OUT\" more",
    ));
    for options in ["compression=deflate", "compression=store", "zip64", "!zip64"] {
        let script = format!("bsdtar -cf \"$OUT\" --format=zip --options 'zip:{options}' .");
        recipes.push(recipe(".zip", &[Text, Long, Links, Many, Large], script));
    }
    for method in ["Copy", "Deflate", "BZip2"] {
        let script = format!("7z a -tzip -mm={method} \"$TMP/a.zip\" . >&2 && mv \"$TMP/a.zip\" \"$OUT\"");
        recipes.push(recipe(".zip", PLAIN, script));
    }
    recipes
}

/// Info-ZIP adds `.zip` to a name without a dot.
fn keep_name(script: &str) -> String {
    script.replace("\"$OUT\"", "\"$TMP/o.zip\"") + " && mv \"$TMP/o.zip\" \"$OUT\""
}

/// Python's writer, to a file or to a pipe, with or without ZIP64 fields in local headers.
fn python(method: &str, target: &str, zip64: &str) -> Recipe {
    let program = format!(
        "import os, sys, zipfile\n\
         out = os.environ['OUT']\n\
         class Pipe:\n    \
             def __init__(self, f): self.f = f\n    \
             def write(self, b): return self.f.write(b)\n    \
             def flush(self): self.f.flush()\n\
         with zipfile.ZipFile({target}, 'w', zipfile.ZIP_{method}) as z:\n    \
             for top, folders, names in os.walk('.'):\n        \
                 for name in names:\n            \
                     path = os.path.join(top, name)\n            \
                     info = zipfile.ZipInfo.from_file(path, os.path.relpath(path))\n            \
                     info.compress_type = z.compression\n            \
                     with z.open(info, 'w', force_zip64={zip64}) as f: f.write(open(path, 'rb').read())\n"
    );
    recipe(".zip", PLAIN, format!("python3 -c \"{program}\""))
}
