//! Options as fio 3.33 reads them, each seen with fio itself.

use super::*;

fn job(lines: &str) -> Job {
    match parse(&format!("[j]\nsize=1g\n{lines}\n"), "j") {
        Ok(mut file) => file.jobs.remove(0),
        Err(e) => panic!("refused: {e}\n{lines}"),
    }
}

/// Shares of a split, in the order of the option.
fn shares(split: &str) -> Vec<(u32, u8)> {
    match job(&format!("bssplit={split}")).bs.read {
        BlockSize::Split(parts) => parts.into_iter().map(|(bytes, percent)| (bytes >> 10, percent)).collect(),
        other => panic!("{other:?}"),
    }
}

/// Percentages of calls in logs of 100 MiB each.
//= fio-3.33: bssplit, seen in logs of offsets
#[test]
fn percentages_of_a_split_need_not_add_up() {
    assert_eq!(shares("4k/49:16k/49"), [(4, 49), (16, 51)]);
    assert_eq!(shares("16k/49:4k/49"), [(16, 49), (4, 51)]);
    assert_eq!(shares("4k/51:16k/51"), [(4, 51), (16, 49)]);
    assert_eq!(shares("4k/20:16k/10"), [(4, 90), (16, 10)]);
    assert_eq!(shares("4k/80:16k/60"), [(4, 40), (16, 60)]);
    assert_eq!(shares("4k/30:8k/40:16k/50"), [(4, 30), (8, 40), (16, 30)]);
    assert_eq!(shares("4k/120:16k/10"), [(4, 90), (16, 10)]);
    assert_eq!(shares("4k/0:16k/0"), [(4, 50), (16, 50)]);
    assert_eq!(shares("4k/0:8k:16k/10"), [(4, 45), (8, 45), (16, 10)]);
    assert_eq!(shares("4k/60:8k/60:16k"), [(4, 0), (8, 0), (16, 100)]);
    assert_eq!(shares("12k-16k/50:4k/50"), [(12, 50), (4, 50)]);
    assert_eq!(shares("12k-16k:4k"), [(12, 50), (4, 50)]);
    assert_eq!(shares("4k/30:16k/60:"), [(4, 30), (16, 70)]);
}

#[test]
fn an_offset_may_be_none_of_the_target() {
    assert_eq!(job("offset=0%").offset, Size::Bytes(0));
    assert_eq!(job("offset=00 %").offset, Size::Bytes(0));
    assert_eq!(job("offset_increment=0%").offset_increment, Size::Bytes(0));
    assert_eq!(job("offset=25%\noffset_align=1m").offset_align, 1 << 20);
}

#[test]
fn large_trims_are_calls() {
    let job = job("filename=/dev/sdx\nrw=trim\nbs=2g\nsize=4g\ndirect=1");
    assert_eq!(job.bs.trim, BlockSize::Fixed(1 << 31));
}

#[test]
fn files_may_be_made_without_a_call() {
    let job = job("rw=write\ncreate_only=1\nend_fsync=1");
    assert_eq!((job.number_ios, job.end_fsync), (Some(0), false));
    let text = "[j]\nsize=1g\nrw=randwrite\nioengine=libaio\ndirect=1\niodepth=4\nserialize_overlap=1\n";
    assert!(parse(text, "j").is_ok(), "no two calls are to the same place");
    let error = parse(&format!("{text}norandommap\n"), "j").unwrap_err().to_string();
    assert!(error.starts_with("j:7: serialize_overlap holds calls back"), "{error}");
}

#[test]
fn files_have_the_names_of_their_format() {
    let names = |format: &str| job(&format!("nrfiles=2\nfilename_format={format}")).file_names(3);
    assert_eq!(names("f.$jobnum.$filenum"), ["f.3.0", "f.3.1"]);
    assert_eq!(names("$jobname.$filenum.$foo"), ["j.0.$foo", "j.1.$foo"]);
    assert_eq!(names("$clientuid.x"), [".x", ".x"], "one file");
    let text = "[make]\nsize=1m\nfilename_format=f.$jobnum\nnumjobs=2\n[look]\nfilename=f.1\n";
    assert!(parse(text, "j").is_ok(), "a job above makes the file");
}

