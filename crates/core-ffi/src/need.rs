//! How much memory an instance needs beside its head, before it is made.
//!
//! Every table of core has a length that follows from a limit, so what a scheduler needs is bounded by a sum:
//! a number of bytes in any case, one for each tag, task, group and event of the trace, and one for the books
//! that there are as soon as there are several groups. Hash tables round up to powers of two, and that of
//! merging grows up to 64 KiB only, which are in the first number. So the bound is above the need at most
//! limits; `tests/need.rs` holds it to be enough, and to be less than three times what is used where that is
//! more than 64 KiB, for every preset over a grid of limits. After core changed, that test names the
//! scheduler whose line is too low.

use fairhead_core::Limits;
use fairhead_core::sched::any::AnyConfig;

/// Bytes: in any case, for each tag, task, group and event, and once if there are several groups.
pub(crate) struct Need(pub(crate) [u32; 6]);

/// What is needed for a scheduler.
pub(crate) fn of(config: &AnyConfig) -> Need {
    Need(match config {
        AnyConfig::Noop(_) => [66304, 256, 0, 1280, 64, 2048],
        AnyConfig::Deadline(_) => [66304, 288, 0, 1280, 64, 2048],
        AnyConfig::MqDeadline(_) => [66304, 288, 0, 1280, 64, 2048],
        AnyConfig::Kyber(_) => [66304, 264, 0, 1280, 64, 2048],
        AnyConfig::Anticipatory(_) => [66560, 292, 144, 1280, 64, 2048],
        AnyConfig::CfqRoundRobin(_) => [66560, 320, 176, 1280, 64, 2048],
        AnyConfig::CfqTs1(_) => [66560, 304, 168, 1280, 64, 2048],
        AnyConfig::CfqTs2(_) => [66560, 304, 168, 1280, 64, 2048],
        AnyConfig::Cfq(_) => [71936, 576, 376, 6288, 64, 7056],
        AnyConfig::Bfq(_) => [79872, 979, 1700, 2016, 64, 2272],
        AnyConfig::FairNoop(_) => [66816, 256, 0, 1756, 64, 2532],
        AnyConfig::FairDeadline(_) => [66816, 288, 0, 1832, 64, 2596],
        AnyConfig::FairAnticipatory(_) => [67328, 292, 144, 1904, 64, 2676],
        AnyConfig::FairCfq(_) => [72448, 580, 376, 6752, 64, 7524],
        // The ABI makes built-in schedulers only.
        AnyConfig::Outside(_) => [0; 6],
    })
}

/// How many bytes are enough for an elevator with these limits and its ledger. `None` if that is more than
/// memory can be.
pub(crate) fn bytes(config: &AnyConfig, limits: &Limits) -> Option<usize> {
    let counts =
        [1, limits.tags.into(), limits.tasks, limits.groups, limits.trace, u32::from(limits.groups > 1)];
    let sum: u64 = of(config).0.into_iter().zip(counts).map(|(each, n)| u64::from(each) * u64::from(n)).sum();
    // Half of the addresses at most: so sums of sizes and addresses do not wrap.
    usize::try_from(sum).ok().filter(|&bytes| bytes < usize::MAX / 4)
}
