//! The two text forms of metrics: `OpenMetrics` 1.0 for scrapers that ask for it, and the Prometheus text format 0.0.4
//! for everybody else, tools above all.

use hyper::HeaderMap;
use hyper::header::ACCEPT;
use std::fmt::Write as _;

/// A text form of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposition {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// The Prometheus text format 0.0.4.
    Classic,
}

impl Exposition {
    /// What a request's `Accept` asks for.
    pub fn asked_for(headers: &HeaderMap) -> Self {
        let wants = |value: &hyper::header::HeaderValue| {
            value.to_str().is_ok_and(|types| {
                types
                    .to_ascii_lowercase()
                    .contains("application/openmetrics-text")
            })
        };
        if headers.get_all(ACCEPT).iter().any(wants) {
            Self::OpenMetrics
        } else {
            Self::Classic
        }
    }

    /// Its media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// This form of an `OpenMetrics` text.
    pub(super) fn of(self, text: String) -> String {
        match self {
            Self::OpenMetrics => text,
            Self::Classic => classic(&text),
        }
    }
}

/// The classic format names a counter as its samples are named, knows no units and no end.
fn classic(text: &str) -> String {
    let counters: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let comment = line.strip_prefix("# ").and_then(|rest| rest.split_once(' '));
        match comment {
            Some((kind @ ("HELP" | "TYPE"), rest)) => {
                let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                let total = if counters.contains(&name) { "_total" } else { "" };
                let _ = writeln!(out, "# {kind} {name}{total} {rest}");
            }
            None if line != "# EOF" => {
                out.push_str(line);
                out.push('\n');
            }
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Exposition, classic};
    use hyper::HeaderMap;
    use hyper::header::{ACCEPT, HeaderValue};

    #[test]
    fn scrapers_get_what_they_ask_for() {
        let cases = [
            (None, Exposition::Classic),
            (Some("*/*"), Exposition::Classic),
            (Some("text/plain"), Exposition::Classic),
            (
                Some("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"),
                Exposition::OpenMetrics,
            ),
        ];
        for (accept, want) in cases {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(Exposition::asked_for(&headers), want, "{accept:?}");
        }
    }

    #[test]
    fn counters_are_named_by_their_samples() {
        let open = "# HELP a_b Things.\n# TYPE a_b counter\na_b_total{x=\"# TYPE q counter\"} 1\n\
                    # HELP c_bytes Size.\n# TYPE c_bytes gauge\n# UNIT c_bytes bytes\nc_bytes 2\n# EOF\n";
        let want = "# HELP a_b_total Things.\n# TYPE a_b_total counter\na_b_total{x=\"# TYPE q counter\"} 1\n\
                    # HELP c_bytes Size.\n# TYPE c_bytes gauge\nc_bytes 2\n";
        assert_eq!(classic(open), want);
    }
}
