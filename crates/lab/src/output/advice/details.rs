//! What is behind the answer: every candidate, each job under each, what was ruled out, reasons, steps.

use fairhead_sim::advise::{Advice, Candidate, Cost, Floor, LetGo, Place, WORK_PER_S, factor};

use super::super::table::{Best, Cell, Table, time};
use super::{Labels, amount, fared, ranked, shown, todo, word};

/// The report's second part, with a line break at its end.
#[must_use]
pub fn details(labels: &Labels, advice: &Advice, is_coloured: bool) -> String {
    let mut text = format!("\nhost of {}, {}, seed {}\n", labels.host, labels.emphasis, advice.asked.0);
    for (about, table) in tables(advice) {
        text.push_str(&format!("\n{about}\n{}", table.render(is_coloured)));
    }
    if let Some(said) = cut(advice) {
        text.push_str(&format!("\n{said}\n"));
    }
    if let Some(told) = &advice.told {
        text.push_str(&format!("\nwhy (seed {})\n", advice.told_seed));
        told.sentences.iter().for_each(|s| text.push_str(&format!("{s}\n")));
    }
    text.push_str("\nwhat to do\n");
    for step in todo(advice) {
        let end = if step.lines.is_empty() { "" } else { ":" };
        text.push_str(&format!("{}{end}\n", step.about));
        step.lines.iter().for_each(|l| text.push_str(&format!("    {l}\n")));
    }
    text.push_str(&format!("\n{}\nThe same command with {} repeats it.\n", ended(advice), options(advice)));
    text
}

/// The tables, each with a sentence about it.
pub(super) fn tables(advice: &Advice) -> Vec<(String, Table<'static>)> {
    let fresh = advice.book.standings[0].fresh.len();
    let mut all = vec![
        (
            format!("candidates: fresh seeds confirm the first of them ({fresh}); * the race's own seeds"),
            candidates(advice),
        ),
        ("what each job gets: of alone, then in its unit".to_owned(), jobs(advice)),
    ];
    all.extend(costs(advice).map(|t| ("what requests cost the processors".to_owned(), t)));
    all
}

/// A row for each candidate.
fn candidates(advice: &Advice) -> Table<'static> {
    let columns = ["candidate", "use in", "seeds", "of alone", "against the first", "ruled out"];
    let best = ranked(advice).into_iter().map(|c| advice.book.satisfaction(c)).fold(0.0, f64::max);
    let row = |c: usize| {
        let book = &advice.book;
        let is_fresh = !book.standings[c].fresh.is_empty();
        let seeds = format!("{}{}", book.told(c).len(), if is_fresh { "" } else { "*" });
        let against = if c == 0 { "1".to_owned() } else { shown(book.against(c, 0).load) };
        let of_alone = format!("{:.2}", book.satisfaction(c));
        let regret = factor(best / book.satisfaction(c));
        let cells =
            [advice.candidates[c].name(), place(&advice.candidates[c]).to_owned(), seeds, of_alone, against];
        let mut cells: Vec<Cell> = cells.into_iter().map(Cell::label).collect();
        cells.push(Cell::label(ruled_out(advice, c)));
        cells.insert(4, Cell::label(regret));
        cells
    };
    let rows = ranked(advice).into_iter().map(row).collect();
    let mut columns: Vec<_> = columns.map(|c| (c, Best::None)).to_vec();
    columns.insert(4, ("regret", Best::None));
    Table { words: 2, columns, blocks: vec![rows] }
}

/// Why a candidate was ruled out or ran no more; empty if it stayed.
pub(super) fn ruled_out(advice: &Advice, c: usize) -> String {
    let name = |job: usize| advice.load.jobs.jobs[job].name.clone();
    if let Some((job, floor)) = advice.book.floor(c, 0) {
        return barred(&name(job), floor);
    }
    let of = |race: &fairhead_sim::advise::Race| {
        let entrant = race.entrants.iter().position(|e| *e == c)?;
        race.let_go[entrant]
    };
    match advice.races.iter().find_map(of) {
        None => String::new(),
        Some(LetGo::Barred(job, floor, _)) => barred(&name(job), floor),
        Some(LetGo::Worse(round)) => format!("worse, round {round}"),
        Some(LetGo::Half(round)) => format!("not in the better half, round {round}"),
    }
}

