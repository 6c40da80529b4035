//! What options of job files make clients do, seen in their calls.

use fairhead_core::Duration;
use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;
use fairhead_sim::journal::{Call, Collector, record};
use fairhead_sim::why::CallKind;
use fairhead_sim::{Host, Outcome, Scenario, job};
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Simulates a job file: what came out, and its calls.
fn run(text: &str) -> (Outcome, Vec<Call>) {
    let jobs = job::parse(text, "options.fio").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let scenario = Scenario::new(
        jobs,
        DeviceParams::preset("sata_ssd").unwrap(),
        Host::named("2020").unwrap(),
        "mq-deadline",
        (preset("mq-deadline").unwrap().config)(),
    );
    let mut journal = Collector::default();
    let outcome = record(&scenario, &mut journal).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(journal.dropped.calls, 0);
    (outcome, journal.calls)
}

#[test]
fn null_makes_calls_and_no_requests() {
    for lines in [
        "ioengine=null",
        "filename=/dev/null",
        "ioengine=null\niodepth=8\nrw=randrw\nfsync=4",
        "ioengine=null\nrw=write\npre_read=1",
    ] {
        let (outcome, _) = run(&format!("[j]\nsize=400k\n{lines}\n"));
        let c = &outcome.clients[0];
        assert_eq!(c.read.calls + c.write.calls, 100, "{lines}");
        assert_eq!(
            (outcome.disk.issued, outcome.disk.read_bytes, outcome.disk.written_bytes),
            (0, 0, 0),
            "{lines}"
        );
        assert!(outcome.elapsed.as_us() >= 100, "a call takes CPU time: {lines}");
    }
    // It may be larger than any disk.
    let (outcome, _) = run("[j]\nioengine=null\nsize=100t\nnumber_ios=10\n");
    assert_eq!(outcome.clients[0].read.calls, 10);
}

/// The numbers of the calls that a pause of 10 ms comes before, from 0.
fn pauses(lines: &str) -> Vec<usize> {
    let text = "[j]\nrw=randread\nbs=4k\nsize=16m\ndirect=1\nnumber_ios=13\nthinktime=10ms\n";
    let (_, mut calls) = run(&format!("{text}{lines}\n"));
    calls.sort_by_key(|c| c.id);
    let pause = |pair: &[Call]| pair[1].began.saturating_sub(pair[0].began) >= Duration::from_ms(10);
    (1..).zip(calls.windows(2)).filter(|(_, pair)| pause(pair)).map(|(i, _)| i).collect()
}

#[test]
fn a_pause_comes_after_as_many_calls_as_thinktime_blocks_says() {
    assert_eq!(pauses("thinktime_blocks=1"), (1..13).collect::<Vec<_>>());
    assert_eq!(pauses("thinktime_blocks=3"), [3, 6, 9, 12]);
    assert_eq!(pauses("thinktime_blocks=5"), [5, 10]);
    assert_eq!(pauses("thinktime_blocks=13"), [0; 0]);
    // With four calls in flight, those that have ended count.
    assert_eq!(pauses("thinktime_blocks=5\nioengine=libaio\niodepth=4"), [8]);
}

/// The blocks of 4 KiB at which calls begin, a `w` behind those of writes.
fn blocks(lines: &str) -> String {
    let (_, mut calls) = run(&format!("[j]\nfilename=f\nsize=64k\nbs=4k\n{lines}\n"));
    calls.sort_by_key(|c| c.id);
    let block = |c: &Call| format!("{}{}", c.offset / 4096, if c.kind == CallKind::Write { "w" } else { "" });
    calls.iter().filter(|c| c.kind != CallKind::Sync).map(block).collect::<Vec<_>>().join(" ")
}

