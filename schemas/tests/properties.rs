//! Properties of fingerprints, limits and the lenient readers of wire text.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use assay_schemas::fingerprint::{finding_key, fingerprint, platform_set};
use assay_schemas::{ArtifactType, Ceiling, Document, RequestedLimits, ResourceLimits, Severity};
use proptest::prelude::*;

fn limits() -> impl Strategy<Value = ResourceLimits> {
    (
        1..=i64::MAX,
        1..=i32::MAX,
        1..=i64::MAX,
        1..=i64::MAX,
        0..=i32::MAX,
        1..=i32::MAX,
    )
        .prop_map(
            |(input, entries, uncompressed, single, depth, timeout)| ResourceLimits {
                max_input_bytes: input,
                max_archive_entries: entries,
                max_uncompressed_bytes: uncompressed,
                max_single_file_bytes: single,
                max_nested_depth: depth,
                timeout_seconds: timeout,
            },
        )
}

fn ceiling() -> impl Strategy<Value = Ceiling> {
    (1024..=i64::MAX, 1024..=i64::MAX, 1024..=i64::MAX).prop_map(|(input, output, stderr)| Ceiling {
        max_input_bytes: input,
        max_output_bytes: output,
        max_stderr_bytes: stderr,
    })
}

/// Exact, in 128 bits: what the saturating arithmetic must agree with wherever it does not saturate.
fn exact_scratch_mebibytes(limits: &ResourceLimits, ceiling: &Ceiling) -> u128 {
    let wide = |value: i64| u128::try_from(value).unwrap();
    let depth = u128::try_from(limits.max_nested_depth).unwrap();
    let nested = wide(limits.max_uncompressed_bytes).min(wide(limits.max_single_file_bytes) * depth);
    let total = wide(limits.max_input_bytes)
        + nested
        + 3 * wide(ceiling.max_output_bytes)
        + wide(ceiling.max_stderr_bytes);
    total.div_ceil(1 << 20).max(1)
}

proptest! {
    #[test]
    fn moving_a_boundary_between_parts_changes_the_fingerprint(a in "[ab]{0,6}", b in "[ab]{0,6}", c in "[ab]{0,6}", d in "[ab]{0,6}") {
        let same = (&a, &b) == (&c, &d);
        prop_assert_eq!(fingerprint([a.as_str(), &b]) == fingerprint([c.as_str(), &d]), same);
    }

    #[test]
    fn an_empty_part_still_counts(parts in prop::collection::vec(".{0,8}", 0..5)) {
        let shorter = fingerprint(parts.iter().map(String::as_str));
        let longer = fingerprint(parts.iter().map(String::as_str).chain([""]));
        prop_assert_ne!(shorter, longer);
    }

    #[test]
    fn a_platform_set_knows_no_order_and_no_repetition(mut platforms in prop::collection::vec("[a-z]{1,4}/[a-z]{1,4}", 0..6)) {
        let before = platform_set(platforms.iter().map(String::as_str));
        platforms.reverse();
        platforms.extend(platforms.clone());
        prop_assert_eq!(before, platform_set(platforms.iter().map(String::as_str)));
    }

    #[test]
    fn a_finding_key_knows_no_order_of_locations_but_each_location(
        mut locations in prop::collection::btree_set("/[a-z]{1,8}", 1..6).prop_map(|set| set.into_iter().collect::<Vec<_>>()),
    ) {
        let key = |locations: &[String]| finding_key("CVE-1", None, "a", Some("1"), locations);
        let all = key(&locations);
        locations.reverse();
        prop_assert_eq!(&all, &key(&locations));
        locations.pop();
        prop_assert_ne!(&all, &key(&locations));
    }

    #[test]
    fn effective_limits_are_valid_never_above_what_was_asked_and_stable(asked in limits(), ceiling in ceiling()) {
        let effective = asked.lowered_to(&ceiling);
        prop_assert!(effective.validate().is_ok());
        prop_assert_eq!(effective.lowered_to(&ceiling), effective);
        prop_assert!(effective.max_input_bytes <= asked.max_input_bytes.min(ceiling.max_input_bytes));
        prop_assert!(effective.max_archive_entries <= asked.max_archive_entries);
        prop_assert!(effective.max_uncompressed_bytes <= asked.max_uncompressed_bytes);
        prop_assert!(effective.max_single_file_bytes <= asked.max_single_file_bytes);
        prop_assert!(effective.max_nested_depth <= asked.max_nested_depth);
        prop_assert!(effective.timeout_seconds <= asked.timeout_seconds);
    }

    #[test]
    fn the_scratch_estimate_is_exact_until_it_saturates(asked in limits(), ceiling in ceiling()) {
        let got = u128::from(asked.scratch_mebibytes(&ceiling));
        let exact = exact_scratch_mebibytes(&asked, &ceiling);
        let greatest = u128::try_from(i64::MAX).unwrap().div_ceil(1 << 20);
        prop_assert_eq!(got, exact.min(greatest));
    }

    #[test]
    fn absent_limits_take_defaults_and_present_ones_stay(asked in limits(), cap in 1024..=i64::MAX) {
        prop_assert_eq!(RequestedLimits::from(asked).or_defaults(cap), asked);
        prop_assert!(RequestedLimits::default().or_defaults(cap).validate().is_ok());
    }

    #[test]
    fn a_document_survives_the_wire_byte_for_byte(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let document = Document(bytes);
        let text = serde_json::to_string(&document).unwrap();
        prop_assert_eq!(serde_json::from_str::<Document>(&text).unwrap(), document);
    }

    #[test]
    fn any_text_is_a_severity_and_any_name_a_type(text in ".{0,24}") {
        prop_assert!(Severity::ALL.contains(&Severity::normalize(&text)));
        prop_assert!(ArtifactType::ALL.contains(&ArtifactType::from_file_name(&text)));
    }
}
