//! A scheduler from a library gives the same run as the type inside the program, byte for byte: every figure
//! of the outcome, and every request with its times and the reason why it was chosen.
//!
//! Both go through the seam for outside schedulers, so that the kernel's clock, which the lab gives the
//! built-in ones, is the same. ADIOS is one that the program has.

mod tools;

use fairhead_core::sched::any::AnyConfig;
use fairhead_core::sched::outside::{Config, Factory, Of};
use fairhead_core::sched::{anticipatory, bfq, cfq, cfq_early, deadline, kyber, mq_deadline, noop};
use fairhead_device::DeviceParams;
use fairhead_outside::{ADIOS, IOCOST, IOLATENCY};
use fairhead_sim::journal::{self, Request, Sink};
use fairhead_sim::{Host, Scenario, job};
use tools::example;

const LOADS: [(&str, &str); 4] = [
    (
        "ide2004",
        "[r]\nrw=read\nbs=4k\ndirect=1\nsize=64m\ntime_based\nruntime=2s\nnumjobs=3\n[w]\nrw=randwrite\nbs=16k\ndirect=1\nsize=64m\ntime_based\nruntime=2s\n",
    ),
    (
        "nas2020",
        "[a]\nrw=randrw\nbssplit=4k/50:64k/50\ndirect=1\nioengine=libaio\niodepth=8\nsize=1g\ntime_based\nruntime=2s\n[b]\nrw=read\nbs=128k\ndirect=1\nsize=1g\ntime_based\nruntime=2s\nprio=2\n[c]\nrw=read\nbs=4k\nsize=32m\n[d]\nrw=write\nbs=4k\nsize=32m\nend_fsync=1\n",
    ),
    (
        "sata2009",
        "[z]\nfilename=/dev/sda\nrw=read\nbs=16k\ndirect=1\noffset=1g\noffset_increment=16k\nzonemode=strided\nzonesize=16k\nzoneskip=32k\ntime_based\nruntime=2s\nnumjobs=3\n[f]\nfh_workload=player\nruntime=2s\n[s]\nrw=write\nbs=4k\nsize=64m\ntime_based\nruntime=2s\n",
    ),
    (
        "nvme",
        "[r]\nrw=randread\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\nsize=1g\ntime_based\nruntime=50ms\n[w]\nrw=randwrite\nbs=16k\ndirect=1\nsize=1g\nfsync=50\ntime_based\nruntime=50ms\n[s]\nrw=read\nbs=128k\ndirect=1\nsize=1g\ntime_based\nruntime=50ms\n",
    ),
];

/// Two groups, one with a weight and a latency target, for those that keep such.
const GROUPS: (&str, &str) = (
    "sata_ssd",
    "[global]\nbs=4k\nrw=randread\nsize=2g\ndirect=1\nioengine=libaio\ntime_based\nruntime=500ms\n[a]\niodepth=4\nthinktime=1ms\ncgroup=a\ncgroup_weight=300\n#!fh_cgroup=latency=200us\n[b]\niodepth=64\ncgroup=b\n",
);

/// Every request of a run, as text.
#[derive(Default)]
struct Lines(Vec<String>);

impl Sink for Lines {
    fn request(&mut self, request: &Request) {
        self.0.push(format!("{request:?}"));
    }
}

/// All that came of a load, without the scheduler's name.
fn run(factory: &'static dyn Factory, (disk, jobs): (&str, &str)) -> Vec<String> {
    let config = AnyConfig::Outside(Config::of(factory).unwrap_or_else(|unfit| panic!("{unfit}")));
    let scenario = Scenario {
        jobs: job::parse(jobs, "load").expect("a job file"),
        disk: DeviceParams::preset(disk).expect("a preset"),
        host: Host::parse("", disk).expect("a host").1,
        scheduler: "it".to_owned(),
        config,
        seed: 7,
        interval: None,
        time_max: None,
        watch: None,
    };
    let mut lines = Lines::default();
    let mut outcome = journal::record(&scenario, &mut lines).expect("it can be simulated");
    for disk in &mut outcome.disks {
        disk.scheduler.clear();
    }
    assert!(lines.0.len() > 100, "{} on {disk}: {} requests", factory.name(), lines.0.len());
    lines.0.push(format!("{outcome:?}"));
    lines.0
}

fn compare(linked: &'static dyn Factory, loaded: &'static dyn Factory, loads: &[(&str, &str)]) {
    for &load in loads {
        let [ours, theirs] = [linked, loaded].map(|factory| run(factory, load));
        let first = ours.iter().zip(&theirs).position(|(a, b)| a != b);
        if let Some(i) = first {
            panic!("{} on {}, line {i}:\n{}\n{}", loaded.name(), load.0, ours[i], theirs[i]);
        }
        assert_eq!(ours.len(), theirs.len());
    }
}

#[test]
fn adios_from_a_library_decides_as_the_linked_one() {
    let plugin = fairhead_plugin::open(&example("adios").to_string_lossy()).unwrap_or_else(|e| panic!("{e}"));
    compare(&ADIOS, plugin, &LOADS);
}

/// One after another: a variable of the process says which scheduler a copy of the library has.
#[test]
fn others_from_a_library_decide_as_inside() {
    static NOOP: Of<noop::Noop> = Of::named("l-noop", "");
    static DEADLINE: Of<deadline::Deadline> = Of::named("l-deadline", "");
    static MQ: Of<mq_deadline::MqDeadline> = Of::named("l-mq", "");
    static KYBER: Of<kyber::Kyber> = Of::named("l-kyber", "");
    static AS: Of<anticipatory::Anticipatory> = Of::named("l-as", "");
    static TS2: Of<cfq_early::CfqTs2> = Of::named("l-ts2", "");
    static CFQ: Of<cfq::Cfq> = Of::named("l-cfq", "");
    static BFQ: Of<bfq::Bfq> = Of::named("l-bfq", "");
    let all: [(&str, &'static dyn Factory); 10] = [
        ("noop", &NOOP),
        ("deadline", &DEADLINE),
        ("mq-deadline", &MQ),
        ("kyber", &KYBER),
        ("as", &AS),
        ("cfq-ts2", &TS2),
        ("cfq", &CFQ),
        ("bfq", &BFQ),
        ("iocost", &IOCOST),
        ("iolatency", &IOLATENCY),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for (name, linked) in all {
        let copy = folder.path().join(format!("lib{name}.so"));
        std::fs::copy(example("lineage"), &copy).expect("a copy");
        // SAFETY: the other test of this file reads no variable of the environment.
        unsafe { std::env::set_var("FAIRHEAD_LINEAGE", name) };
        let loaded = fairhead_plugin::open(&copy.to_string_lossy()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(loaded.name(), format!("{name}-library"));
        assert_eq!(loaded.tunables(), linked.tunables(), "{name}");
        compare(linked, loaded, &LOADS);
        if !linked.groups().is_empty() {
            assert_eq!(loaded.groups(), linked.groups(), "{name}");
            compare(linked, loaded, &[GROUPS]);
        }
    }
}
