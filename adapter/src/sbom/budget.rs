//! Keeps a response inside what its client accepts.
//!
//! The contract's client refuses a response of more than 64 MiB or 262144 JSON tokens, for good. A valid scan must
//! not fail there: properties are cut first, then locations, then whole components or findings, and the answer says so.

use assay_schemas::catalog::{Completeness, PartialCode, PartialReason};
use assay_schemas::{CatalogResponse, Component, Finding, MatchResponse};
use serde::Serialize;
use std::io;

/// What one response may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// JSON tokens: member names, scalars, both ends of each container.
    pub tokens: u64,
    /// Bytes of the whole body, documents in Base64.
    pub bytes: u64,
}

impl Budget {
    /// The contract's caps with a margin for what is around the lists.
    pub const CLIENT: Self = Self {
        tokens: 200_000,
        bytes: (64 << 20) - (64 << 10),
    };

    /// What is left after `used`.
    #[must_use]
    pub fn minus(self, used: Cost) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(used.tokens),
            bytes: self.bytes.saturating_sub(used.bytes),
        }
    }

    fn holds(self, cost: Cost) -> bool {
        cost.tokens <= self.tokens && cost.bytes <= self.bytes
    }
}

/// What a response costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// JSON tokens.
    pub tokens: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Cost {
    /// The exact cost of one serialised value.
    pub fn of(value: &impl Serialize) -> Self {
        let mut counter = Counter::default();
        // Counting never fails, and the wire types always serialise.
        let _ = serde_json::to_writer(&mut counter, value);
        counter.cost
    }

    fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            // One more for the comma.
            bytes: self.bytes.saturating_add(other.bytes).saturating_add(1),
        }
    }
}

/// Counts the tokens of compact JSON as it is written.
#[derive(Debug, Default)]
struct Counter {
    cost: Cost,
    in_string: bool,
    escaped: bool,
    in_word: bool,
}

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.cost.bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        for byte in bytes {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            let is_word = !matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',' | b':');
            let starts = match byte {
                b',' | b':' => false,
                _ if is_word => !self.in_word,
                _ => true,
            };
            self.cost.tokens += u64::from(starts);
            self.in_word = is_word;
            self.in_string = *byte == b'"';
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One entry of a list that can be cut.
trait Entry: Serialize + Clone {
    /// Keeps at most `count` properties; tells whether anything went.
    fn cut_properties(&mut self, count: usize) -> bool;
    /// Keeps at most `count` items of the nested lists; tells whether anything went.
    fn cut_lists(&mut self, count: usize) -> bool;
}

impl Entry for Component {
    fn cut_properties(&mut self, count: usize) -> bool {
        let before = self.properties.len();
        while self.properties.len() > count {
            self.properties.pop_last();
        }
        self.properties.len() < before
    }

    fn cut_lists(&mut self, count: usize) -> bool {
        let is_longer = self.locations.len() > count || self.licenses.len() > count;
        self.locations.truncate(count);
        self.licenses.truncate(count);
        is_longer
    }
}

impl Entry for Finding {
    fn cut_properties(&mut self, count: usize) -> bool {
        // A finding has no properties; its long text is what can go first.
        let cap = count.saturating_mul(512);
        match &mut self.description {
            Some(text) if text.len() > cap => {
                text.truncate(text.floor_char_boundary(cap));
                true
            }
            _ => false,
        }
    }

    fn cut_lists(&mut self, count: usize) -> bool {
        let is_longer = [&self.locations, &self.layers, &self.aliases, &self.fixed_versions]
            .iter()
            .any(|list| list.len() > count);
        self.locations.truncate(count);
        self.layers.truncate(count);
        self.aliases.truncate(count);
        self.fixed_versions.truncate(count);
        is_longer
    }
}

/// Cuts a catalog answer until it fits; gives false when even without components it does not.
pub fn fit_catalog(response: &mut CatalogResponse, budget: Budget) -> bool {
    let components = std::mem::take(&mut response.components);
    let left = budget.minus(Cost::of(response));
    let before = components.len();
    let (components, has_cuts) = fit(components, left);
    response.components = components;
    let now = response.components.len();
    response.summary.component_projection_count = u64::try_from(now).unwrap_or(u64::MAX);
    note(
        &mut response.completeness,
        &mut response.summary.partial_reasons,
        has_cuts,
        (now < before).then_some(PartialCode::ComponentProjectionLimit),
        (now, before),
    );
    budget.holds(Cost::of(response))
}

/// Cuts a match answer until it fits; gives false when even without findings it does not.
pub fn fit_match(response: &mut MatchResponse, budget: Budget) -> bool {
    let findings = std::mem::take(&mut response.findings);
    let left = budget.minus(Cost::of(response));
    let before = findings.len();
    let (findings, has_cuts) = fit(findings, left);
    response.findings = findings;
    let now = response.findings.len();
    response.summary.finding_projection_count = u64::try_from(now).unwrap_or(u64::MAX);
    note(
        &mut response.completeness,
        &mut response.summary.partial_reasons,
        has_cuts,
        (now < before).then_some(PartialCode::FindingProjectionLimit),
        (now, before),
    );
    budget.holds(Cost::of(response))
}

fn note(
    completeness: &mut Completeness,
    reasons: &mut Vec<PartialReason>,
    has_cuts: bool,
    dropped: Option<PartialCode>,
    (now, before): (usize, usize),
) {
    if has_cuts {
        *completeness = Completeness::Partial;
        reasons.push(PartialReason {
            code: PartialCode::ResponseSizeLimit,
            detail: "details were left out of the projection to fit the response; the document has them"
                .to_owned(),
        });
    }
    if let Some(code) = dropped {
        *completeness = Completeness::Partial;
        reasons.push(PartialReason {
            code,
            detail: format!("{now} of {before} fit the response"),
        });
    }
}

/// Steps of each cut, mildest first.
const PROPERTY_STEPS: [usize; 5] = [64, 32, 16, 8, 0];
const LIST_STEPS: [usize; 4] = [64, 16, 4, 1];

fn fit<E: Entry>(mut entries: Vec<E>, budget: Budget) -> (Vec<E>, bool) {
    let total = |entries: &[E]| {
        entries
            .iter()
            .fold(Cost::default(), |sum, entry| sum.plus(Cost::of(entry)))
    };
    // The reasons themselves take room.
    let budget = budget.minus(Cost {
        tokens: 32,
        bytes: 1024,
    });
    let mut has_cuts = false;
    if budget.holds(total(&entries)) {
        return (entries, has_cuts);
    }
    for count in PROPERTY_STEPS {
        for entry in &mut entries {
            has_cuts |= entry.cut_properties(count);
        }
        if budget.holds(total(&entries)) {
            return (entries, has_cuts);
        }
    }
    for count in LIST_STEPS {
        for entry in &mut entries {
            has_cuts |= entry.cut_lists(count);
        }
        if budget.holds(total(&entries)) {
            return (entries, has_cuts);
        }
    }
    let mut sum = Cost::default();
    let keep = entries
        .iter()
        .take_while(|entry| {
            sum = sum.plus(Cost::of(*entry));
            budget.holds(sum)
        })
        .count();
    entries.truncate(keep);
    (entries, has_cuts)
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
