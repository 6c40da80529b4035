//! Answers the page: JSON in, bytes out, and the last answer kept.

use fairhead_core::config::{Shown, Tunable, Unit};
use fairhead_core::sched::any::{AnyConfig, shown};
use fairhead_device::{DeviceParams, preset_names};
use fairhead_lab::output::time;
use fairhead_lab::schedulers::catalogue;
use fairhead_lab::simulate::{Wanted, one};
use fairhead_lab::workloads::WORKLOADS;
use fairhead_lab::{Answer, Disk, Job, Plan, Question, plan};
use fairhead_report::Participants;
use fairhead_sim::Outcome;
use fairhead_sim::job::Kind;
use fairhead_sim::journal::Sink;
use fairhead_sim::metrics::{StartUp, rate};
use fairhead_sim::satisfaction::kind;
use fairhead_sim::why::words;
use serde_json::{Value, json};

use crate::calls;
use crate::film::Film;

/// The last answer, and the films of its runs.
#[derive(Default)]
pub struct Desk {
    kept: Option<Kept>,
}

struct Kept {
    question: Question,
    answer: Answer,
    films: Vec<Film>,
}

/// The most schedulers side by side.
const RUNS_MAX: usize = 4;

impl Desk {
    /// Answers one of [`calls`].
    ///
    /// # Errors
    /// One line that says what is wrong with the input.
    pub fn answer(&mut self, what: u32, input: &[u8]) -> Result<Vec<u8>, String> {
        let text = |value: &Value| value.to_string().into_bytes();
        match what {
            calls::CHOICES => Ok(text(&choices())),
            calls::ASK => self.ask(&parse(input)?).map(|scene| text(&scene)),
            calls::FILM => {
                let (kept, run) = (self.kept()?, parse(input)?);
                let film = run.as_u64().and_then(|i| kept.films.get(usize::try_from(i).ok()?));
                film.map(Film::bytes).ok_or_else(|| format!("there is no run {run}"))
            }
            calls::RESULT => Ok(self.kept()?.answer.json().into_bytes()),
            calls::WHY => self.why(&parse(input)?).map(|told| text(&told)),
            calls::REPORT => self.report(),
            _ => Err(format!("there is no call {what}")),
        }
    }

    fn kept(&self) -> Result<&Kept, String> {
        self.kept.as_ref().ok_or_else(|| "nothing has been asked yet".to_owned())
    }

    fn ask(&mut self, input: &Value) -> Result<Value, String> {
        let question = question(input)?;
        let plan = question.plan().map_err(|e| e.to_string())?;
        if plan.schedulers.len() > RUNS_MAX {
            return Err(format!("name at most {RUNS_MAX} schedulers"));
        }
        let mut films: Vec<Film> = plan.schedulers.iter().map(|_| Film::default()).collect();
        let mut rest = films.iter_mut();
        let answer = Answer::of(plan, false, |_| rest.next().map(|film| film as &mut dyn Sink));
        let answer = answer.map_err(|e| e.to_string())?;
        let scene = scene(&question, &answer, &films);
        self.kept = Some(Kept { question, answer, films });
        Ok(scene)
    }

    /// Runs one scheduler again, and explains a part of a client's time.
    fn why(&self, input: &Value) -> Result<Value, String> {
        let kept = self.kept()?;
        let number = |key: &str| input[key].as_u64().ok_or_else(|| format!("'{key}' is not a number"));
        let run = usize::try_from(number("run")?).unwrap_or(usize::MAX);
        let name = input["name"].as_str().ok_or("'name' is not a text")?;
        let asked = format!("{name}@{}us-{}us", number("from_us")?, number("to_us")?);
        let known = &kept.answer.plan;
        let scheduler = known.schedulers.get(run).ok_or_else(|| format!("there is no run {run}"))?;
        let why = plan::choose_clients(&known.jobs, &asked).map_err(|e| e.to_string())?;
        let wanted = Wanted { why: Some(&why), pictures: false };
        let done = one(&known.scenario(scheduler), wanted, None).map_err(|e| e.to_string())?;
        let report = done.why.ok_or("no client was asked about")?;
        let plan = Plan { schedulers: vec![scheduler.clone()], why: Some(why), ..copy(known) };
        let answer = Answer { plan, outcomes: vec![done.outcome], why: vec![report], pictured: Vec::new() };
        let mut told = answer.value();
        Ok(told["runs"][0]["why"].take())
    }

