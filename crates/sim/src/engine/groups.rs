//! Control groups: from the names in a job file to the numbers that a scheduler knows.
//!
//! ```text
//!   [a] cgroup=gold cgroup_weight=300  ─► GroupId(1), SetWeight(1, 300)
//!   [b] cgroup=gold                    ─► GroupId(1)
//!   [c]                                ─► the root group
//! ```
//!
//! A group has one weight; without `cgroup_weight` it is the scheduler's default. All groups are children of the root: a name with
//! a `/` is a name like any other. Writes by the flusher belong to the root group, whoever dirtied the pages. Schedulers that know no
//! groups take no notice.

use crate::error::SimError;
use crate::job::{Job, JobFile};
use crate::metrics::Result;
use fairhead_core::{Control, GroupId, Weight};
use std::num::NonZeroU16;

/// The groups of a job file, numbered from 1 in file order.
#[derive(Debug, Default)]
pub(super) struct Groups<'a> {
    all: Vec<(&'a str, Option<NonZeroU16>)>,
}

impl<'a> Groups<'a> {
    pub(super) fn of(jobs: &'a JobFile) -> Result<Self> {
        let mut groups = Self::default();
        for job in &jobs.jobs {
            groups.add(job)?;
        }
        Ok(groups)
    }

    fn add(&mut self, job: &'a Job) -> Result<()> {
        let Some(name) = name(job) else { return Ok(()) };
        let weight = job.cgroup_weight.and_then(NonZeroU16::new);
        let Some((_, known)) = self.all.iter_mut().find(|g| g.0 == name) else {
            self.all.push((name, weight));
            return Ok(());
        };
        match (*known, weight) {
            (Some(old), Some(new)) if old != new => Err(SimError::Job {
                job: job.name.clone(),
                message: format!(
                    "cgroup_weight={new}, but another job gives its cgroup {old}; a group has one weight"
                ),
            }),
            (old, new) => {
                *known = old.or(new);
                Ok(())
            }
        }
    }

    /// How many there are, the root group included.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.all.len() + 1).expect("job files are limited to a few thousand jobs")
    }

    /// The job's group.
    pub(super) fn id(&self, job: &Job) -> GroupId {
        let at = name(job).and_then(|name| self.all.iter().position(|g| g.0 == name));
        at.map_or(GroupId::ROOT, |i| GroupId(u32::try_from(i + 1).expect("fewer than jobs")))
    }

    /// What the scheduler is told before the first request.
    pub(super) fn controls(&self) -> impl Iterator<Item = Control> + '_ {
        (1..)
            .zip(&self.all)
            .filter_map(|(i, (_, weight))| weight.map(|w| Control::SetWeight(GroupId(i), Weight(w))))
    }
}

/// The group's name; none for the root.
fn name(job: &Job) -> Option<&str> {
    job.cgroup.as_deref().map(|n| n.trim_matches('/')).filter(|n| !n.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::parse;

    #[test]
    fn groups_are_numbered_in_file_order_and_shared_by_name() {
        let text = "[global]\nsize=1m\n[a]\ncgroup=gold\n[b]\n[c]\ncgroup=tin\ncgroup_weight=100\n[d]\ncgroup=/gold/\ncgroup_weight=300\n[e]\ncgroup=/\n";
        let jobs = parse(text, "x").unwrap();
        let groups = Groups::of(&jobs).unwrap();
        let ids: Vec<u32> = jobs.jobs.iter().map(|j| groups.id(j).0).collect();
        assert_eq!((ids, groups.count()), (vec![1, 0, 2, 1, 0], 3));
        let weight = |w| Weight(NonZeroU16::new(w).unwrap());
        let told: Vec<Control> = groups.controls().collect();
        assert_eq!(
            told,
            [Control::SetWeight(GroupId(1), weight(300)), Control::SetWeight(GroupId(2), weight(100))]
        );
    }

    #[test]
    fn a_group_has_one_weight() {
        let text = "[global]\nsize=1m\ncgroup=g\n[a]\ncgroup_weight=100\n[b]\ncgroup_weight=200\n";
        let jobs = parse(text, "x").unwrap();
        let e = Groups::of(&jobs).unwrap_err();
        assert_eq!(
            e.to_string(),
            "job 'b': cgroup_weight=200, but another job gives its cgroup 100; a group has one weight"
        );
    }
}
