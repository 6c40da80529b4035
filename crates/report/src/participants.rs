//! The clients that appear in pictures; where there are too many to distinguish, several appear as one.
//!
//! Up to [`LOOKS`] clients appear one by one. If there are more, the clones of each job appear as one; if
//! there are more jobs than that, the last jobs appear as one. A single job of many clones appears in
//! [`LOOKS`] parts: of `reader` with 30 clones, `reader.0 to 3`, `reader.4 to 7` and so on. The host's own
//! writes come last, if there are any.

use crate::svg::{Key, LOOKS};
use fairhead_sim::job::JobFile;
use fairhead_sim::journal;

/// The most lanes in a timeline of decisions.
const LANES_MAX: usize = 34;

/// The participants of a picture: clients, or groups of clients that appear as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participants {
    /// The names of the participants.
    pub names: Vec<String>,
    /// For each client, the index of its participant.
    of_client: Vec<usize>,
    /// For each client, its own name.
    clients: Vec<String>,
}

impl Participants {
    /// Makes the participants of a job file.
    #[must_use]
    pub fn new(jobs: &JobFile) -> Self {
        let label = |j: &fairhead_sim::job::Job, clone: u32| match j.numjobs {
            1 => j.name.clone(),
            _ => format!("{}.{clone}", j.name),
        };
        let clients: Vec<String> = jobs.clients().map(|c| label(c.job, c.clone)).collect();
        let with_clones = |j: &fairhead_sim::job::Job| match j.numjobs {
            1 => j.name.clone(),
            n => format!("{} ({n} clients)", j.name),
        };
        let (count, kinds) = (clients.len(), jobs.jobs.len());
        if count <= LOOKS {
            return Self { names: clients.clone(), of_client: (0..count).collect(), clients };
        }
        if kinds == 1 {
            let part = count.div_ceil(LOOKS);
            let name = |first: usize| {
                let last = (first + part).min(count) - 1;
                format!("{} to {last}", label(&jobs.jobs[0], u32::try_from(first).unwrap_or(0)))
            };
            let names = (0..count).step_by(part).map(name).collect();
            return Self { names, of_client: (0..count).map(|c| c / part).collect(), clients };
        }
        let shown = if kinds <= LOOKS { kinds } else { LOOKS - 1 };
        let mut names: Vec<String> = jobs.jobs.iter().take(shown).map(with_clones).collect();
        if kinds > shown {
            names.push(format!("{} other jobs", kinds - shown));
        }
        let of_client = jobs.clients().map(|c| c.job_index.min(names.len() - 1)).collect();
        Self { names, of_client, clients }
    }

    /// Returns the index of a task's participant; for the host's own threads, the number of participants
    /// without the host.
    #[must_use]
    pub fn of(&self, task: &journal::Task) -> usize {
        task.client.and_then(|c| self.of_client.get(c)).copied().unwrap_or(self.names.len())
    }

    /// Returns the number of participants, including the host.
    pub(crate) fn count(&self) -> usize {
        self.names.len() + 1
    }

    /// Returns the name of a participant.
    pub(crate) fn name(&self, who: usize) -> &str {
        self.names.get(who).map_or("the host's write-back", String::as_str)
    }

    /// Returns a participant's entry in a key.
    pub(crate) fn key(&self, who: usize) -> Key {
        Key { look: who, sign: (who + 1).to_string(), name: self.name(who).to_owned() }
    }

    /// Whether a timeline has a lane for each client.
    pub(crate) fn has_lanes(&self) -> bool {
        self.clients.len() < LANES_MAX
    }

    /// Returns the lane of a task.
    pub(crate) fn lane(&self, task: &journal::Task) -> usize {
        match task.client {
            Some(c) if self.has_lanes() && c < self.clients.len() => c,
            _ if self.has_lanes() => self.clients.len(),
            _ => self.of(task),
        }
    }

    /// Returns the names of the lanes, and the participant whose look each has.
    pub(crate) fn lanes(&self) -> Vec<(String, usize)> {
        let host = (self.name(self.names.len()).to_owned(), self.names.len());
        if self.has_lanes() {
            let of = |(c, name): (usize, &String)| (name.clone(), self.of_client[c]);
            return self.clients.iter().enumerate().map(of).chain([host]).collect();
        }
        self.names.iter().cloned().enumerate().map(|(i, n)| (n, i)).chain([host]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairhead_sim::job::parse;

    fn names(text: &str) -> Vec<String> {
        Participants::new(&parse(text, "x").unwrap()).names
    }

    #[test]
    fn clients_that_can_be_told_apart_are_and_others_are_put_together() {
        assert_eq!(names("[a]\nsize=1g\n[b]\nsize=1g\nnumjobs=2\n"), ["a", "b.0", "b.1"]);
        assert_eq!(names("[a]\nsize=1g\n[b]\nsize=1g\nnumjobs=8\n"), ["a", "b (8 clients)"]);
        let many = names("[r]\nsize=1m\nnumjobs=30\n");
        assert_eq!((many.len(), many[0].as_str(), many[7].as_str()), (8, "r.0 to 3", "r.28 to 29"));
        let text: String = (0..12).map(|i| format!("[j{i}]\nsize=1m\n")).collect();
        let jobs = names(&text);
        assert_eq!((jobs.len(), jobs[7].as_str()), (8, "5 other jobs"));
    }
}
