//! The group and class of each task, from the load's commands.
//!
//! The kernel's log shows neither. A recording's `# run:` lines do: `fio` and the shell around it. We read
//! just enough of both: `for` loops are unrolled, variables have their values,
//! `echo W > …/NAME/blkio.bfq.weight` is a group's weight, `echo $$ > …/NAME/cgroup.procs` puts what follows
//! in its parentheses into that group, and each `fio` job is the part of the disk that it works on. A task is
//! then known by where its first request is.
//!
//! ```text
//! for w in 100 300; do echo $w > /sys/fs/cgroup/blkio/fh$w/blkio.bfq.weight; done
//! (echo $BASHPID > /sys/fs/cgroup/blkio/fh300/cgroup.procs; exec fio --name=B --offset=500m --size=300m) &
//!     => group fh300 of weight 300; the task whose first request is in sectors 1024000..1638400 is in it
//! ```
//!
//! Lines that begin with `[` are a file of fio jobs instead.
//!
//! It is no shell. A command that it does not know has no effect on groups and classes, and a task of which
//! no command tells anything is of the root group and best effort. A construct that may decide which job a
//! request belongs to, and that it does not understand, is refused by its name; so is a task that may be one
//! of several jobs of different groups or classes.

mod expand;
mod fio;
mod process;
mod shell;

use fairhead_core::{Class, GroupId, Sector};
use shell::{Command, Refusal};

/// Where a task belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    /// Default: the root.
    pub(super) group: GroupId,
    pub(super) class: Option<Class>,
    pub(super) level: Option<u8>,
}

impl Default for Owner {
    fn default() -> Self {
        Self { group: GroupId::ROOT, class: None, level: None }
    }
}

impl Owner {
    /// Whether both have the same group and class; the level is in the log, if it matters.
    fn is_like(&self, other: &Self) -> bool {
        let class = |owner: &Self| owner.class.unwrap_or(Class::BestEffort);
        self.group == other.group && class(self) == class(other)
    }
}

/// A group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Group {
    pub(super) id: GroupId,
    /// `None`: the root.
    pub(super) parent: Option<GroupId>,
    pub(super) weight: u16,
}

/// The weight of a group that was not given one.
//= linux-6.12 block/bfq-cgroup.c CGROUP_WEIGHT_DFL, docs/reference/bfq.md#17-weights-and-their-changes
const DEFAULT_WEIGHT: u16 = 100;

/// All groups; parents come before their children.
#[derive(Clone, Default, Debug)]
pub(super) struct Groups {
    /// Path below the root and weight; the index is the id less one.
    known: Vec<(String, Group)>,
}

impl Groups {
    /// The group of that path, such as `a/b`; new ones with all their parents. The root for an empty path,
    /// and when there are too many.
    pub(super) fn find_or_add(&mut self, path: &str) -> GroupId {
        let path = path.trim_matches('/');
        if path.is_empty() {
            return GroupId::ROOT;
        }
        if let Some((_, group)) = self.known.iter().find(|(p, _)| p == path) {
            return group.id;
        }
        // A path of nothing but slashes and names cannot be deeper than it is long.
        let parent = path.rsplit_once('/').map(|(parent, _)| self.find_or_add(parent));
        if self.known.len() >= Self::MAX {
            return GroupId::ROOT;
        }
        #[allow(clippy::cast_possible_truncation, reason = "below MAX")]
        let id = GroupId(self.known.len() as u32 + 1);
        let parent = parent.filter(|p| *p != GroupId::ROOT);
        self.known.push((path.to_owned(), Group { id, parent, weight: DEFAULT_WEIGHT }));
        id
    }

    pub(super) fn set_weight(&mut self, path: &str, weight: u16) {
        let id = self.find_or_add(path);
        if let Some((_, group)) = self.known.iter_mut().find(|(_, g)| g.id == id) {
            group.weight = weight;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Group> + '_ {
        self.known.iter().map(|(_, group)| *group)
    }

    /// More than any recording has.
    const MAX: usize = 1000;
}

/// The part of the disk that a job's clone works on.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Region {
    job: String,
    first: u64,
    /// Behind the last.
    end: u64,
    owner: Owner,
    /// Why its place is not known.
    unknown: Option<String>,
    taken: bool,
}

