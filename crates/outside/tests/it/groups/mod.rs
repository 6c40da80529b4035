//! What schedulers of groups promise, in a closed world.

mod iocost;
mod iolatency;
mod world;
