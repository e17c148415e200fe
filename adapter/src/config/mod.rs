//! Settings: layers of text to one checked [`Config`]. Pure; only `main` reads the environment and files.

pub mod keys;
pub mod layers;
pub mod value;

#[cfg(test)]
mod table;

use self::value::duration;
use crate::engine::MinimumRate;
use crate::engine::cage::Mode;
use crate::oci::address::AddressPolicy;
use crate::oci::endpoint::EndpointPolicy;
use crate::telemetry;
use crate::vulndb::canary::{self, Bounds};
use crate::vulndb::source::{self, Source};
use assay_schemas::Ceiling;
use secrecy::SecretString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use layers::{Layer, Mistake, Resolved, resolve};

/// Everything the adapter can be told, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Listening, timeouts and credential.
    pub http: HttpConfig,
    /// Sizes that bound one run and all runs.
    pub ceiling: Ceiling,
    /// Slots, queue and scratch.
    pub admission: AdmissionConfig,
    /// Engines and scratch space.
    pub engine: EngineConfig,
    /// Vulnerability database.
    pub database: DatabaseConfig,
    /// Registries.
    pub oci: OciConfig,
    /// How long a readiness answer is reused.
    pub readiness_cache: Duration,
    /// Logging.
    pub log: LogConfig,
}

/// Listening, timeouts and credential.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Address to listen on.
    pub address: IpAddr,
    /// Port to listen on; 0 takes a free one.
    pub port: u16,
    /// Accepted credentials; empty when none is configured.
    pub credentials: Vec<SecretString>,
    /// Open client connections at most.
    pub max_connections: usize,
    /// From the first byte of a request head to its last.
    pub header_timeout: Duration,
    /// Between two requests.
    pub idle_timeout: Duration,
    /// Silence inside a body or while a response is written.
    pub body_timeout: Duration,
    /// For running scans after a termination signal.
    pub shutdown_grace: Duration,
    /// Largest JSON body of an OCI scan request, bytes.
    pub max_oci_request_bytes: usize,
}

/// Slots, queue and scratch.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionConfig {
    /// Scans that run at the same time, 1..=64.
    pub max_concurrent: usize,
    /// Scans that may wait, 0..=1024.
    pub max_queued: usize,
    /// Longest wait for a slot and scratch together.
    pub timeout: Duration,
    /// `Retry-After` of a 429, seconds.
    pub retry_after_seconds: u32,
    /// Scratch that all running scans may reserve together, MiB.
    pub scratch_mebibytes: u64,
    /// Memory that documents and answers of all runs may take together, bytes.
    pub memory_bytes: u64,
    /// What one run reserves of it, bytes.
    pub memory_of_a_run_bytes: u64,
}

/// Engines and scratch space.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Private scratch space.
    pub work_directory: PathBuf,
    /// Cataloguer: a path, or a name to look up on PATH.
    pub syft: String,
    /// Matcher: a path, or a name to look up on PATH.
    pub grype: String,
    /// The only version of the cataloguer that is ready; `None` takes any.
    pub expected_syft: Option<String>,
    /// The only version of the matcher that is ready; `None` takes any.
    pub expected_grype: Option<String>,
    /// Least free space of the scratch space that is ready, bytes.
    pub min_free_scratch_bytes: u64,
    /// File that remembers versions and provenance.
    pub provenance_cache: PathBuf,
    /// Writable memory of one engine process, bytes; `None` leaves it to the host.
    pub memory_bytes: Option<u64>,
    /// Whether engines run in a sandbox.
    pub sandbox: Mode,
    /// What they may read in it beside what they need.
    pub sandbox_readable: Vec<PathBuf>,
}

/// Vulnerability database.
#[derive(Debug, Clone)]
pub struct DatabaseConfig {
    /// Directory with the pointer and the generations.
    pub directory: PathBuf,
    /// Oldest build time that may be used; `None` accepts any age.
    pub max_age: Option<Duration>,
    /// Update in this process.
    pub auto_update: bool,
    /// One update, then exit.
    pub update_only: bool,
    /// Least time between two successful updates; zero means always due.
    pub update_interval: Duration,
    /// Tick of in-process updates.
    pub check_interval: Duration,
    /// Longest wait for another updater.
    pub lock_timeout: Duration,
    /// Sources of databases, in the order in which they are tried.
    pub sources: Vec<Source>,
    /// Longest update.
    pub update_timeout: Duration,
    /// The slowest download that is waited for.
    pub minimum_rate: MinimumRate,
    /// What a new database is tried on.
    pub canary: canary::Set,
    /// How far its findings may be from those of the current one.
    pub canary_bounds: Bounds,
}