/// The blocks at which calls of fio 3.33 begin: its log of offsets, by `write_lat_log` with `log_offset`.
/// `None`: there is no fio.
fn blocks_of_fio(lines: &str) -> Option<String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("fairhead-options-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let log = folder.join("l");
    let text = format!(
        "[j]\ndirectory={}\nfilename=f\nsize=64k\nbs=4k\n{lines}\nwrite_lat_log={}\nlog_offset=1\n",
        folder.display(),
        log.display()
    );
    std::fs::write(folder.join("j.fio"), text).unwrap();
    let ran = Command::new("fio").arg(folder.join("j.fio")).output();
    let text = std::fs::read_to_string(folder.join("l_lat.1.log"));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(ran.ok()?.status.success(), "fio refuses {lines}");
    let block = |line: &str| {
        let fields: Vec<u64> = line.split(',').filter_map(|f| f.trim().parse().ok()).collect();
        format!("{}{}", fields[4] / 4096, if fields[2] == 1 { "w" } else { "" })
    };
    Some(text.unwrap().lines().map(block).collect::<Vec<_>>().join(" "))
}

#[test]
fn hops_between_sequential_calls_are_fios() {
    for (lines, seen) in [
        ("rw=read:-8k", "0 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0"),
        ("rw=write:-8k", "0w 14w 13w 12w 11w 10w 9w 8w 7w 6w 5w 4w 3w 2w 1w 0w"),
        ("rw=read:8k", "0 3 6 9 12 15"),
        ("rw=read:8k\nloops=2", "0 3 6 9 12 15 0 3 6 9 12 15"),
        ("rw=read:8k\nnumber_ios=20", "0 3 6 9 12 15"),
        ("rw=read:4k\nio_size=72k", "0 2 4 6 8 10 12 14 0 2 4 6 8 10 12 14 0 2"),
        ("rw=read:-4k", "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"),
        ("rw=read:-8k\nsize=32k\nloops=2", "0 6 5 4 3 2 1 0 6 5 4 3 2 1 0 6"),
        ("rw=read:-8k\noffset=16k\nsize=48k", "10 9 8 7 6 5 4 14 13 12 11 10"),
        ("rw=read:8k\noffset=16k\nsize=48k", "4 7 10 13"),
        ("rw=read:-4k\noffset=16k\nsize=48k", "11 11 11 11 11 11 11 11 11 11 11 11"),
        ("rw=read:-8k\noffset=16k", "14 13 12 11 10 9 8 7 6 5 4 18 17 16 15 14"),
        ("rw=read:-8k\nio_size=32k", "0 14 13 12 11 10 9 8"),
    ] {
        let of_fio = blocks_of_fio(lines);
        if of_fio.is_none() {
            println!("skipped: no fio");
        }
        if let Some(of_fio) = of_fio {
            assert_eq!(of_fio, seen, "fio, {lines}");
        }
        assert_eq!(blocks(lines), seen, "{lines}");
    }
}

#[test]
fn a_random_place_is_for_several_calls() {
    let all = blocks("rw=randread:4\nsize=4m\nio_size=64k");
    let all: Vec<u64> = all.split(' ').map(|b| b.parse().unwrap()).collect();
    for four in all.chunks(4) {
        assert_eq!(four, [four[0], four[0] + 1, four[0] + 2, four[0] + 3], "{all:?}");
    }
    let starts: BTreeSet<u64> = all.chunks(4).map(|four| four[0]).collect();
    assert_eq!(starts.len(), 4, "{all:?}");
    let same = blocks("rw=randread:4\nrw_sequencer=identical\nsize=4m\nio_size=64k");
    let same: Vec<&str> = same.split(' ').collect();
    assert!(same.chunks(4).all(|four| four.iter().all(|b| *b == four[0])), "{same:?}");
    // Of sequential patterns it says nothing.
    assert_eq!(blocks("rw=read\nrw_sequencer=identical\nsize=16k"), "0 1 2 3");
}

#[test]
fn random_places_are_aligned() {
    let all = blocks("rw=randread\nba=16k\nsize=1m\nnumber_ios=200\nloops=1");
    assert!(all.split(' ').all(|b| b.parse::<u64>().unwrap() % 4 == 0), "{all}");
    assert_eq!(all.split(' ').count(), 200);
    // Blocks of 16 KiB every 8 KiB: the last begins where there is still room.
    let last = blocks("rw=randread\nba=8k\nbs=16k\nnorandommap\nnumber_ios=300\nio_size=8m");
    let most = last.split(' ').map(|b| b.parse::<u64>().unwrap()).max();
    assert_eq!(most, Some(12), "{last}");
}

