//! What a job file means, and what is said about a wrong one.

use fairhead_core::units::{Class, Duration, IoPrio, Sector};

use super::*;

fn ok(text: &str) -> JobFile {
    match parse(text, "job.fio") {
        Ok(file) => file,
        Err(e) => panic!("refused: {e}\n{text}"),
    }
}

/// The only job of a section with these lines.
fn job(lines: &str) -> Job {
    ok(&format!("[j]\nsize=1g\n{lines}")).jobs.remove(0)
}

fn error(text: &str) -> String {
    match parse(text, "job.fio") {
        Ok(file) => panic!("accepted: {file:?}"),
        Err(e) => e.to_string(),
    }
}

/// The error of a job whose third line is this one.
fn line_error(line: &str) -> String {
    error(&format!("[j]\nsize=1g\n{line}\n"))
}

#[test]
fn groups_nest_by_path_and_are_given_what_anybody_says_of_them() {
    let file = ok(
        "[global]\nsize=1g\n#!fh_cgroup=t weight=300 wiops=50\n#!fh_cgroup=leaf_weight=7\n[a]\ncgroup=t/a\n\
         cgroup_weight=20\ncgroup_nodelete=1\n#!fh_cgroup=class=rt min_iops=80 latency=5ms\n[b]\ncgroup=/t/b\n#!fh_cgroup=leaf_weight=9\n\
         [c]\ncgroup=t/a\n#!fh_cgroup=t IOReadBandwidthMax=/dev/sda 5M burst=10ms wiops=50\n",
    );
    let group = |path: &str| file.cgroups.iter().find(|g| g.path == path).expect("a group");
    let paths: Vec<&str> = file.cgroups.iter().map(|g| g.path.as_str()).collect();
    assert_eq!(paths, ["/", "t", "t/a", "t/b"]);
    assert_eq!(file.cgroups.iter().map(|g| g.parent).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(file.jobs.iter().map(|j| file.cgroup_of(j)).collect::<Vec<_>>(), [2, 3, 2]);
    let weight = |w| fairhead_core::Weight::new(w).unwrap();
    let some = std::num::NonZeroU64::new;
    assert_eq!(
        group("t").settings,
        [
            Setting::Weight(weight(300)),
            Setting::Wiops(some(50)),
            Setting::Rbps(some(5_000_000)),
            Setting::Burst(Duration::from_ms(10))
        ]
    );
    assert_eq!(
        group("t/a").settings,
        [
            Setting::LeafWeight(weight(7)),
            Setting::Weight(weight(20)),
            Setting::Class(Class::RealTime),
            Setting::MinIops(80),
            Setting::Latency(Some(Duration::from_ms(5)))
        ]
    );
    assert_eq!(group("t/b").settings, [Setting::LeafWeight(weight(9))], "the job's own word is the last");
    assert_eq!([group("t").stays, group("t/a").stays, group("t/b").stays], [false, true, false]);
}

#[test]
fn those_who_give_a_group_different_things_are_both_named() {
    assert_eq!(
        error("[global]\nsize=1m\ncgroup=g\n[a]\ncgroup_weight=100\n[b]\n[c]\ncgroup_weight=200\n"),
        "job.fio:8: weight=200 for cgroup 'g' by job 'c' (line 8) contradicts weight=100 by job 'a' (line 5); a group has one weight"
    );
    assert_eq!(
        error("[global]\nsize=1m\n#!fh_cgroup=g rbps=max\n[a]\n#!fh_cgroup=/g rbps=1k\n"),
        "job.fio:5: rbps=1024 for cgroup 'g' by line 5 contradicts rbps=max by line 3; a group has one rbps"
    );
}

#[test]
fn changes_come_in_the_order_of_time() {
    let file = ok(
        "[global]\nsize=1m\n[a b]\ncgroup=x\n#!fh_at=5s: move a b y/z\n#!fh_at=1500ms set x  rbps=max weight=2\n#!fh_at=9s remove y\n",
    );
    let got: Vec<_> = file.changes.iter().map(|c| (c.at.as_ms(), &c.what)).collect();
    let weight = fairhead_core::Weight::new(2).unwrap();
    assert_eq!(
        got,
        [
            (1500, &ChangeTo::Set(1, vec![Setting::Rbps(None), Setting::Weight(weight)])),
            (5000, &ChangeTo::Move("a b".into(), 3)),
            (9000, &ChangeTo::Remove(2)),
        ]
    );
    assert_eq!(file.changes[0].text, "set x rbps=max weight=2");
}

#[test]
fn defaults_are_fios() {
    let j = job("");
    assert_eq!(j.rw, Pattern { direction: Direction::Read, random: false });
    assert_eq!(j.bs, PerOp::all(BlockSize::Fixed(4096)));
    assert_eq!((j.iodepth, j.engine, j.direct, j.numjobs, j.loops), (1, Engine::Sync, false, 1, 1));
    assert!(j.invalidate && j.randrepeat && j.fallocate);
    assert_eq!(j.file_names(2), ["j.2.0"]);
    assert_eq!(j.random_pct, PerOp::all(0));
    assert_eq!(job("rw=randread").random_pct, PerOp::all(100));
}

#[test]
fn global_sections_apply_to_the_jobs_below_them() {
    let f = ok("[global]\nsize=1g\nbs=8k\n[a]\nbs=16k\n[global]\nbs=32k\nnumjobs=2\n[b]\n[a]\nnumjobs=3\n");
    let got: Vec<_> = f.jobs.iter().map(|j| (j.name.as_str(), j.bs.read.max_bytes(), j.numjobs)).collect();
    assert_eq!(got, [("a", 16384, 1), ("b", 32768, 2), ("a", 32768, 3)]);
    let clients: Vec<_> = f.clients().map(|c| (c.job_index, c.clone)).collect();
    assert_eq!(clients, [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]);
    assert_eq!(f.client_count(), 6);
}

#[test]
fn comments_blanks_and_spaces_are_as_in_fio() {
    let f = ok("# one\n; two\n\n  [ j ]  # three\n\tsize = 1g ; four\r\n  rw=write#five\n");
    assert_eq!((f.jobs[0].name.as_str(), f.jobs[0].line), ("j", 4));
    assert_eq!(f.jobs[0].rw.direction, Direction::Write);
}

#[test]
fn a_comment_with_a_bang_carries_our_options_past_fio() {
    assert_eq!(job("#!fh_think=98.4us").think, Some(Duration::from_ns(98_400)));
    assert_eq!((job("#! fh_query=5").query_calls, job("bs=4k").query_calls), (5, 1));
    assert_eq!(job("#! fh_cpu=113us # new blocks").cpu_per_4k, Duration::from_us(113));
    assert_eq!(job("#!/usr/bin/env fio\n# fh_think=1ms").think, None, "other comments stay comments");
    assert_eq!(
        line_error("#!fh_thnik=1ms"),
        "job.fio:3: unknown option 'fh_thnik'; did you mean 'fh_think'?"
    );
}

#[test]
fn sizes_take_fios_units() {
    for (text, bytes) in [
        ("4096", 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("4kb", 4096),
        ("4KiB", 4096),
        ("0x1000", 4096),
        ("1536k", 1_572_864),
        ("2g", 2 << 30),
        ("1t", 1 << 40),
    ] {
        assert_eq!(job(&format!("size={text}")).size, Some(Size::Bytes(bytes)), "{text}");
    }
    assert_eq!(job("kb_base=1000\nbs=512\nsize=4k").size, Some(Size::Bytes(4000)));
    assert_eq!(job("kb_base=1000\nbs=512\nsize=4KiB").size, Some(Size::Bytes(4096)));
    assert_eq!(job("filename=/dev/sda\nsize=10%").size, Some(Size::Percent(10)));
    assert_eq!(Size::Percent(10).bytes_of(1 << 60), (1 << 60) / 10);
    assert_eq!(Size::Percent(100).bytes_of(12_345), 12_345);
}

#[test]
fn reversed_prefixes_get_a_note() {
    let note = "KiB, MiB, … are powers of 1024 here; fio reads them as powers of 1000 unless kb_base=1000 (k, m, g are 1024 to both)";
    assert_eq!(ok("[j]\nsize=1GiB\nbs=4KiB\n").notes, [note]);
    assert!(ok("[j]\nkb_base=1000\nsize=1GiB\n[k]\nsize=1g\n").notes.is_empty());
}

#[test]
fn times_take_fios_units_and_fios_bare_meaning() {
    for (text, time) in [
        ("30", Duration::from_secs(30)),
        ("30s", Duration::from_secs(30)),
        ("1500ms", Duration::from_ms(1500)),
        ("2m", Duration::from_secs(120)),
        ("1h", Duration::from_secs(3600)),
        ("100us", Duration::from_us(100)),
        ("100usec", Duration::from_us(100)),
    ] {
        assert_eq!(job(&format!("runtime={text}")).runtime, Some(time), "{text}");
    }
    assert_eq!(job("thinktime=8").thinktime, Duration::from_us(8));
    assert_eq!(job("thinktime=8ms\nthinktime_spin=2ms").thinktime_spin, Duration::from_ms(2));
    assert_eq!(job("startdelay=5").startdelay, Duration::from_secs(5));
    assert_eq!(job("ramp_time=5").ramp_time, Duration::from_secs(5));
    assert_eq!(job("runtime=0").runtime, None);
}

#[test]
fn every_pattern() {
    for (text, direction, random) in [
        ("read", Direction::Read, false),
        ("write", Direction::Write, false),
        ("randread", Direction::Read, true),
        ("randwrite", Direction::Write, true),
        ("rw", Direction::Mixed, false),
        ("readwrite", Direction::Mixed, false),
        ("randrw", Direction::Mixed, true),
        ("trim", Direction::Trim, false),
        ("randtrim", Direction::Trim, true),
    ] {
        assert_eq!(job(&format!("rw={text}")).rw, Pattern { direction, random }, "{text}");
        assert_eq!(job(&format!("readwrite={text}")).rw, Pattern { direction, random }, "{text}");
    }
}

#[test]
fn lists_by_direction() {
    let fixed = BlockSize::Fixed;
    assert_eq!(job("bs=4k,8k").bs, PerOp { read: fixed(4096), write: fixed(8192), trim: fixed(8192) });
    assert_eq!(job("bs=4k,8k,16k").bs, PerOp { read: fixed(4096), write: fixed(8192), trim: fixed(16384) });
    assert_eq!(job("bs=,8k").bs, PerOp { read: fixed(4096), write: fixed(8192), trim: fixed(8192) });
    assert_eq!(job("bs=,8k,").bs, PerOp { read: fixed(4096), write: fixed(8192), trim: fixed(4096) });
    assert_eq!(job("rate=1m").rate, PerOp::all(Some(1 << 20)));
    assert_eq!(job("rate=,500k").rate, PerOp { read: None, write: Some(512_000), trim: Some(512_000) });
    assert_eq!(job("rate_iops=100,0").rate_iops, PerOp { read: Some(100), write: None, trim: None });
    assert_eq!(job("percentage_random=10,90").random_pct, PerOp { read: 10, write: 90, trim: 90 });
}

#[test]
fn block_ranges_and_splits() {
    assert_eq!(job("bsrange=4k-64k").bs.read, BlockSize::Range { min: 4096, max: 65536 });
    assert_eq!(job("bsrange=4k-4k").bs.read, BlockSize::Fixed(4096));
    assert_eq!(job("bsrange=1k-4k,8k-16k").bs.write, BlockSize::Range { min: 8192, max: 16384 });
    assert_eq!(job("bssplit=4k/60:16k/40").bs.read, BlockSize::Split(vec![(4096, 60), (16384, 40)]));
    assert_eq!(
        job("bssplit=4k/:8k/:16k").bs.read,
        BlockSize::Split(vec![(4096, 33), (8192, 33), (16384, 34)]),
        "what is left is shared"
    );
    assert_eq!(job("bssplit=4k/100,8k/100").bs.write, BlockSize::Split(vec![(8192, 100)]));
}

#[test]
fn mixes_and_distributions() {
    assert_eq!(job("rwmixread=70").rwmix_read_pct, 70);
    assert_eq!(job("rwmixwrite=70").rwmix_read_pct, 30);
    assert_eq!(job("random_distribution=random").distribution, Distribution::Uniform);
    assert_eq!(job("random_distribution=zipf:1.2").distribution, Distribution::Zipf(1.2));
    assert_eq!(job("random_distribution=pareto:0.3").distribution, Distribution::Pareto(0.3));
    assert_eq!(job("random_distribution=normal:20").distribution, Distribution::Normal(20.0));
    assert!(job("norandommap").norandommap && !job("norandommap=0").norandommap);
}

#[test]
fn places() {
    assert_eq!(job("filename=a:b").filenames, ["a", "b"]);
    assert_eq!(job("filename=a\\:b").filenames, ["a:b"]);
    assert!(job("filename=/dev/sda").is_raw_disk() && !job("filename=sda").is_raw_disk());
    assert_eq!(job("filename=x").file_names(7), ["x"], "all clones share it");
    assert_eq!(job("nrfiles=2").file_names(3), ["j.3.0", "j.3.1"]);
    assert_eq!(job("file_service_type=sequential").file_service, FileService::Sequential);
    let j = job("offset=1m\noffset_increment=10%\nio_size=2g\nloops=3\nnumber_ios=5k\nfilesize=1m");
    assert_eq!((j.offset, j.offset_increment), (Size::Bytes(1 << 20), Size::Percent(10)));
    assert_eq!((j.io_size, j.loops, j.number_ios), (Some(Size::Bytes(2 << 30)), 3, Some(5120)));
    assert_eq!(j.filesize, Some(Size::Bytes(1 << 20)));
    assert!(ok("[j]\nfilename=/dev/sda\n").jobs[0].size.is_none());
    let j = job("file_append=1\noverwrite=1\nfallocate=none\ninvalidate=0\npre_read=1");
    assert!(j.append && j.overwrite && !j.fallocate && !j.invalidate && j.pre_read);
    assert!(j.fadvise && !job("fadvise_hint=0").fadvise);
}

#[test]
fn access() {
    assert!(job("direct=1").direct && job("buffered=0").direct && job("direct=1\nbuffered=0").direct);
    assert_eq!(job("sync=1").sync, SyncMode::Sync);
    assert_eq!(job("sync=dsync").sync, SyncMode::Dsync);
    let j = job("ioengine=io_uring\niodepth=32");
    assert_eq!((j.engine, j.iodepth, j.ioengine.as_str()), (Engine::Async, 32, "io_uring"));
    let j = job("fsync=10\nfdatasync=20\nend_fsync=1\nfsync_on_close=1");
    assert!((j.fsync, j.fdatasync, j.end_fsync, j.fsync_on_close) == (10, 20, true, true));
}

#[test]
fn depth_without_an_asynchronous_engine_gets_a_note() {
    let f = ok("[j]\nsize=1g\niodepth=32\n");
    assert_eq!(f.jobs[0].iodepth, 1);
    assert_eq!(
        f.notes,
        [
            "job 'j': iodepth=32 has no effect with ioengine=psync, which makes one call at a time; libaio or io_uring make more"
        ]
    );
    let f = ok("[j]\nsize=1g\niodepth=32\nioengine=libaio\n");
    assert_eq!(f.jobs[0].iodepth, 1);
    assert!(f.notes[0].contains("add direct=1"), "{:?}", f.notes);
    assert!(ok("[j]\nsize=1g\niodepth=32\nioengine=libaio\ndirect=1\n").notes.is_empty());
}

#[test]
fn waves_and_groups() {
    let f = ok(
        "[a]\nsize=1g\nstonewall\n[b]\nsize=1g\n[c]\nsize=1g\nnew_group\n[d]\nsize=1g\nwait_for_previous\n",
    );
    let got: Vec<_> = f.jobs.iter().map(|j| (j.wave, j.group)).collect();
    assert_eq!(got, [(0, 0), (0, 0), (0, 1), (1, 2)], "a wall in front of everything is none");
    assert_eq!(f.wave_count(), 2);
    assert!(job("group_reporting").group_reporting && job("exitall").exitall);
}

#[test]
fn priorities_and_groups() {
    assert_eq!(job("").prio, None);
    assert_eq!(job("prio=3").prio, Some(IoPrio::new(Class::BestEffort, 3)));
    assert_eq!(job("prioclass=1").prio, Some(IoPrio::new(Class::RealTime, 0)));
    assert_eq!(job("prioclass=3\nprio=7").prio, Some(IoPrio::new(Class::Idle, 7)));
    assert_eq!(job("cgroup=/a//b/").cgroup.as_deref(), Some("a/b"));
    let j = job("randseed=18446744073709551615\nrandrepeat=0\nname=other\ndescription=two words");
    assert_eq!((j.randseed, j.randrepeat), (Some(u64::MAX), false));
    assert_eq!((j.name.as_str(), j.description.as_deref()), ("other", Some("two words")));
}

#[test]
fn a_trace_is_read_once_the_job_file_is() {
    const LINE: &str = "1 .1 8 9 Seq 0 0 R 1 C\n";
    let mut file = ok("[a]\n#!fh_startup_trace=x.trace\n#!fh_iterations=2\n[b]\nsize=1m\n");
    let job = &file.jobs[0];
    assert_eq!((job.program, job.direct, job.iterations), (Some(Program::Replay), true, 2));
    let named = |path: &str| {
        assert_eq!(path, "x.trace");
        Ok(["sh-", "x-", "sh-"].map(|p| format!("{p}{LINE}")).concat().into_bytes())
    };
    file.read_traces(named).unwrap();
    assert_eq!((file.jobs[0].numjobs, file.client_count()), (2, 3));
    file.read_traces(|_| panic!("it has been read")).unwrap();
    let mut file = ok("[a]\n#!fh_startup_trace=x.trace\n");
    let e = file.read_traces(|_| Err("cannot read 'x.trace': gone".to_owned())).unwrap_err();
    assert_eq!(e.to_string(), "job.fio:2: cannot read 'x.trace': gone");
    let e = file.read_traces(|_| Ok(b"sh 1 2\n".to_vec())).unwrap_err();
    assert!(e.to_string().starts_with("x.trace:1: 3 fields"), "{e}");
    let mut file = ok("[a]\n#!fh_startup_trace=x.trace\n[b]\nsize=1m\nnumjobs=4095\n");
    let e = file.read_traces(named).unwrap_err();
    assert_eq!(
        e.to_string(),
        "job.fio: with the processes of 'x.trace' there are 4097 clients; at most 4096"
    );
}

#[test]
fn zones_are_in_sectors_and_as_long_as_what_is_moved_in_them() {
    let zones = |lines: &str| job(&format!("zonemode=strided\n{lines}")).zones;
    assert_eq!(job("zonemode=none\nzonesize=0").zones, None);
    assert_eq!(zones("zonesize=16k\nzoneskip=64k"), Some(Zones { size: 32, range: 32, skip: 128 }));
    assert_eq!(zones("zonesize=8k\nzonerange=1m"), Some(Zones { size: 16, range: 2048, skip: 0 }));
}

#[test]
fn our_own_options() {
    assert_eq!(job("fh_workload=fsck").program, Some(Program::Fsck));
    assert_eq!(ok("[j]\nfh_workload=dbscan\n").jobs[0].program, Some(Program::DbScan), "needs no size");
    let xterm = job("fh_workload=startup:xterm\nfh_iterations=5\nfh_pause=1s\nfh_timeout=120s");
    assert_eq!(xterm.program, Some(Program::StartUp(Application::Xterm)));
    assert_eq!(
        (xterm.iterations, xterm.iteration_pause, xterm.timeout),
        (5, Duration::from_secs(1), Duration::from_secs(120))
    );
    let bash = ok("[j]\n#!fh_workload=startup:bash\n").jobs.remove(0);
    assert_eq!(
        (bash.iterations, bash.iteration_pause, bash.timeout),
        (1, Duration::from_secs(4), Duration::from_secs(60))
    );
    let player = |v: &str| ok(&format!("[j]\n#!fh_workload={v}\n")).jobs.remove(0).program;
    assert_eq!(player("player"), Some(Program::Player { bits_per_s: 4 << 20 }));
    assert_eq!(player("player:8m"), Some(Program::Player { bits_per_s: 8 << 20 }));
    assert_eq!(job("fh_layout=contiguous").layout, Layout::Contiguous);
    assert_eq!(job("fh_layout=interleaved").layout, Layout::Interleaved { piece_bytes: 32768 });
    assert_eq!(job("fh_layout=interleaved:64KiB").layout, Layout::Interleaved { piece_bytes: 65536 });
    assert_eq!(job("fh_layout=ext2").layout, Layout::Ext2);
    assert_eq!(job("fh_layout=scattered").layout, Layout::Scattered);
    assert_eq!(job("fh_start=20000sectors").placement, Some(Placement::At(Sector(20_000))));
    assert_eq!(job("fh_start=1m").placement, Some(Placement::At(Sector(2048))));
    assert_eq!(job("fh_start=0%").placement, Some(Placement::Percent(0)));
    assert_eq!(job("fh_metadata=cold").metadata, Metadata::Cold);
    assert_eq!(job("fh_direct_write_sync=0").direct_write_sync, Some(false));
    let f = ok("[j]\nfh_workload=fsck\nrw=read\nbs=4k\n");
    assert_eq!(f.notes, ["job 'j': fh_workload decides what is done; not used: rw, bs"]);
}

#[test]
fn options_without_effect_are_listed_once() {
    let f = ok(
        "[global]\nsize=1g\nthread\ngtod_reduce=1\n[a]\nthread\ndirectory=/mnt\n[b]\natomic=0\ndisable_bw=1\n",
    );
    assert_eq!(
        f.notes,
        [
            "ignored: thread, gtod_reduce, directory, atomic, disable_bw_measurement (no effect in a simulation)"
        ]
    );
}

/// The ten mistakes that people make.
#[test]
fn typical_mistakes_get_one_line_that_says_what_would_be_right() {
    for (text, message) in [
        ("[j]\nsize=1g\niodpeth=32\n", "job.fio:3: unknown option 'iodpeth'; did you mean 'iodepth'?"),
        (
            "[j]\nsize=1g\nrw=raedrand\n",
            "job.fio:3: unknown value 'raedrand' for 'rw'; did you mean 'randread'?",
        ),
        ("[j]\nsize=1g\nbs=4kk\n", "job.fio:3: bad unit 'kk' in 'bs=4kk'; sizes are in k, m, g or t"),
        (
            "[j]\nsize=1g\nrwmixread=120\n",
            "job.fio:3: 'rwmixread=120' is out of range; whole percent from 0 to 100",
        ),
        ("[j]\nsize=-1g\n", "job.fio:2: 'size=-1g' is negative; write a size such as 4k, 1m or 10g"),
        (
            "size=1g\n[j]\n",
            "job.fio:1: 'size=1g' is outside a section; put it below [global] or a job's [name]",
        ),
        ("[j]\nsize=1g\nbs=\n", "job.fio:3: option 'bs' has no value; write bs=…"),
        (
            "[j]\nsize=1g\ndirect=1\nbuffered=1\n",
            "job.fio:4: direct=1 contradicts buffered=1; keep one of them",
        ),
        (
            "[j]\nsize=1g\nrw=randrw\n#! fh_query=5\n",
            "job.fio:4: fh_query is about reads; it needs rw=read or rw=randread",
        ),
        (
            "[j]\nsize=1g\nioengine=libaio\niodepth=2\ndirect=1\nfh_query=5\n",
            "job.fio:6: fh_query is about reads one after the other; it needs iodepth=1",
        ),
        ("[j]\nsize=1g\ntime_based\n", "job.fio:3: time_based needs a runtime; add one such as runtime=30s"),
        (
            "[j]\nsize=1g\nbssplit=4k/60:16k/60:32k:64k\n",
            "job.fio:3: the percentages of 'bssplit=4k/60:16k/60:32k:64k' add up to 120, and leave nothing for 2 entries without one",
        ),
        (
            "[j]\nsize=1g\ndirect=1\nbs=1000\n",
            "job.fio:4: a block of 1000 bytes is not a multiple of 512, which direct=1 needs",
        ),
        ("[j]\nbs=1m\nsize=4k\n", "job.fio:3: size=4k is less than one block of 1m"),
        (
            "[j]\nsize=1g\nioengine=libiao\n",
            "job.fio:3: unknown value 'libiao' for 'ioengine'; did you mean 'libaio'?",
        ),
        ("[j]\nrw=read\n", "job.fio:1: job 'j' has no size; write one such as size=1g"),
        (
            "[j]\nrw=read\nfilename=f\n[k]\nfilename=f\nsize=1m\n",
            "job.fio:1: job 'j' has no size, and no job above it makes its file 'f'; write one such as size=1g",
        ),
        (
            "[k]\nsize=1m\nnumjobs=2\n[j]\nrw=read\nfilename=k.1.0:k.2.0\n",
            "job.fio:4: job 'j' has no size, and no job above it makes its file 'k.2.0'; write one such as size=1g",
        ),
        ("[j\nsize=1g\n", "job.fio:1: section heading '[j' has no ']'"),
    ] {
        assert_eq!(error(text), message, "{text}");
    }
}

/// A wrong line, and what is said about it.
const RARER_MISTAKES: &[(&str, &str)] = &[
    ("direct", "option 'direct' has no value; write direct=…"),
    ("direct=yes", "'direct=yes' is neither on nor off; write direct=1 or direct=0"),
    ("=5", "there is no option in front of '='"),
    ("gibberish", "unknown option 'gibberish'"),
    ("bs=abc", "'bs=abc' is not a size; write one such as 4k, 1m or 10g"),
    ("bs=0", "'bs=0' is out of range; 1 to 2g"),
    ("bs=4k,4k,4k,4k", "'bs=4k,4k,4k,4k' has 4 entries; at most three: reads, writes, trims"),
    ("bs=(4*1024)", "'bs=(4*1024)' is an expression, which is not supported; write the number"),
    (
        "bs=1.0001k",
        "'bs=1.0001k': fio reads up to the decimal point and takes it for 1 without a unit; write a whole number",
    ),
    (
        "runtime=1.5s",
        "'runtime=1.5s': fio reads up to the decimal point and takes it for 1 without a unit; write a whole number, such as runtime=1500ms",
    ),
    (
        "iodepth=1.5",
        "'iodepth=1.5': fio reads up to the decimal point and takes it for 1 without a unit; write a whole number",
    ),
    (
        "size=99999999999999999999",
        "'size=99999999999999999999' is not a size; write one such as 4k, 1m or 10g",
    ),
    ("size=9000p", "'size=9000p' is out of range; at most 8192t"),
    ("size=110%", "'size=110%' is out of range; whole percent from 1 to 100"),
    ("size=0", "'size=0' leaves nothing to do; write a size such as size=1g"),
    ("bsrange=64k-4k", "'bsrange=64k-4k' is a range from large to small; write 4k-64k"),
    ("bsrange=4k", "'bsrange=4k' is not a range; write one such as 4k-64k"),
    ("bssplit=:", "'bssplit=:' has no entry; write one such as 4k/60:16k/40"),
    ("runtime=30x", "bad unit 'x' in 'runtime=30x'; times are in us, ms, s, m, h or d"),
    ("runtime=-1", "'runtime=-1' is negative; write a time such as 8ms or 30s"),
    ("runtime=9999999d", "'runtime=9999999d' is out of range; at most ten years"),
    ("fh_workload=fcsk", "unknown value 'fcsk' for 'fh_workload'; did you mean 'fsck'?"),
    ("fh_workload=starup:xterm", "unknown value 'starup' for 'fh_workload'; did you mean 'startup'?"),
    ("fh_workload=startup", "'fh_workload=startup' names no application; write one such as startup:xterm"),
    ("fh_workload=startup:xtrem", "unknown value 'xtrem' for 'fh_workload'; did you mean 'xterm'?"),
    (
        "fh_workload=startup:emacs",
        "unknown value 'emacs' for 'fh_workload'; known are xterm, gnome-terminal, lowriter, oowriter, konsole, bash",
    ),
    (
        "fh_workload=startup:xterm\ndirect=1",
        "fh_workload=startup and player read through the page cache; remove direct=1",
    ),
    (
        "fh_startup_trace=x\nfh_workload=fsck",
        "fh_workload contradicts fh_startup_trace: there is one program for a job",
    ),
    (
        "fh_startup_trace=x\nnumjobs=2",
        "numjobs contradicts fh_startup_trace: a replay has a client for each process of the trace",
    ),
    (
        "fh_startup_trace=x\nfilename=/dev/sda",
        "filename contradicts fh_startup_trace: each process has a file of its own",
    ),
    ("fh_startup_trace=x\ndirect=0", "a trace is replayed past the page cache; remove direct or buffered"),
    ("fh_workload=player:0", "'fh_workload=0' is out of range; 128k to 1g"),
    ("fh_workload=playr:4m", "unknown value 'playr' for 'fh_workload'; did you mean 'player'?"),
    ("rate=1m\nrate_iops=10", "rate contradicts rate_iops; keep one of them"),
    ("zonesize=16k", "zonesize has no zones to act on; add zonemode=strided"),
    ("zoneskip=16k", "zoneskip has no zones to act on; add zonemode=strided"),
    ("zonemode=strided", "zonemode=strided needs a zonesize; add one such as zonesize=16k"),
    (
        "zonemode=zbd",
        "'zonemode=zbd' is about zoned disks, and none of the disk models has zones; zonemode=strided has gaps without",
    ),
    (
        "max_open_zones=4",
        "option 'max_open_zones' is about zoned disks, and none of the disk models has zones; remove it",
    ),
    (
        "size=10%",
        "job 'j': size=10% is a share of its file, and no job above it makes its file 'j.0.0'; write a size such as size=1g, or filesize= beside it",
    ),
    ("filesize=64k-16k", "'filesize=64k-16k' is a range from large to small; write 16k-64k"),
    (
        "file_service_type=zipf:1.2",
        "'file_service_type=zipf:1.2' prefers some files to others, which is not simulated; use random, or random_distribution=",
    ),
    ("percentile_list=101", "'percentile_list=101' is out of range; 0 to 100, such as 99.9"),
    ("zonemode=stride", "unknown value 'stride' for 'zonemode'; did you mean 'strided'?"),
    ("zonesize=1000", "'zonesize=1000' is not a multiple of 512 bytes"),
    ("zoneskip=3z", "'zoneskip=3z' counts zones of a zoned disk, which is not simulated"),
    ("fh_iterations=2", "fh_iterations is about start-ups; add one such as fh_workload=startup:xterm"),
    ("fh_iterations=0", "'fh_iterations=0' is out of range; 1 to 1000"),
    ("fh_pause=4", "'fh_pause=4' has no unit; write us, ms or s: fh_pause=8ms"),
    ("fh_timeout=0s", "'fh_timeout=0s' leaves no time; write one such as fh_timeout=60s"),
    ("fh_think=98", "'fh_think=98' has no unit; write us, ms or s: fh_think=8ms"),
    (
        "fh_start=20000",
        "'fh_start=20000' has no unit; write fh_start=20000sectors, fh_start=10g or fh_start=80%",
    ),
    ("fh_layout=ext3", "unknown value 'ext3' for 'fh_layout'; did you mean 'ext2'?"),
    ("fh_layout=ext2:4k", "'fh_layout=ext2:4k': only interleaved has a piece size, as in interleaved:32k"),
    ("startdelay=5-10", "'startdelay=5-10' is a range, which is not simulated; write one time"),
    ("iodepth=0", "'iodepth=0' is out of range; 1 to 4096"),
    ("prio=8", "'prio=8' is out of range; 0 to 7"),
    ("cgroup_weight=500", "'weight=500' is for a cgroup; add one such as cgroup=tenant1"),
    ("cgroup_weight=10001", "'cgroup_weight=10001' is out of range; 1 to 10000"),
    ("cgroup=a/../b", "'..' in cgroup 'a/../b'; write the path from the root"),
    ("fh_cgroup=a wieght=3", "unknown word 'wieght' in 'fh_cgroup'; did you mean 'weight'?"),
    ("fh_cgroup=a weight", "'weight' has no value; write weight=…"),
    ("fh_cgroup=a weight=0", "'weight=0' is out of range; 1 to 10000"),
    ("fh_cgroup=a rbps=0", "'rbps=0' is out of range; 1 to 1024t"),
    ("fh_cgroup=a rbps=1m rbps=2m", "'rbps=2m' after 'rbps=1048576'; keep one of them"),
    (
        "fh_cgroup=a class=best",
        "unknown value 'best' for 'class'; known are rt, be, idle, realtime, best-effort, 1, 2, 3",
    ),
    ("fh_cgroup=a burst=5", "'burst=5' has no unit; write us, ms or s: burst=8ms"),
    ("fh_cgroup=a burst=2h", "'burst=2h' is out of range; at most an hour"),
    (
        "fh_cgroup=a IOReadBandwidthMx=5M",
        "unknown word 'IOReadBandwidthMx' in 'fh_cgroup'; did you mean 'IOReadBandwidthMax'?",
    ),
    (
        "fh_cgroup=a StartupIOWeight=5",
        "'StartupIOWeight': it holds while a system boots, and none does here; use IOWeight, or fh_at to change it later",
    ),
    ("fh_cgroup=a io.max=5", "'io.max': write its words by themselves, such as rbps=10m wiops=120"),
    ("fh_cgroup=a io.latency=5", "'io.latency': write the target by itself, such as latency=5ms"),
    ("fh_cgroup=a latency=0s", "'latency=0s': nothing is as quick; write a time, or max"),
    ("fh_cgroup=/ weight=5", "'weight=5': the root has a leaf_weight and nothing else"),
    ("fh_cgroup=weight=5", "'weight=5' is for a cgroup; add one such as cgroup=tenant1"),
    ("fh_at=5s", "'fh_at=5s' says when, but not what; write one such as fh_at=5s set tenants/a weight=500"),
    ("fh_at=5 set a weight=5", "'fh_at=5' has no unit; write us, ms or s: fh_at=8ms"),
    ("fh_at=5s set a weight=5", "no cgroup 'a' in this file"),
    ("fh_at=5s sett a weight=5", "unknown value 'sett' for 'fh_at'; did you mean 'set'?"),
    ("fh_at=5s move k a", "no job 'k'; did you mean 'j'?"),
    ("fh_at=5s move j", "'fh_at=move j' names no cgroup; write move JOB PATH"),
    ("fh_at=5s remove /", "the root cannot be removed"),
    (
        "random_distribution=normal",
        "'random_distribution=normal' has no parameter; write random_distribution=normal:20",
    ),
    (
        "random_distribution=zipf:1.2:2",
        "'random_distribution=zipf:1.2:2': the center '2' is out of range; a number from 0 to 1, such as 0.5",
    ),
    (
        "random_distribution=zipf:1",
        "'random_distribution=zipf:1' does not exist; theta is anything but 1: zipf:1.01",
    ),
    (
        "random_distribution=pareto:nan",
        "'random_distribution=pareto:nan' is out of range; pareto takes a number above 0 and up to 1, such as pareto:0.2",
    ),
    ("random_distribution=zpif:1", "unknown value 'zpif' for 'random_distribution'; did you mean 'zipf'?"),
    ("rw=randread:k", "'rw=randread:k': 'rw=k' is not a number; write one such as 1"),
    ("rw=trimwrite\nbs=4k,8k,4k", "with rw=trimwrite, trims and writes have one block size; write one"),
    ("verify=crc33", "unknown value 'crc33' for 'verify'; did you mean 'crc32'?"),
    (
        "trim_percentage=10",
        "option 'trim_percentage' trims what was written and verified, which is not simulated; remove it, or use rw=trim in a job of its own",
    ),
    ("atomic=1", "option 'atomic' is not simulated, and would change the load; remove it"),
    (
        "size=${SIZE}",
        "'size=${SIZE}': the environment variable 'SIZE' is not set; run it with SIZE=… in front",
    ),
    ("numjobs=$ncpus", "'numjobs=$ncpus': $ncpus is a host's, and there is not one host; write the value"),
    (
        "include other.fio",
        "'include other.fio': other files cannot be read here; put the options into this file",
    ),
    (
        "filename=/dev/sda:a",
        "'filename=/dev/sda:a' mixes disks with files; give the files a job of their own",
    ),
    ("filename=::", "'filename=::' names no file"),
    ("[]", "the section heading is empty; write a name such as [reader]"),
    ("[a] b", "text after the section heading: 'b'"),
    (
        "thinktime=1ms\nthinktime_spin=2ms",
        "thinktime_spin=2ms is longer than thinktime=1ms, of which it is a part",
    ),
];

#[test]
fn rarer_mistakes() {
    for (line, message) in RARER_MISTAKES {
        let got = line_error(line);
        let (place, text) = got.split_at(got.find(": ").unwrap() + 2);
        assert_eq!(text, *message, "{line}");
        assert!(place.starts_with("job.fio:"), "{got}");
    }
}

#[test]
fn a_file_without_jobs_and_one_too_large_are_refused() {
    assert_eq!(error(""), "job.fio: there is no job in it; add a section such as [reader] with size=1g");
    assert_eq!(
        error("[global]\nsize=1g\n"),
        "job.fio: there is no job in it, only [global], and fio would run nothing either; add a section such as [reader] with size=1g"
    );
    assert_eq!(
        error(&"#".repeat(BYTES_MAX + 1)),
        "job.fio: the file has 1048577 bytes; a job file has at most 1m"
    );
    assert_eq!(error(&"#".repeat(5000)), "job.fio:1: the line has 5000 bytes; at most 4096");
    assert_eq!(
        error("[a]\nsize=1g\nnumjobs=4000\n[b]\nsize=1g\nnumjobs=97\n"),
        "job.fio:4: with job 'b' there are 4097 clients; at most 4096"
    );
    assert_eq!(
        parse_bytes(b"[a]\n\xff\n", "x", &Surroundings::NONE).unwrap_err().to_string(),
        "x:2: not a text in UTF-8"
    );
}

#[test]
fn errors_in_inherited_options_name_the_line_that_set_them() {
    assert_eq!(
        error("[global]\nsize=1g\ndirect=1\n[a]\nbs=1000\n"),
        "job.fio:5: a block of 1000 bytes is not a multiple of 512, which direct=1 needs"
    );
    assert_eq!(
        error("[global]\nsize=1g\ntime_based\n[a]\nrw=read\n"),
        "job.fio:3: time_based needs a runtime; add one such as runtime=30s"
    );
}

/// A fuzzer in small: pieces of real lines in any order, cut and joined anywhere, never panic, and errors are
/// one line.
#[test]
fn no_text_makes_it_panic() {
    let pieces = [
        "[",
        "]",
        "[global]\n",
        "[j]\n",
        "\n",
        "=",
        ":",
        "/",
        ",",
        "-",
        "%",
        "#!",
        "fh_",
        "size=",
        "bs=",
        "bssplit=",
        "bsrange=",
        "rw=",
        "randread",
        "1g",
        "4k",
        "0x",
        "999999999999",
        ".",
        "5",
        "é",
        "\u{0}",
        "\r",
        "filename=",
        "\\",
        "runtime=",
        "fh_start=",
        "sectors",
        "fh_layout=",
        "interleaved",
        "random_distribution=",
        "zipf",
        "1e999",
        "nan",
        "time_based",
        "rate=",
        "numjobs=",
        "kb_base=1000\n",
        "${",
        "ns",
        "KiB",
        " ",
    ];
    // The generator of Numerical Recipes: any will do that is the same everywhere.
    let mut x = 1_u64;
    let mut draw = |n: usize| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(x >> 33).unwrap() % n
    };
    let mut accepted = 0;
    for _ in 0..4_000 {
        let mut text = String::new();
        for _ in 0..draw(12) {
            text.push_str(pieces[draw(pieces.len())]);
        }
        if draw(2) == 0 {
            text = format!("[j]\nsize=1g\n{text}");
        }
        match parse(&text, "f") {
            Ok(file) => accepted += file.clients().count().min(1),
            Err(e) => assert!(!e.to_string().contains(['\n', '\r', '\u{0}']), "{e:?}"),
        }
    }
    assert!(accepted > 50, "the pieces should make some valid files: {accepted}");
}

#[test]
fn every_option_can_be_found_by_name() {
    for key in super::options::all_keys() {
        assert!(super::options::find(key).is_some(), "{key}");
    }
}

/// Every option that Debian's fio knows is known here, one way or another.
#[test]
fn no_option_of_fio_is_unknown() {
    let Ok(output) = std::process::Command::new("fio").arg("--cmdhelp=all").output() else {
        println!("skipped: no fio");
        return;
    };
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let names: Vec<&str> = help
        .lines()
        .filter_map(|l| l.split_ascii_whitespace().next())
        .map(|n| n.trim_end_matches(':'))
        .collect();
    assert!(names.len() > 150, "fio lists its options: {help}");
    let unknown: Vec<&&str> = names.iter().filter(|n| super::options::find(n).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn processors_are_given_by_number_and_range_and_their_number_once() {
    let j = job(
        "cpus_allowed=0-2,8,1\ncpus_allowed_policy=split\nioengine=io_uring\niodepth_batch_submit=8\nhipri",
    );
    assert_eq!((j.cpus_allowed, j.cpus_split, j.iodepth_batch, j.hipri), (vec![0, 1, 2, 8], true, 8, true));
    assert_eq!(ok("[global]\nsize=1m\n#!fh_cpus=4\n[a]\n[b]\n").cpus, Some(4));
    assert_eq!(ok("[a]\nsize=1m\n").cpus, None);
    for (text, wrong) in [
        ("[a]\nsize=1m\ncpus_allowed=3-1\n", "from large to small"),
        ("[a]\nsize=1m\ncpus_allowed=x\n", "cpus_allowed=x"),
        ("[a]\nsize=1m\nfh_cpus=0\n", "1 to 1024"),
        ("[a]\nsize=1m\nfh_cpus=2\n[b]\nsize=1m\nfh_cpus=3\n", "contradicts fh_cpus=2 of line 3"),
    ] {
        let message = parse(text, "j").unwrap_err().to_string();
        assert!(message.contains(wrong), "{text}: {message}");
    }
}
