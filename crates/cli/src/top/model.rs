//! What `fairhead top` shows: the last interval, in which order, which groups, and what came before.
//!
//! Keys and intervals go in, rows come out; nothing is drawn here. The history of a group has a point for
//! each interval, [`HISTORY`] at most, and is dropped with the group.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::keys::Key;
use crate::output::{Interval, Row};

/// The number of points in a history: four minutes at one second each.
pub(super) const HISTORY: usize = 240;

/// The longest filter, in characters.
const FILTER: usize = 64;

/// What the rows are ordered by, largest first; names from A to Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Share of the disk's time, or of the bytes.
    Share,
    /// Bytes per second in both directions.
    Bandwidth,
    /// Requests per second.
    Iops,
    /// The 99th percentile of the latency.
    Latency,
    /// The name.
    Name,
}

/// Every order, with its key.
pub(super) const ORDERS: [(char, Order, &str); 5] = [
    ('p', Order::Share, "share"),
    ('b', Order::Bandwidth, "bandwidth"),
    ('i', Order::Iops, "IOPS"),
    ('l', Order::Latency, "p99"),
    ('n', Order::Name, "name"),
];

impl Order {
    /// Returns its name.
    pub(super) fn name(self) -> &'static str {
        ORDERS.iter().find(|o| o.1 == self).map_or("", |o| o.2)
    }

    /// Returns the order `by` places behind it, around the end.
    fn step(self, by: usize) -> Self {
        let at = ORDERS.iter().position(|o| o.1 == self).unwrap_or(0);
        ORDERS[(at + by) % ORDERS.len()].1
    }

    /// Returns what a row is compared by, and what its history shows. A name has its share as history.
    pub(super) fn value(self, row: &Row) -> u64 {
        match self {
            Self::Share | Self::Name => row.share(1000).unwrap_or(0),
            Self::Bandwidth => row.bandwidth(),
            Self::Iops => row.iops,
            Self::Latency => row.p99.map_or(0, |t| t.as_ns()),
        }
    }
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    GoOn,
    Quit,
}

/// The value under each order but the last, at one interval.
type Point = [u64; 4];

/// The state of the screen.
pub(super) struct Model {
    /// The time between two looks.
    pub(super) interval: Duration,
    /// The last interval; none before the first is over.
    pub(super) last: Option<Interval>,
    /// What the rows are ordered by.
    pub(super) order: Order,
    /// Whether the smallest comes first.
    pub(super) is_reversed: bool,
    /// A part of the names that are shown, whatever its case.
    pub(super) filter: String,
    /// Whether keys go to the filter.
    pub(super) is_typing: bool,
    /// Whether the help is shown.
    pub(super) is_help: bool,
    /// Whether intervals are left out.
    pub(super) is_paused: bool,
    /// The number of rows above the first one on the screen.
    pub(super) scroll: usize,
    history: BTreeMap<String, VecDeque<Point>>,
}

impl Model {
    /// Nothing has been seen yet; by share.
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            last: None,
            order: Order::Share,
            is_reversed: false,
            filter: String::new(),
            is_typing: false,
            is_help: false,
            is_paused: false,
            scroll: 0,
            history: BTreeMap::new(),
        }
    }

    /// One more interval is over. While the screen is paused it is not shown, and not in the history.
    pub(super) fn add(&mut self, interval: Interval) {
        if self.is_paused {
            return;
        }
        let mut old = std::mem::take(&mut self.history);
        for row in &interval.rows {
            let mut points = old.remove(&row.group).unwrap_or_default();
            if points.len() == HISTORY {
                points.pop_front();
            }
            points.push_back([0, 1, 2, 3].map(|o| ORDERS[o].1.value(row)));
            self.history.insert(row.group.clone(), points);
        }
        self.last = Some(interval);
    }

    /// A key was pressed.
    pub(super) fn press(&mut self, key: Key) -> Next {
        if key == Key::Quit {
            return Next::Quit;
        }
        if self.is_help {
            // Any key closes the help; htop does the same.
            self.is_help = false;
        } else if self.is_typing {
            self.type_filter(key);
        } else {
            return self.command(key);
        }
        Next::GoOn
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Char(c) if self.filter.chars().count() < FILTER => self.filter.push(c),
            Key::Erase => drop(self.filter.pop()),
            Key::Enter | Key::Filter => self.is_typing = false,
            Key::Escape => {
                self.filter.clear();
                self.is_typing = false;
            }
            _ => {}
        }
        self.scroll = 0;
    }

    fn command(&mut self, key: Key) -> Next {
        match key {
            Key::Char('q' | 'Q') => return Next::Quit,
            Key::Char('h' | 'H' | '?') | Key::Help => self.is_help = true,
            Key::Char('/') | Key::Filter => self.is_typing = true,
            Key::Char(' ' | 'z' | 'Z') => self.is_paused = !self.is_paused,
            Key::Char('r' | 'R') => self.is_reversed = !self.is_reversed,
            Key::Char('>') | Key::NextOrder => self.order = self.order.step(1),
            Key::Char('<') => self.order = self.order.step(ORDERS.len() - 1),
            Key::Escape => self.filter.clear(),
            Key::Scroll(by) => {
                let by = isize::try_from(by).unwrap_or(0);
                self.scroll = self.scroll.saturating_add_signed(by);
            }
            Key::First => self.scroll = 0,
            Key::Char(c) => {
                if let Some(order) = ORDERS.iter().find(|o| o.0 == c.to_ascii_lowercase()) {
                    self.order = order.1;
                }
            }
            Key::Enter | Key::Erase | Key::Quit => {}
        }
        Next::GoOn
    }

    /// Returns the rows to show, in order.
    pub(super) fn rows(&self) -> Vec<&Row> {
        let wanted = self.filter.to_lowercase();
        let all = self.last.iter().flat_map(|i| &i.rows);
        let mut rows: Vec<&Row> = all.filter(|r| r.group.to_lowercase().contains(&wanted)).collect();
        // Those that are equal stay in the order of their names, so that they do not jump.
        rows.sort_by(|a, b| a.group.cmp(&b.group));
        if self.order != Order::Name {
            rows.sort_by_key(|r| Reverse(self.order.value(r)));
        }
        if self.is_reversed {
            rows.reverse();
        }
        rows
    }

    /// Returns the last `most` values of a group under the order, oldest first.
    pub(super) fn history(&self, group: &str, most: usize) -> Vec<u64> {
        let at = ORDERS.iter().position(|o| o.1 == self.order).filter(|&at| at < 4).unwrap_or(0);
        let points = self.history.get(group);
        let values = points.into_iter().flatten().map(|point| point[at]);
        let count = points.map_or(0, VecDeque::len);
        values.skip(count.saturating_sub(most)).collect()
    }
}

#[cfg(test)]
#[path = "model_tests.rs"]
pub(super) mod tests;