#[test]
fn zones_have_their_shares_of_random_calls() {
    let count = |lines: &str, below: u64| {
        let all = blocks(lines);
        let all: Vec<u64> = all.split(' ').map(|b| b.parse().unwrap()).collect();
        (all.iter().filter(|b| **b < below).count(), all.iter().max().copied(), all.len())
    };
    // 4 000 calls: the standard deviation of a share of 90 % is 19.
    let (head, last, all) = count("rw=randread\nrandom_distribution=zoned:90/50:10/\nio_size=16000k", 8);
    assert!((3_543..=3_657).contains(&head) && last == Some(15) && all == 4000, "{head} of {all}");
    let (head, last, _) =
        count("rw=randread\nrandom_distribution=zoned_abs:90/16k:10/16k\nio_size=16000k", 4);
    assert!((3_543..=3_657).contains(&head) && last == Some(7), "{head}");
    let (head, last, _) = count("rw=randread\nrandom_distribution=zoned:50/20:50/20\nio_size=16000k", 3);
    assert!((1_905..=2_095).contains(&head) && last == Some(5), "{head}");
    let Some(of_fio) = blocks_of_fio("rw=randread\nrandom_distribution=zoned:50/20:50/20\nio_size=16000k")
    else {
        return println!("skipped: no fio");
    };
    let most = of_fio.split(' ').map(|b| b.parse::<u64>().unwrap()).max();
    assert_eq!(most, Some(5), "fio");
}

