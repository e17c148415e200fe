//! `cargo xtask services`: what runs beside the tests.

use clap::ValueEnum;

/// What to do with the services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Action {
    /// Start all.
    Up,
    /// Stop all.
    Down,
    /// Say which there are.
    List,
}

/// No suite needs a service yet, and none pretends to be started.
pub(crate) fn run(action: Action) {
    match action {
        Action::List => {
            println!("no suite needs a service beside the engines, which `cargo xtask engines` builds");
        }
        Action::Up => println!("nothing to start"),
        Action::Down => println!("nothing to stop"),
    }
}
