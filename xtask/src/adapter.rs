//! `cargo xtask adapter`: everything an adapter needs, and the adapter in the foreground.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::{Error, io};
use crate::service::{Adapter, CREDENTIAL, Options, Origin, credential, work_directory};
use crate::workspace::{Profile, Workspace};
use crate::{database, engines, process};

/// Runs until the adapter ends or a signal asks it to.
pub(crate) fn run(workspace: &Workspace, listen: SocketAddr, profile: Profile) -> Result<(), Error> {
    let (credential, origin) = credential();
    let mut options = options(workspace, listen, profile, credential, "adapter")?;
    options.foreground = true;
    if origin == Origin::Generated {
        println!("{CREDENTIAL}={}", options.credential);
    }

    // From here on a signal ends the adapter first; before, there is nothing of ours to end.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(io("watch for signals"))?;
    let mut adapter = Adapter::start(&options)?;
    adapter.wait_ready(Duration::from_millis(10))?;
    println!("adapter ready on {}", adapter.client().base());
    loop {
        if let Some(status) = adapter.ended()? {
            return Err(Error::AdapterEnded { status });
        }
        if signals.pending().next().is_some() {
            return adapter.stop();
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Prepares engines, database and adapter, and says how to start it.
pub(crate) fn options(
    workspace: &Workspace,
    listen: SocketAddr,
    profile: Profile,
    credential: String,
    purpose: &str,
) -> Result<Options, Error> {
    let engines = engines::prepare(workspace)?;
    process::build_adapter(workspace, profile)?;
    let database = database::prepare(workspace, &engines, profile)?;
    Ok(Options {
        executable: workspace.adapter(profile),
        listen,
        credential,
        engines,
        database,
        work: work_directory(&workspace.target(), purpose),
        settings: Vec::new(),
        log: None,
        foreground: false,
    })
}