    /// The page of a report, from the same question.
    fn report(&self) -> Result<Vec<u8>, String> {
        let kept = self.kept()?;
        let answer = Answer::of(copy(&kept.answer.plan), true, |_| None).map_err(|e| e.to_string())?;
        let page = answer.page(&command(&kept.question, &kept.answer.plan)).map_err(|e| e.to_string())?;
        Ok(page.into_bytes())
    }
}

fn copy(p: &Plan) -> Plan {
    Plan {
        jobs: p.jobs.clone(),
        disk: p.disk.clone(),
        of_run: p.of_run.clone(),
        host: p.host.clone(),
        schedulers: p.schedulers.clone(),
        seed: p.seed,
        interval: p.interval,
        watch: p.watch,
        why: None,
    }
}

fn parse(input: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(input).map_err(|e| format!("the question is not JSON: {e}"))
}

/// The question that the page asks: `job` or `text`, `disk`, `schedulers`, `set`, `seed`, `runtime`.
fn question(input: &Value) -> Result<Question, String> {
    let text = |key: &str| match &input[key] {
        Value::Null => Ok(None),
        Value::String(s) if s.is_empty() => Ok(None),
        Value::String(s) => Ok(Some(s.clone())),
        other => Err(format!("'{key}' is {other}; write a text")),
    };
    let list = |key: &str| -> Result<Vec<String>, String> {
        let Some(all) = input[key].as_array() else { return Ok(Vec::new()) };
        let one = |v: &Value| v.as_str().map(str::to_owned);
        all.iter().map(|v| one(v).ok_or_else(|| format!("'{key}' has {v}; write texts"))).collect()
    };
    let mut question = Question { schedulers: list("schedulers")?, set: list("set")?, ..Question::default() };
    if let Some(name) = text("job")? {
        question.job = Job::Named(name);
    }
    if let Some(text) = text("text")? {
        question.job = Job::Text { name: "yours.fio".to_owned(), text };
    }
    if let Some(name) = text("disk")? {
        question.disk = Disk::Named(name);
    }
    if !input["seed"].is_null() {
        let seed = &input["seed"];
        question.seed = seed.as_u64().ok_or_else(|| format!("'seed' is {seed}; write a whole number"))?;
    }
    question.runtime = text("runtime")?;
    Ok(question)
}

/// What can be chosen.
fn choices() -> Value {
    let about = |name: &&str| {
        let params = DeviceParams::preset(name).ok();
        json!({ "name": name, "about": params.map_or_else(String::new, |p| p.about().to_owned()) })
    };
    let load =
        |w: &fairhead_lab::workloads::Workload| json!({ "name": w.name, "about": w.about, "text": w.text });
    let scheduler = |name: &'static str| {
        let named = catalogue().find(name)?;
        Some(json!({ "name": shown(name), "about": named.about, "tunables": tunables(&named.config) }))
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "disks": preset_names().iter().map(about).collect::<Vec<_>>(),
        "loads": WORKLOADS.iter().map(load).collect::<Vec<_>>(),
        "schedulers": catalogue().names().filter_map(scheduler).collect::<Vec<_>>(),
    })
}

fn tunables(config: &AnyConfig) -> Vec<Value> {
    let one = |t: &Tunable| {
        let raw = config.get(t.name).unwrap_or(0);
        let (kind, words): (&str, &[&str]) = match t.unit {
            Unit::Time => ("time", &[]),
            Unit::Count => ("count", &[]),
            Unit::Switch => ("switch", &[]),
            Unit::KiB => ("KiB", &[]),
            Unit::Sectors => ("sectors", &[]),
            Unit::Choice(words) => ("choice", words),
        };
        json!({
            "name": t.name,
            "kind": kind,
            "words": words,
            "min": t.min,
            // A script's numbers are exact to here.
            "max": t.max.min(1 << 53),
            "default": raw,
            "shown": Shown(t.unit, raw).to_string(),
            "effect": t.effect,
        })
    };
    config.list().iter().map(one).collect()
}

