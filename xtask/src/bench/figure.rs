//! One measured value and what is asked of it.

use serde::Serialize;

/// A line of the report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    /// Dotted name, stable between versions.
    name: String,
    /// In `unit`; a median where it was measured more than once.
    value: f64,
    /// What one of `value` is.
    unit: &'static str,
    /// What is asked, with its comparison, in `unit`; `null`: nothing.
    goal: Option<String>,
    /// Whether the goal is met; `null` without a goal.
    holds: Option<bool>,
    /// What the value is to be seen beside, measured in the same run.
    baseline: Option<String>,
}

impl Figure {
    /// Column heads of [`Figure::row`].
    pub(crate) const HEAD: [&'static str; 6] = ["NAME", "VALUE", "UNIT", "GOAL", "HOLDS", "BASELINE"];

    /// Without a goal.
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            name: name.into(),
            value,
            unit,
            goal: None,
            holds: None,
            baseline: None,
        }
    }

    /// The value is to be this or less.
    pub(crate) fn at_most(mut self, bound: f64) -> Self {
        self.holds = Some(self.value <= bound);
        self.goal = Some(format!("<= {}", number(bound)));
        self
    }

    /// The value is to be this or more.
    pub(crate) fn at_least(mut self, bound: f64) -> Self {
        self.holds = Some(self.value >= bound);
        self.goal = Some(format!(">= {}", number(bound)));
        self
    }

    /// What to see it beside.
    pub(crate) fn beside(mut self, baseline: impl Into<String>) -> Self {
        self.baseline = Some(baseline.into());
        self
    }

    /// Cells for people.
    pub(crate) fn row(&self) -> Vec<String> {
        let holds = self.holds.map_or("", |holds| if holds { "yes" } else { "NO" });
        vec![
            self.name.clone(),
            number(self.value),
            self.unit.to_owned(),
            self.goal.clone().unwrap_or_default(),
            holds.to_owned(),
            self.baseline.clone().unwrap_or_default(),
        ]
    }
}

/// Says the figures of a part as soon as there are some: later parts take long and may fail.
pub(crate) fn told(figures: Vec<Figure>) -> Vec<Figure> {
    for figure in &figures {
        eprintln!("  {}", figure.row().join("  "));
    }
    figures
}

/// At most two decimals, and none that say nothing.
pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The middle value, or the mean of the two middle ones; 0 of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    if sorted.len() % 2 == 1 {
        return upper;
    }
    let lower = (sorted.len() / 2)
        .checked_sub(1)
        .and_then(|index| sorted.get(index))
        .copied();
    f64::midpoint(lower.unwrap_or_default(), upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        for (values, middle) in [
            (&[][..], 0.0),
            (&[3.0], 3.0),
            (&[4.0, 1.0], 2.5),
            (&[9.0, 1.0, 5.0], 5.0),
            (&[4.0, 1.0, 3.0, 2.0], 2.5),
        ] {
            assert!((median(values) - middle).abs() < f64::EPSILON, "{values:?}");
        }
    }

    #[test]
    fn goals_hold_at_the_bound_and_the_list_has_the_agreed_members() {
        let holds = Figure::new("a.b", 15.0, "ms")
            .at_most(15.0)
            .beside("engine alone 800 ms");
        assert_eq!(
            holds.row(),
            ["a.b", "15", "ms", "<= 15", "yes", "engine alone 800 ms"]
        );
        assert_eq!(Figure::new("a", 0.79, "x").at_least(0.8).holds, Some(false));
        let json = serde_json::to_value(Figure::new("a", 1.5, "ms")).unwrap();
        let names: Vec<&String> = json.as_object().unwrap().keys().collect();
        for name in ["name", "value", "unit", "goal", "holds", "baseline"] {
            assert!(names.contains(&&name.to_owned()), "{name}");
        }
    }
}