fn barred(job: &str, floor: Floor) -> String {
    format!("{job} {}", floor.words())
}

/// What each job gets under each candidate.
fn jobs(advice: &Advice) -> Table<'static> {
    let columns = ["job", "kind", "candidate", "of alone", "gets", "alone"];
    let block = |job: usize| {
        let (of, kind) = (&advice.load.jobs.jobs[job], advice.load.parties[job].kind);
        let row = |(i, c): (usize, usize)| {
            let f = advice.book.fared(c, job);
            let is_first = i == 0;
            let of_first = |text: String| if is_first { text } else { String::new() };
            let cells = [
                of_first(of.name.clone()),
                of_first(word(kind).to_owned()),
                advice.candidates[c].name(),
                format!("{:.2}", f.satisfaction),
                fared(of, kind, &f),
                of_first(amount(of, kind, advice.alone.got(job).amount)),
            ];
            cells.into_iter().map(Cell::label).collect()
        };
        ranked(advice).into_iter().enumerate().map(row).collect()
    };
    Table {
        words: 3,
        columns: columns.map(|c| (c, Best::None)).to_vec(),
        blocks: (0..advice.load.parties.len()).map(block).collect(),
    }
}

/// Processor time for a request under the schedulers of a kernel; `None` where it has no price.
fn costs(advice: &Advice) -> Option<Table<'static>> {
    let columns = [
        "scheduler",
        "limited by",
        "time a request",
        "more than none",
        "in scheduler",
        "wait for lock",
        "processors busy",
        "requests/s",
    ];
    let none = advice.costs.iter().find(|c| advice.candidates[c.candidate].preset == "noop");
    let more = |c: &Cost| {
        let of = none.filter(|n| n.candidate != c.candidate)?;
        Some(time(c.per_request.saturating_sub(of.per_request)))
    };
    let row = |c: &Cost| {
        let cells = [
            advice.candidates[c.candidate].name(),
            c.limit.words().to_owned(),
            time(c.per_request),
            more(c).unwrap_or_default(),
            time(c.in_scheduler),
            time(c.lock_wait),
            format!("{}%", c.busy_permille / 10),
            c.iops.to_string(),
        ];
        cells.into_iter().map(Cell::label).collect()
    };
    let rows: Vec<Vec<Cell>> = advice.costs.iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        words: 2,
        columns: columns.map(|c| (c, Best::None)).to_vec(),
        blocks: vec![rows],
    })
}

/// What was left out of the load.
pub(super) fn cut(advice: &Advice) -> Option<String> {
    let permille = advice.shortened?;
    Some(format!(
        "run times cut to {}.{} %, but not below 1 s, for want of budget: a larger --budget runs the whole load",
        permille / 10,
        permille % 10
    ))
}

/// Why there were no more rounds.
pub(super) fn ended(advice: &Advice) -> String {
    use fairhead_sim::advise::End;
    let (rounds, end) = advice.rounds();
    let why = match end {
        End::Settled => "no other candidate could win",
        End::Budget => "the budget had no room for another",
        End::Rounds => "that is the most",
    };
    let word = if rounds == 1 { "round" } else { "rounds" };
    format!("Stopped after {rounds} {word} because {why}.")
}

/// The options with which the same load, disk, schedulers and goal have the same answer. The number of rounds
/// alone does not repeat it: the budget also bounds how many fresh seeds confirm, and each race has a number
/// of its own.
pub(super) fn options(advice: &Advice) -> String {
    let (seed, work, rounds) = advice.asked;
    let budget = match work.as_ms() * 1000 / WORK_PER_S.as_ms() {
        ms if ms.is_multiple_of(1000) => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    };
    let rounds = rounds.map(|rounds| format!(" --rounds {rounds}")).unwrap_or_default();
    format!("--seed {seed} --budget {budget}{rounds}")
}

/// Where a candidate can be used.
pub(in super::super) const fn place(c: &Candidate) -> &'static str {
    match c.place {
        Place::Kernel => "kernel",
        Place::Fairhead => "Fairhead",
        Place::Lab => "the lab",
    }
}
