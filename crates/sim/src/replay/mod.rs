//! Recorded traces as workloads: what is asked of one ([`Options`]), what is in it ([`Recording`]), and where
//! on a disk it goes ([`Place`]).
//!
//! A trace is read twice. Once to its end before anything runs: that finds damage, counts, and settles who
//! the clients are. And once more by each run, request by request, in bounded memory whatever its length:
//!
//! ```text
//!   trace ──► Recording::of ──► one job for each recorded task, all with the same Arc<Recording>
//!     └─────► every run ──► Records ──► window of requests ──► the task's client: when? where? ──► disk
//! ```
//!
//! **When**, by [`Mode`]. *Open*: at its recorded time, whatever the disk does. *Closed*: as long after the
//! completion that it followed as in the recording. Worked example, times in ms, on a disk that takes 10
//! where the recorded one took 4:
//!
//! ```text
//!   recorded   A 0…4    B 7…11 (3 after A)    C 9…13 (made while B was under way: 5 after A)
//!   open       A 0…10   B 7…17                C 9…19
//!   closed     A 0…10   B 13…23               C 15…25
//! ```
//!
//! **Clients.** Each task (process) of the trace has a client; where tasks are not recorded, for each device.
//! If there are many, the busiest have one each, and the rest share one.
//!
//! **Where.** The devices that are replayed lie on the disk one after the other; what is too large is made
//! smaller ([`Fit`]).
//!
//! What it does not do: guess what a trace does not tell. Page caches are below it: requests are made past
//! them.

mod options;
mod place;
mod recording;
mod unanswered;

pub use options::{Fit, Mode, Options, Skip};
pub use place::{Place, Placed};
pub(crate) use recording::Records;
pub use recording::{Part, Recording, Source, Task, TraceJob};