/// Registries.
#[derive(Debug, Clone)]
pub struct OciConfig {
    /// Which ones may be asked, and how.
    pub policy: EndpointPolicy,
    /// Certificates beside the system's.
    pub ca_file: Option<PathBuf>,
    /// Layers of one run that are fetched at the same time, 1..=16.
    pub parallel_fetches: usize,
}

/// Logging.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// JSON lines instead of text.
    pub json: bool,
    /// Least severe level that is logged.
    pub level: String,
    /// Where traces go.
    pub collector: Option<String>,
}

impl Config {
    /// The configuration of these resolved values.
    ///
    /// # Errors
    /// One [`Mistake`] for each value that only makes sense together with its meaning, such as an address.
    pub fn from_resolved(values: &Resolved) -> Result<Self, Vec<Mistake>> {
        let Ok(address) = values.text("listen_address").parse() else {
            return Err(vec![Mistake::new("listen_address", "is not an IP address")]);
        };
        let oci = oci(values)?;
        let collector = Some(values.text("otlp_endpoint").to_owned()).filter(|url| !url.is_empty());
        if collector
            .as_deref()
            .is_some_and(|url| !telemetry::is_collector(url))
        {
            return Err(vec![Mistake::new(
                "otlp_endpoint",
                "is not the URL of an HTTP server",
            )]);
        }
        let work_directory = PathBuf::from(values.text("work_directory"));
        let provenance_cache = match values.text("provenance_cache") {
            "" => work_directory.join("provenance.json"),
            path => PathBuf::from(path),
        };
        let text = |name| Some(values.text(name).to_owned()).filter(|text| !text.is_empty());
        let max_age = duration(values.number("db_max_age"));
        Ok(Self {
            http: HttpConfig {
                address,
                port: u16::try_from(values.number("port")).unwrap_or(0),
                credentials: credentials([
                    values.text("service_credential"),
                    values.text("previous_service_credential"),
                ]),
                max_connections: values.size("max_connections"),
                header_timeout: duration(values.number("header_timeout")),
                idle_timeout: duration(values.number("idle_timeout")),
                body_timeout: duration(values.number("body_timeout")),
                shutdown_grace: duration(values.number("shutdown_grace")),
                max_oci_request_bytes: values.size("max_oci_request_bytes"),
            },
            ceiling: Ceiling {
                max_input_bytes: values.number("max_input_bytes"),
                max_output_bytes: values.number("max_output_bytes"),
                max_stderr_bytes: values.number("max_stderr_bytes"),
            },
            admission: admission(values),
            engine: EngineConfig {
                work_directory,
                syft: values.text("syft_executable").to_owned(),
                grype: values.text("grype_executable").to_owned(),
                expected_syft: text("expected_syft_version"),
                expected_grype: text("expected_grype_version"),
                min_free_scratch_bytes: min_free_scratch(values),
                provenance_cache,
                memory_bytes: u64::try_from(values.number("engine_memory_bytes"))
                    .ok()
                    .filter(|bytes| *bytes > 0),
                sandbox: Mode::parse(values.text("sandbox")).unwrap_or(Mode::Required),
                sandbox_readable: std::env::split_paths(values.text("sandbox_readable"))
                    .filter(|path| path.is_absolute())
                    .collect(),
            },
            database: database(values, max_age)?,
            oci,
            readiness_cache: duration(values.number("readiness_cache")),
            log: LogConfig {
                json: values.text("log_format") == "json",
                level: values.text("log_level").to_owned(),
                collector,
            },
        })
    }

    /// What is missing to serve, one line each.
    pub fn missing_to_serve(&self) -> Vec<Mistake> {
        let mut missing = Vec::new();
        if self.http.credentials.is_empty() {
            missing.push(Mistake::new("service_credential", "is required to serve"));
        }
        missing
    }
}

fn admission(values: &Resolved) -> AdmissionConfig {
    let bytes = |name| u64::try_from(values.number(name)).unwrap_or(0);
    let max_concurrent = values.size("max_concurrent_scans");
    // The engine's document, the one that is made of it, diagnostics, and the answer.
    let memory_of_a_run_bytes = bytes("max_output_bytes")
        .saturating_mul(2)
        .saturating_add(bytes("max_stderr_bytes"))
        .saturating_add(MAX_ANSWER_BYTES);
    let memory_bytes = match bytes("max_response_memory_bytes") {
        0 => memory_of_a_run_bytes
            .saturating_mul(max_concurrent as u64)
            .max(1 << 30),
        configured => configured,
    };
    AdmissionConfig {
        max_concurrent,
        max_queued: values.size("max_queued_scans"),
        timeout: duration(values.number("admission_timeout")),
        retry_after_seconds: u32::try_from(values.number("retry_after_seconds")).unwrap_or(1),
        scratch_mebibytes: u64::try_from(values.number("max_scratch_bytes") >> 20).unwrap_or(1),
        memory_bytes,
        memory_of_a_run_bytes,
    }
}

