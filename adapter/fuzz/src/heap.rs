//! What one execution may cost, and how it is measured.

use nix::time::ClockId;
use peak_alloc::PeakAlloc;
use std::time::Duration;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Most bytes of heap that one execution may add. What C libraries allocate by themselves (zstd, liblzma) is not
/// counted here; the fuzzer's limit of the resident set bounds it.
const MAX_HEAP_BYTES: usize = 32 << 20;
/// Longest execution, by the clock of its thread: a machine with other work must not make findings. Inputs are small
/// and so are their limits, so this is for what grows faster than its input.
const MAX_DURATION: Duration = Duration::from_secs(5);

/// Once per process: makes a panic fatal, except those of the `rpm` crate, which its caller catches.
pub fn begin() {
    let report = std::panic::take_hook();
    let _ = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_caught = panic.location().is_some_and(|at| at.file().contains("/rpm-"));
        if !is_caught {
            report(panic);
        }
    }));
}

/// Runs `work` and holds it to both bounds.
pub(super) fn bounded<T>(work: impl FnOnce() -> T) -> T {
    HEAP.reset_peak_usage();
    let before = HEAP.current_usage();
    let start = thread_time();
    let result = work();
    let took = thread_time().saturating_sub(start);
    let peak = HEAP.peak_usage().saturating_sub(before);
    assert!(peak <= MAX_HEAP_BYTES, "{peak} bytes of heap");
    assert!(took <= MAX_DURATION, "it took {took:?}");
    result
}

fn thread_time() -> Duration {
    let now = ClockId::CLOCK_THREAD_CPUTIME_ID.now();
    now.expect("the clock of this thread").into()
}