/// What the page shows beside the films.
fn scene(question: &Question, answer: &Answer, films: &[Film]) -> Value {
    let plan = &answer.plan;
    let run = films.first().and_then(|f| f.run.as_ref());
    let participants = Participants::new(&plan.jobs);
    let tasks: Vec<Value> = run
        .map(|r| &r.tasks[..])
        .unwrap_or_default()
        .iter()
        .map(|t| json!({ "name": t.name, "who": participants.of(t), "client": t.client }))
        .collect();
    let star = star(plan);
    let runs: Vec<Value> =
        answer.outcomes.iter().zip(films).map(|(o, film)| one_run(plan, o, film, &star)).collect();
    let mut names = participants.names.clone();
    names.push("the host's write-back".to_owned());
    json!({
        "job": plan.jobs.file_name,
        "disk": plan.disk.0,
        "about": plan.disk.1.about(),
        "host": plan.host.0,
        "seed": plan.seed,
        "notes": plan.jobs.notes,
        "capacity_bytes": run.map_or(0, |r| r.capacity * 512),
        "rotational": run.is_some_and(|r| r.rotational),
        "queue_depth": run.map_or(0, |r| r.queue_depth),
        "names": names,
        "tasks": tasks,
        "star": star.as_ref().map(|s| json!({ "client": s.client, "name": s.name, "opens": s.opens })),
        "command": command(question, plan),
        "runs": runs,
    })
}

/// The client whose window is shown.
struct Star {
    client: usize,
    name: String,
    /// Whether it ends, as a program that starts does.
    opens: bool,
}

fn star(plan: &Plan) -> Option<Star> {
    let of = |wanted: Kind| plan.jobs.clients().position(|c| kind(&plan.jobs, c.job) == wanted);
    let (client, kind) =
        [Kind::Start, Kind::Waiting, Kind::Paced].into_iter().find_map(|kind| Some((of(kind)?, kind)))?;
    let job = plan.jobs.clients().nth(client)?;
    let name = match job.job.numjobs {
        1 => job.job.name.clone(),
        _ => format!("{}.{}", job.job.name, job.clone),
    };
    Some(Star { client, name, opens: kind == Kind::Start })
}

fn one_run(plan: &Plan, o: &Outcome, film: &Film, star: &Option<Star>) -> Value {
    let us = |t: fairhead_core::Duration| t.as_ns() / 1000;
    let bytes = o.disk.counters.bytes_read + o.disk.counters.bytes_written;
    let starred = star.as_ref().and_then(|s| o.clients.get(s.client)).map(|c| {
        // A program that syncs waits for that; its writes go to memory.
        let mut all = c.sync.clone();
        if all.calls == 0 {
            all.add(&c.read);
            all.add(&c.write);
        }
        let start_up = StartUp::mean(c.startups.iter().copied());
        let took = start_up.map_or(c.elapsed, |s| s.took);
        json!({
            "started_us": us(c.started),
            "ended_us": us(c.started + c.elapsed),
            "took_us": us(took),
            "took": time(took),
            "finished": start_up.is_none_or(|s| s.finished),
            "calls": all.calls,
            "which": if c.sync.calls > 0 { "syncs" } else { "calls" },
            "mean": all.latency_mean().map(time),
            "p99": all.percentile(99.0).map(time),
            "max": (all.calls > 0).then(|| time(all.latency_max)),
            "frames": c.frames.map(|f| json!({ "all": f.all(), "dropped": f.dropped })),
        })
    });
    let clients: Vec<Value> = o
        .clients
        .iter()
        .map(|c| json!({ "name": c.name, "bytes_per_s": rate(c.read.bytes + c.write.bytes, c.elapsed) }))
        .collect();
    let scheduler = plan.schedulers.iter().find(|s| shown(s.name) == o.scheduler);
    json!({
        "scheduler": o.scheduler,
        "elapsed_us": us(o.elapsed),
        "star": starred,
        "clients": clients,
        "bytes_per_s": rate(bytes, o.elapsed),
        "busy_us": us(o.disk.busy),
        "idled_us": us(o.disk.idled),
        "seeks": o.disk.counters.seeks,
        "merged": o.disk.merged,
        "requests": film.requests(),
        "reasons": film.reasons.iter().map(|r| words(*r)).collect::<Vec<_>>(),
        "tunables": scheduler.map(|s| tunables(&s.config)),
        "notes": o.notes,
    })
}

