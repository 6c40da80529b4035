//! What a simulated client costs: memory for each of thousands. One test in its own program, as it counts all
//! that the program allocates.

mod counted;

use fairhead_core::sched::any::{PRESETS, Preset};
use fairhead_device::DeviceParams;
use fairhead_sim::{Host, Outcome, Scenario, job, memory, simulate};

fn run(text: &str, preset: &Preset) -> Outcome {
    simulate(&Scenario::new(
        job::parse(text, "crowd.fio").unwrap(),
        DeviceParams::preset("sata_ssd").unwrap(),
        Host::named("2020").unwrap(),
        preset.name,
        (preset.config)(),
    ))
    .unwrap()
}

/// The most memory that a run of `clients` clients had allocated at a time; each made `calls` calls.
fn peak(clients: u32, calls: u32, lines: &str, preset: &Preset) -> usize {
    let text = format!("[c]\nnumjobs={clients}\nsize=1m\nnumber_ios={calls}\n{lines}\n");
    counted::peak(|| {
        let outcome = run(&text, preset);
        let made: u64 = outcome.clients.iter().map(|c| c.read.calls + c.write.calls).sum();
        assert_eq!(made, u64::from(clients * calls));
    })
}

/// What a run was said to take beforehand, and what it took.
fn said_and_taken(text: &str) -> (u64, u64) {
    let jobs = job::parse(text, "said.fio").unwrap();
    let host = Host::named("2020").unwrap();
    let said = memory(&jobs, &host, 250 << 30).bytes;
    drop(jobs);
    let taken = counted::peak(|| drop(run(text, &PRESETS[0])));
    (said, taken as u64)
}

fn what_a_run_takes_is_known_beforehand() {
    for text in [
        "[a]\nnumjobs=64\niodepth=4096\nioengine=libaio\ndirect=1\nrw=randread\nsize=1m\nnumber_ios=10\n",
        "[a]\nnumjobs=64\nnrfiles=2048\nsize=16m\ndirect=1\nnumber_ios=10\n",
        "[a]\nsize=200g\n#!fh_layout=ext2\ndirect=1\nnumber_ios=10\n",
        "[a]\nsize=200g\n#!fh_layout=scattered\n#!fh_metadata=cold\ndirect=1\nnumber_ios=10\n",
        "[a]\nsize=2g\nbssplit=512/50:4k/50\nrw=randread\ndirect=1\n",
        "[a]\nsize=8g\nrw=read\nbs=1m\n",
        "[a]\nnumjobs=4096\nsize=1m\nnumber_ios=10\n",
    ] {
        let (said, taken) = said_and_taken(text);
        println!("{said} said, {taken} taken: {}", text.replace('\n', " "));
        assert!(taken <= said, "{taken} bytes, not {said}: {text}");
        // 64 MiB are for what does not grow.
        assert!(said <= taken * 3 + (64 << 20), "{taken} bytes, not {said}: {text}");
    }
    let jobs =
        job::parse("[a]\nsize=1m\nnumjobs=4096\niodepth=4096\nioengine=libaio\ndirect=1\n", "j").unwrap();
    let most = memory(&jobs, &Host::named("2020").unwrap(), 1 << 40);
    assert!(most.bytes > 4 << 30 && most.most.0.starts_with("16777216 calls in flight"), "{most:?}");
}

#[test]
fn a_client_takes_at_most_20_kb_and_all_is_known_beforehand() {
    what_a_run_takes_is_known_beforehand();
    // Every scheduler has a table of tasks; the host's part is the same with all of them.
    let with_all = PRESETS.iter().filter(|p| !p.has_controller() || p.name == "noop+groups");
    let mut cases: Vec<_> = with_all.map(|p| (p, "rw=randrw\ndirect=1", 10)).collect();
    let noop = &PRESETS[0];
    cases.extend([(noop, "rw=randread", 10), (noop, "rw=write", 10), (noop, "rw=randrw\ndirect=1", 100)]);
    for (preset, lines, calls) in cases {
        let (few, many) = (peak(96, calls, lines, preset), peak(4096, calls, lines, preset));
        let each = many.saturating_sub(few) / 4000;
        println!("{}, {}, {calls} calls: {each} bytes", preset.name, lines.replace('\n', " "));
        assert!(each <= 20_000, "{}, {lines}, {calls} calls: {each} bytes for each client", preset.name);
    }
}
