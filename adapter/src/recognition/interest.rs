//! Which files of an archive the cataloguers read.

use globset::{Glob, GlobSet, GlobSetBuilder};
use std::sync::LazyLock;

/// How an entry is to be laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A package that a cataloguer opens itself: laid out as it is, and a component must come of it.
    Package,
    /// A file that a cataloguer reads.
    File,
    /// Only if its first bytes are those of an executable.
    IfExecutable,
}

/// The globs of Syft 1.57.1's cataloguers, without those that the other rules of this module cover.
const READ: &[&str] = &[
    // Operating systems
    "**/etc/os-release",
    "**/usr/lib/os-release",
    "**/etc/system-release-cpe",
    "**/etc/redhat-release",
    "**/etc/debian_version",
    "**/lib/apk/db/installed",
    "**/lib/dpkg/status",
    "**/lib/dpkg/status.d/*",
    "**/lib/opkg/info/*.control",
    "**/lib/opkg/status",
    "**/usr/share/doc/*/copyright",
    "**/{var/lib,usr/share,usr/lib/sysimage}/rpm/{Packages,Packages.db,rpmdb.sqlite}",
    "**/var/lib/rpmmanifest/container-manifest-2",
    "**/var/lib/pacman/local/**/desc",
    "**/var/db/pkg/*/*/{CONTENTS,LICENSE,SIZE,RDEPEND}",
    "**/snap/{manifest,snapcraft}.yaml",
    "**/usr/share/snappy/dpkg.yaml",
    "**/nix/var/nix/db/db.sqlite",
    "**/nix/store/*.drv",
    "**/{kernel,vmlinux,vmlinuz,bzImage,zImage}",
    "**/{kernel,vmlinux,vmlinuz,bzImage,zImage}-*",
    "**/lib/modules/**/*.ko",
    "**/lib/modules/**/*.ko.{gz,xz,zst}",
    // Languages
    "**/conda-meta/*.json",
    "**/conanfile.txt",
    "**/conan.lock",
    "**/conaninfo.txt",
    "**/vcpkg.json",
    "**/vcpkg-configuration.json",
    "**/pubspec.{lock,yml,yaml}",
    "**/packages.lock.json",
    "**/*.deps.json",
    "**/mix.lock",
    "**/rebar.lock",
    "**/*.app",
    "**/.github/workflows/*.{yaml,yml}",
    "**/.github/actions/*/action.{yaml,yml}",
    "**/go.{mod,sum}",
    "**/stack.yaml",
    "**/stack.yaml.lock",
    "**/cabal.project.freeze",
    "**/Cellar/*/*/.brew/*.rb",
    "**/Library/Taps/*/*/Formula/*.rb",
    "**/gradle.lockfile*",
    "**/pom.xml",
    "**/*.pom",
    "**/release",
    "**/VERSION",
    "**/package-lock.json",
    "**/npm-shrinkwrap.json",
    "**/yarn.lock",
    "**/pnpm-lock.yaml",
    "**/bun.lock",
    "**/deno.lock",
    "**/*.rockspec",
    "**/*opam",
    "**/.meta/*/install.json",
    "**/auto/**/.packlist",
    "**/META.{json,yml}",
    "**/perllocal.pod",
    "**/installed.json",
    "**/composer.lock",
    "**/php/.registry/**/*.reg",
    "**/*.egg-info",
    "**/*{dist-info,DIST-INFO}/METADATA",
    "**/*{egg-info,EGG-INFO}/PKG-INFO",
    "**/*{dist-info,egg-info}/{RECORD,top_level.txt,direct_url.json}",
    "**/*requirements*.txt",
    "**/{poetry,Pipfile,uv,pdm}.lock",
    "**/*.py.lock",
    "**/setup.py",
    "**/pyvenv.cfg",
    "**/DESCRIPTION",
    "**/Gemfile.lock",
    "**/Gemfile.next.lock",
    "**/*.gemspec",
    "**/Cargo.lock",
    "**/{Package.resolved,.package.resolved}",
    "**/Podfile.lock",
    "**/pack.pl",
    "**/.terraform.lock.hcl",
    "**/wp-content/plugins/*/*.php",
    "**/*.app/Contents/Info.plist",
    "**/*.gguf",
    "**/*.safetensors",
    // Classified by content although they are no executables
    "**/{composer.phar,wp,libstd-*.so,liberts_internal.a}",
];

/// What Syft's archive cataloguers open themselves.
const PACKAGES: &[&str] = &[
    "**/*.{jar,war,ear,par,sar,nar,jpi,hpi,kar,far,lpkg,rar,zap}",
    "**/*.{deb,ipk}",
    "**/*.rpm",
];

/// Installed npm packages. A `package.json` elsewhere is the source of something, not a package that is there.
const BUNDLED: &[&str] = &[
    "**/node_modules/*/package.json",
    "**/node_modules/@*/*/package.json",
];

/// Where distributions put language packages that belong to the operating system package around them. The
/// distribution patches them without changing their version, so its own advisories are the right ones.
const DISTRIBUTED: &[&str] = &[
    "usr/{lib,lib64}/python*/**",
    "usr/share/{java,nodejs,gems,rubygems-integration,perl*,php,doc}/**",
    "usr/lib/node_modules/**",
    "usr/{lib,lib64}/{ruby,gems,perl*}/**",
];

