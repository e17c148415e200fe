//! The cases for `/v1/catalog`.

use super::{assert_none, assert_unharmed, compare, differences, named_limits};
use crate::support::{Setup, TestAdapter};
use assay_fixtures::hostile::{Case, Change, all};
use sha2::{Digest as _, Sha256};

#[test]
fn every_case_gets_exactly_its_verdict() {
    let adapter = Setup::real().start();
    adapter.wait_ready();
    let wrong = differences(all(), |case: Case| wrong_with(&adapter, &case));
    assert_none(&wrong);
    assert_unharmed(&adapter);
}

fn wrong_with(adapter: &TestAdapter, case: &Case) -> Vec<String> {
    let bytes = (case.make)();
    let mut headers: Vec<(String, String)> = named_limits(&case.limits)
        .map(|(name, value)| (header_of(name), value.to_string()))
        .to_vec();
    for change in case.changes {
        headers.push(changed(*change, &bytes));
    }
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .enumerate()
        // A change replaces what was set before it.
        .filter(|(at, (name, _))| headers.iter().skip(at + 1).all(|(later, _)| later != name))
        .map(|(_, (name, value))| (name.as_str(), value.as_str()))
        .collect();
    let reply = adapter.catalog(case.artifact_type, &bytes, &headers);
    let difference = compare(&case.verdict, &reply, |document| document);
    difference
        .into_iter()
        .map(|difference| format!("{}: {difference}", case.id))
        .collect()
}

/// The header that carries a limit: `maxInputBytes` is `x-kkrepo-max-input-bytes`.
fn header_of(limit: &str) -> String {
    let words = limit.chars().flat_map(|c| {
        let dash = c.is_ascii_uppercase().then_some('-');
        dash.into_iter().chain([c.to_ascii_lowercase()])
    });
    "x-kkrepo-".chars().chain(words).collect()
}

/// The header that a change sets; an empty value leaves it out.
fn changed(change: Change, bytes: &[u8]) -> (String, String) {
    let (name, value) = match change {
        Change::Sha256(text) => ("x-kkrepo-expected-sha256", text.to_owned()),
        Change::UppercaseSha256 => {
            let digest = hex::encode_upper(Sha256::digest(bytes));
            ("x-kkrepo-expected-sha256", digest)
        }
        Change::SizeBy(difference) => {
            let size = i64::try_from(bytes.len()).unwrap() + difference;
            ("x-kkrepo-expected-size", size.to_string())
        }
        Change::Header(name, value) => (name, value.to_owned()),
        Change::Without(name) => (name, String::new()),
    };
    (name.to_owned(), value)
}
