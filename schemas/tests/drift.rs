//! The generated files are what the types say.

use std::path::Path;

#[test]
fn generated_files_have_not_drifted() {
    let drift = assay_schemas::generate::drift(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(
        drift.is_empty(),
        "{drift:?}; run `cargo run -p assay-schemas --features generate --bin generate-schemas`"
    );
}
