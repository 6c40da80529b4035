//! Whether what `fairhead advise` names stays the best with ten times the seeds.
//!
//! ```text
//!   advise (its budget, its seeds) ─► who won ─┐
//!   fresh seeds, ten times as many: default, winner, and the best others of the race ─► who is best now
//! ```
//!
//! A line for each job: seconds, CPU seconds and rounds of the advice, its winner and how many times as much
//! of alone all jobs together get under it as now, that with the fresh seeds, the best with those that no
//! floor bars and its factor, and *holds* if the winner is within 5 % of it, else *MISS*.

use fairhead_core::Duration;
use fairhead_device::DeviceParams;
use fairhead_sim::advise::{self, Book, Question, WORK_PER_S, judged, race};
use fairhead_sim::job::{self, JobFile};
use fairhead_sim::replay::{Mode, Options, Source};
use fairhead_sim::satisfaction::Emphasis;
use fairhead_sim::{Host, parallel, simulate};
use std::path::Path;
use std::time::Instant;

/// Of those that did not win, how many are asked again.
const OTHERS: usize = 4;
/// The most fresh seeds: those of a race of three rounds, ten times.
const SEEDS_MAX: u32 = 120;

/// CPU seconds of all threads so far; 0 where the system has no such figure.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    // Fields 14 and 15, of which the name was the second; ticks of a hundredth, as Linux reports it on all
    // machines.
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// A job file (`NAME.fio`), else a recorded trace.
fn jobs(file: &Path) -> Result<JobFile, String> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    if file.extension().is_some_and(|e| e == "fio") {
        let text = std::fs::read_to_string(file).map_err(|e| e.to_string())?;
        return job::parse(&text, &name).map_err(|e| e.to_string());
    }
    // As the command line has it.
    let options = Options { mode: Mode::Auto, ..Options::default() };
    let mut jobs = JobFile::of_trace(&name, Source::File(file.to_owned()), options);
    jobs.read_recordings(&|_, _| {}).map_err(|e| e.to_string())?;
    Ok(jobs)
}

/// Asks about a job, twice.
#[allow(clippy::disallowed_methods, reason = "this is about the time that people wait")]
pub(crate) fn run(file: &Path, disk: &str, work: Duration) -> Result<String, String> {
    let question = Question {
        jobs: jobs(file)?,
        disk: DeviceParams::preset(disk).map_err(|e| e.to_string())?,
        host: Host::for_disk(disk),
        emphasis: Emphasis::Even,
        seed: 1,
        work,
        rounds: None,
        against: None,
        only: None,
    };
    let (before, start) = (cpu_s(), Instant::now());
    let answer = advise::advise(&question, parallel::available(), &(), &|_| {}).map_err(|e| e.to_string())?;
    let (question, advice) = answer.ok_or("over")?;
    let (cost, elapsed) = (cpu_s() - before, start.elapsed().as_secs_f64());
    let winner = advice.winner;
    let (told, (rounds, _)) = (advice.book.against(winner, 0).load.ratio, advice.rounds());
    let (book, asked, seeds) = ask_again(&question, &advice)?;
    let of = |c: usize| book.against(c, 0).load.ratio;
    let fair = asked.iter().copied().filter(|&c| book.floor(c, 0).is_none());
    let best = fair.max_by(|a, b| of(*a).total_cmp(&of(*b))).ok_or("no candidates")?;
    let verdict = if of(best) / of(winner) <= advise::EQUAL { "holds" } else { "MISS" };
    Ok(format!(
        "{} | {elapsed:.1} | {cost:.1} | {rounds} | {} | {told:.2} | {seeds} | {:.2} | {} | {:.2} | {verdict}",
        question.jobs.file_name,
        advice.candidates[winner].name(),
        of(winner),
        advice.candidates[best].name(),
        of(best)
    ))
}

/// The runs of what is in use, the winner and the best others with fresh seeds; who was asked, and how many
/// seeds.
fn ask_again(question: &Question, advice: &advise::Advice) -> Result<(Book, Vec<usize>, u32), String> {
    let winner = advice.winner;
    let ran = |c: &usize| !advice.book.standings[*c].race.is_empty();
    let mut others: Vec<usize> =
        (1..advice.own.start).filter(ran).filter(|c| *c != winner).collect();
    let ratio = |c: usize| advice.book.against(c, 0).load.ratio;
    others.sort_by(|a, b| ratio(*b).total_cmp(&ratio(*a)));
    let mut asked = vec![0];
    asked.extend((winner != 0).then_some(winner));
    asked.extend(others.into_iter().take(OTHERS));
    let count =
        u32::try_from(advice.book.standings[winner].race.len() * 10).unwrap_or(SEEDS_MAX).min(SEEDS_MAX);
    let seeds = race::seeds(question.seed, "advise.ask.again", count);
    let all = parallel::map(asked.len() * seeds.len(), parallel::available(), &|_| {}, |i| {
        let candidate = &advice.candidates[asked[i / seeds.len()]];
        let scenario = question.scenario(&advice.load, candidate, seeds[i % seeds.len()]);
        simulate(&scenario).map(|o| judged(&advice.load, &advice.alone, &o))
    });
    let mut runs = all.into_iter().collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?.into_iter();
    let mut book = Book::new(&advice.load.parties, None, advice.candidates.len());
    for &c in &asked {
        book.standings[c].race = runs.by_ref().take(seeds.len()).collect();
    }
    Ok((book, asked, count))
}

/// Returns the work that a budget of this many seconds allows.
pub(crate) fn budget(seconds: u64) -> Duration {
    WORK_PER_S * seconds
}
