//! An adapter process of ours: started with a known configuration, ready, and stopped again.

use std::env;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::engines::Engines;
use crate::error::{Error, io, on};
use crate::http::Client;
use crate::process;

/// The variable that carries the shared secret.
pub(crate) const CREDENTIAL: &str = "KKREPO_SCANNER_SERVICE_CREDENTIAL";

/// From start to the first ready answer, at worst: engines on a cold disk.
const READY_WITHIN: Duration = Duration::from_mins(1);
/// From SIGTERM to the end; the service itself drains for less than this.
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// What an adapter is started with.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// The adapter executable.
    pub(crate) executable: PathBuf,
    /// Address and port to serve on.
    pub(crate) listen: SocketAddr,
    /// The secret that clients must show.
    pub(crate) credential: String,
    /// Engines to run.
    pub(crate) engines: Engines,
    /// Database directory (with the pointer in it).
    pub(crate) database: PathBuf,
    /// Where private request directories go.
    pub(crate) work: PathBuf,
    /// Further settings: names without their prefix, as in the environment.
    pub(crate) settings: Vec<(&'static str, String)>,
    /// Standard error of the service; `None` is ours.
    pub(crate) log: Option<PathBuf>,
    /// The adapter is what the person at the shell asked for: it gets the other `KKREPO_SCANNER_…` settings of
    /// our environment, and the caller looks after signals. Else a signal ends both at once.
    pub(crate) foreground: bool,
}

/// A running adapter. Dropped, it is killed; [`Adapter::stop`] is the polite way.
#[derive(Debug)]
pub(crate) struct Adapter {
    child: Child,
    client: Client,
    signals: Option<Handle>,
}

impl Adapter {
    /// Starts without waiting.
    pub(crate) fn start(options: &Options) -> Result<Self, Error> {
        fs::create_dir_all(&options.work).map_err(on("create", &options.work))?;
        let mut command = command(options);
        if let Some(log) = &options.log {
            let file = File::create(log).map_err(on("create", log))?;
            let again = file.try_clone().map_err(on("open again", log))?;
            command.stdout(file).stderr(again);
        }
        let child = command
            .spawn()
            .map_err(|source| process::spawn_error(&command, source))?;
        let client = Client::new(&format!("http://{}", options.listen), &options.credential);
        let mut adapter = Self {
            child,
            client,
            signals: None,
        };
        if !options.foreground {
            adapter.signals = Some(end_together(adapter.process_id()?)?);
        }
        Ok(adapter)
    }

    /// Waits until the readiness endpoint says 200, looking every `pause`.
    pub(crate) fn wait_ready(&mut self, pause: Duration) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            let last = match self.client.readiness() {
                Ok(()) => return Ok(()),
                Err(error) => error.to_string(),
            };
            if let Some(status) = self.ended()? {
                return Err(Error::AdapterEnded { status });
            }
            if start.elapsed() > READY_WITHIN {
                return Err(Error::NotReady {
                    seconds: READY_WITHIN.as_secs(),
                    last,
                });
            }
            thread::sleep(pause);
        }
    }

    /// A client that shows the right credential.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Process id, for /proc.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process (it looks after its own children).
    fn signal(&self, signal: Signal) -> Result<(), Error> {
        kill(self.process_id()?, signal).map_err(|errno| io("signal the adapter")(errno.into()))
    }

    fn process_id(&self) -> Result<Pid, Error> {
        let id = self.child.id();
        let raw = i32::try_from(id).map_err(|_| Error::Unexpected {
            what: "the process id of the adapter",
            why: id.to_string(),
        })?;
        Ok(Pid::from_raw(raw))
    }

    /// The exit status, once there is one.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.child.try_wait().map_err(io("wait for the adapter"))
    }

    /// Asks it to end and waits for that.
    pub(crate) fn stop(mut self) -> Result<(), Error> {
        if self.ended()?.is_none() {
            self.signal(Signal::SIGTERM)?;
        }
        let start = Instant::now();
        while start.elapsed() < STOP_WITHIN {
            if self.ended()?.is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Err(Error::Unexpected {
            what: "stopping the adapter",
            why: format!("it still ran {} s after SIGTERM", STOP_WITHIN.as_secs()),
        })
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        if let Some(signals) = &self.signals {
            signals.close();
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            // Nothing better is left to do when this fails.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Passes a signal on to the adapter and ends this program, until the handle is closed.
fn end_together(adapter: Pid) -> Result<Handle, Error> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(io("watch for signals"))?;
    let handle = signals.handle();
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // It may have ended by itself in the meantime.
            let _ = kill(adapter, Signal::SIGTERM);
            std::process::exit(128 + signal);
        }
    });
    Ok(handle)
}

fn command(options: &Options) -> Command {
    let mut command = Command::new(&options.executable);
    command.env_clear().stdin(Stdio::null());
    // Its own group: Ctrl-C at the terminal reaches only us, and we pass it on once.
    command.process_group(0);
    for (name, value) in env::vars_os() {
        let text = name.to_string_lossy();
        let wanted = matches!(&*text, "PATH" | "HOME" | "TMPDIR" | "RUST_LOG" | "RUST_BACKTRACE")
            || (options.foreground && text.starts_with("KKREPO_SCANNER_"));
        if wanted {
            command.env(name, value);
        }
    }
    command.args(["serve", "--listen", &options.listen.to_string()]);
    command.env(CREDENTIAL, &options.credential);
    command.env("KKREPO_SCANNER_SYFT_EXECUTABLE", &options.engines.syft);
    command.env("KKREPO_SCANNER_GRYPE_EXECUTABLE", &options.engines.grype);
    command.env("KKREPO_SCANNER_DB_DIRECTORY", &options.database);
    command.env("KKREPO_SCANNER_WORK_DIRECTORY", &options.work);
    for (name, value) in &options.settings {
        command.env(format!("KKREPO_SCANNER_{name}"), value);
    }
    command
}

/// A loopback address with a port that was free a moment ago.
pub(crate) fn free_address() -> Result<SocketAddr, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(io("find a free port"))
}

/// The credential from the environment, or a new random one.
pub(crate) fn credential() -> (String, Origin) {
    match env::var(CREDENTIAL) {
        Ok(credential) if !credential.trim().is_empty() => (credential, Origin::Environment),
        _ => (uuid::Uuid::new_v4().simple().to_string(), Origin::Generated),
    }
}

/// Where a credential came from; only a generated one may be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The person at the shell knows it.
    Environment,
    /// Made for this run.
    Generated,
}

/// A private work directory below `target`, by purpose.
pub(crate) fn work_directory(target: &Path, purpose: &str) -> PathBuf {
    target.join("run").join(purpose).join("work")
}
