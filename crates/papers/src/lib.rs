//! What others published, beside what the lab gives: tables, claims and recordings.
//!
//! ```text
//! published                        held to it                 what comes out
//! tables of papers and lists       reproduce: rows and bounds   a report: errors, known misses, faults
//! claims of BFQ's patches          ladder: switches, loads      a verdict for each claim
//! requests recorded on a drive     validate: the disk model     the demerit figure
//! ```
//!
//! The crate runs scenarios of `fairhead-sim` through its public interface and judges the figures; no run
//! depends on it. Of `fairhead-lab` it uses what writes tables.
//!
//! ```
//! let source = fairhead_papers::reproduce::Source::named("cfq-timeslices-2004").unwrap();
//! assert_eq!(source.about, "time-sliced CFQ");
//! let switch = fairhead_papers::ladder::switch("queue_merge").unwrap();
//! assert_eq!(switch.patch, Some(9));
//! ```

#![forbid(unsafe_code)]

pub mod ladder;
pub mod reproduce;
pub mod validate;
