//! Packages of package managers.

use crate::recipe::{Recipe, recipe};
use crate::tree::Tree::{self, Hard, Links, Text};

const ONE: &[Tree] = &[Text];

pub(crate) fn recipes() -> Vec<Recipe> {
    [debian(), rpm(), languages()].concat()
}

fn debian() -> Vec<Recipe> {
    let mut recipes = Vec::new();
    for compression in ["none", "gzip", "xz", "zstd"] {
        let script = format!(
            "mkdir DEBIAN; printf 'Package: demo\\nVersion: 1.0-1\\nArchitecture: all\\nMaintainer: a <a@example.org>\\n\
             Description: x\\n' >DEBIAN/control; dpkg-deb --root-owner-group -Z{compression} -b . \"$OUT\" >&2"
        );
        recipes.push(recipe(".deb", &[Text, Links], script.clone()));
        recipes.push(recipe(
            ".deb",
            ONE,
            script.replace("-b", "--uniform-compression -b"),
        ));
    }
    recipes.push(recipe(
        ".deb",
        &[Text, Hard],
        "echo 2.0 >debian-binary; echo x >control; tar -czf control.tar.gz control; tar -cJf data.tar.xz *; \
         ar rc \"$OUT\" debian-binary control.tar.gz data.tar.xz",
    ));
    recipes
}

fn rpm() -> Vec<Recipe> {
    let payloads = [
        "w9.gzdio",
        "w7.xzdio",
        "w9.bzdio",
        "w7.lzdio",
        "w3.zstdio",
        "w.ufdio",
    ];
    let pack = |payload: &str| {
        format!(
            "cat >\"$TMP/demo.spec\" <<EOF\n\
             Name: demo\nVersion: 1.0\nRelease: 1\nSummary: x\nLicense: MIT\nBuildArch: noarch\n\
             %description\nx\n\
             %install\nmkdir -p %{{buildroot}}/opt/demo\ncp -a $PWD/. %{{buildroot}}/opt/demo/\n\
             %files\n/opt/demo\n\
             EOF\n\
             rpmbuild -bb --quiet --define \"_topdir $TMP/rpm\" --define '_binary_payload {payload}' \
             --define '__os_install_post %{{nil}}' --define '_build_id_links none' \"$TMP/demo.spec\" >&2\n\
             mv \"$TMP\"/rpm/RPMS/noarch/*.rpm \"$OUT\""
        )
    };
    payloads
        .map(|payload| recipe(".rpm", &[Text, Links], pack(payload)))
        .to_vec()
}

fn languages() -> Vec<Recipe> {
    vec![
        recipe(
            ".tar.gz",
            ONE,
            "echo '{\"name\":\"demo\",\"version\":\"1.0.0\"}' >package.json; \
             npm pack --silent --offline --cache \"$TMP/npm\" >&2; mv demo-1.0.0.tgz \"$OUT\"",
        ),
        recipe(
            ".tar.gz",
            ONE,
            "mkdir src; echo >src/lib.rs; printf '[package]\\nname = \"demo\"\\nversion = \"1.0.0\"\\n\
             edition = \"2021\"\\n[workspace]\\n' >Cargo.toml; \
             cargo package --quiet --offline --allow-dirty --no-verify --target-dir \"$TMP/target\" >&2; \
             mv \"$TMP/target/package/demo-1.0.0.crate\" \"$OUT\"",
        ),
        // A gem is a tar of compressed files.
        recipe(
            ".tar",
            ONE,
            "printf 'Gem::Specification.new { |s| s.name = %%q(demo); s.version = %%q(1.0.0); s.summary = %%q(x); \
             s.authors = %%w(a); s.files = %%w(a.txt tool.sh) }\\n' >demo.gemspec; \
             gem build --quiet --output \"$OUT\" demo.gemspec >&2",
        ),
        recipe(
            ".zip",
            ONE,
            "mkdir demo-1.0.dist-info; printf 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n' \
             >demo-1.0.dist-info/METADATA; printf 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\n\
             Tag: py3-none-any\\n' >demo-1.0.dist-info/WHEEL; rm -r void; mkdir \"$TMP/w\"; \
             /usr/bin/python3 -m wheel pack -d \"$TMP/w\" . >&2; mv \"$TMP\"/w/*.whl \"$OUT\"",
        ),
    ]
}
