//! Where a client's time went, for people and for programs.
//!
//! ```text
//! where the time of application went
//!
//! scheduler   time  computing  queued  idled for others  in device  served  boosted
//! deadline   20.1s         0%     62%                …
//!
//! deadline: of 20.1s
//!   queued 12.4s while the disk served streams (10 clients) 12.4s
//!   …
//!   0.299s: queued 0.290s behind streams.3 (0.010s), …; then served in 0.009s
//! ```
//!
//! The shares add up to 100 % but for rounding; *boosted* and *idled for it* are parts of the same time seen
//! otherwise.

use super::Report;
use super::table::{Best, Cell, Table, mib, time};
use fairhead_core::trace::Reason;
use fairhead_core::{Duration, TaskId};
use fairhead_report::page::Chapter;
use fairhead_sim::journal::Idle;
use fairhead_sim::why::{self, Account, Blame, CallKind, Calls, Decision, Phase, Story, WindowReport, words};
use serde_json::{Value, json};

/// How many of those to blame are named one by one.
const NAMED: usize = 3;

/// Returns the name of the client or clients that the account is about.
fn whose(report: &Report<'_>) -> String {
    let name = report.plan.why.as_ref().map_or("", |w| w.name.as_str());
    let clients = report.why.first().map_or(0, |w| w.clients.len());
    if clients > 1 { format!("{name} ({clients} clients)") } else { name.to_owned() }
}

/// Returns the chapters of a page; none without `--why`.
pub(crate) fn chapters(report: &Report<'_>) -> Vec<Chapter> {
    if report.why.is_empty() {
        return Vec::new();
    }
    let title = format!("Where the time of {} went", whose(report));
    let table = Some(shares(report).for_page(&title));
    let first = Chapter { title, table, ..Chapter::default() };
    let each = report.outcomes.iter().zip(report.why).map(|(outcome, why)| Chapter {
        title: format!("{}: of {}", outcome.scheduler, time(why.total.total())),
        paragraphs: why.sentences(),
        lines: vec![(String::new(), window(why)), (String::new(), details(why))],
        ..Chapter::default()
    });
    std::iter::once(first).chain(each).collect()
}

