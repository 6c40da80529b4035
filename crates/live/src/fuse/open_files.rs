//! How many files programs may have open in a mount: each needs descriptors of this process, which has a
//! limited number of them.
//!
//! A client may take descriptors while it has fewer than there are left. So the first client can take half of
//! all, a second one half of what is left beside it, and a new client always finds some:
//!
//! ```text
//!   300 for open files    A alone: 150     A and B: 100 each     A, B and C: 75 each
//! ```
//!
//! A client is a cgroup; in the root group, which all share, it is a user.
//!
//! What it does not do: count the descriptors of nodes (`descriptors.rs`).

use crate::bio::Errno;
use fairhead_core::units::GroupId;
use std::collections::HashMap;

/// What has files open.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Opener {
    Group(GroupId),
    User(u32),
}

impl Opener {
    pub(super) fn new(group: GroupId, uid: u32) -> Self {
        if group == GroupId::ROOT { Self::User(uid) } else { Self::Group(group) }
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct OpenFiles {
    /// The descriptors that no client has.
    left: usize,
    by_opener: HashMap<Opener, usize>,
}

impl OpenFiles {
    pub(super) fn new(descriptors: usize) -> Self {
        Self { left: descriptors, by_opener: HashMap::new() }
    }

    /// A client opens a file that needs this many descriptors.
    ///
    /// # Errors
    /// `ENFILE` if it has its share.
    pub(super) fn take(&mut self, opener: Opener, descriptors: usize) -> Result<(), Errno> {
        let (own, left) = self.after(opener, descriptors)?;
        self.left = left;
        self.by_opener.insert(opener, own);
        Ok(())
    }

    /// The descriptors that the client would have, and those that would be left.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(super) fn after(&self, opener: Opener, descriptors: usize) -> Result<(usize, usize), Errno> {
        let own = self.by_opener.get(&opener).copied().unwrap_or_default() + descriptors;
        let left = self.left.checked_sub(descriptors).filter(|left| own <= *left);
        Ok((own, left.ok_or(Errno(libc::ENFILE))?))
    }

    /// Descriptors that a client took are closed.
    pub(super) fn give_back(&mut self, opener: Opener, descriptors: usize) {
        self.left += descriptors;
        let own = self.by_opener.get_mut(&opener).expect("it took them");
        *own -= descriptors;
        if *own == 0 {
            self.by_opener.remove(&opener);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_always_finds_some() {
        let mut files = OpenFiles::new(300);
        let take_all =
            |files: &mut OpenFiles, opener| (0..).take_while(|_| files.take(opener, 2).is_ok()).count() * 2;
        let [a, b, c] = [Opener::User(0), Opener::User(1000), Opener::Group(GroupId(7))];
        assert_eq!(take_all(&mut files, a), 150);
        assert_eq!(take_all(&mut files, b), 74);
        assert_eq!(take_all(&mut files, c), 38);
        assert_eq!(files.take(a, 2), Err(Errno(libc::ENFILE)));
        files.give_back(a, 150);
        files.give_back(b, 74);
        assert_eq!(files.by_opener.len(), 1);
        assert_eq!(take_all(&mut files, b), 130);
    }

    #[test]
    fn users_are_clients_in_the_root_group_alone() {
        assert_eq!(Opener::new(GroupId::ROOT, 5), Opener::User(5));
        assert_eq!(Opener::new(GroupId(3), 5), Opener::new(GroupId(3), 6));
    }
}
