//! udev rules that set attributes of disks' queues.
//!
//! Files are read in the order of their names over all folders; a file in `/etc` replaces one of the same
//! name in `/run`, and that one replaces the package's. Within a file, a rule that matches assigns, and a
//! `GOTO` jumps forward to its `LABEL`.
//!
//! What this does not do: run programs or import databases. A rule that asks for such things *may* match, and
//! after a jump that may happen, all up to the label *may* match. Of the commands that rules run,
//! `echo NAME > …/queue/scheduler` is read.

mod device;
mod glob;
mod rule;

use std::collections::BTreeMap;

use crate::disks::Disk;
use crate::tree::Tree;
use device::Device;
pub(crate) use glob::glob;
pub use rule::Rule;

/// The folders of rules, the strongest first.
const FOLDERS: [&str; 5] = [
    "etc/udev/rules.d",
    "run/udev/rules.d",
    "usr/local/lib/udev/rules.d",
    "usr/lib/udev/rules.d",
    "lib/udev/rules.d",
];

/// Whether a rule is for a disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Matches {
    /// It is not.
    No,
    /// It asks for something that is not looked up here.
    Maybe,
    /// It is.
    Yes,
}

impl Rule {
    /// Reads the rules of all files, in the order in which udev goes through them.
    pub(crate) fn all(tree: &Tree) -> Vec<Self> {
        let mut files: BTreeMap<String, &str> = BTreeMap::new();
        for folder in FOLDERS.iter().rev() {
            let names = tree.names(folder).into_iter().filter(|n| n.ends_with(".rules"));
            files.extend(names.map(|n| (n, *folder)));
        }
        let mut rules = Vec::new();
        for (name, folder) in files {
            let path = format!("{folder}/{name}");
            // A link to /dev/null switches a package's file off.
            rules.extend(Self::parse(&format!("/{path}"), &tree.text(&path).unwrap_or_default()));
        }
        rules
    }
}

/// An assignment to a file of a disk's `queue/`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Assignment {
    /// The rule's place among all.
    rule: usize,
    name: String,
    /// The value; `None` if it is not known.
    value: Option<String>,
    /// Whether the rule matches for certain.
    is_certain: bool,
}

/// What the rules do for one disk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Effects {
    /// For each rule, whether its conditions hold. Jumps do not count here.
    matches: Vec<Matches>,
    assignments: Vec<Assignment>,
}

impl Effects {
    /// Goes through the rules as udev does when the disk appears, and again when it changes.
    pub(crate) fn of(rules: &[Rule], tree: &Tree, disk: &Disk) -> Self {
        let mut effects = Self::at(rules, tree, disk, "add");
        let changed = Self::at(rules, tree, disk, "change");
        // A disk made of others, or a loop device, is ready with a change.
        let has = |a: &Assignment| effects.assignments.iter().any(|b| b.name == a.name);
        let more: Vec<_> = changed.assignments.into_iter().filter(|a| !has(a)).collect();
        effects.assignments.extend(more);
        for (old, new) in effects.matches.iter_mut().zip(changed.matches) {
            *old = (*old).max(new);
        }
        effects
    }

    fn at(rules: &[Rule], tree: &Tree, disk: &Disk, action: &str) -> Self {
        let mut device = Device::new(tree, disk, action);
        let (mut effects, mut file) = (Self::default(), "");
        // The label of a jump that was made, and those of jumps that may have been made.
        let (mut jump, mut maybe): (Option<&str>, Vec<&str>) = (None, Vec::new());
        for (number, rule) in rules.iter().enumerate() {
            if rule.file != file {
                (file, jump) = (&rule.file, None);
                maybe.clear();
            }
            let mut fits = device.fits(rule);
            effects.matches.push(fits);
            if let Some(label) = rule.label.as_deref() {
                jump = jump.filter(|j| *j != label);
                maybe.retain(|m| *m != label);
            }
            if jump.is_some() || fits == Matches::No {
                continue;
            }
            if !maybe.is_empty() {
                fits = Matches::Maybe;
            }
            let is_certain = fits == Matches::Yes;
            for (name, value) in &rule.properties {
                device.assigned.insert(name.clone(), value.clone().filter(|_| is_certain));
            }
            effects.assignments.extend(rule.sets.iter().map(|(name, value)| Assignment {
                rule: number,
                name: name.clone(),
                value: Some(value.clone()).filter(|v| !v.contains(['$', '%'])),
                is_certain,
            }));
            // A program may do it, or not.
            effects.assignments.extend(rule.writes.iter().map(|(name, value)| Assignment {
                rule: number,
                name: name.clone(),
                value: Some(value.clone()),
                is_certain: false,
            }));
            match rule.goto.as_deref() {
                Some(label) if is_certain => jump = Some(label),
                Some(label) => maybe.push(label),
                None => {}
            }
        }
        effects
    }

    /// Whether the rule with this place among all is for the disk.
    pub(crate) fn matches(&self, rule: usize) -> Matches {
        self.matches.get(rule).copied().unwrap_or(Matches::No)
    }

    /// The assignments to `queue/NAME` that may be the one that counts, the last first: those that are not
    /// certain, down to the first that is.
    fn candidates(&self, name: &str) -> impl Iterator<Item = &Assignment> {
        let mut is_over = false;
        self.assignments.iter().rev().filter(move |a| a.name == name).take_while(move |a| {
            let was_over = is_over;
            is_over |= a.is_certain;
            !was_over
        })
    }

    /// The last assignment of a known value to `queue/NAME`: the rule's place, the value, and whether it is
    /// certain that this one counts.
    pub(crate) fn setting(&self, name: &str) -> Option<(usize, &str, bool)> {
        let is_certain = self.candidates(name).next()?.is_certain;
        let known = self.candidates(name).find_map(|a| Some((a.rule, a.value.as_deref()?)));
        known.map(|(rule, value)| (rule, value, is_certain))
    }

    /// The last rule that may have assigned this value to `queue/NAME`.
    pub(crate) fn setter_of(&self, name: &str, value: &str) -> Option<usize> {
        self.candidates(name).find(|a| a.value.as_deref() == Some(value)).map(|a| a.rule)
    }
}
