//! The one list of every setting: name, kind, default, bounds and documentation. The README's table is made from it.

/// Environment prefix of every key; `KKREPO_SCANNER_MAX_INPUT_BYTES` is `max_input_bytes` in a configuration file.
pub const ENVIRONMENT_PREFIX: &str = "KKREPO_SCANNER_";

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A file system path.
    Path,
    /// Text that is never shown.
    Secret,
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer,
    /// Bytes: a plain number or `7GiB`, `16MB`.
    Bytes,
    /// `10s`, `1m`, `6h`, `500ms`, plain milliseconds, or ISO-8601 such as `PT6H`.
    Duration,
    /// One of the listed words.
    Choice(&'static [&'static str]),
}

/// What happens to a number outside its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// No bounds beyond those of the kind.
    Any,
    /// Brought to the nearest bound, with a warning at start: deployments of the contract rely on it.
    Clamp(i64, i64),
    /// Refused at start.
    Refuse(i64, i64),
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Name in configuration files and in `--set`; upper-cased behind the prefix in the environment.
    pub name: &'static str,
    /// Environment variable where it is not the prefix and the name.
    pub environment: Option<&'static str>,
    /// How it is written.
    pub kind: Kind,
    /// The default as it would be written; empty for none.
    pub default: &'static str,
    /// Bounds of the number behind it (bytes, milliseconds or the number itself).
    pub bounds: Bounds,
    /// What it does and why the default is what it is.
    pub doc: &'static str,
}

impl Key {
    /// The environment variable.
    pub fn environment_name(&self) -> String {
        self.environment.map_or_else(
            || format!("{ENVIRONMENT_PREFIX}{}", self.name.to_ascii_uppercase()),
            str::to_owned,
        )
    }
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    bounds: Bounds,
    doc: &'static str,
) -> Key {
    Key {
        name,
        environment: None,
        kind,
        default,
        bounds,
        doc,
    }
}

const KIB: i64 = 1 << 10;
const MIB: i64 = 1 << 20;
const SECOND: i64 = 1000;
const HOUR: i64 = 3600 * SECOND;