#[test]
fn a_poisson_process_keeps_its_rate_at_random_times() {
    let lines = "rw=randread\ndirect=1\nioengine=libaio\niodepth=32\nsize=64m\nrate_iops=500\ntime_based\nruntime=8s\n\
                 io_submit_mode=offload\nrate_process=";
    let gaps = |process: &str| {
        let (outcome, mut calls) = run(&format!("[j]\n{lines}{process}\n"));
        calls.sort_by_key(|c| c.id);
        let gaps: Vec<f64> = calls.windows(2).map(|w| (w[1].began - w[0].began).as_us() as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        (outcome.clients[0].read.calls, mean, variance.sqrt())
    };
    let (calls, mean, deviation) = gaps("linear");
    assert!(
        calls.abs_diff(4000) <= 8 && (mean - 2000.0).abs() < 5.0 && deviation < 100.0,
        "{calls} {mean} {deviation}"
    );
    // The deviation of an exponential distribution is its mean; that of 4 000 arrivals is 63.
    let (calls, mean, deviation) = gaps("poisson");
    assert!(calls.abs_diff(4000) <= 190, "{calls}");
    assert!((0.93..1.07).contains(&(deviation / mean)), "{mean} {deviation}");
}

#[test]
fn offloaded_calls_are_in_flight_together_whatever_the_engine() {
    for lines in ["ioengine=psync\ndirect=1", "ioengine=libaio", "ioengine=libaio\ndirect=1"] {
        let text = |mode: &str| {
            format!(
                "[j]\nrw=randread\nsize=64m\nnumber_ios=2000\niodepth=8\n{lines}\nio_submit_mode={mode}\n"
            )
        };
        let most = |mode: &str| run(&text(mode)).1.iter().map(|c| c.lane + 1).max().unwrap();
        let inline = if lines.ends_with("libaio\ndirect=1") { 8 } else { 1 };
        assert_eq!((most("inline"), most("offload")), (inline, 8), "{lines}");
    }
}

/// Calls of each client.
fn calls(outcome: &Outcome) -> Vec<u64> {
    outcome.clients.iter().map(|c| c.read.calls + c.write.calls).collect()
}

#[test]
fn jobs_of_a_flow_share_calls_by_weight() {
    let jobs = |lines: &str| {
        format!(
            "[global]\nsize=64m\nbs=4k\ndirect=1\nrw=randread\n{lines}\n[a]\nflow=1\n[b]\nflow=8\nioengine=libaio\niodepth=8\n"
        )
    };
    for sleep in ["", "flow_sleep=1000"] {
        let (outcome, _) = run(&jobs(&format!("time_based\nruntime=2s\n{sleep}")));
        let c = calls(&outcome);
        assert!(c[0] > 50 && (c[0] * 8).abs_diff(c[1]) <= c[1] / 50 + 16, "{c:?} {sleep}");
        assert!(outcome.elapsed.as_ms() < 2_100, "{sleep}");
    }
    // When one has ended, the other is alone.
    let (outcome, _) = run(&jobs("number_ios=400"));
    assert_eq!(calls(&outcome), [400, 400]);
    // Another flow is another matter.
    let (outcome, _) = run(&jobs("number_ios=400").replace("flow=8", "flow=8\nflow_id=2"));
    assert_eq!(calls(&outcome), [400, 400]);
    // The other one does not run yet: one call, as fio has it, until the time is over.
    let (outcome, _) = run(&jobs("time_based\nruntime=1s").replace("[b]", "[b]\nstonewall"));
    assert!(calls(&outcome)[0] == 1 && calls(&outcome)[1] > 1000, "{:?}", calls(&outcome));
    let text = jobs("number_ios=400").replace("[b]", "[b]\nstonewall");
    let error = job::parse(&text, "f").unwrap_err().to_string();
    assert!(
        error.starts_with("f:7: job 'a' would wait for ever for its share of the flow beside 'b'"),
        "{error}"
    );
}

#[test]
fn a_job_waits_for_the_one_that_it_names() {
    let text = "[global]\nsize=4m\nrw=randread\ndirect=1\nrate_iops=100\nnumber_ios=20\n[a]\nnumjobs=2\n[b]\nwait_for=a\n[c]\n[d]\nwait_for=b\n";
    let (outcome, _) = run(text);
    let at: Vec<u64> = outcome.clients.iter().map(|c| c.started.as_ms()).collect();
    assert_eq!(calls(&outcome), [20; 5]);
    // 20 calls at 100 a second take 190 ms and a call.
    assert!(at[0] < 20 && at[1] < 20 && at[3] < 20, "{at:?}");
    assert!((185..225).contains(&at[2]) && (375..430).contains(&at[4]), "{at:?}");
    for (line, message) in [
        ("wait_for=z", "w:4: wait_for=z: no job above is called so"),
        ("wait_for=c", "w:4: wait_for=c: no job above is called so"),
    ] {
        let error =
            job::parse(&format!("[a]\nsize=1m\n[b]\n{line}\nsize=1m\n[c]\nsize=1m\n"), "w").unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn exit_what_says_whom_exitall_ends() {
    let text = |what: &str| {
        format!(
            "[global]\nsize=64m\nrw=randread\ndirect=1\nexitall\n[slow]\nrate_iops=20\nnumber_ios=100\n[fast]\nnew_group\nrate_iops=100\n\
             number_ios=50\n{what}\n[later]\nstonewall\nnumber_ios=30\n"
        )
    };
    let made = |what: &str| calls(&run(&text(what)).0);
    // fio 3.33: 592, 100 and so on with the default; 10, 99, 0 with all. The fast one ends after half a
    // second.
    assert_eq!(made(""), [100, 50, 30]);
    let with = made("exit_what=stonewall");
    assert!((9..=12).contains(&with[0]) && with[1..] == [50, 30], "{with:?}");
    let with = made("exit_what=all");
    assert!((9..=12).contains(&with[0]) && with[1..] == [50, 0], "{with:?}");
}

#[test]
fn the_depth_that_keeps_a_latency_is_found() {
    let text = |target: &str, more: &str| {
        format!(
            "[j]\nsize=256m\nrw=randread\nbs=64k\ndirect=1\nioengine=libaio\niodepth=64\nlatency_target={target}\nlatency_window=200ms\n\
             latency_percentile=99\n{more}"
        )
    };
    let (outcome, calls) = run(&text("3ms", "runtime=60s\ntime_based\n"));
    let note =
        outcome.notes.iter().find(|n| n.contains("keeps")).unwrap_or_else(|| panic!("{:?}", outcome.notes));
    let depth: u32 = note.split("with ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(outcome.elapsed.as_ms() < 20_000 && (2..64).contains(&depth), "{note} after {}", outcome.elapsed);
    // What is shown is the last window alone, and in it the target was kept.
    let read = &outcome.clients[0].read;
    assert!(read.percentile(99.0).unwrap().as_us() <= 3_030, "{:?}", read.percentile(99.0));
    assert!((150..=400).contains(&outcome.clients[0].elapsed.as_ms()), "{}", outcome.clients[0].elapsed);
    assert!(calls.len() as u64 > read.calls, "earlier windows were left out");
    // With latency_run it runs to the end of its time.
    let (outcome, _) = run(&text("3ms", "latency_run=1\nruntime=5s\ntime_based\n"));
    assert_eq!(outcome.elapsed.as_ms() / 100, 50);
}

#[test]
fn jobs_end_at_their_bounds() {
    let (outcome, _) =
        run("[j]\nsize=64m\nrw=randread\ndirect=1\nrate_iops=50\nrate_min=150k\ntime_based\nruntime=6s\n");
    assert_eq!(outcome.elapsed.as_ms() / 100, 60, "50 blocks a second are 200 KiB, which is enough");
    let slow = "[j]\nsize=64m\nrw=randread\ndirect=1\nthinktime=20ms\nrate_min=300k\ntime_based\nruntime=6s\n[k]\nsize=1m\nstartdelay=1\n";
    let (outcome, _) = run(slow);
    // fio 3.33 ends such a job after 3.1 s: two seconds are not looked at, and one is counted.
    let ended = outcome.clients[0].elapsed.as_ms();
    assert!((2_950..3_200).contains(&ended), "{ended}");
    assert!(
        outcome
            .notes
            .iter()
            .any(|n| n.starts_with("job 'j' ends at ") && n.ends_with("less than rate_min=307200")),
        "{:?}",
        outcome.notes
    );
    assert_eq!(calls(&outcome)[1], 256, "the other job continues");
    let (outcome, _) = run("[j]\nsize=64m\nrw=randread\ndirect=1\nmax_latency=1us\n");
    assert_eq!(calls(&outcome), [1]);
    assert!(outcome.notes.iter().any(|n| n.contains("more than max_latency=1us")), "{:?}", outcome.notes);
    let error = job::parse("[j]\nsize=1m\nrate_iops=50\nrate_iops_min=60\n", "r").unwrap_err();
    assert_eq!(
        error.to_string(),
        "r:4: rate_iops_min=60 is more than the cap of 50, so the job would end at once"
    );
}

#[test]
fn a_job_ends_when_its_figures_are_steady() {
    let text = |lines: &str| format!("[global]\nioengine=null\nsize=1g\ntime_based\nruntime=30\n{lines}\n");
    // fio looks just before a job is a whole number of seconds old: it ends after 2.9, 5.9, 4.9, 3.9 and 3.0
    // s of its figures.
    for (lines, seconds) in [
        ("[a]\nrate_iops=100\nss=iops:5%\nss_dur=3", 3.0),
        ("[a]\nrate_iops=100\nss=bw:5%\nss_dur=3\nss_ramp=2", 6.0),
        ("[a]\nrate_iops=100\nss=iops_slope:5%\nss_dur=3\nss_ramp=1\nnumjobs=2", 5.0),
        ("[a]\nrate_iops=100\nss=bw_slope:5%\nss_dur=4", 4.0),
        ("[a]\nrate_iops=100\nss_dur=3500ms\nss=iops:2", 3.0),
        ("[a]\nrate_iops=100\nramp_time=2500ms\nss=iops:15%\nss_dur=3", 3.0),
    ] {
        let (outcome, _) = run(&text(lines));
        let client = &outcome.clients[0];
        let took = client.elapsed.as_ns() as f64 / 1e9;
        assert!((took - seconds).abs() < 0.05, "{lines}: {took}");
        let steady = client.steady.as_ref().expect("it looked");
        assert!(
            steady.attained && steady.samples.iter().all(|s| s.0.abs_diff(100) <= 1),
            "{lines}: {steady:?}"
        );
    }
}

#[test]
fn a_job_that_is_not_steady_runs_to_its_end() {
    // Calls at 0, 1.5, 3.0 …: one or none in a second.
    let text = "[a]\nioengine=null\nsize=1g\ntime_based\nruntime=9\nthinktime=1500ms\nss=iops:5%\nss_dur=3\n";
    let (outcome, _) = run(text);
    let steady = outcome.clients[0].steady.as_ref().expect("it looked");
    assert!(!steady.attained && outcome.clients[0].elapsed == Duration::from_secs(9), "{steady:?}");
    // Of 1, 0 and 0 the first is 200 % off the mean, of 1, 1 and 0 the last 100 %.
    assert!([100.0, 200.0].contains(&steady.figure.round()), "{steady:?}");
    // Too short a window is none, and the job gets a note.
    let (outcome, _) =
        run("[a]\nioengine=null\nsize=1g\ntime_based\nruntime=5\nrate_iops=100\nss=iops:5%\nss_dur=500ms\n");
    assert_eq!(outcome.clients[0].steady, None);
    assert!(outcome.notes.iter().any(|n| n.contains("without ss_dur")), "{:?}", outcome.notes);
}

#[test]
fn a_reporting_group_is_steady_as_one() {
    let text = "[global]\nioengine=null\nsize=1g\ntime_based\nruntime=30\ngroup_reporting\nss=iops_slope:5%\nss_dur=4\n\
                [fast]\nrate_iops=300\nruntime=2500ms\n[slow]\nrate_iops=100\n";
    let (outcome, _) = run(text);
    // 400, 400, 100, 100: the slope is -120 of 250, and does not count as small. Seconds 3 to 6 have 100
    // each, as a client that has ended does not count; fio ends after 5.93 s.
    assert_eq!(outcome.clients[0].steady, None);
    let steady = outcome.clients[1].steady.as_ref().expect("the group's");
    let took_ms = outcome.clients[1].elapsed.as_ms();
    assert!(steady.attained && took_ms.abs_diff(6000) < 50, "{took_ms}: {steady:?}");
    let error = job::parse(&text.replace("[slow]", "[slow]\nss=iops:1%"), "s").unwrap_err();
    assert!(error.to_string().contains("another steadystate than a job of its reporting group"), "{error}");
    for (said, why) in [
        ("iops", "has no limit"),
        ("iops:x%", "is no limit"),
        ("iops:0", "nothing is below"),
        ("ipos:1", "did you mean 'iops'"),
    ] {
        let error = job::parse(&format!("[a]\nsize=1m\nss={said}\nss_dur=3\n"), "s").unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn a_job_without_a_size_takes_the_files_that_are_there() {
    let text = "[global]\nbs=4k\n[w]\nrw=write\nfilename=f\noffset=16k\nsize=32k\n[r]\nstonewall\nfilename=f\n[own]\nsize=20k\n\
                [of]\nstonewall\nfilename=own.0.0\noffset=8k\n";
    let (outcome, _) = run(text);
    // fio 3.33, too: 8, 12, 5 and 3 calls.
    let calls: Vec<u64> = outcome.clients.iter().map(|c| c.read.calls + c.write.calls).collect();
    assert_eq!(calls, [8, 12, 5, 3]);
}

#[test]
fn files_in_sequence_take_turns_for_as_long_as_there_is_time() {
    let text = "[j]\nsize=16k\nnrfiles=2\nfile_service_type=sequential\nbs=4k\ntime_based\nruntime=100ms\nthinktime=8ms\n";
    let (_, calls) = run(text);
    let first = calls[0].file;
    let order: Vec<(u32, u64)> = calls.iter().take(6).map(|c| (c.file - first, c.offset)).collect();
    // fio 3.33 reads both blocks of the one file, then those of the other, and begins again.
    assert_eq!(order, [(0, 0), (0, 4096), (1, 0), (1, 4096), (0, 0), (0, 4096)]);
}
