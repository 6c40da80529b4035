//! What must hold between two events.

use super::{CLASSES, Entity, Hierarchy, Schedule, ServiceTree, Standing, later};
use crate::units::{Class, GroupId, Id};

impl<I: Id> Hierarchy<I> {
    /// Walks everything and panics if something is wrong. O(groups * entities): for tests.
    pub(crate) fn check(&self) {
        for (group, schedule) in self.schedules.iter() {
            for class in CLASSES {
                self.check_tree(group, class);
            }
            self.check_schedule(group, schedule);
        }
        self.check_path();
    }

    fn children(&self, group: GroupId) -> impl Iterator<Item = Entity> + '_ {
        let root = self.leaves as usize;
        self.shares.iter().filter(move |(e, s)| s.group == group && e.index() != root).map(|(e, _)| e)
    }

    fn check_tree(&self, group: GroupId, class: Class) {
        let tree = &self.schedules[group].trees[class as usize];
        self.nodes.check(tree);
        let mut weight = 0;
        for e in self.children(group).filter(|&e| self.shares[e].class == class) {
            let (standing, (start, finish)) = (self.nodes.standing(e), self.nodes.times(e));
            weight += if standing == Standing::Detached { 0 } else { u64::from(self.nodes.weight(e)) };
            assert!(standing != Standing::Active || !later(start, finish), "{e:?} finishes before it starts");
            let serving = self.schedules[group].in_service == Some(e);
            assert!(standing != Standing::Held || serving, "{e:?} is in no tree and not in service");
        }
        assert_eq!(tree.weight(), weight, "sum of weights of {group:?}, {class:?}");
    }

    fn check_schedule(&self, group: GroupId, schedule: &Schedule) {
        let waits = schedule.trees.iter().any(ServiceTree::has_active);
        if !self.kernel_next && group != GroupId::ROOT {
            assert_eq!(schedule.next.is_some(), waits, "{group:?} has a next child if one waits");
        }
        if let Some(next) = schedule.next
            && !self.kernel_next
        {
            assert_eq!(self.nodes.standing(next), Standing::Active, "the next child waits");
            assert_eq!(self.shares[next].group, group, "a child of another group");
        }
        let Some(e) = self.entity(group) else { return };
        let standing = self.nodes.standing(e);
        let busy = waits || schedule.in_service.is_some();
        assert_eq!(matches!(standing, Standing::Active | Standing::Held), busy, "{group:?} is {standing:?}");
        if !self.kernel_next {
            assert_eq!(standing == Standing::Active, waits, "{group:?} is {standing:?}");
        }
    }

    fn check_path(&self) {
        let mut on_path = 0;
        let mut above = self.serving;
        while let Some(e) = above {
            let group = self.shares[e].group;
            let served = self.schedules[group].in_service;
            assert!(served.is_none_or(|served| served == e), "{group:?} serves another");
            on_path += usize::from(served.is_some());
            above = self.entity(group);
        }
        let in_service = self.schedules.iter().filter(|(_, s)| s.in_service.is_some()).count();
        assert_eq!(in_service, on_path, "in service, but not above the leaf in service");
    }
}
