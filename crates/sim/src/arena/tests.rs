//! Regrets that can be worked out by hand, and cells of a small arena.

use super::*;
use crate::advise::Fared;
use crate::host::Host;
use crate::job::parse;
use crate::resumable::fingerprint;
use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;
use std::collections::BTreeMap;
use std::sync::Mutex;

const COPY_AND_QUERIES: &str = "[global]\nruntime=200ms\ntime_based\nsize=64m\ndirect=1\n\
    [queries]\nrw=randread\nbs=16k\nthinktime=2ms\n[copy]\nrw=read\nbs=256k\n";
const STREAMS: &str =
    "[streams]\nrw=read\nbs=128k\nsize=64m\ndirect=1\nnumjobs=3\nruntime=200ms\ntime_based\n";

fn arena(disks: &[&str], schedulers: &[&'static str]) -> Arena {
    let setting = |name: &&str| Setting {
        name: (*name).to_owned(),
        disk: DeviceParams::preset(name).unwrap(),
        host: Host::for_disk(name),
    };
    let tuned = |&scheduler: &&'static str| Tuned {
        scheduler,
        set: String::new(),
        config: (preset(scheduler).unwrap().config)(),
    };
    Arena {
        loads: vec![parse(COPY_AND_QUERIES, "queries").unwrap(), parse(STREAMS, "streams").unwrap()],
        settings: disks.iter().map(setting).collect(),
        tuned: schedulers.iter().map(tuned).collect(),
        seed: 3,
        seeds: 2,
    }
}

/// The text of cells, to the last bit.
fn text(cells: &[Option<Cell>]) -> String {
    format!("{cells:?}")
}

/// The regret of a cell in which A's two seeds satisfy the load to 0.8 and 0.2, and B's to 0.8 both.
#[test]
fn regret_is_the_best_satisfaction_over_the_own_one() {
    let a = arena(&["nas2020"], &["noop", "bfq"]);
    let load = a.load(1).unwrap();
    let run = |satisfaction| Run {
        jobs: vec![Fared { amount: 1.0, satisfaction, is_cut: false }],
        work: Duration::ZERO,
    };
    let cell = a.cell(load, Runs([1.0, 0.8, 0.2, 0.8, 0.8].map(run).to_vec()));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    near(cell.satisfactions()[0], 0.4);
    near(cell.satisfactions()[1], 0.8);
    near(cell.regrets()[0], 2.0);
    near(cell.regrets()[1], 1.0);
}

#[test]
fn summaries_have_the_geometric_mean_and_nine_of_ten() {
    assert_eq!(Summary::of([]), None);
    // 1, 2, 4, … 512: the mean is 2^4.5, and one of ten is above 256.
    let powers = (0..10).map(|i| (i, f64::from(1 << i)));
    let s = Summary::of(powers).unwrap();
    assert!((s.mean - libm::exp2(4.5)).abs() < 1e-9, "{}", s.mean);
    assert_eq!((s.p90, s.worst, s.best_in), (256.0, 512.0, 1));
    assert_eq!((s.cells[0], s.cells[9]), ((9, 512.0), (0, 1.0)));
    let alike = Summary::of([(5, 1.02), (2, 1.04), (3, 1.06), (1, 1.06)]).unwrap();
    assert_eq!(alike.best_in, 2, "what differs by less than a twentieth is as good");
    assert_eq!(alike.cells.iter().map(|c| c.0).collect::<Vec<_>>(), [1, 3, 2, 5]);
}

#[test]
fn parts_together_are_the_whole_whatever_the_threads() {
    let a = arena(&["sata_ssd", "nas2020", "microsd_a1"], &["noop", "mq-deadline", "bfq"]);
    let whole = a.run(Part::WHOLE, 1, &(), &|_| {}).unwrap();
    assert_eq!(whole.iter().flatten().count(), 6);
    assert_eq!(text(&whole), text(&a.run(Part::WHOLE, 3, &(), &|_| {}).unwrap()));
    assert_eq!(text(&whole[..1]), text(&a.run(Part { number: 1, of: 6 }, 8, &(), &|_| {}).unwrap()[..1]));
    let mut joined: Vec<Option<Cell>> = vec![None; 6];
    for number in 1..=4 {
        for (i, cell) in a.run(Part { number, of: 4 }, 2, &(), &|_| {}).unwrap().into_iter().enumerate() {
            let Some(cell) = cell else { continue };
            assert!(joined[i].replace(cell).is_none(), "cell {i} is in one part");
        }
    }
    assert_eq!(text(&joined), text(&whole));
    for cell in whole.iter().flatten() {
        let best = cell.regrets().into_iter().fold(f64::MAX, f64::min);
        assert!((best - 1.0).abs() < 1e-12, "the best has no regret: {best}");
    }
}