#[test]
fn a_file_may_have_several_calls_in_a_row() {
    let of = |line: &str| {
        let job = job(&format!("nrfiles=8\n{line}"));
        (job.file_service, job.file_run, job.open_files)
    };
    assert_eq!(of("file_service_type=random:4\nopenfiles=2"), (FileService::Random, 4, 2));
    assert_eq!(of("file_service_type=roundrobin:3"), (FileService::RoundRobin, 3, 0));
    assert_eq!(of("file_service_type=sequential:2"), (FileService::Sequential, 1, 0));
    let sizes = |value: &str| {
        let job = job(&format!("filesize={value}"));
        (job.filesize, job.filesize_max)
    };
    assert_eq!(sizes("16k-16k"), (Some(Size::Bytes(16384)), None));
    for range in ["16k-64k", "16k:64k", "16k,64k"] {
        assert_eq!(sizes(range), (Some(Size::Bytes(16384)), Some(65536)), "{range}");
    }
}

#[test]
fn distributions_have_a_center() {
    let of = |value: &str| {
        let job = job(&format!("rw=randread\nrandom_distribution={value}"));
        (job.distribution, job.random_center)
    };
    assert_eq!(of("zipf:1.2:0.5"), (Distribution::Zipf(1.2), Some(0.5)));
    assert_eq!(of("zipf:1.2:-1"), (Distribution::Zipf(1.2), None));
    assert_eq!(of("zipf"), (Distribution::Zipf(1.1), None));
    assert_eq!(of("pareto"), (Distribution::Pareto(0.2), None));
    assert_eq!(of("normal:20:0"), (Distribution::Normal(20.0), Some(0.0)));
}

#[test]
fn what_a_disk_cannot_tell_is_taken() {
    let lines = "iomem_align=4096\nverifysort=1\nverifysort_nr=5\nverify_async_cpus=0\nexec_prerun=true";
    let file = parse(&format!("[j]\nsize=1m\n{lines}\nmem_align=512\n"), "j").unwrap();
    assert_eq!(
        file.notes,
        [
            "ignored: iomem_align, verifysort, verifysort_nr, verify_async_cpus, exec_prerun (no effect in a simulation)"
        ]
    );
}

#[test]
fn what_was_written_is_verified() {
    assert_eq!(job("rw=write\nverify=crc32c").verify, Some(Verify { backlog: None, batch: 1 }));
    let backlog = job("rw=write\nverify=md5\nverify_backlog=8").verify;
    assert_eq!(backlog, Some(Verify { backlog: Some(8), batch: 8 }));
    let batch = job("rw=rw\nverify_pattern=0xff\nverify_backlog=8\nverify_backlog_batch=2").verify;
    assert_eq!(batch, Some(Verify { backlog: Some(8), batch: 2 }));
    for none in ["rw=read\nverify=md5", "rw=write\nverify=0", "rw=write\nverify=md5\ndo_verify=0"] {
        assert_eq!(job(none).verify, None, "{none}");
    }
}

#[test]
fn reports_have_the_percentiles_that_are_asked_for() {
    let of = |lines: &str| job(lines).percentiles;
    assert_eq!(of(""), Percentiles { list: None, of_completion: true, of_all: false });
    assert_eq!(of("percentile_list=99:50:0").list, Some(vec![50.0, 99.0]));
    let whole = of("lat_percentiles=1\nclat_percentiles=0\nslat_percentiles=1");
    assert_eq!((whole.of_completion, whole.of_all), (false, true));
    assert_eq!(job("unified_rw_reporting=both").unified, Unified::Both);
    assert_eq!(job("unified_rw_reporting=1").unified, Unified::Mixed);
}

