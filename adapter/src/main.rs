//! The adapter executable.

fn main() {}
