//! Advice for programs.

use fairhead_core::sched::any::shown as shown_name;
use fairhead_sim::advise::statistics::Ratio;
use fairhead_sim::advise::{Advice, Cost, Fared, Remedy, Row};
use serde_json::{Map, Value, json};

use super::super::json::pretty;
use super::{Drawn, Labels, answer, details, ranked, todo, unit};

/// The bytes of `fairhead advise --output-format json`.
#[must_use]
pub fn json(labels: &Labels, seed: u64, advice: &Advice) -> String {
    pretty(&value(labels, seed, advice))
}

/// The JSON of `fairhead advise --output-format json`, as a value.
#[must_use]
pub fn value(labels: &Labels, seed: u64, advice: &Advice) -> Value {
    let verdict = advice.verdict();
    let name = |c: usize| advice.candidates[c].name();
    let drawn = Drawn { has_details: true, ..Drawn::default() };
    let candidates: Vec<Value> = ranked(advice).into_iter().map(|c| candidate(advice, c)).collect();
    json!({
        "fairhead version": env!("CARGO_PKG_VERSION"),
        "job_file": advice.load.jobs.file_name,
        "disk": labels.disk,
        "host": labels.host,
        "emphasis": labels.emphasis,
        "seed": seed,
        "span_ns": advice.load.span.as_ns(),
        "default": name(0),
        "winner": name(verdict.winner),
        "compared": name(verdict.compared),
        "satisfaction": {
            "default": verdict.satisfied,
            "compared": verdict.satisfied * verdict.load.ratio,
            "change": ratio(verdict.load),
        },
        "answer": answer::lines(labels, advice, drawn),
        "jobs": verdict.rows.iter().map(|r| row(advice, r)).collect::<Vec<_>>(),
        "as_good": verdict.as_good.iter().map(|&c| name(c)).collect::<Vec<_>>(),
        "better_in_fairhead_only": verdict.better_own.map(|(c, load)| json!({
            "candidate": name(c), "change": ratio(load),
        })),
        "rounds": advice.rounds().0,
        "ended": details::ended(advice),
        "repeated_by": details::options(advice),
        "reckoned_work_ns": advice.work().as_ns(),
        "run_times_cut_to_permille": advice.shortened,
        "candidates": candidates,
        "costs": advice.costs.iter().map(|c| cost(advice, c)).collect::<Vec<_>>(),
        "why_seed": advice.told_seed,
        "why": advice.told.as_ref().map(|t| &t.sentences),
        "limit": advice.remedy.as_ref().map(|r| remedy(advice, r)),
        "to_do": todo(advice).iter().map(|s| json!({ "about": s.about, "lines": s.lines })).collect::<Vec<_>>(),
    })
}

fn got(f: &Fared) -> Value {
    json!({ "amount": f.amount, "satisfaction": f.satisfaction, "is_cut_off": f.is_cut })
}

/// A job under the default and under the candidate that is compared with it.
fn row(advice: &Advice, r: &Row) -> Value {
    let (job, party) = (&advice.load.jobs.jobs[r.job], &advice.load.parties[r.job]);
    json!({
        "job": job.name,
        "clients": job.numjobs,
        "kind": party.kind.word(),
        "unit": unit(job, party.kind),
        "weight": party.weight,
        "share": party.share,
        "alone": r.alone,
        "default": got(&r.now),
        "compared": got(&r.then),
        "change": ratio(r.change),
        "pays": r.pays(),
    })
}

/// A factor with its interval; infinite ends are null.
pub(in super::super) fn ratio(r: Ratio) -> Value {
    json!({ "pairs": r.count, "factor": r.ratio, "low": r.low, "high": r.high })
}

fn candidate(advice: &Advice, c: usize) -> Value {
    let of = &advice.candidates[c];
    let against = advice.book.against(c, 0);
    let tunables: Map<String, Value> =
        of.set.iter().map(|&(name, raw)| (name.to_owned(), json!(of.value(name, raw)))).collect();
    let jobs: Map<String, Value> = advice
        .load
        .jobs
        .jobs
        .iter()
        .enumerate()
        .map(|(job, j)| (j.name.clone(), got(&advice.book.fared(c, job))))
        .collect();
    json!({
        "name": of.name(),
        "scheduler": shown_name(of.preset),
        "tunables": tunables,
        "use_in": details::place(of),
        "tried_because": of.why,
        "seeds": advice.book.told(c).len(),
        "seeds_are_fresh": !advice.book.standings[c].fresh.is_empty(),
        "satisfaction": advice.book.satisfaction(c),
        "change": ratio(against.load),
        "jobs": jobs,
        "ruled_out": details::ruled_out(advice, c),
    })
}

/// A cost, for programs.
fn cost(advice: &Advice, c: &Cost) -> Value {
    json!({
        "scheduler": shown_name(advice.candidates[c.candidate].preset),
        "limited_by": c.limit.words(),
        "requests": c.requests,
        "processor_ns_per_request": c.per_request.as_ns(),
        "in_scheduler_ns_per_request": c.in_scheduler.as_ns(),
        "lock_wait_ns_per_request": c.lock_wait.as_ns(),
        "processors_busy_permille": c.busy_permille,
        "requests_per_s": c.iops,
    })
}

/// A limit, and what it does against none.
fn remedy(advice: &Advice, r: &Remedy) -> Value {
    json!({
        "jobs": r.names(&advice.load.jobs),
        "permille_of_what_they_moved": r.permille,
        "rbps": r.rbps,
        "wbps": r.wbps,
        "change": ratio(r.against.load),
    })
}
