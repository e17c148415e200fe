//! `cargo xtask services`: what runs beside the tests.

use clap::ValueEnum;

use crate::error::Error;
use crate::registries;
use crate::workspace::Workspace;

/// What to do with the services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Action {
    /// Make sure that all can be started.
    Up,
    /// Stop all; each test stops its own.
    Down,
    /// Say which there are.
    List,
}

/// Tests start and stop their own services on free ports; what can be done for them is to have the programs there.
pub(crate) fn run(workspace: &Workspace, action: Action) -> Result<(), Error> {
    match action {
        Action::List => {
            println!("crane registry serve   suite oci   built from fixtures/services/crane");
            println!("docker-registry        suite oci   Debian package docker-registry");
            println!("skopeo                 bench oci   Debian package skopeo");
        }
        Action::Up => {
            let directory = registries::prepare(workspace)?;
            println!("{}={}", registries::DIRECTORY_VARIABLE, directory.display());
        }
        Action::Down => println!("nothing runs outside of tests"),
    }
    Ok(())
}