fn with_files(text: &str, files: &[(&str, &str)]) -> Result<JobFile, String> {
    let read = |name: &str| {
        let found = files.iter().find(|f| f.0 == name);
        found.map(|f| f.1.as_bytes().to_vec()).ok_or_else(|| format!("cannot read '{name}'"))
    };
    let around = Surroundings { include: Some(&read), ..Surroundings::NONE };
    parse_in(text, "j", &around).map_err(|e| e.to_string())
}

#[test]
fn options_of_other_files_are_included() {
    let files = [
        ("g.inc", "bs=16k\nsize=256k\n"),
        ("n.inc", "# more\ninclude g.inc\n"),
        ("me.inc", "include me.inc\n"),
        ("s.inc", "\n[c]\n"),
        ("w.inc", "bs=8k\nbs=x\n"),
    ];
    for text in ["[a]\ninclude g.inc\n[b]\ninclude=n.inc ; twice\n", "[global]\ninclude g.inc\n[a]\n[b]\n"] {
        let file = with_files(text, &files).unwrap();
        assert!(file.jobs.iter().all(|j| j.bs.read.max_bytes() == 16384), "{text}");
    }
    for (text, message) in [
        ("[a]\ninclude none.inc\n", "j:2: cannot read 'none.inc'"),
        ("[a]\ninclude me.inc\n", "files include each other without an end"),
        (
            "[a]\nsize=1m\ninclude s.inc\n",
            "j:3: in the included 's.inc', line 2: an included file begins no section; put its options there alone",
        ),
        (
            "include g.inc\n[a]\n",
            "j:1: 'include g.inc' is outside a section; put it below [global] or a job's [name]",
        ),
        ("[a]\ninclude w.inc\n", "j:2: in the included 'w.inc', line 2: 'bs=x' is not a size"),
    ] {
        let said = with_files(text, &files).unwrap_err();
        assert!(said.contains(message) && !said.contains('\n'), "{text}: {said}");
    }
}

/// One note for all jobs that it is about.
#[test]
fn a_note_about_several_jobs_is_there_once() {
    let text = "[global]\nsize=1m\nrw=read\nbs=4k\n#!fh_workload=dbscan\n[a]\n[b]\n[c]\n[d]\n[e]\n";
    let notes = parse(text, "j").unwrap().notes;
    assert_eq!(notes, ["jobs 'a', 'b', 'c' and 2 more: fh_workload decides what is done; not used: rw, bs"]);
}

#[test]
fn a_share_is_one_of_a_file_that_a_job_above_makes() {
    let made = "[m]\nrw=write\nfilename=q\nsize=64k\n[b]\nstonewall\nfilename=q\nsize=25%\n";
    assert!(parse(made, "j").is_ok());
    assert!(parse("[b]\nfilename=q\nsize=25%\nfilesize=1m\n", "j").is_ok());
    let error = parse("[b]\nfilename=q\nsize=25%\n[m]\nfilename=q\nsize=64k\n", "j").unwrap_err();
    assert_eq!(
        error.to_string(),
        "j:1: job 'b': size=25% is a share of its file, and no job above it makes its file 'q'; write a size such as size=1g, or filesize= beside it"
    );
}

#[test]
fn options_are_kept_as_they_are_written() {
    let text = "[global]\nreadwrite=read\ngroup_reporting\nbs=8k\n[a]\nsize=1m\nsize=2m\ntime_based=0\n[b]\nsize=4k\nbs=4k\n";
    let file = parse(text, "j").unwrap();
    let own = |v: &[(&'static str, &str)]| v.iter().map(|(k, v)| (*k, (*v).to_owned())).collect::<Vec<_>>();
    assert_eq!(file.written.global, own(&[("rw", "read"), ("bs", "8k")]));
    assert_eq!(file.written.jobs[&file.jobs[0].line], own(&[("size", "2m"), ("time_based", "0")]));
    assert_eq!(file.written.jobs[&file.jobs[1].line], own(&[("size", "4k"), ("bs", "4k")]));
}
