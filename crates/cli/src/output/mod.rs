//! Results, written. Those of `run` are written by `fairhead-lab`; here are those of other commands.

pub(crate) mod conformance;
pub(crate) mod doctor;
mod interval;
mod ladder;
pub(crate) mod page;
pub(crate) mod parquet;
pub(crate) mod record;
pub(crate) mod sweep;
mod top;
pub(crate) mod trace;
pub(crate) mod trial;
pub(crate) mod welcome;

pub(crate) use interval::{Interval, Row};
pub(crate) use ladder::{Ladder, Verdicts};
pub(crate) use top::top;

pub(crate) use fairhead_lab::output::table::{mib, time};
use fairhead_lab::output::{Sum, csv, human, json, table};

#[cfg(test)]
mod tests {
    use fairhead_core::Max;
    use fairhead_core::groups::GroupStats;
    use fairhead_lab::output::books as lab;
    use fairhead_live::control::books as live;
    use std::num::NonZeroU64;

    #[test]
    fn the_lab_and_live_disks_have_the_same_names_for_a_groups_books() {
        let mut stats = GroupStats::default();
        assert_eq!(lab::books(&stats), live::books(&stats));
        stats.disk_sectors = 7;
        stats.disk_dequeue = 3;
        assert_eq!(lab::books(&stats), live::books(&stats));
        let limited = Max { rbps: NonZeroU64::new(1 << 20), ..Max::default() };
        assert_eq!(lab::limits(&limited), live::limits(&limited));
        assert_eq!(lab::limits(&Max::default()), live::limits(&Max::default()));
    }
}
