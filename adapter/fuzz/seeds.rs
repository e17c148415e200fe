//! `cargo run -p assay-adapter --example fuzz-seeds -- DIR`: writes the first inputs of every fuzz target.

use std::path::PathBuf;
use std::{env, fs, io};

#[path = "src/lib.rs"]
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "shared with the fuzzer, which uses more of it"
)]
mod harness;
#[path = "src/seeds.rs"]
#[allow(unreachable_pub, reason = "shared")]
mod seeds;

fn main() -> io::Result<()> {
    let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let root = env::args_os().nth(1).map_or(default, PathBuf::from);
    for target in harness::Target::ALL {
        let folder = root.join(target.name());
        fs::create_dir_all(&folder)?;
        let seeds = seeds::seeds(target);
        println!("{}: {}", target.name(), seeds.len());
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}
