//! What B-WF2Q+ promises, held against exact arithmetic: theorems T1 to T9 and the rules of time V1 to V9 of
//! the project's reference (docs/reference/bfq.md#18-guarantees and 8.2), on the group hierarchy alone,
//! without a scheduler around it.
//!
//! ```text
//!   seed ──► a tree of weights, budgets, requests ──► Load ──► Hierarchy
//!                                                      │ each request
//!                                                      ▼
//!            bounds.rs    service of a fixed set of leaves against their shares: T1 T2 T3 T5 T6 T7 T8 S6
//!            changing.rs  the same while leaves come and go: T4 T8 T9
//!            times.rs     starts, finishes and virtual time: V4 to V9 (V1 in every case, V2 in `check`)
//!            groups.rs    the controller's tree of groups under both engines, against fluid sharing
//!            disk_time.rs the other engine, virtual disk time, written a second time
//!            twin.rs      the whole hierarchy written a second time, over vectors searched from end to end: V3
//! ```
//!
//! In `groups.rs` shares are floats. Elsewhere they are fractions, and are compared as fractions of 128-bit
//! integers: the only tolerance is for what the hierarchy's own divisions round down (see
//! [`load::rounding`]), a fraction of a sector in a whole case.

mod bounds;
mod changing;
// The suites in `tests/` have these, too.
#[path = "../../../tests/support/chance.rs"]
#[allow(dead_code, reason = "a part of it is for other suites")]
mod chance;
mod disk_time;
mod groups;
mod load;
#[path = "../../../tests/support/seeds.rs"]
#[allow(dead_code, reason = "a part of it is for other suites")]
mod seeds;
mod times;
mod twin;
