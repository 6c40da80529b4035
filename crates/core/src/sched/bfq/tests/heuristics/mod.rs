//! The heuristics, rule by rule.

extern crate std;

mod bursts;
mod exits;
mod fuzz;
mod injecting;
mod merging;
mod protecting;
mod raising;
mod streams;
mod theorems;
mod wakers;

use super::rig::*;