/// The load.
#[derive(Clone, Default, Debug)]
pub(super) struct Load {
    pub(super) groups: Groups,
    regions: Vec<Region>,
}

impl Load {
    /// Reads the commands.
    pub(super) fn read(&mut self, script: &str) -> Result<(), Refusal> {
        if script.trim_start().starts_with('[') {
            return self.read_jobs(script);
        }
        let mut lines = Vec::new();
        for (line, command) in shell::commands(script)? {
            match command {
                Command::Weight { group, weight } => self.groups.set_weight(&group, weight),
                Command::Run(run) => {
                    let group = self.groups.find_or_add(&run.group);
                    let owner = Owner { group, class: run.class, level: run.level };
                    let regions = fio::regions(&run.words, owner);
                    self.regions.extend(regions.map_err(|what| Refusal { line, what })?);
                    lines.resize(self.regions.len(), line);
                }
            }
        }
        self.check(&lines)
    }

    /// Reads a file of fio jobs.
    fn read_jobs(&mut self, text: &str) -> Result<(), Refusal> {
        let regions = fio::regions(&fio::options(text), Owner::default());
        self.regions = regions.map_err(|what| Refusal { line: 0, what })?;
        self.check(&vec![0; self.regions.len()])
    }

    /// Where jobs have different owners, the places of all of them are known.
    fn check(&self, lines: &[usize]) -> Result<(), Refusal> {
        if self.regions.iter().all(|r| r.owner.is_like(&Owner::default())) {
            return Ok(());
        }
        let unknown =
            self.regions.iter().zip(lines).find_map(|(r, line)| Some((r, r.unknown.as_ref()?, *line)));
        unknown.map_or(Ok(()), |(region, why, line)| {
            let job = &region.job;
            Err(Refusal { line, what: format!("the part of the disk of job '{job}': {why}") })
        })
    }

