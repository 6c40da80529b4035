//! Lists of requests in order, as links in one table: a request is in one list at most, so that any number of
//! lists need the memory of one.

use fairhead_core::Tag;

const NONE: u16 = u16::MAX;

/// Links for all requests.
#[derive(Debug)]
pub(crate) struct Links {
    prev: Box<[u16]>,
    next: Box<[u16]>,
}

/// Requests in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u16,
    tail: u16,
    len: u16,
}

impl List {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE, len: 0 };

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) const fn len(&self) -> u32 {
        self.len as u32
    }

    pub(crate) fn first(&self) -> Option<Tag> {
        tag(self.head)
    }
}

fn tag(link: u16) -> Option<Tag> {
    (link != NONE).then_some(Tag(link))
}

impl Links {
    /// Links for the tags `0..tags`. Allocates.
    pub(crate) fn new(tags: u16) -> Self {
        let none = || vec![NONE; usize::from(tags)].into_boxed_slice();
        Self { prev: none(), next: none() }
    }

    /// Appends a request that is in no list.
    pub(crate) fn push(&mut self, list: &mut List, tag: Tag) {
        self.insert(list, list.tail, tag.0, NONE);
    }

    /// Puts a request that is in no list before `at`, which is in this one.
    pub(crate) fn push_before(&mut self, list: &mut List, at: Tag, tag: Tag) {
        self.insert(list, self.prev[usize::from(at.0)], tag.0, at.0);
    }

    fn insert(&mut self, list: &mut List, prev: u16, tag: u16, next: u16) {
        (self.prev[usize::from(tag)], self.next[usize::from(tag)]) = (prev, next);
        self.connect(list, prev, tag);
        self.connect(list, tag, next);
        list.len += 1;
    }

    /// Takes a request out of the list that it is in.
    pub(crate) fn remove(&mut self, list: &mut List, tag: Tag) {
        let (prev, next) = (self.prev[usize::from(tag.0)], self.next[usize::from(tag.0)]);
        self.connect(list, prev, next);
        list.len -= 1;
    }

    fn connect(&mut self, list: &mut List, prev: u16, next: u16) {
        match self.next.get_mut(usize::from(prev)) {
            Some(link) => *link = next,
            None => list.head = next,
        }
        match self.prev.get_mut(usize::from(next)) {
            Some(link) => *link = prev,
            None => list.tail = prev,
        }
    }

    /// Takes the first.
    pub(crate) fn pop(&mut self, list: &mut List) -> Option<Tag> {
        let first = list.first()?;
        self.remove(list, first);
        Some(first)
    }

    /// From the first to the last.
    pub(crate) fn iter(&self, list: &List) -> impl Iterator<Item = Tag> + '_ {
        std::iter::successors(list.first(), |t| tag(self.next[usize::from(t.0)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lists_keep_their_order() {
        let mut links = Links::new(8);
        let (mut a, mut b) = (List::EMPTY, List::EMPTY);
        for i in [1, 3, 5] {
            links.push(&mut a, Tag(i));
            links.push(&mut b, Tag(i + 1));
        }
        links.remove(&mut a, Tag(3));
        links.push_before(&mut b, Tag(4), Tag(3));
        links.push_before(&mut b, Tag(2), Tag(0));
        let order = |links: &Links, list| links.iter(list).map(|t| t.0).collect::<Vec<_>>();
        assert_eq!(order(&links, &a), [1, 5]);
        assert_eq!(order(&links, &b), [0, 2, 3, 4, 6]);
        assert_eq!(
            (links.pop(&mut a), links.pop(&mut a), links.pop(&mut a)),
            (Some(Tag(1)), Some(Tag(5)), None)
        );
        assert!(a.is_empty() && b.len() == 5);
    }
}
