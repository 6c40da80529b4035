//! Advice as a page: what the terminal's tables and JSON say, handed to `fairhead-report`.

use std::ffi::OsString;

use fairhead_report::page::Page;
use fairhead_report::{Recording, Run, Runs, pictures};
use fairhead_sim::Outcome;
use fairhead_sim::advise::{Advice, Question};

use super::advice::{self, Labels};
use fairhead_lab::output::page::made;

/// One of the runs that are shown beside advice.
pub(crate) struct Shown {
    /// Which candidate's.
    pub(crate) candidate: usize,
    /// What came out.
    pub(crate) outcome: Outcome,
    /// What was recorded.
    pub(crate) recording: Recording,
}

/// The page of advice.
pub(crate) fn advice(
    labels: &Labels,
    question: &Question,
    advice: &Advice,
    shown: &[Shown],
    command: &str,
) -> String {
    let names: Vec<String> = shown.iter().map(|s| advice.candidates[s.candidate].name()).collect();
    let runs: Vec<Run<'_>> = shown
        .iter()
        .zip(&names)
        .map(|(s, name)| Run { name, outcome: &s.outcome, recording: &s.recording })
        .collect();
    let order = advice::ranked(advice);
    let mut made = made(command);
    made.extend([
        ("job file", question.jobs.file_name.clone()),
        ("disk", labels.disk.clone()),
        ("host", format!("of {}", labels.host)),
        ("goal", labels.goal.clone()),
        ("seed", question.seed.to_string()),
        ("rounds", advice.race.rounds.to_string()),
    ]);
    let of_page = |p: advice::Part| p.table.for_page(&format!("Candidates, {}", p.about));
    let mut tables: Vec<_> = advice::tables(advice).into_iter().map(of_page).collect();
    tables.extend(advice::paid(advice).map(|t| t.for_page("Who pays, while all jobs ran")));
    tables.extend(advice::costs(advice).map(|t| t.for_page("What requests cost the processors")));
    let of_runs = format!(
        "What follows shows one run of each of {}, with the seed {}, the first of those that confirmed.",
        names.join("; "),
        advice.told_seed
    );
    Page {
        title: format!("{} on {}: which scheduler?", question.jobs.file_name, labels.disk),
        headline: advice.headline(),
        verdict: Some((advice.verdict(question), pictures::factors(advice, &order))),
        chapters: advice::chapters(question, advice),
        tables,
        runs_note: Some(of_runs),
        runs: Runs::grouped(&question.jobs, &runs),
        why: Vec::new(),
        made,
        figures: advice::object(labels, question, advice),
    }
    .html()
}

/// What was typed, quoted so that a shell takes it again.
pub(crate) fn command_line(words: impl Iterator<Item = OsString>) -> String {
    let quoted = |word: OsString| {
        let word = word.to_string_lossy().into_owned();
        let is_plain = |c: char| c.is_alphanumeric() || "-_=+.,/:@%".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            return word;
        }
        format!("'{}'", word.replace('\'', "'\\''"))
    };
    let rest: Vec<String> = words.skip(1).map(quoted).collect();
    format!("fairhead {}", rest.join(" ")).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        let words = ["/usr/bin/fairhead", "run", "my job.fio", "--set", "cfq.slice_idle=4ms", "it's"];
        let line = command_line(words.iter().map(OsString::from));
        assert_eq!(line, "fairhead run 'my job.fio' --set cfq.slice_idle=4ms 'it'\\''s'");
        assert_eq!(command_line(std::iter::once(OsString::from("x"))), "fairhead");
    }
}
