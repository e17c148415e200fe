//! The settings table of the crate's README: rendered from [`KEYS`], and compared with what stands there.

use super::keys::{Bounds, KEYS, Key, Kind};
use std::fmt::Write as _;

const BEGIN: &str = "<!-- settings: generated from src/config/keys.rs; `ASSAY_BLESS=1 cargo test -p assay-adapter` writes it anew -->\n";
const END: &str = "<!-- settings: end -->\n";

fn table() -> String {
    let mut text =
        "| Environment variable | Name in files and `--set` | Value | Default | What it does |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for key in KEYS {
        let default = match key.default {
            "" => "none".to_owned(),
            default => format!("`{default}`"),
        };
        let _ = writeln!(
            text,
            "| `{}` | `{}` | {} | {default} | {} |",
            key.environment_name(),
            key.name,
            value(key),
            key.doc
        );
    }
    text
}

fn value(key: &Key) -> String {
    let kind = match key.kind {
        Kind::Text => "text".to_owned(),
        Kind::Path => "path".to_owned(),
        Kind::Secret => "secret".to_owned(),
        Kind::Bool => "`true` or `false`".to_owned(),
        Kind::Integer => "number".to_owned(),
        Kind::Bytes => "size".to_owned(),
        Kind::Duration => "duration".to_owned(),
        Kind::Choice(words) => words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", "),
    };
    match key.bounds {
        Bounds::Any => kind,
        Bounds::Clamp(low, high) => format!("{kind}, {}, clamped", range(key.kind, low, high)),
        Bounds::Refuse(low, high) => format!("{kind}, {}", range(key.kind, low, high)),
    }
}

fn range(kind: Kind, low: i64, high: i64) -> String {
    let low = amount(kind, low);
    if high == i64::MAX {
        format!("at least {low}")
    } else {
        format!("{low} to {}", amount(kind, high))
    }
}

/// A bound in the largest unit that divides it.
fn amount(kind: Kind, number: i64) -> String {
    let units: &[(i64, &str)] = match kind {
        Kind::Bytes => &[
            (1 << 30, "GiB"),
            (1 << 20, "MiB"),
            (1 << 10, "KiB"),
            (1, " bytes"),
        ],
        Kind::Duration => &[(3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")],
        _ => &[],
    };
    units
        .iter()
        .find(|(size, _)| number != 0 && number % size == 0)
        .map_or_else(
            || number.to_string(),
            |(size, unit)| format!("{}{unit}", number / size),
        )
}

#[test]
fn the_readme_lists_the_settings_as_they_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).expect("the README has the first marker");
    let (found, after) = rest.split_once(END).expect("the README has the last marker");
    let wanted = table();
    if std::env::var_os("ASSAY_BLESS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, wanted, "run with ASSAY_BLESS=1 to write it anew");
    }
}

#[test]
fn bounds_are_shown_in_readable_units() {
    let cases = [
        (Kind::Bytes, 1 << 20, "1MiB"),
        (Kind::Bytes, 1025, "1025 bytes"),
        (Kind::Duration, 86_400_000, "24h"),
        (Kind::Duration, 90_000, "90s"),
        (Kind::Duration, 0, "0"),
        (Kind::Integer, 65_535, "65535"),
    ];
    for (kind, number, want) in cases {
        assert_eq!(amount(kind, number), want);
    }
}