/// Every setting, in the order of the documentation.
pub const KEYS: &[Key] = &[
    Key {
        name: "port",
        environment: Some("SERVER_PORT"),
        kind: Kind::Integer,
        default: "8080",
        bounds: Bounds::Refuse(0, 65535),
        doc: "Port to listen on; 0 takes a free one.",
    },
    key(
        "listen_address",
        Kind::Text,
        "0.0.0.0",
        Bounds::Any,
        "Address to listen on.",
    ),
    key(
        "service_credential",
        Kind::Secret,
        "",
        Bounds::Any,
        "Secret that every request below /v1 must carry. Required to serve.",
    ),
    key(
        "previous_service_credential",
        Kind::Secret,
        "",
        Bounds::Any,
        "A second accepted secret, so that credentials can be rotated without an outage.",
    ),
    key(
        "work_directory",
        Kind::Path,
        "/tmp/kkrepo-scanner",
        Bounds::Any,
        "Private scratch space, made on demand.",
    ),
    key(
        "syft_executable",
        Kind::Text,
        "syft",
        Bounds::Any,
        "Cataloguer; looked up on PATH when it has no slash.",
    ),
    key(
        "grype_executable",
        Kind::Text,
        "grype",
        Bounds::Any,
        "Matcher; looked up on PATH when it has no slash.",
    ),
    key(
        "engine_memory_bytes",
        Kind::Bytes,
        "4GiB",
        Bounds::Refuse(0, i64::MAX),
        "Writable memory of one engine process; 0 leaves it to the host. Syft starts with 128 MiB and needs about \
         256 MiB for a small artifact.",
    ),
    key(
        "expected_syft_version",
        Kind::Text,
        "",
        Bounds::Any,
        "The only version of the cataloguer that counts as ready, such as `1.57.1`; empty takes any.",
    ),
    key(
        "expected_grype_version",
        Kind::Text,
        "",
        Bounds::Any,
        "The only version of the matcher that counts as ready; empty takes any.",
    ),
    key(
        "sandbox",
        Kind::Choice(&["required", "best-effort", "off"]),
        "best-effort",
        Bounds::Any,
        "Whether engines run in a sandbox (files, system calls, network, capabilities): `required` serves only where \
         every layer is in force, `best-effort` takes the layers that the kernel has, `off` takes none.",
    ),
    key(
        "sandbox_readable",
        Kind::Text,
        "",
        Bounds::Any,
        "Further files and directories that engines may read in the sandbox, separated by colons; for engines that \
         keep parts of themselves elsewhere.",
    ),
    key(
        "db_directory",
        Kind::Path,
        "/var/lib/kkrepo-scanner/grype",
        Bounds::Any,
        "Vulnerability database generations; read-only is enough to serve.",
    ),
    key(
        "db_max_age",
        Kind::Duration,
        "120h",
        Bounds::Refuse(0, i64::MAX),
        "Oldest build time of a database that may be used; 0 accepts any age. The default is the matcher's own.",
    ),
    key(
        "db_auto_update",
        Kind::Bool,
        "false",
        Bounds::Any,
        "Update the database in the serving process, too; deployments have an updater of their own instead.",
    ),
    key(
        "database_update_only",
        Kind::Bool,
        "false",
        Bounds::Any,
        "Do one database update and exit; serve nothing.",
    ),
    key(
        "db_update_interval",
        Kind::Duration,
        "6h",
        Bounds::Any,
        "Least time between two successful updates; 0 means always due.",
    ),
    key(
        "db_update_check_interval",
        Kind::Duration,
        "1m",
        Bounds::Refuse(SECOND, i64::MAX),
        "Pause between two looks of in-process updates.",
    ),
    key(
        "database_update_lock_timeout",
        Kind::Duration,
        "10m",
        Bounds::Clamp(0, HOUR),
        "Longest wait for another updater; 0 tries once.",
    ),
    key(
        "db_update_url",
        Kind::Text,
        "",
        Bounds::Any,
        "Where the updater asks for databases; empty means the matcher's own source.",
    ),
    key(
        "db_update_sources",
        Kind::Text,
        "",
        Bounds::Any,
        "Where databases come from, separated by commas and tried in this order: `upstream`, the address of a mirror in \
         the matcher's layout, the absolute path of a file or directory. Empty means `db_update_url`, else `upstream`.",
    ),
    key(
        "db_update_timeout",
        Kind::Duration,
        "45m",
        Bounds::Refuse(SECOND, 24 * HOUR),
        "Longest update from its start to its end, all sources and the wait for another updater included.",
    ),
    key(
        "db_update_min_rate",
        Kind::Bytes,
        "16KiB",
        Bounds::Refuse(0, i64::MAX),
        "Slowest download, bytes a second over `db_update_stall_window`; 0 waits until `db_update_timeout`.",
    ),
    key(
        "db_update_stall_window",
        Kind::Duration,
        "1m",
        Bounds::Refuse(SECOND, HOUR),
        "How long a download may be slower than `db_update_min_rate`; unpacking the archive must not take longer.",
    ),
    key(
        "db_canary_directory",
        Kind::Path,
        "",
        Bounds::Any,
        "CycloneDX files (`*.json`, and `expectations.json`) that a new database is tried on before it is published; \
         empty means a small set of our own, `none` tries nothing.",
    ),
    key(
        "db_canary_max_swing",
        Kind::Integer,
        "25",
        Bounds::Refuse(0, 1_000_000),
        "Findings of one SBOM of the canary that may come or go with a new database.",
    ),
    key(
        "db_canary_max_swing_percent",
        Kind::Integer,
        "10",
        Bounds::Refuse(0, 1000),
        "As many percent of the SBOM's current findings may come or go beside those.",
    ),
    key(
        "max_oci_request_bytes",
        Kind::Bytes,
        "64KiB",
        Bounds::Clamp(KIB, MIB),
        "Largest JSON body of an OCI scan request.",
    ),
    key(
        "oci_plain_http_registries",
        Kind::Text,
        "",
        Bounds::Any,
        "Registries that may be asked over plain http: `host` or `host:port`, separated by commas. All others need https.",
    ),
    key(
        "oci_ca_file",
        Kind::Path,
        "",
        Bounds::Any,
        "PEM file of certificates that registries may be signed by, beside the system's.",
    ),
    key(
        "oci_denied_networks",
        Kind::Text,
        "0.0.0.0/8,100.100.100.200,169.254.0.0/16,224.0.0.0/4,255.255.255.255,::/128,fd00:ec2::254,fe80::/10,ff00::/8",
        Bounds::Any,
        "Networks and addresses that no registry may have, separated by commas. The default holds link-local, multicast and cloud metadata addresses.",
    ),
    key(
        "oci_parallel_fetches",
        Kind::Integer,
        "4",
        Bounds::Refuse(1, 16),
        "Layers of one image that are fetched at the same time.",
    ),
    key(
        "max_input_bytes",
        Kind::Bytes,
        "2GiB",
        Bounds::Clamp(KIB, i64::MAX),
        "Largest artifact; requests may ask for less.",
    ),
    key(
        "max_output_bytes",
        Kind::Bytes,
        "16MiB",
        Bounds::Clamp(KIB, i64::MAX),
        "Largest document of an engine.",
    ),
    key(
        "max_stderr_bytes",
        Kind::Bytes,
        "256KiB",
        Bounds::Clamp(KIB, i64::MAX),
        "Most diagnostics of an engine.",
    ),
    key(
        "max_scratch_bytes",
        Kind::Bytes,
        "7GiB",
        Bounds::Clamp(MIB, i64::MAX),
        "Scratch that all running scans may reserve together; keep it below the volume.",
    ),
    key(
        "min_free_scratch_bytes",
        Kind::Bytes,
        "0",
        Bounds::Refuse(0, i64::MAX),
        "Least free space of the work directory's volume that counts as ready; 0 is what the smallest run reserves: 3 × \
         output + diagnostics + 1 MiB.",
    ),
    key(
        "max_response_memory_bytes",
        Kind::Bytes,
        "0",
        Bounds::Refuse(0, i64::MAX),
        "Memory that documents and answers of all runs may take together; a run reserves 2 × output + diagnostics + 64 MiB, \
         and what its answer takes until the client has read it. 0 is enough for all slots, and at least 1 GiB.",
    ),
    key(
        "readiness_cache",
        Kind::Duration,
        "30s",
        Bounds::Refuse(0, HOUR),
        "How long a readiness answer is reused while the database pointer stays the same.",
    ),
    key(
        "max_concurrent_scans",
        Kind::Integer,
        "2",
        Bounds::Clamp(1, 64),
        "Scans that run at the same time.",
    ),
    key(
        "max_queued_scans",
        Kind::Integer,
        "4",
        Bounds::Clamp(0, 1024),
        "Scans that may wait for a slot.",
    ),
    key(
        "admission_timeout",
        Kind::Duration,
        "1s",
        Bounds::Refuse(0, HOUR),
        "Longest wait for a slot; 0 tries once.",
    ),
    key(
        "retry_after_seconds",
        Kind::Integer,
        "5",
        Bounds::Clamp(1, 3600),
        "Retry-After of a 429.",
    ),
    key(
        "max_connections",
        Kind::Integer,
        "4096",
        Bounds::Refuse(1, 1_000_000),
        "Open client connections.",
    ),
    key(
        "header_timeout",
        Kind::Duration,
        "30s",
        Bounds::Refuse(100, HOUR),
        "Longest time from the first byte of a request head to its last.",
    ),
    key(
        "idle_timeout",
        Kind::Duration,
        "5m",
        Bounds::Refuse(100, 24 * HOUR),
        "Longest silence between two requests.",
    ),
    key(
        "body_timeout",
        Kind::Duration,
        "60s",
        Bounds::Refuse(100, HOUR),
        "Longest silence inside a request body, and longest stall while a response is written.",
    ),
    key(
        "shutdown_grace",
        Kind::Duration,
        "30s",
        Bounds::Refuse(0, HOUR),
        "How long running scans may finish after SIGTERM before they are cancelled.",
    ),
    key(
        "provenance_cache",
        Kind::Path,
        "",
        Bounds::Any,
        "File that remembers engine versions and database provenance; default `provenance.json` in the work directory.",
    ),
    key(
        "log_format",
        Kind::Choice(&["json", "text"]),
        "json",
        Bounds::Any,
        "Form of log lines on standard error.",
    ),
    key(
        "log_level",
        Kind::Choice(&["error", "warn", "info", "debug", "trace"]),
        "info",
        Bounds::Any,
        "Least severe level that is logged.",
    ),
    key(
        "otlp_endpoint",
        Kind::Text,
        "",
        Bounds::Any,
        "Traces go to this OTLP/HTTP collector, such as `http://collector:4318`; `/v1/traces` is added. A run continues \
         the trace of its request's `traceparent`.",
    ),
];

/// The key with this name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}
