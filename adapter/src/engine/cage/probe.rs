//! Which layers of the cage are really in force here: a program that runs as an engine does, and tries.

use super::plan::Mode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::process::ExitCode;

/// The verb of the program that tries. Its argument names the network namespace of who asks.
pub(crate) const VERB: &str = "cage-probe";

/// One layer of the cage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// A session and process group of its own.
    Session,
    /// No program that it starts can gain privileges.
    NoNewPrivileges,
    /// It has no capability.
    Capabilities,
    /// Files, and where the kernel can: TCP, signals and sockets of others.
    Landlock,
    /// Dangerous system calls are refused.
    Seccomp,
    /// A network namespace in which there is nothing.
    NetworkNamespace,
}

impl Layer {
    /// All of them, outermost first.
    pub const ALL: &[Self] = &[
        Self::Session,
        Self::NoNewPrivileges,
        Self::Capabilities,
        Self::Landlock,
        Self::Seccomp,
        Self::NetworkNamespace,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::Capabilities => "capabilities",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::NetworkNamespace => "network-namespace",
        }
    }

    /// Whether the mode `required` insists on it. A network namespace is not for everyone to make, and without it
    /// seccomp refuses every socket that could leave the host.
    pub const fn is_required(self) -> bool {
        !matches!(self, Self::NetworkNamespace)
    }

    /// Whether it is in force even without a sandbox.
    pub const fn is_always_on(self) -> bool {
        matches!(self, Self::Session | Self::NoNewPrivileges)
    }
}

/// The layers that are in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Force(BTreeSet<Layer>);

impl Force {
    /// Whether this layer is in force.
    pub fn has(&self, layer: Layer) -> bool {
        self.0.contains(&layer)
    }

    /// The words for the layers in force, separated by commas, outermost first.
    pub fn layers(&self) -> String {
        let words: Vec<_> = self.0.iter().map(|layer| layer.as_str()).collect();
        words.join(",")
    }

    /// Reads what the probe printed.
    ///
    /// # Errors
    /// When it is not that.
    pub fn parse(output: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(output)
    }

    /// The layers that this mode insists on and that are not in force.
    pub fn missing(&self, mode: Mode) -> Vec<Layer> {
        let wanted = |layer: &Layer| match mode {
            Mode::Required => layer.is_required(),
            Mode::BestEffort | Mode::Off => layer.is_always_on(),
        };
        Layer::ALL
            .iter()
            .copied()
            .filter(|layer| wanted(layer) && !self.has(*layer))
            .collect()
    }
}

impl FromIterator<Layer> for Force {
    fn from_iter<I: IntoIterator<Item = Layer>>(layers: I) -> Self {
        Self(layers.into_iter().collect())
    }
}

/// The network namespace of this process, as the kernel names it.
pub(crate) fn network_namespace() -> String {
    std::fs::read_link("/proc/self/ns/net")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Tries everything and prints what is in force.
pub(super) fn main() -> ExitCode {
    let outside = std::env::args().nth(2).unwrap_or_default();
    let force: Force = Layer::ALL
        .iter()
        .copied()
        .filter(|layer| is_in_force(*layer, &outside))
        .collect();
    match serde_json::to_string(&force) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn is_in_force(layer: Layer, outside: &str) -> bool {
    use nix::errno::Errno;
    use nix::unistd::{getpid, getsid};
    match layer {
        Layer::Session => getsid(None) == Ok(getpid()),
        Layer::NoNewPrivileges => nix::sys::prctl::get_no_new_privs() == Ok(true),
        Layer::Capabilities => {
            caps::read(None, caps::CapSet::Permitted).is_ok_and(|capabilities| capabilities.is_empty())
        }
        // Everyone may list the root directory, and no rule grants it.
        Layer::Landlock => std::fs::read_dir("/").is_err(),
        // Asks for nothing, which is granted to everyone.
        Layer::Seccomp => nix::sched::unshare(nix::sched::CloneFlags::empty()) == Err(Errno::EPERM),
        Layer::NetworkNamespace => {
            let inside = network_namespace();
            !inside.is_empty() && inside != outside
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Force, Layer};
    use crate::engine::cage::Mode;

    #[test]
    fn each_mode_insists_on_its_layers() {
        let all: Force = Layer::ALL.iter().copied().collect();
        let always: Force = [Layer::Session, Layer::NoNewPrivileges].into_iter().collect();
        for mode in Mode::ALL {
            assert_eq!(all.missing(*mode), []);
        }
        assert_eq!(
            always.missing(Mode::Required),
            [Layer::Capabilities, Layer::Landlock, Layer::Seccomp]
        );
        assert_eq!(always.missing(Mode::BestEffort), []);
        assert_eq!(
            Force::default().missing(Mode::Off),
            [Layer::Session, Layer::NoNewPrivileges]
        );
    }

    #[test]
    fn what_the_probe_prints_is_read() {
        let force: Force = [Layer::Landlock, Layer::NetworkNamespace].into_iter().collect();
        let text = serde_json::to_string(&force).unwrap();
        assert_eq!(text, r#"["landlock","network-namespace"]"#);
        assert_eq!(Force::parse(text.as_bytes()).unwrap(), force);
        assert!(Force::parse(b"{}").is_err());
    }
}
