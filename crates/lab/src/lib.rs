//! A question to the lab and its answer, without files, terminals and threads.
//!
//! ```text
//!   Question ─► Plan ─► a Scenario for each scheduler ─► Answer ─► json, csv, table, page, pictures
//!    text        nothing left to look up                  outcomes, `why`, recordings
//! ```
//!
//! The command line, the page for browsers and the bindings for other languages ask through this crate, and
//! write answers with it: the JSON of `fairhead run --output-format json` and of the page are the same bytes.
//!
//! ```
//! use fairhead_lab::{Disk, Job, Question};
//!
//! let text = "[reader]\nrw=randread\nsize=64k\ndirect=1\n".to_owned();
//! let answer = Question {
//!     job: Job::Text { name: "small.fio".to_owned(), text },
//!     disk: Disk::Named("nas2020".to_owned()),
//!     schedulers: vec!["deadline".to_owned(), "bfq".to_owned()],
//!     set: vec!["bfq.slice_idle=4ms".to_owned()],
//!     ..Question::default()
//! }
//! .answer()
//! .unwrap();
//! assert_eq!(answer.outcomes[1].clients[0].read.bytes, 65_536);
//! assert!(answer.json().contains("\"scheduler\": \"bfq\""));
//! ```
//!
//! What is wrong with a question comes back as an [`Error`] of one line. The crate reads no files: what a job
//! file names is read by the caller ([`Question::plan_with`]), but for recordings that are replayed, which
//! `fairhead-sim` opens by their paths.

#![forbid(unsafe_code)]

pub mod arena;
mod error;
pub mod output;
pub mod plan;
mod question;
pub mod schedulers;
pub mod simulate;
pub mod sweep;
pub mod tunables;
pub mod workloads;

pub use error::Error;
pub use plan::{Plan, Why};
pub use question::{Answer, Disk, Files, Job, Question};
pub use tunables::Scheduler;
