//! `cmdprio_percentage`, `cmdprio_bssplit`, `cmdprio_class`, `cmdprio`: some calls of a job have another I/O
//! priority than the job.
//!
//! ```text
//!   cmdprio_percentage=20              20 % of reads and of writes, real time unless cmdprio_class says otherwise
//!   cmdprio_bssplit=64k/25/1/1:4k/0    25 % of the calls of 64 KiB, real time at level 1; none of those of 4 KiB
//! ```
//
//= fio-3.33 HOWTO "cmdprio_percentage", "cmdprio_class", "cmdprio", "cmdprio_bssplit"; ranges as --parse-only refuses them

use super::value::Arg;
use fairhead_core::units::{Class, IoPrio};

/// Which calls of one direction have another priority, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPrio {
    /// Calls of that many bytes; `None`: of any size.
    pub bytes: Option<u32>,
    /// How many percent of them.
    pub percent: u8,
    /// The priority of these calls.
    pub prio: IoPrio,
}

/// What the options say so far, for reads and for writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    percentage: Option<[u8; 2]>,
    split: Option<[Vec<Entry>; 2]>,
    class: [Option<Class>; 2],
    level: [Option<u8>; 2],
}

/// An entry of `cmdprio_bssplit`: size, percentage, and class and level if they are given.
type Entry = (u32, u8, Option<(Class, u8)>);

const CLASSES: &[(&str, Class)] = &[("1", Class::RealTime), ("2", Class::BestEffort), ("3", Class::Idle)];

impl Said {
    /// The line's option is set.
    pub(super) fn set(&mut self, a: &Arg<'_>) -> Result<(), String> {
        match a.key {
            "cmdprio_percentage" => self.percentage = Some(a.pair(|e| e.percent())?),
            "cmdprio_class" => self.class = a.pair(|e| e.word(CLASSES))?.map(Some),
            "cmdprio" => self.level = a.pair(|e| e.level())?.map(Some),
            _ => self.split = Some(a.pair(|e| e.prio_split())?),
        }
        Ok(())
    }

    /// What it comes to, for reads and for writes.
    pub(super) fn settle(self) -> Result<[Vec<CallPrio>; 2], String> {
        if self.percentage.is_some() && self.split.is_some() {
            return Err("cmdprio_bssplit contradicts cmdprio_percentage; keep one of them".to_owned());
        }
        let mut all = [Vec::new(), Vec::new()];
        for (i, calls) in all.iter_mut().enumerate() {
            // Without a class it is the highest.
            let own = (self.class[i].unwrap_or(Class::RealTime), self.level[i].unwrap_or(0));
            let prio = |given: Option<(Class, u8)>| {
                let (class, level) = given.unwrap_or(own);
                IoPrio::new(class, level)
            };
            if let Some(percent) = self.percentage {
                calls.push(CallPrio { bytes: None, percent: percent[i], prio: prio(None) });
            }
            for &(bytes, percent, given) in self.split.iter().flat_map(|s| &s[i]) {
                calls.push(CallPrio { bytes: Some(bytes), percent, prio: prio(given) });
            }
            calls.retain(|c| c.percent > 0);
        }
        Ok(all)
    }
}

impl Arg<'_> {
    /// A value for reads and one for writes, or one for both.
    fn pair<T: Clone>(&self, one: impl Fn(Arg<'_>) -> Result<T, String>) -> Result<[T; 2], String> {
        match self.value.split_once(',') {
            None => one(*self).map(|v| [v.clone(), v]),
            Some((_, rest)) if rest.contains(',') => Err(format!(
                "'{}' has more than two entries; write one for reads and one for writes",
                self.show()
            )),
            Some((read, write)) => Ok([one(self.with(read))?, one(self.with(write))?]),
        }
    }

    fn level(&self) -> Result<u8, String> {
        self.int(0, 7).map(|v| u8::try_from(v).unwrap_or(7))
    }

    /// `64k/25` or `64k/25/1/1`, several with colons between them.
    fn prio_split(&self) -> Result<Vec<Entry>, String> {
        let mut all: Vec<Entry> = Vec::new();
        for entry in self.value.split(':') {
            let parts: Vec<&str> = entry.split('/').collect();
            let (size, percent, prio) = match parts[..] {
                [size, percent] => (size, percent, None),
                [size, percent, class, level] => {
                    let class = self.with(class).word(CLASSES)?;
                    (size, percent, Some((class, self.with(level).level()?)))
                }
                _ => {
                    return Err(format!(
                        "'{}': an entry is a size and a percentage, such as 64k/25, or these with a class and a level: 64k/25/1/0",
                        self.show()
                    ));
                }
            };
            all.push((self.with(size).block()?, self.with(percent).percent()?, prio));
        }
        for (bytes, ..) in &all {
            let sum: u32 = all.iter().filter(|e| e.0 == *bytes).map(|e| u32::from(e.1)).sum();
            if sum > 100 {
                return Err(format!(
                    "the percentages of {bytes} bytes in '{}' add up to {sum}, over 100",
                    self.show()
                ));
            }
        }
        Ok(all)
    }
}