fn min_free_scratch(values: &Resolved) -> u64 {
    let bytes = |name| u64::try_from(values.number(name)).unwrap_or(0);
    match bytes("min_free_scratch_bytes") {
        // The least that a run reserves: for an input of next to nothing, in whole MiB.
        0 => bytes("max_output_bytes")
            .saturating_mul(3)
            .saturating_add(bytes("max_stderr_bytes"))
            .saturating_add(1 << 20),
        configured => configured,
    }
}

/// The largest answer that clients take, bytes.
const MAX_ANSWER_BYTES: u64 = 64 << 20;

fn database(values: &Resolved, max_age: Duration) -> Result<DatabaseConfig, Vec<Mistake>> {
    let count = |name| u64::try_from(values.number(name)).unwrap_or(0);
    let listed = ["db_update_sources", "db_update_url"]
        .into_iter()
        .find(|name| !values.text(name).trim().is_empty())
        .unwrap_or("db_update_sources");
    let sources =
        source::parse(values.text(listed)).map_err(|error| vec![Mistake::new(listed, error.to_string())])?;
    Ok(DatabaseConfig {
        directory: PathBuf::from(values.text("db_directory")),
        max_age: (!max_age.is_zero()).then_some(max_age),
        auto_update: values.flag("db_auto_update"),
        update_only: values.flag("database_update_only"),
        update_interval: duration(values.number("db_update_interval")),
        check_interval: duration(values.number("db_update_check_interval")),
        lock_timeout: duration(values.number("database_update_lock_timeout")),
        sources,
        update_timeout: duration(values.number("db_update_timeout")),
        minimum_rate: MinimumRate {
            bytes_per_second: count("db_update_min_rate"),
            window: duration(values.number("db_update_stall_window")),
        },
        canary: match values.text("db_canary_directory") {
            "" => canary::Set::BuiltIn,
            "none" => canary::Set::Nothing,
            directory => canary::Set::Directory(directory.into()),
        },
        canary_bounds: Bounds {
            findings: count("db_canary_max_swing"),
            percent: count("db_canary_max_swing_percent"),
        },
    })
}

fn oci(values: &Resolved) -> Result<OciConfig, Vec<Mistake>> {
    let denied = "oci_denied_networks";
    let Some(addresses) = AddressPolicy::parse(values.text(denied)) else {
        let what = "is not a list of networks such as 169.254.0.0/16";
        return Err(vec![Mistake::new(denied, what)]);
    };
    let plain = "oci_plain_http_registries";
    let plain_http: Vec<String> = values
        .text(plain)
        .split(',')
        .map(|item| item.trim().to_ascii_lowercase())
        .filter(|item| !item.is_empty())
        .collect();
    let is_authority = |item: &String| {
        item.parse::<hyper::http::uri::Authority>()
            .is_ok_and(|authority| !item.contains('@') && authority.as_str() == item)
    };
    if !plain_http.iter().all(is_authority) {
        let what = "is not a list of hosts such as registry:5000";
        return Err(vec![Mistake::new(plain, what)]);
    }
    Ok(OciConfig {
        policy: EndpointPolicy {
            plain_http,
            addresses,
        },
        ca_file: Some(PathBuf::from(values.text("oci_ca_file"))).filter(|path| !path.as_os_str().is_empty()),
        parallel_fetches: values.size("oci_parallel_fetches"),
    })
}

/// Places where the cataloguer takes a mounted file system for one without software and skips what is in it, so that
/// an inventory made there would be empty without a word.
const SKIPPED_PLACES: &[&str] = &["/proc", "/sys", "/dev", "/run", "/var/run", "/var/lock"];

/// Whether scratch space at this path, links resolved, would be invisible to the cataloguer.
pub fn is_skipped_place(path: &Path) -> bool {
    SKIPPED_PLACES.iter().any(|place| path.starts_with(place))
}

/// Those of the secrets that are not blank, without the surrounding space that HTTP would drop.
fn credentials(texts: [&str; 2]) -> Vec<SecretString> {
    texts
        .into_iter()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(SecretString::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::is_skipped_place;
    use std::path::Path;

    #[test]
    fn scratch_space_is_where_the_cataloguer_looks() {
        for place in ["/dev/shm/x", "/run", "/run/user/0/x", "/var/run/x", "/proc/self"] {
            assert!(is_skipped_place(Path::new(place)), "{place}");
        }
        for place in ["/tmp/x", "/var/tmp", "/runner/x", "/device", "/var/lib/run"] {
            assert!(!is_skipped_place(Path::new(place)), "{place}");
        }
    }
}
