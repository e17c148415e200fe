//! `cargo xtask lint`: everything that CI checks beside the tests.

use std::io::{Write as _, stdout};

use crate::error::Error;
use crate::workspace::Workspace;
use crate::{cli, process, tidy};

/// Runs all checks, also after one failed, and says how many did.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Error> {
    let mut broken = 0;
    let mut check = |name: &str, result: Result<(), Error>| {
        match result {
            Ok(()) => println!("{name}: ok"),
            Err(error) => {
                println!("{name}: {error}");
                broken += 1;
            }
        }
        // Whole lines before the next program writes its own.
        let _ = stdout().flush();
    };

    check(
        "format",
        process::run(process::cargo(workspace).args(["fmt", "--all", "--", "--check"])),
    );
    let mut clippy = process::cargo(workspace);
    clippy.args([
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]);
    check("clippy", process::run(&mut clippy));
    check("repository rules", tidy::check(workspace.root()));
    check("generated schemas", cli::schemas(workspace, true));
    if process::is_installed(process::cargo(workspace).args(["deny", "--version"])) {
        let mut deny = process::cargo(workspace);
        deny.args(["deny", "--offline", "check", "bans", "sources", "licenses"]);
        check("dependencies", process::run(&mut deny));
    } else {
        println!("dependencies: not checked, cargo-deny is not installed");
    }
    if broken == 0 {
        Ok(())
    } else {
        Err(Error::Untidy(broken))
    }
}