/// A place in memory that is over after `most` results.
#[derive(Default)]
struct Memory {
    known: BTreeMap<String, String>,
    new: Mutex<BTreeMap<String, String>>,
    most: usize,
}

impl Keep for Memory {
    fn known(&self, run: &str) -> Option<&str> {
        self.known.get(run).map(String::as_str)
    }
    fn keep(&self, run: &str, result: &str) {
        self.new.lock().unwrap().insert(run.to_owned(), result.to_owned());
    }
    fn is_over(&self) -> bool {
        self.new.lock().unwrap().len() >= self.most
    }
}

#[test]
fn resumed_is_uninterrupted_to_the_last_bit() {
    let a = arena(&["sata_ssd", "nas2020"], &["noop", "bfq"]);
    let whole = a.run(Part::WHOLE, 1, &(), &|_| {}).unwrap();
    let first = Memory { most: 2, ..Memory::default() };
    let cells = a.run(Part::WHOLE, 1, &first, &|_| {}).unwrap();
    assert_eq!(cells.iter().flatten().count(), 2);
    assert_eq!(text(&cells[..2]), text(&whole[..2]));
    let mut known = first.new.into_inner().unwrap();
    let second = Memory { known: known.clone(), most: 2, ..Memory::default() };
    assert_eq!(text(&a.run(Part::WHOLE, 1, &second, &|_| {}).unwrap()), text(&whole));
    assert_eq!(second.new.into_inner().unwrap().len(), 2, "what was known is not run again");
    // A line with too few runs, or too few jobs, is not believed.
    let short = known["0"].rsplit_once(BETWEEN).unwrap().0.to_owned();
    let few = known["1"].split(BETWEEN).map(|_| "5").collect::<Vec<_>>().join(BETWEEN);
    known.extend([("0".to_owned(), short), ("1".to_owned(), few)]);
    let third = Memory { known, most: usize::MAX, ..Memory::default() };
    assert_eq!(text(&a.run(Part::WHOLE, 1, &third, &|_| {}).unwrap()), text(&whole));
}

#[test]
fn arenas_of_other_loads_are_other_questions() {
    let a = arena(&["nas2020"], &["noop"]);
    let mut b = a.clone();
    b.loads.reverse();
    assert_ne!(fingerprint(&a), fingerprint(&b));
}

/// On NVMe each time of a load is a quarter: run times, delays and changes.
#[test]
fn an_nvme_drive_has_a_quarter_of_the_time() {
    let text = "[global]\nsize=1g\n#!fh_at=4s set tin weight=300\n[a]\nrw=read\nruntime=8s\ncgroup=tin\n\
                [start]\nstartdelay=2s\n#!fh_workload=startup:xterm\n";
    let mut a = arena(&["nas2020", "nvme", "sata_ssd"], &["noop"]);
    a.loads = vec![parse(text, "t").unwrap()];
    let times = |i: usize| {
        let load = a.load(i).unwrap();
        let jobs = &load.jobs;
        [load.span, jobs.jobs[0].runtime.unwrap(), jobs.jobs[1].startdelay, jobs.changes[0].at]
            .map(Duration::as_ms)
    };
    assert_eq!(times(0), [8000, 8000, 2000, 4000]);
    assert_eq!(times(1), [2000, 2000, 500, 1000]);
    assert_eq!(times(2), times(0));
    // Without a run time there is a span all the same.
    a.loads = vec![parse("[a]\nrw=read\nsize=1g\n", "t").unwrap()];
    assert_eq!((a.load(0).unwrap().span, a.load(1).unwrap().span), (SPAN, SPAN / 4));
}

#[test]
fn what_cannot_be_run_names_load_disk_and_job() {
    let mut a = arena(&["microsd_a1"], &["noop"]);
    let mut said = |text: &str| {
        a.loads = vec![parse(text, "big").unwrap()];
        a.run(Part::WHOLE, 1, &(), &|_| {}).unwrap_err().to_string()
    };
    let big = said("[a]\nrw=read\nsize=100t\nruntime=1s\n");
    assert!(big.starts_with("big on microsd_a1: job 'a': "), "{big}");
    let walls = said("[a]\nrw=read\nsize=1m\nruntime=1s\n[b]\nstonewall\nrw=read\nsize=1m\nruntime=1s\n");
    assert_eq!(
        walls,
        "big on microsd_a1: job 'b': it waits for another job to end; in the arena all run beside each other"
    );
}
