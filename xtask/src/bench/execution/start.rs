//! What session, limits and sandbox cost for each engine, as the adapter's own benchmark measures it.

use serde::Deserialize;

use crate::bench::figure::{Figure, number};
use crate::bench::own_benchmark;
use crate::error::Error;
use crate::workspace::Workspace;

/// One line of the benchmark.
#[derive(Debug, Deserialize)]
struct Starts {
    name: String,
    bare_seconds: f64,
    held_seconds: f64,
    difference_seconds: f64,
    rounds: u32,
}

/// Runs the adapter's benchmark.
pub(super) fn measure(workspace: &Workspace) -> Result<Vec<Figure>, Error> {
    let starts: Vec<Starts> = own_benchmark(workspace, "start", &[])?;
    Ok(starts.iter().map(Starts::figure).collect())
}

impl Starts {
    fn figure(&self) -> Figure {
        let beside = format!(
            "bare start {} ms, held {} ms, {} pairs",
            number(self.bare_seconds * 1000.0),
            number(self.held_seconds * 1000.0),
            self.rounds
        );
        Figure::new(
            format!("execution.start.{}", self.name),
            self.difference_seconds * 1000.0,
            "ms",
        )
        .at_most(5.0)
        .beside(beside)
    }
}

#[cfg(test)]
mod tests {
    use super::Starts;

    #[test]
    fn the_difference_is_what_is_judged() {
        let line = r#"{"name":"sandbox","bare_seconds":0.001,"held_seconds":0.007,"difference_seconds":0.0055,"rounds":3}"#;
        let starts: Starts = serde_json::from_str(line).unwrap();
        assert_eq!(
            starts.figure().row(),
            [
                "execution.start.sandbox",
                "5.5",
                "ms",
                "<= 5",
                "NO",
                "bare start 1 ms, held 7 ms, 3 pairs"
            ]
        );
    }
}
