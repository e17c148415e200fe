//! `check`: the effective configuration, and what is missing to be ready.

use super::start;
use crate::app::App;
use crate::config::keys::{ENVIRONMENT_PREFIX, KEYS};
use crate::config::{Config, Mistake, Resolved};
use crate::operation::readiness::as_expected;
use crate::problem::{Problem, error_chain, sanitize};
use crate::run::RunContext;
use crate::workspace;
use std::process::ExitCode;
use std::time::Duration;

/// Longest time that each look at engines or database may take.
const PROBE: Duration = Duration::from_secs(15);

/// Environment variables of the command line that are no settings.
const OF_COMMAND_LINE: &[&str] = &[
    "KKREPO_SCANNER_CONFIG_FILE",
    "KKREPO_SCANNER_DB_UPDATE_CHECK_SECONDS",
];

/// Prints and probes. Exit codes: 0 ready to serve, 1 something is missing.
pub fn main(config: Config, resolved: &Resolved) -> ExitCode {
    for line in resolved.lines() {
        println!("{line}");
    }
    for warning in &resolved.warnings {
        println!("warning: {warning}");
    }
    for name in ignored(super::environment().map(|(name, _)| name)) {
        println!("ignored: {name} is not a setting");
    }
    let mut missing = config.missing_to_serve();
    let (app, runtime) = match start(config, &mut tokio::runtime::Builder::new_current_thread()) {
        Ok(started) => started,
        Err(code) => return code,
    };
    missing.extend(runtime.block_on(probe(&app)));
    if missing.is_empty() {
        println!("ready to serve");
        return ExitCode::SUCCESS;
    }
    for line in missing {
        println!("missing: {line}");
    }
    ExitCode::FAILURE
}

/// Environment variables with the settings' prefix that are none. Orchestrators inject such names for services of
/// their own, so they are no mistakes.
fn ignored(names: impl Iterator<Item = String>) -> Vec<String> {
    let is_known =
        |name: &str| OF_COMMAND_LINE.contains(&name) || KEYS.iter().any(|key| key.environment_name() == name);
    names
        .filter(|name| name.starts_with(ENVIRONMENT_PREFIX) && !is_known(name))
        .map(|name| sanitize(&name, 200))
        .collect()
}

/// Looks at work directory, engines and database, each on its own so that every problem gets its line; prints what is
/// there.
async fn probe(app: &App) -> Vec<Mistake> {
    let mut missing = Vec::new();
    // The engines' versions are asked in the work directory, so without it nothing else can be said of them.
    let engine = &app.config.engine;
    match workspace::check_room(&engine.work_directory, engine.min_free_scratch_bytes) {
        Ok(()) => {
            match app.scanner.cage(&RunContext::with_timeout(PROBE)).await {
                Ok(force) => println!("isolation in force: {}", force.layers()),
                Err(problem) => missing.push(reason("sandbox", &problem)),
            }
            let engines = &app.scanner.engines;
            match engines.syft_version(&RunContext::with_timeout(PROBE)).await {
                Ok(version) => {
                    println!("syft version: {version}");
                    let expected = as_expected("syft", &version, engine.expected_syft.as_deref());
                    missing.extend(expected.err().map(|problem| reason("syft_executable", &problem)));
                }
                Err(error) => missing.push(reason("syft_executable", &error.into())),
            }
            match engines.grype_version(&RunContext::with_timeout(PROBE)).await {
                Ok(version) => {
                    println!("grype version: {version}");
                    let expected = as_expected("grype", &version, engine.expected_grype.as_deref());
                    missing.extend(expected.err().map(|problem| reason("grype_executable", &problem)));
                }
                Err(error) => missing.push(reason("grype_executable", &error.into())),
            }
        }
        Err(error) => missing.push(reason("work_directory", &error.into())),
    }
    match database(app).await {
        Ok((revision, built)) => println!("vulnerability database: {revision}, built {built}"),
        Err(problem) => missing.push(reason("db_directory", &problem)),
    }
    missing
}

/// Revision and build time of the published database.
async fn database(app: &App) -> Result<(String, String), Problem> {
    let generation = app.scanner.database.pin().await?;
    let provenance = app
        .scanner
        .engines
        .database(&generation.path, &RunContext::with_timeout(PROBE))
        .await?;
    let built = provenance.updated_at();
    Ok((provenance.revision, built))
}

/// A problem in words, with what is underneath it, for the setting that would solve it.
fn reason(setting: &str, problem: &Problem) -> Mistake {
    let words = match problem.cause.as_deref() {
        // The causes of this crate begin with the same words as the problem that is made from them.
        Some(cause) => {
            let chain = error_chain(cause);
            if chain.starts_with(&problem.message) {
                chain
            } else {
                format!("{}: {chain}", problem.message)
            }
        }
        None => problem.message.clone(),
    };
    Mistake::new(setting, format!("{words} ({})", problem.code))
}

#[cfg(test)]
mod tests {
    use super::{ignored, reason};
    use crate::problem::Problem;
    use assay_schemas::Code;
    use std::io;

    #[test]
    fn variables_of_orchestrators_are_named_and_settings_are_not() {
        let names = [
            "KKREPO_SCANNER_PORT",
            "KKREPO_SCANNER_MAX_INPUT_BYTES",
            "KKREPO_SCANNER_CONFIG_FILE",
            "PATH",
        ];
        assert_eq!(
            ignored(names.into_iter().map(str::to_owned)),
            ["KKREPO_SCANNER_PORT"]
        );
    }

    #[test]
    fn a_reason_has_words_cause_and_code() {
        let problem = Problem::new(Code::WorkspaceIo, "no directory").caused_by(io::Error::other("full"));
        let line = reason("work_directory", &problem).to_string();
        assert_eq!(
            line,
            format!("work_directory: no directory: full ({})", Code::WorkspaceIo)
        );
    }
}
