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
//! A client is a cgroup; in the root group, which all share, it is a user. A cgroup is known by its name
//! here: one that is idle loses its number while its files stay open.
//!
//! What it does not do: count the descriptors of nodes (`descriptors.rs`).

use crate::bio::Errno;
use std::collections::HashMap;
use std::sync::Arc;

/// What has files open.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Opener {
    Group(Arc<str>),
    User(u32),
}

impl Opener {
    /// The client in the group of that name; the root has none.
    pub(super) fn new(group: &str, uid: u32) -> Self {
        if group.is_empty() { Self::User(uid) } else { Self::Group(group.into()) }
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
    pub(super) fn take(&mut self, opener: &Opener, descriptors: usize) -> Result<(), Errno> {
        let (own, left) = self.after(opener, descriptors)?;
        self.left = left;
        self.by_opener.insert(opener.clone(), own);
        Ok(())
    }

    /// The descriptors that the client would have, and those that would be left.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(super) fn after(&self, opener: &Opener, descriptors: usize) -> Result<(usize, usize), Errno> {
        let own = self.by_opener.get(opener).copied().unwrap_or_default() + descriptors;
        let left = self.left.checked_sub(descriptors).filter(|left| own <= *left);
        Ok((own, left.ok_or(Errno(libc::ENFILE))?))
    }

    /// Descriptors that a client took are closed.
    pub(super) fn give_back(&mut self, opener: &Opener, descriptors: usize) {
        self.left += descriptors;
        let own = self.by_opener.get_mut(opener).expect("it took them");
        *own -= descriptors;
        if *own == 0 {
            self.by_opener.remove(opener);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_always_finds_some() {
        let mut files = OpenFiles::new(300);
        let take_all = |files: &mut OpenFiles, opener: &Opener| {
            (0..).take_while(|_| files.take(opener, 2).is_ok()).count() * 2
        };
        let [a, b, c] = [("", 0), ("", 1000), ("vm/web", 0)].map(|(group, uid)| Opener::new(group, uid));
        assert_eq!(take_all(&mut files, &a), 150);
        assert_eq!(take_all(&mut files, &b), 74);
        assert_eq!(take_all(&mut files, &c), 38);
        assert_eq!(files.take(&a, 2), Err(Errno(libc::ENFILE)));
        files.give_back(&a, 150);
        files.give_back(&b, 74);
        assert_eq!(files.by_opener.len(), 1);
        assert_eq!(take_all(&mut files, &b), 130);
    }

    #[test]
    fn users_are_clients_in_the_root_group_alone() {
        assert_eq!(Opener::new("", 5), Opener::User(5));
        assert_eq!(Opener::new("vm", 5), Opener::new("vm", 6));
    }
}