fn set(globs: &[&str]) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(
            globset::GlobBuilder::new(glob)
                .literal_separator(true)
                .build()
                .unwrap_or_else(|_| Glob::new("").expect("the empty glob is valid")),
        );
    }
    builder.build().unwrap_or_else(|_| GlobSet::empty())
}

static READ_SET: LazyLock<GlobSet> = LazyLock::new(|| set(READ));
static PACKAGE_SET: LazyLock<GlobSet> = LazyLock::new(|| set(PACKAGES));
static BUNDLED_SET: LazyLock<GlobSet> = LazyLock::new(|| set(BUNDLED));
static DISTRIBUTED_SET: LazyLock<GlobSet> = LazyLock::new(|| set(DISTRIBUTED));

/// What to do with the file at `path` of its container.
pub(super) fn wanted(path: &str) -> Wanted {
    if PACKAGE_SET.is_match(path) {
        Wanted::Package
    } else if READ_SET.is_match(path) || BUNDLED_SET.is_match(path) {
        Wanted::File
    } else {
        Wanted::IfExecutable
    }
}

/// Whether the cataloguers open a file of this name as a package.
pub(super) fn is_package(path: &str) -> bool {
    PACKAGE_SET.is_match(path)
}

/// A kind of package that is bundled with its manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bundled {
    /// Below `node_modules`.
    Npm,
    /// Beside the modules that it installed.
    Python,
}

/// Whose manifest the file at `path` of its container is, if it is that of a bundled package.
pub(super) fn bundled(path: &str) -> Option<Bundled> {
    if BUNDLED_SET.is_match(path) {
        Some(Bundled::Npm)
    } else if path.ends_with(".dist-info/METADATA") {
        Some(Bundled::Python)
    } else {
        None
    }
}

/// Whether a file of an operating system package belongs to the distribution's own language packages.
pub(super) fn is_distributed(path: &str) -> bool {
    DISTRIBUTED_SET.is_match(path)
}

/// Whether this is a gemspec at the root of its container.
pub(super) fn is_gemspec(path: &str) -> bool {
    !path.contains('/') && path.ends_with(".gemspec")
}

/// Bytes that [`is_executable`] wants to see.
pub(super) const MAGIC_BYTES: usize = 4;

/// Whether a file that starts so is an ELF, PE or Mach-O program or library.
pub(super) fn is_executable(start: &[u8]) -> bool {
    const MACH_O: [[u8; 4]; 5] = [
        [0xfe, 0xed, 0xfa, 0xce],
        [0xfe, 0xed, 0xfa, 0xcf],
        [0xce, 0xfa, 0xed, 0xfe],
        [0xcf, 0xfa, 0xed, 0xfe],
        [0xca, 0xfe, 0xba, 0xbf],
    ];
    start.starts_with(b"\x7fELF") || start.starts_with(b"MZ") || MACH_O.iter().any(|m| start.starts_with(m))
}

#[cfg(test)]
mod tests {
    use super::{BUNDLED, DISTRIBUTED, PACKAGES, READ, Wanted, is_distributed, is_executable, wanted};

    #[test]
    fn every_glob_is_valid() {
        for glob in [READ, PACKAGES, BUNDLED, DISTRIBUTED].concat() {
            assert!(globset::Glob::new(glob).is_ok(), "{glob}");
        }
    }

    #[test]
    fn table() {
        let cases = [
            ("Cargo.lock", Wanted::File),
            ("a/b/Cargo.lock", Wanted::File),
            ("Jinja2-2.11.2.dist-info/METADATA", Wanted::File),
            ("pip/_vendor/x.egg-info/PKG-INFO", Wanted::File),
            ("package/node_modules/a/package.json", Wanted::File),
            ("node_modules/@s/a/package.json", Wanted::File),
            ("node_modules/a/dist/package.json", Wanted::IfExecutable),
            ("package.json", Wanted::IfExecutable),
            ("WEB-INF/lib/a.jar", Wanted::Package),
            ("pool/a_1.deb", Wanted::Package),
            ("src/main.rs", Wanted::IfExecutable),
        ];
        for (path, want) in cases {
            assert_eq!(wanted(path), want, "{path}");
        }
    }

    #[test]
    fn distributed_language_packages_are_told_from_bundled_ones() {
        assert!(is_distributed(
            "usr/lib/python3/dist-packages/x.egg-info/PKG-INFO"
        ));
        assert!(is_distributed("usr/share/java/log4j.jar"));
        assert!(!is_distributed("opt/app/lib/log4j.jar"));
        assert!(!is_distributed("usr/bin/tool"));
    }

    #[test]
    fn executables_by_their_first_bytes() {
        assert!(is_executable(b"\x7fELF"));
        assert!(is_executable(b"MZ\x90\0"));
        assert!(!is_executable(b"\xca\xfe\xba\xbe"), "a Java class");
        assert!(!is_executable(b""));
    }
}