/// The chapter for people.
pub(crate) fn human(report: &Report<'_>, coloured: bool) -> String {
    let mut text = format!("where the time of {} went\n\n", whose(report));
    text.push_str(&shares(report).render(coloured));
    for (outcome, why) in report.outcomes.iter().zip(report.why) {
        text.push_str(&format!("\n{}: of {}\n", outcome.scheduler, time(why.total.total())));
        for line in [why.sentences(), window(why), details(why)].iter().flatten() {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

fn shares(report: &Report<'_>) -> Table<'static> {
    let several = report.why.iter().any(|w| !w.disks.is_empty());
    let mut columns = vec![
        ("scheduler", Best::None),
        ("time", Best::None),
        ("paused", Best::None),
        ("computing", Best::None),
        ("for a tag", Best::Least),
        ("throttled", Best::Least),
        ("held", Best::Least),
        ("queued", Best::Least),
        ("disk idled", Best::Least),
        ("behind others in it", Best::Least),
        ("served", Best::None),
        ("boosted", Best::None),
        ("idled for it", Best::None),
    ];
    if several {
        columns.insert(1, ("at disk", Best::None));
    }
    // At one of several disks: shares of all of the time, so that rows can be added up.
    let row = |o: &fairhead_sim::Outcome, disk: &str, a: &Account, whole: Duration| {
        let share = |part: Duration| share(part, whole);
        let mut names = vec![Cell::label(&o.scheduler)];
        names.extend(several.then(|| Cell::label(disk)));
        let figures = [
            Cell::time(Some(a.total())),
            share(a.paused),
            share(a.computing),
            share(a.tag),
            share(a.throttled),
            share(a.held),
            share(a.queued()),
            share(a.idled()),
            share(a.device()),
            share(a.served),
            share(a.raised_interactive + a.raised_soft_real_time),
            share(a.idled_for_it),
        ];
        names.extend(figures);
        names
    };
    let both = || report.outcomes.iter().zip(report.why);
    let all = both().map(|(o, w)| row(o, "all", &w.total, w.total.total())).collect();
    let disks = report.why.first().map_or(0, |w| w.disks.len());
    let of_disk = |i: usize| {
        let one = |(o, w): (_, &why::Report)| row(o, &w.disks[i].disk, &w.disks[i].account, w.total.total());
        both().map(one).collect()
    };
    let blocks = std::iter::once(all).chain((0..disks).map(of_disk)).collect();
    Table { words: 1 + usize::from(several), columns, blocks }
}

/// A share in percent, with one digit behind the point; nothing of nothing.
fn share(part: Duration, whole: Duration) -> Cell {
    if part.is_zero() || whole.is_zero() {
        return Cell::default();
    }
    let permille = u64::try_from(u128::from(part.as_ns()) * 1000 / u128::from(whole.as_ns())).unwrap_or(0);
    Cell { text: format!("{}.{}%", permille / 10, permille % 10), value: Some(part.as_ns()) }
}

fn details(w: &why::Report) -> Vec<String> {
    let a = &w.total;
    let mut lines = Vec::new();
    let mut blame = |what: &str, all: Duration, of: &dyn Fn(&Blame) -> Duration| {
        if !all.is_zero() {
            lines.push(format!("{what} {}: {}", time(all), by_job(w, a, of)));
        }
    };
    blame("queued while the disk worked for others", a.queued(), &|b| b.queued);
    blame("queued while the disk idled for others", a.idled(), &|b| b.idled);
    blame("in the device behind others", a.device(), &|b| b.device);
    for (what, part) in [
        ("boosted as interactive", a.raised_interactive),
        ("boosted as soft real-time", a.raised_soft_real_time),
        ("others waited while the disk idled for it", a.idled_for_it),
    ] {
        if !part.is_zero() {
            lines.push(format!("{what} {}", time(part)));
        }
    }
    for (what, list) in [("its requests were chosen", &a.chosen), ("noted", &a.noted)] {
        if !list.is_empty() {
            lines.push(format!("{what}: {}", counts(list)));
        }
    }
    if !w.slowest.is_empty() {
        lines.push("slowest calls:".to_owned());
    }
    lines.extend(w.slowest.iter().map(|s| format!("  {}", story(w, s))));
    if let Some(rate) = w.peak_rate {
        lines.push(format!("the scheduler takes the disk's peak rate for {} MiB/s", mib(bytes_per_s(rate))));
    }
    if w.lost > 0 {
        lines.push(format!("the trace lost {} events: whom the disk idled for may be wrong", w.lost));
    }
    lines
}

/// A part of the run beside the others: the parts of its time, and the stories of its slowest calls.
fn window(w: &why::Report) -> Vec<String> {
    let Some(told) = &w.window else { return Vec::new() };
    let mut lines = Vec::new();
    let whole = (told.inside.total(), told.outside.total());
    let share = |part: Duration, whole: Duration| match share(part, whole).text {
        none if none.is_empty() => "0%".to_owned(),
        text => text,
    };
    let parts = PARTS.iter().map(|(what, of)| (*what, of(&told.inside), of(&told.outside)));
    let parts: Vec<String> = parts
        .filter(|p| !p.1.is_zero() || !p.2.is_zero())
        .map(|(what, inside, outside)| {
            format!("{what} {} ({})", share(inside, whole.0), share(outside, whole.1))
        })
        .collect();
    lines.push(format!("of its time then, and in brackets else: {}", parts.join(", ")));
    if !told.slowest.is_empty() {
        lines.push("its slowest calls then:".to_owned());
    }
    for s in &told.slowest {
        lines.push(format!("  {}", headline(w, s)));
        lines.extend(steps(w, told, s).into_iter().map(|line| format!("    {line}")));
    }
    lines
}

/// A part of a time.
type Part = fn(&Account) -> Duration;

/// All of them, and what they are called.
const PARTS: [(&str, Part); 9] = [
    ("paused", |a| a.paused),
    ("computing", |a| a.computing),
    ("for a tag", |a| a.tag),
    ("throttled", |a| a.throttled),
    ("held", |a| a.held),
    ("queued", Account::queued),
    ("disk idled", Account::idled),
    ("behind others in it", Account::device),
    ("served", |a| a.served),
];

/// The most decisions that are listed for one step of a call.
const DECISIONS: usize = 3;

/// A call's story, line by line: what it waited for, from when, and what the scheduler decided meanwhile
/// about it and those it waited for.
fn steps(w: &why::Report, told: &WindowReport, s: &Story) -> Vec<String> {
    let mut lines = Vec::new();
    let mine = TaskId(u32::try_from(s.client + 1).unwrap_or(0));
    for step in &s.steps {
        let took = step.to.saturating_sub(step.from);
        // What is less than a two-hundredth of the call does not make the story.
        if took * 200 < s.took {
            continue;
        }
        let a = &step.account;
        let parts = account_parts(w, a, took);
        lines.push(format!("{}: {}", exact(step.from), parts.join("; ")));
        if step.phase != Phase::Queued {
            continue;
        }
        let concerns = |d: &&Decision| {
            let blamed = d.task == mine || a.blame.iter().any(|b| b.task == d.task && b.total() * 10 >= took);
            step.from <= d.at && d.at <= step.to && blamed && d.reason != Reason::SliceStart
        };
        let all: Vec<&Decision> = told.decisions.iter().filter(concerns).collect();
        for d in all.iter().take(DECISIONS) {
            lines.push(format!("  {}: {}: {}", exact(d.at), w.name(d.task), words(d.reason)));
        }
        if all.len() > DECISIONS {
            lines.push(format!("  and {} more decisions about these", all.len() - DECISIONS));
        }
    }
    let end = match (s.over, s.chosen) {
        (false, _) => "it had not ended when the run did".to_owned(),
        (true, Reason::None) => "it ended".to_owned(),
        (true, reason) => format!("it ended; its last request was chosen: {}", words(reason)),
    };
    lines.push(format!("{}: {end}", exact(s.ended)));
    lines
}

/// A time of the run, to the microsecond: `3.000124s`.
fn exact(t: Duration) -> String {
    format!("{}.{:06}s", t.as_ns() / 1_000_000_000, t.as_ns() % 1_000_000_000 / 1000)
}

/// From sectors per microsecond in 2^-16 to bytes per second.
const fn bytes_per_s(rate: u64) -> u64 {
    (rate * 512_000_000) >> 16
}

/// Reasons, the most frequent first.
fn counts(list: &[(Reason, u64)]) -> String {
    let mut list = list.to_vec();
    list.sort_by_key(|e| std::cmp::Reverse(e.1));
    let each: Vec<String> = list.iter().map(|(reason, n)| format!("{} ({n}x)", words(*reason))).collect();
    each.join(", ")
}

/// Lists the jobs that a client waited for; the clones of a job together.
fn by_job(w: &why::Report, a: &Account, of: &dyn Fn(&Blame) -> Duration) -> String {
    let mut jobs: Vec<(&str, Duration, u32)> = Vec::new();
    for b in a.blame.iter().filter(|b| !of(b).is_zero()) {
        let name = w.name(b.task);
        let is_clone = |n: &str| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit());
        let job = name.rsplit_once('.').filter(|(_, n)| is_clone(n)).map_or(name, |(job, _)| job);
        match jobs.iter_mut().find(|j| j.0 == job) {
            Some(entry) => (entry.1, entry.2) = (entry.1 + of(b), entry.2 + 1),
            None => jobs.push((job, of(b), 1)),
        }
    }
    jobs.sort_by_key(|j| std::cmp::Reverse(j.1));
    let each = jobs.iter().map(|(job, t, n)| match n {
        1 => format!("{job} {}", time(*t)),
        n => format!("{job} ({n} clients) {}", time(*t)),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Lists the clients that a client waited for, those with the longest times.
fn by_client(w: &why::Report, a: &Account, of: &dyn Fn(&Blame) -> Duration) -> String {
    let mut list: Vec<(TaskId, Duration)> =
        a.blame.iter().map(|b| (b.task, of(b))).filter(|b| !b.1.is_zero()).collect();
    list.sort_by_key(|b| std::cmp::Reverse(b.1));
    let more = list.len().saturating_sub(NAMED);
    let mut each: Vec<String> =
        list.iter().take(NAMED).map(|(task, t)| format!("{} ({})", w.name(*task), time(*t))).collect();
    if more > 0 {
        each.push(format!("{more} more"));
    }
    each.join(", ")
}

fn story(w: &why::Report, s: &Story) -> String {
    let why = match s.chosen {
        Reason::None => String::new(),
        reason => format!("; chosen: {}", words(reason)),
    };
    format!("{}: {}{why}", headline(w, s), account_parts(w, &s.account, s.took).join("; "))
}

/// What a call was, and how long it took.
fn headline(w: &why::Report, s: &Story) -> String {
    let kind = match s.kind {
        CallKind::Read => "read",
        CallKind::Write => "write",
        CallKind::Trim => "trim",
        CallKind::Sync => "fsync",
    };
    let size = if s.bytes > 0 { format!(" of {}", bytes(s.bytes)) } else { String::new() };
    let who = w.clients.iter().find(|c| c.client == s.client).map_or("", |c| c.name.as_str());
    let whose = if w.clients.len() > 1 { format!(" by {who}") } else { String::new() };
    let end = if s.over { "ended at" } else { "not over at" };
    format!("{} ({kind}{size}{whose}, {end} {})", time(s.took), time(s.ended))
}

/// The parts of a call's time, or of a step's, in words.
fn account_parts(w: &why::Report, a: &Account, took: Duration) -> Vec<String> {
    let mut parts = Vec::new();
    // What is less than half a percent of it does not make the story.
    let mut say = |t: Duration, words: String| {
        if !t.is_zero() && t * 200 >= took {
            parts.push(words);
        }
    };
    for (what, t) in [
        ("waited for a tag", a.tag),
        ("was throttled, too much being dirty", a.throttled),
        ("was held by the plug or a lock", a.held),
    ] {
        say(t, format!("{what} {}", time(t)));
    }
    say(a.queued(), format!("queued {} behind {}", time(a.queued()), by_client(w, a, &|b| b.queued)));
    say(a.idled(), format!("the disk idled {} for {}", time(a.idled()), by_client(w, a, &|b| b.idled)));
    say(a.device(), format!("in the device {} behind {}", time(a.device()), by_client(w, a, &|b| b.device)));
    say(a.computing, format!("computed {}", time(a.computing)));
    say(a.served, format!("served in {}", time(a.served)));
    parts
}

fn bytes(n: u64) -> String {
    match n {
        n if n.is_multiple_of(1 << 20) => format!("{} MiB", n >> 20),
        n if n.is_multiple_of(1 << 10) => format!("{} KiB", n >> 10),
        n => format!("{n} bytes"),
    }
}

/// Adds `why` to each run, if it was asked for.
pub(crate) fn json(report: &Report<'_>, mut runs: Vec<Value>) -> Vec<Value> {
    let name = report.plan.why.as_ref().map_or("", |w| w.name.as_str());
    for (run, w) in runs.iter_mut().zip(report.why) {
        let clients: Vec<Value> =
            w.clients.iter().map(|c| json!({ "name": c.name, "account": account(w, &c.account) })).collect();
        let slowest: Vec<Value> = w.slowest.iter().map(|s| told(w, s)).collect();
        let disk = |d: &why::OnDisk| json!({ "name": d.disk, "account": account(w, &d.account) });
        let disks: Vec<Value> = w.disks.iter().map(disk).collect();
        if let Value::Object(map) = run {
            map.insert(
                "why".to_owned(),
                json!({
                    "client": name,
                    "account": account(w, &w.total),
                    "disks": disks,
                    "clients": clients,
                    "window": w.window.as_ref().map(|told| window_json(w, told)),
                    "slowest": slowest,
                    "peak_rate_bytes": w.peak_rate.map(bytes_per_s),
                    "lost_events": w.lost,
                }),
            );
        }
    }
    runs
}

fn account(w: &why::Report, a: &Account) -> Value {
    let blame: Vec<Value> = a
        .blame
        .iter()
        .map(|b| {
            json!({
                "name": w.name(b.task),
                "queued_ns": b.queued.as_ns(),
                "disk_idled_ns": b.idled.as_ns(),
                "in_device_ns": b.device.as_ns(),
            })
        })
        .collect();
    json!({
        "total_ns": a.total().as_ns(),
        "paused_ns": a.paused.as_ns(),
        "computing_ns": a.computing.as_ns(),
        "for_a_tag_ns": a.tag.as_ns(),
        "throttled_ns": a.throttled.as_ns(),
        "held_ns": a.held.as_ns(),
        "queued_ns": a.queued().as_ns(),
        "disk_idled_ns": a.idled().as_ns(),
        "in_device_behind_others_ns": a.device().as_ns(),
        "served_ns": a.served.as_ns(),
        "behind": blame,
        "boosted_interactive_ns": a.raised_interactive.as_ns(),
        "boosted_soft_real_time_ns": a.raised_soft_real_time.as_ns(),
        "idled_for_it_ns": a.idled_for_it.as_ns(),
        "chosen": reasons(&a.chosen),
        "noted": reasons(&a.noted),
    })
}

fn window_json(w: &why::Report, told: &WindowReport) -> Value {
    let calls = |c: &Calls| json!({ "ended": c.ended, "bytes": c.bytes, "took_ns": c.took.as_ns(), "mean_ns": c.mean().map(Duration::as_ns) });
    let cause = told.cause.as_ref().map(|c| {
        json!({
            "kind": format!("{:?}", c.kind).to_lowercase(),
            "job": c.job,
            "time_ns": c.time.as_ns(),
            "usual_ns": c.usual.map(Duration::as_ns),
        })
    });
    let decision = |d: &Decision| {
        json!({
            "at_ns": d.at.as_ns(),
            "name": w.name(d.task),
            "reason": format!("{:?}", d.reason),
            "words": words(d.reason),
            "numbers": fairhead_sim::journal::blocks::numbers(d.detail).trim_start(),
        })
    };
    let idle = |i: &Idle| {
        json!({
            "from_ns": i.from.as_ns(),
            "to_ns": i.to.as_ns(),
            "name": i.task.map(|task| w.name(task)),
            "reason": format!("{:?}", i.reason),
        })
    };
    let chosen = |c: &(TaskId, Reason, u64)| json!({ "name": w.name(c.0), "reason": format!("{:?}", c.1), "count": c.2 });
    json!({
        "from_ns": told.window.from.as_ns(),
        "to_ns": told.window.to.as_ns(),
        "picked": told.picked,
        "sentences": w.sentences(),
        "cause": cause,
        "account": account(w, &told.inside),
        "account_outside": account(w, &told.outside),
        "calls": calls(&told.calls),
        "calls_outside": calls(&told.calls_outside),
        "chosen": told.chosen.iter().map(chosen).collect::<Vec<_>>(),
        "idles": told.idles.iter().map(idle).collect::<Vec<_>>(),
        "decisions": told.decisions.iter().map(decision).collect::<Vec<_>>(),
        "dropped": told.dropped,
        "slowest": told.slowest.iter().map(|s| told_with_steps(w, told, s)).collect::<Vec<_>>(),
    })
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Computing => "computing",
        Phase::Tag => "for_a_tag",
        Phase::Throttled => "throttled",
        Phase::Queued => "queued",
        Phase::InDevice => "in_device",
    }
}

fn told_with_steps(w: &why::Report, window: &WindowReport, s: &Story) -> Value {
    let step = |step: &why::Step| {
        json!({
            "phase": phase(step.phase),
            "from_ns": step.from.as_ns(),
            "to_ns": step.to.as_ns(),
            "account": account(w, &step.account),
        })
    };
    let mut value = told(w, s);
    value["over"] = s.over.into();
    value["steps"] = s.steps.iter().map(step).collect();
    value["lines"] = steps(w, window, s).into();
    value
}

fn reasons(list: &[(Reason, u64)]) -> Value {
    list.iter().map(|(reason, n)| json!({ "reason": format!("{reason:?}"), "count": n })).collect()
}

fn told(w: &why::Report, s: &Story) -> Value {
    json!({
        "name": w.clients.iter().find(|c| c.client == s.client).map(|c| c.name.as_str()),
        "asked": format!("{:?}", s.kind).to_lowercase(),
        "bytes": s.bytes,
        "ended_ns": s.ended.as_ns(),
        "took_ns": s.took.as_ns(),
        "account": account(w, &s.account),
        "chosen": format!("{:?}", s.chosen),
        "story": story(w, s),
    })
}
