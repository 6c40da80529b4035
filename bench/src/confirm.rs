//! Whether what `fairhead advise` names stays the best with ten times the seeds.
//!
//! ```text
//!   advise (its budget, its seeds) ─► who won ─┐
//!   fresh seeds, ten times as many: default, winner, and the best others of the race ─► who is best now
//! ```
//!
//! A line for each job: seconds, CPU seconds and rounds of the advice, its winner and its score against the
//! default, that score with the fresh seeds, the best with those and its score, and *holds* if the winner is
//! within 5 % of it, else *MISS*.

use fairhead_core::Duration;
use fairhead_device::DeviceParams;
use fairhead_sim::advise::{self, Figures, Goal, Question, WORK_PER_S, race};
use fairhead_sim::job::{self, JobFile};
use fairhead_sim::replay::{Mode, Options, Source};
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
        goal: Goal::Balanced,
        seed: 1,
        work,
        rounds: None,
        against: None,
        foreground: None,
        only: None,
    };
    let (before, start) = (cpu_s(), Instant::now());
    let answer = advise::advise(&question, parallel::available(), &(), &|_| {}).map_err(|e| e.to_string())?;
    let (question, advice) = answer.ok_or("over")?;
    let (cost, elapsed) = (cpu_s() - before, start.elapsed().as_secs_f64());
    let winner = advice.race.winner();
    let told = advice.race.against(winner, 0).score.map_or(1.0, |s| s.ratio);
    let (scores, seeds) = ask_again(&question, &advice, winner)?;
    let of = |c: usize| scores.iter().find(|s| s.0 == c).map_or(f64::NAN, |s| s.1);
    let best = scores.iter().copied().reduce(|a, b| if b.1 > a.1 { b } else { a }).ok_or("no scores")?;
    let verdict = if best.1 - of(winner) <= advise::EQUAL.ln() { "holds" } else { "MISS" };
    Ok(format!(
        "{} | {elapsed:.1} | {cost:.1} | {} | {} | {told:.2} | {seeds} | {:.2} | {} | {:.2} | {verdict}",
        question.jobs.file_name,
        advice.race.rounds,
        advice.candidates[winner].name(),
        of(winner).exp(),
        advice.candidates[best.0].name(),
        best.1.exp()
    ))
}

/// The mean logarithms of scores against the default, of those that are asked again, and from how many seeds.
fn ask_again(
    question: &Question,
    advice: &advise::Advice,
    winner: usize,
) -> Result<(Vec<(usize, f64)>, u32), String> {
    let race = &advice.race;
    let mut others: Vec<usize> = (1..advice.candidates.len()).filter(|c| *c != winner).collect();
    let ratio = |c: usize| race.against(c, 0).score.map_or(0.0, |s| s.ratio);
    others.sort_by(|a, b| ratio(*b).total_cmp(&ratio(*a)));
    let asked: Vec<usize> = [0, winner].into_iter().chain(others.into_iter().take(OTHERS)).collect();
    let count = u32::try_from(race.standings[winner].race.len() * 10).unwrap_or(SEEDS_MAX).min(SEEDS_MAX);
    let seeds = race::seeds(question.seed, "advise.ask.again", count);
    let all = parallel::map(asked.len() * seeds.len(), parallel::available(), &|_| {}, |i| {
        let scenario = question.scenario(&advice.candidates[asked[i / seeds.len()]], seeds[i % seeds.len()]);
        simulate(&scenario).map(|o| advise::figures(&question.jobs, &advice.waiting, &o))
    });
    let figures = all.into_iter().collect::<Result<Vec<Figures>, _>>().map_err(|e| e.to_string())?;
    let (base, weights) = (&figures[..seeds.len()], question.goal.weights());
    let mean = |runs: &[Figures]| {
        runs.iter().zip(base).map(|(a, b)| score(&weights, a, b)).sum::<f64>() / f64::from(count)
    };
    Ok((asked.iter().copied().zip(figures.chunks(seeds.len()).map(mean)).collect(), count))
}

/// As the race has it, written a second time.
fn score(weights: &[f64], run: &Figures, base: &Figures) -> f64 {
    let both = run.list().into_iter().zip(base.list()).zip(weights);
    let parts: Vec<(f64, f64)> = both.filter_map(|((a, b), w)| Some(((a? / b?).ln() * w, *w))).collect();
    let all: f64 = parts.iter().map(|p| p.1).sum();
    if all > 0.0 { parts.iter().map(|p| p.0).sum::<f64>() / all } else { 0.0 }
}

/// Returns the work that a budget of this many seconds allows.
pub(crate) fn budget(seconds: u64) -> Duration {
    WORK_PER_S * seconds
}
