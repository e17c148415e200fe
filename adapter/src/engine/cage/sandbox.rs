//! What an engine cannot reach: files (Landlock), dangerous system calls (seccomp), the network (a namespace of its own,
//! Landlock and seccomp), capabilities.
//!
//! Each layer stands by itself, so that one that a kernel lacks or a container forbids does not take the others away.

use super::CageError;
use super::plan::{Mode, Sandbox};
use super::probe::Layer;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use nix::libc;
use nix::sched::{CloneFlags, unshare};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The newest Landlock version whose rights are asked for; an older kernel gives what it has.
const ABI_WANTED: ABI = ABI::V6;
/// The oldest that the mode `required` takes: all file access, TCP, and signals and sockets of others.
const ABI_REQUIRED: ABI = ABI::V1;

/// What programs and their loaders need to run.
const RUNNABLE: &[&str] = &["/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib64"];
/// What programs read to run well: their own process, the processors and the memory that they have, the time zone.
const READABLE: &[&str] = &[
    "/proc/self",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/sys/devices/system/cpu",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/dev/null",
    "/dev/urandom",
];
/// What programs read to find and to trust other hosts.
const NETWORK_READABLE: &[&str] = &[
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];
const WRITABLE_DEVICES: &[&str] = &["/dev/null"];

/// Enters the sandbox for good.
pub(super) fn enter(sandbox: &Sandbox, engine: &OsStr) -> Result<(), CageError> {
    if sandbox.mode == Mode::Off {
        return Ok(());
    }
    let entered = [
        (Layer::NetworkNamespace, leave_network(sandbox.network)),
        (Layer::Capabilities, drop_capabilities()),
        (Layer::Landlock, restrict_files(sandbox, engine)),
        (Layer::Seccomp, filter_calls(sandbox.network)),
    ];
    for (layer, outcome) in entered {
        match outcome {
            Err(reason) if sandbox.mode == Mode::Required && layer.is_required() => {
                return Err(CageError::Isolation {
                    step: layer.as_str(),
                    reason,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// A network namespace in which there is nothing, not even a loopback that is up.
fn leave_network(wanted: bool) -> Result<(), String> {
    if wanted {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWNET)
        // Who may not make one may still make one inside a user namespace.
        .or_else(|_| unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET))
        .map_err(|error| error.to_string())
}

fn drop_capabilities() -> Result<(), String> {
    use caps::CapSet;
    let mut failed = None;
    // The bounding set first: taking from it needs a capability itself. Nobody who has none can, and need not.
    if caps::has_cap(None, CapSet::Effective, caps::Capability::CAP_SETPCAP).unwrap_or(false) {
        failed = caps::clear(None, CapSet::Bounding).err();
    }
    for set in [
        CapSet::Ambient,
        CapSet::Inheritable,
        CapSet::Effective,
        CapSet::Permitted,
    ] {
        if let Err(error) = caps::clear(None, set) {
            failed = Some(error);
        }
    }
    failed.map_or(Ok(()), |error| Err(error.to_string()))
}

fn restrict_files(sandbox: &Sandbox, engine: &OsStr) -> Result<(), String> {
    let read = BitFlags::from(AccessFs::ReadFile) | AccessFs::ReadDir;
    let run = read | AccessFs::Execute;
    let write = AccessFs::from_all(ABI_WANTED)
        & !(AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeFifo);
    let paths = |list: &[&'static str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
    let mut rules: Vec<(PathBuf, BitFlags<AccessFs>)> = Vec::new();
    let mut grant = |paths: Vec<PathBuf>, access| rules.extend(paths.into_iter().map(|path| (path, access)));
    grant(vec![PathBuf::from(engine)], run);
    grant(paths(RUNNABLE), run);
    grant(paths(READABLE), read);
    grant(sandbox.readable.clone(), read);
    grant(paths(WRITABLE_DEVICES), read | AccessFs::WriteFile);
    grant(sandbox.writable.clone(), write);
    if sandbox.network {
        grant(paths(NETWORK_READABLE), read);
    }
    let level = if sandbox.mode == Mode::Required {
        CompatLevel::HardRequirement
    } else {
        CompatLevel::BestEffort
    };
    let text = |error: landlock::RulesetError| error.to_string();
    let mut ruleset = Ruleset::default()
        .set_compatibility(level)
        .handle_access(AccessFs::from_all(ABI_REQUIRED))
        .map_err(text)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI_WANTED))
        .map_err(text)?
        .scope(Scope::from_all(ABI_WANTED))
        .map_err(text)?;
    if !sandbox.network {
        ruleset = ruleset
            .handle_access(AccessNet::from_all(ABI_WANTED))
            .map_err(text)?;
    }
    let mut created = ruleset.create().map_err(text)?;
    for (path, access) in rules {
        // What does not exist here cannot be reached either.
        let Ok(opened) = PathFd::new(&path) else { continue };
        let access = if is_directory(&path) {
            access
        } else {
            access & AccessFs::from_file(ABI_WANTED)
        };
        created = created.add_rule(PathBeneath::new(opened, access)).map_err(text)?;
    }
    let status = created.restrict_self().map_err(text)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err("not enforced by this kernel".to_owned());
    }
    Ok(())
}

fn is_directory(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Calls with which a process watches or changes others, the kernel, or what is mounted. No engine has a use for them.
const DENIED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_personality,
];

/// Flags of `clone` that make namespaces.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

fn filter_calls(network: bool) -> Result<(), String> {
    let text = |error: seccompiler::Error| error.to_string();
    // Its flags are behind a pointer, where no filter can look; who is told that it does not exist uses `clone`.
    let unknown: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let unknown = program(unknown, libc::ENOSYS)?;
    let denied = program(denied(network)?, libc::EPERM)?;
    seccompiler::apply_filter(&unknown).map_err(text)?;
    seccompiler::apply_filter(&denied).map_err(text)
}

fn denied(network: bool) -> Result<BTreeMap<i64, Vec<SeccompRule>>, String> {
    let text = |error: seccompiler::BackendError| error.to_string();
    let when = |index, operator, value| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
            .and_then(|condition| SeccompRule::new(vec![condition]))
            .map_err(text)
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    if !network {
        let unix = u64::from(libc::AF_UNIX.unsigned_abs());
        rules.insert(libc::SYS_socket, vec![when(0, SeccompCmpOp::Ne, unix)?]);
    }
    let namespaces = NAMESPACES.iter().map(|flag| {
        let flag = u64::from(flag.cast_unsigned());
        when(0, SeccompCmpOp::MaskedEq(flag), flag)
    });
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    Ok(rules)
}

fn program(rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, String> {
    let text = |error: seccompiler::BackendError| error.to_string();
    let arch = std::env::consts::ARCH.try_into().map_err(text)?;
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.unsigned_abs()),
        arch,
    )
    .and_then(TryInto::try_into)
    .map_err(text)
}
