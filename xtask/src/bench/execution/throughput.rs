//! What eight clients get done against two slots, beside two.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::bench::figure::{Figure, median, number};
use crate::bench::with_adapter;
use crate::demo::Catalog;
use crate::error::Error;
use crate::http::{Client, Input};
use crate::service::Options;

/// Requests of one round; both numbers of clients divide it.
const REQUESTS: usize = 16;
/// Rounds of each number of clients, in turns.
const ROUNDS: usize = 5;
/// As many as there are slots.
const FEW: usize = 2;
/// As many as there are slots and places in the queue, and more.
const MANY: usize = 8;
/// What may be noise.
const LEAST: f64 = 0.97;

/// Catalogs and matches with real engines.
pub(super) fn measure(options: &Options, jar: &[u8]) -> Result<Vec<Figure>, Error> {
    let mut options = options.clone();
    // Nobody is to be turned away: what is compared is how well the slots are used.
    options.settings.extend([
        ("MAX_QUEUED_SCANS", MANY.to_string()),
        ("ADMISSION_TIMEOUT", "5m".to_owned()),
    ]);
    let input = Input {
        bytes: jar,
        artifact_type: "JAR",
    };
    with_adapter(&options, |adapter| {
        let client = adapter.client();
        let sbom = client.catalog::<Catalog>(input)?.sbom()?;
        client.match_sbom::<serde_json::Value>(&sbom)?;
        let catalog = |client: &Client| client.catalog::<Catalog>(input).map(drop);
        let matching = |client: &Client| client.match_sbom::<serde_json::Value>(&sbom).map(drop);
        Ok(vec![
            compare("catalog", client, &catalog)?,
            compare("match", client, &matching)?,
        ])
    })
}

fn compare<W>(name: &str, client: &Client, work: &W) -> Result<Figure, Error>
where
    W: Fn(&Client) -> Result<(), Error> + Sync,
{
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        if round % 2 == 0 {
            few.push(rate(client, FEW, work)?);
            many.push(rate(client, MANY, work)?);
        } else {
            many.push(rate(client, MANY, work)?);
            few.push(rate(client, FEW, work)?);
        }
    }
    let ratios: Vec<f64> = many.iter().zip(&few).map(|(many, few)| many / few).collect();
    Ok(Figure::new(
        format!("execution.throughput.{name}.eight_vs_two"),
        median(&ratios),
        "x",
    )
    .at_least(LEAST)
    .beside(format!(
        "{} and {} a second, {ROUNDS} pairs of {REQUESTS}",
        number(median(&many)),
        number(median(&few))
    )))
}

/// Requests a second.
fn rate<W>(client: &Client, clients: usize, work: &W) -> Result<f64, Error>
where
    W: Fn(&Client) -> Result<(), Error> + Sync,
{
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|_| {
                scope.spawn(|| {
                    while next.fetch_add(1, Ordering::Relaxed) < REQUESTS {
                        work(client)?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| {
                Err(Error::Unexpected {
                    what: "a client",
                    why: "it panicked".to_owned(),
                })
            })
        })
    })?;
    // Counts here are far below 2^52, where `f64` still knows every integer.
    let requests = u32::try_from(REQUESTS).map_or(f64::MAX, f64::from);
    Ok(requests / started.elapsed().as_secs_f64())
}
