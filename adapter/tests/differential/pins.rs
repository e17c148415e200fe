//! The readers are the ones that Syft has.

use std::collections::BTreeMap;

const READER: &str = include_str!("../../../fixtures/differential/go.mod");
const SYFT: &str = include_str!("../../../fixtures/engines/syft/go.mod");

#[test]
fn every_module_of_the_reader_has_the_version_that_syft_has() {
    let syft = versions(SYFT);
    for (module, version) in versions(READER) {
        // Of tests of dependencies, which Syft's own module does not know.
        if let Some(pinned) = syft.get(module) {
            assert_eq!(version, *pinned, "{module}");
        }
    }
    for module in [
        "github.com/blakesmith/ar",
        "github.com/klauspost/compress",
        "github.com/mholt/archives",
        "github.com/sassoftware/go-rpmutils",
    ] {
        assert!(versions(READER).contains_key(module), "{module}");
        assert!(syft.contains_key(module), "{module}");
    }
}

fn versions(go_mod: &str) -> BTreeMap<&str, &str> {
    let lines = go_mod.lines().filter(|line| line.starts_with('\t'));
    let words = lines.filter_map(|line| line.trim().split_once(' '));
    words
        .map(|(module, version)| (module, version.trim_end_matches(" // indirect")))
        .collect()
}
