#![no_main]

use assay_fuzz::Target;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(init: assay_fuzz::begin(), |bytes: &[u8]| Target::Oci.run(bytes));
fuzz_mutator!(|data: &mut [u8], size: usize, max: usize, seed: u32| {
    Target::Oci.mutate(data, size, max, seed, fuzzer_mutate)
});