    /// Finds the job of a task that has sent no request yet, by its request at `first`. `level` is the
    /// task's, if known.
    ///
    /// # Errors
    /// If two jobs are possible: their names.
    pub(super) fn owner(&mut self, first: Sector, level: Option<u8>) -> Result<Owner, String> {
        let fits = |r: &&mut Region| {
            let is_inside = (r.first..r.end).contains(&first.0);
            is_inside && (r.owner.level.is_none() || level.is_none() || r.owner.level == level)
        };
        let mut fitting: Vec<_> = self.regions.iter_mut().filter(fits).collect();
        // A region that no task has yet, then one that begins here, then the smallest.
        fitting.sort_by_key(|r| (r.taken, r.first != first.0, r.end - r.first));
        let Some((best, others)) = fitting.split_first_mut() else { return Ok(Owner::default()) };
        let other = others.iter().find(|r| !r.owner.is_like(&best.owner));
        if let Some(other) = other {
            return Err(format!("job '{}' or job '{}'", best.job, other.job));
        }
        best.taken = true;
        Ok(best.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(script: &str) -> Load {
        let mut load = Load::default();
        load.read(script).unwrap();
        load
    }

    #[test]
    fn a_file_of_jobs_tells_classes_too() {
        let jobs = "[global]\nfilename=@DEV@\ntime_based\nsize=1m\n[store]\nrw=write\n\n; the reader\n\
                    [r]\nrw=read\noffset=40m\nprioclass=3\n";
        let mut l = load(jobs);
        assert_eq!(l.owner(Sector(0), None).unwrap().class, None);
        assert_eq!(l.owner(Sector(81_920), None).unwrap().class, Some(Class::Idle));
        let mut l = Load::default();
        let refused = l.read("[r]\nfilename=data\nprioclass=3\n").unwrap_err();
        assert!(refused.what.contains("job 'r'"), "{}", refused.what);
    }

    #[test]
    fn groups_by_where_their_jobs_work() {
        let mut l = load(
            "for w in 100 300; do mkdir -p /sys/fs/cgroup/blkio/fh$w; echo $w > /sys/fs/cgroup/blkio/fh$w/blkio.bfq.weight; done
             (echo $BASHPID > /sys/fs/cgroup/blkio/fh100/cgroup.procs; exec fio --filename=$DEV --name=A --rw=read --size=300m) &
             (echo $BASHPID > /sys/fs/cgroup/blkio/fh300/cgroup.procs; exec fio --name=B --offset=500m --size=300m) &
             wait
             for w in 100 300; do rmdir /sys/fs/cgroup/blkio/fh$w; done",
        );
        let weights: Vec<_> = l.groups.iter().map(|g| (g.weight, g.parent)).collect();
        assert_eq!(weights, [(100, None), (300, None)]);
        assert_eq!(l.owner(Sector(1_024_000), Some(4)).unwrap().group, GroupId(2));
        assert_eq!(l.owner(Sector(0), Some(4)).unwrap().group, GroupId(1));
        assert_eq!(l.owner(Sector(99_999_999), None).unwrap(), Owner::default());
    }

    #[test]
    fn classes_by_level_where_jobs_share_the_disk() {
        let mut l = load("fio --size=300m --name=a --prioclass=1 --prio=2 --name=b --prioclass=3 --prio=7");
        assert_eq!(l.owner(Sector(800), Some(7)).unwrap().class, Some(Class::Idle));
        assert_eq!(l.owner(Sector(8), Some(2)).unwrap().class, Some(Class::RealTime));
        let mut l = load("ionice -c 1 -n 0 fio --name=a --size=1m & fio --name=b --offset=1m --size=1m");
        assert_eq!(
            l.owner(Sector(8), None).unwrap(),
            Owner { class: Some(Class::RealTime), level: Some(0), ..Owner::default() }
        );
        assert_eq!(l.owner(Sector(2048), None).unwrap(), Owner::default());
    }

    #[test]
    fn clones_take_one_region_each() {
        let mut l = load(
            "for i in 0 1; do (echo $$ > /sys/fs/cgroup/g$i/cgroup.procs; fio --name=x --offset=$((i*2+1))m --size=1m); done",
        );
        assert_eq!(l.owner(Sector(6144), None).unwrap().group, GroupId(2));
        assert_eq!(l.owner(Sector(2048), None).unwrap().group, GroupId(1));
        let mut l = load("fio --numjobs=3 --offset_increment=10m --size=10m --name=r --prio=3");
        assert_eq!(l.regions.len(), 3);
        assert_eq!(l.owner(Sector(2 * 20480 + 5), None).unwrap().level, Some(3));
        assert!(l.regions[2].taken);
    }

    #[test]
    fn nested_groups_bring_their_parents() {
        let mut groups = Groups::default();
        groups.set_weight("a/b", 7);
        let all: Vec<_> = groups.iter().collect();
        assert_eq!(all[0], Group { id: GroupId(1), parent: None, weight: 100 });
        assert_eq!(all[1], Group { id: GroupId(2), parent: Some(GroupId(1)), weight: 7 });
        assert_eq!(groups.find_or_add(""), GroupId::ROOT);
    }

    #[test]
    fn jobs_of_two_classes_at_one_place_are_not_guessed() {
        let mut l = load("fio --size=9m --name=a --prioclass=1 --name=b --prioclass=3 --name=c --offset=9m");
        assert_eq!(l.owner(Sector(8), None), Err("job 'a' or job 'b'".to_owned()));
        assert_eq!(l.owner(Sector(18432), None), Ok(Owner::default()));
        let mut l = load("fio --size=9m --name=a --prioclass=2 --name=b");
        assert!(l.owner(Sector(8), None).is_ok(), "both are best effort");
    }

    #[test]
    fn places_must_be_known_where_classes_differ() {
        let mut load = Load::default();
        let refusal = load.read("sleep 1\nfio --name=a --prioclass=3 --offset=50%").unwrap_err();
        assert_eq!(refusal.line, 1);
        assert!(refusal.what.contains("job 'a': `--offset=50%`"), "{}", refusal.what);
        assert_eq!(Load::default().read("fio --name=a --offset=50% --filename=x"), Ok(()));
    }
}
