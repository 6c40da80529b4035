//! Plans: a machine, a load, a run, and what must hold afterwards, each step with its reason.
//!
//! A plan reads like the experiment that it is; when a check fails, the message is the plan up to there.

mod plan;

mod buffered;
mod claims;
mod compositions;
mod cores;
mod cpu;
mod disks;
mod files;
mod groups;
mod journal;
mod options;
mod player;
mod pool;
mod random;
mod replay;
mod startup;
mod starvation;
mod why;
mod window;
mod write_back;
