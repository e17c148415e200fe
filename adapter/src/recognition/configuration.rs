//! What decides the inventory of given bytes, in one digest: replicas and stored inventories can be compared by it.

use super::form::Form;
use super::{MAX_IDENTITIES, interest, manifest};
use sha2::{Digest as _, Sha256};

/// Raised by hand with each change of code that changes an inventory and of which no list here tells: how a manifest
/// is read, how forms are told apart, how a component is completed or projected.
const RULES: u32 = 2;

/// Everything about recognition that decides an inventory: rules, cataloguers of each form, globs, bounds.
pub fn facts() -> Vec<String> {
    let forms = Form::ALL
        .iter()
        .map(|form| format!("{form}: {}", form.catalogers().join(" ")));
    let bounds = [
        MAX_IDENTITIES,
        manifest::MAX_MANIFEST_BYTES,
        manifest::MAX_CHART_IMAGES,
    ];
    std::iter::once(format!("rules {RULES}"))
        .chain(forms)
        .chain([format!(
            "undeclared conda: {}",
            super::form::UNDECLARED_CONDA.join(" ")
        )])
        .chain(interest::globs().map(str::to_owned))
        .chain(bounds.map(|bound| bound.to_string()))
        .collect()
}

/// The token of such facts for the capability digest.
///
/// Each fact counts with its length, so that no two lists of facts are written alike.
pub fn token(facts: &[String]) -> String {
    let mut hash = Sha256::new();
    for fact in facts {
        hash.update(fact.len().to_be_bytes());
        hash.update(fact.as_bytes());
    }
    let digest = hex::encode(hash.finalize());
    format!("assay-catalog-{}", digest.get(..16).unwrap_or(&digest))
}

#[cfg(test)]
mod tests {
    use super::{facts, token};
    use crate::recognition::form::Form;
    use std::collections::BTreeSet;

    #[test]
    fn every_change_of_a_fact_changes_the_token() {
        let before = facts();
        assert_eq!(token(&before), token(&facts()), "a function of the build alone");
        let mut seen = BTreeSet::from([token(&before)]);
        for index in 0..before.len() {
            let mut other = before.clone();
            other[index].push('x');
            assert!(seen.insert(token(&other)), "{}", before[index]);
            let mut fewer = before.clone();
            fewer.remove(index);
            assert!(seen.insert(token(&fewer)), "{}", before[index]);
        }
        let join = ["a", "b"].map(str::to_owned);
        assert_ne!(token(&join), token(&["ab".to_owned()]));
    }

    #[test]
    fn the_facts_name_every_form_with_its_cataloguers_and_every_glob() {
        let facts = facts();
        for form in Form::ALL {
            let want = format!("{form}: {}", form.catalogers().join(" "));
            assert!(facts.contains(&want), "{form}");
        }
        for glob in ["**/Cargo.lock", "**/*.rpm", "**/node_modules/*/package.json"] {
            assert!(
                facts.iter().any(|fact| fact == glob || fact.contains(glob)),
                "{glob}"
            );
        }
    }
}
