//! Programs of the host that single tests need beside Rust, a C compiler, Go and git.
//!
//! Where CI runs they are all there, or it fails. Elsewhere the tests that need a missing one are left out, and that is
//! said before the closing line.

use std::env;
use std::path::Path;

/// Tests of archives made by real tools.
const REAL_TOOLS: &str = "legal::";

/// Program, the Debian package that has it, and what is in the names of the tests that need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// Name on `PATH`.
    pub(crate) program: &'static str,
    /// Debian package.
    pub(crate) package: &'static str,
    /// Parts of test names.
    pub(crate) tests: &'static [&'static str],
}

const fn tool(program: &'static str, package: &'static str) -> Need {
    Need {
        program,
        package,
        tests: &[REAL_TOOLS],
    }
}

/// All of them.
pub(crate) const NEEDS: &[Need] = &[
    Need {
        program: "docker-registry",
        package: "docker-registry",
        tests: &[
            "a_registry_with_tls_and_tokens",
            "a_token_must_be_good_now",
            "certificates_are_checked",
        ],
    },
    Need {
        program: "promtool",
        package: "prometheus",
        tests: &["prometheus_accepts_the_metrics"],
    },
    tool("zip", "zip"),
    tool("bsdtar", "libarchive-tools"),
    tool("cpio", "cpio"),
    tool("7z", "p7zip-full"),
    tool("ar", "binutils"),
    tool("jar", "default-jdk-headless"),
    tool("npm", "npm"),
    tool("gem", "ruby"),
    tool("dpkg-deb", "dpkg"),
    tool("rpmbuild", "rpm"),
    tool("bzip2", "bzip2"),
    tool("xz", "xz-utils"),
    tool("zstd", "zstd"),
    tool("pigz", "pigz"),
    tool("python3", "python3 and python3-wheel"),
];

/// Those that are not on `PATH`.
pub(crate) fn missing() -> Vec<Need> {
    let path = env::var_os("PATH").unwrap_or_default();
    let has = |program: &str| env::split_paths(&path).any(|directory| is_program(&directory.join(program)));
    NEEDS.iter().copied().filter(|need| !has(need.program)).collect()
}

/// What a test program is told so that it leaves out the tests of these.
pub(crate) fn skips(missing: &[Need]) -> Vec<String> {
    let mut parts: Vec<&str> = missing.iter().flat_map(|need| need.tests).copied().collect();
    parts.sort_unstable();
    parts.dedup();
    let arguments = parts
        .into_iter()
        .map(|part| ["--skip".to_owned(), part.to_owned()]);
    arguments.flatten().collect()
}

/// One line that says what is missing and what is left out for it.
pub(crate) fn describe(missing: &[Need]) -> String {
    let programs: Vec<String> = missing
        .iter()
        .map(|need| format!("{} (Debian: {})", need.program, need.package))
        .collect();
    let tests = skips(missing);
    let tests: Vec<&str> = tests.iter().skip(1).step_by(2).map(String::as_str).collect();
    format!(
        "NOT TESTED HERE: {}, because these programs are missing: {}",
        tests.join(", "),
        programs.join(", ")
    )
}

fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::{NEEDS, describe, skips};

    #[test]
    fn each_program_stands_once_and_ci_installs_it() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let script = std::fs::read_to_string(root.join(".ci/run")).unwrap();
        for need in NEEDS {
            assert_eq!(
                NEEDS.iter().filter(|other| other.program == need.program).count(),
                1
            );
            assert!(
                script.contains(&format!("need {} ", need.program)),
                "{}",
                need.program
            );
        }
    }

    #[test]
    fn what_is_left_out_is_named_once() {
        let [registry, zip, bsdtar] = ["docker-registry", "zip", "bsdtar"].map(|program| {
            let need = NEEDS.iter().find(|need| need.program == program);
            *need.unwrap_or_else(|| panic!("{program} is needed"))
        });
        assert_eq!(skips(&[zip, bsdtar]), ["--skip", "legal::"]);
        let text = describe(&[registry, zip]);
        assert!(
            text.contains("docker-registry (Debian: docker-registry), zip (Debian: zip)"),
            "{text}"
        );
        assert!(text.contains("certificates_are_checked, legal::"), "{text}");
        assert!(skips(&[]).is_empty());
    }
}
