//! What must hold between the controller's books, the tree, the scheduler and the requests.

use super::{Divisible, Fair, Mode};
use crate::request::{Requests, State};
use crate::table::Table;

impl<S: Divisible> Fair<S> {
    pub(super) fn check_all(&self, requests: &Requests) {
        let others = self.contexts.iter().filter(|(g, _)| *g != self.in_force).map(|(_, c)| c);
        self.sched.check_each(others, requests);
        if self.mode == Mode::Single {
            return;
        }
        let mut held = Table::new(self.members.len(), [0; 2]);
        for (_, slot) in requests.iter().filter(|(_, s)| matches!(s.state, State::Queued | State::Issued)) {
            held[slot.rq.group][usize::from(slot.rq.sync)] += 1;
        }
        let (mut queued, mut at_device, mut holders) = (0, 0, [0; 2]);
        for (group, m) in self.members.iter() {
            assert_eq!(m.held, held[group], "requests of {group:?}");
            assert_eq!(m.queued + m.at_device, m.held[0] + m.held[1], "{group:?}");
            let is_active = m.queued > 0 || self.active == Some(group);
            assert_eq!(self.tree.is_active(group), is_active, "{group:?}");
            holders = [0, 1].map(|kind| holders[kind] + u32::from(m.held[kind] > 0));
            (queued, at_device) = (queued + m.queued, at_device + m.at_device);
        }
        assert_eq!((queued, at_device), (self.queued, self.at_device), "requests in all");
        let all = [0, 1].map(|kind| held.iter().map(|(_, h)| h[kind]).sum());
        assert_eq!((self.pool.held, self.pool.holders), (all, holders), "requests by kind, and who has any");
        assert!(self.detours <= at_device, "out of turn, and where?");
        self.tree.check();
        self.reserve.check(&self.members);
    }
}