/// What to type for the same run.
fn command(question: &Question, plan: &Plan) -> String {
    let names: Vec<&str> = plan.schedulers.iter().map(|s| shown(s.name)).collect();
    let mut text =
        format!("fairhead run {} --disk {} --sched {}", plan.jobs.file_name, plan.of_run, names.join(","));
    question.set.iter().for_each(|set| text += &format!(" --set {set}"));
    if let Some(runtime) = &question.runtime {
        text += &format!(" --runtime {runtime}");
    }
    if plan.seed != 1 {
        text += &format!(" --seed {}", plan.seed);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[reader]\nrw=randread\nbs=4k\nsize=1m\nnumber_ios=40\ndirect=1\nthinktime=1ms\n[other]\nrw=read\nsize=1m\ndirect=1\n";

    fn asked() -> (Desk, Value) {
        let mut desk = Desk::default();
        let question =
            json!({ "text": TEXT, "schedulers": ["deadline", "bfq"], "set": ["bfq.slice_idle=4ms"] });
        let scene = desk.answer(calls::ASK, question.to_string().as_bytes()).unwrap();
        (desk, parse(&scene).unwrap())
    }

    fn refused(what: u32, input: &Value) -> String {
        asked().0.answer(what, input.to_string().as_bytes()).unwrap_err()
    }

    #[test]
    fn a_scene_names_who_waits_and_what_to_type() {
        let (_, scene) = asked();
        assert_eq!(scene["star"]["name"], "reader");
        assert_eq!(scene["names"], json!(["reader", "other", "the host's write-back"]));
        assert_eq!(
            scene["command"],
            "fairhead run yours.fio --disk nas2020 --sched deadline,bfq --set bfq.slice_idle=4ms"
        );
        let idle =
            scene["runs"][1]["tunables"].as_array().unwrap().iter().find(|t| t["name"] == "slice_idle");
        assert_eq!(idle.unwrap()["shown"], "4ms");
    }

    #[test]
    fn a_film_has_every_request_in_order_of_its_times() {
        let (mut desk, scene) = asked();
        let bytes = desk.answer(calls::FILM, b"0").unwrap();
        let all: Vec<u32> = bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        let (requests, calls, idles) = (all[0] as usize, all[1] as usize, all[2] as usize);
        assert_eq!(scene["runs"][0]["requests"], requests);
        assert_eq!((all[3], all.len()), (0, 4 + 12 * requests + 3 * calls + 4 * idles));
        assert!(calls > 40, "{calls}");
        let column = |c: usize| &all[4 + c * requests..4 + (c + 1) * requests];
        for i in 0..requests {
            let times: Vec<u32> = (4..10).map(|c| column(c)[i]).collect();
            assert!(times.is_sorted(), "{times:?}");
        }
    }

    #[test]
    fn the_reason_and_the_report_are_of_the_same_run() {
        let (mut desk, _) = asked();
        let why = json!({ "run": 1, "name": "reader", "from_us": 1000, "to_us": 90_000 }).to_string();
        let told = parse(&desk.answer(calls::WHY, why.as_bytes()).unwrap()).unwrap();
        assert_eq!(told["client"], "reader");
        assert!(!told["window"]["sentences"].as_array().unwrap().is_empty());
        let page = String::from_utf8(desk.answer(calls::REPORT, b"").unwrap()).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("--set bfq.slice_idle=4ms"));
    }

    #[test]
    fn what_is_wrong_is_one_line() {
        let none = Desk::default().answer(calls::RESULT, b"").unwrap_err();
        assert_eq!(none, "nothing has been asked yet");
        assert_eq!(refused(calls::FILM, &json!(2)), "there is no run 2");
        assert_eq!(refused(99, &json!(0)), "there is no call 99");
        assert_eq!(refused(calls::ASK, &json!({ "seed": "x" })), "'seed' is \"x\"; write a whole number");
        assert_eq!(refused(calls::ASK, &json!({ "schedulers": [1] })), "'schedulers' has 1; write texts");
        let many = json!({ "text": TEXT });
        assert_eq!(refused(calls::ASK, &many), "name at most 4 schedulers");
        let unknown = json!({ "schedulers": ["bfk"] });
        assert_eq!(refused(calls::ASK, &unknown), "unknown scheduler 'bfk'; did you mean 'bfq'?");
    }
}
