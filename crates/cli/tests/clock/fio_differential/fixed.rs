//! Job files that fio and the lab once did differently, each with the reason.

/// What it is about, and the file.
pub(super) const CASES: &[(&str, &str)] = &[
    (
        "a think time stops the job and not one of its calls in flight",
        "[a]\nrw=read\nsize=400k\nbs=4k\ndirect=1\nioengine=libaio\niodepth=4\nthinktime=20ms\nnumber_ios=30\n",
    ),
    (
        "a think time after several of the calls in flight",
        "[a]\nrw=read\nsize=400k\nbs=4k\nioengine=io_uring\niodepth=8\nthinktime=20ms\nthinktime_blocks=3\nnumber_ios=40\n",
    ),
    ("each direction has its own position", "[a]\nrw=rw\nsize=256k\nbs=4k\n"),
    ("data begin at the offset, and the file is longer", "[a]\nrw=read\noffset=128k\nsize=256k\nbs=16k\n"),
    (
        "clones have offsets of their own",
        "[a]\nrw=write\noffset_increment=128k\nnumjobs=4\nsize=128k\nbs=16k\n",
    ),
    (
        "exitall in one job ends all of its group",
        "[a]\nrw=read\nsize=1m\nbs=4k\nthinktime=10ms\nnumber_ios=20\n[b]\nexitall\nrw=read\nsize=1m\nbs=4k\nthinktime=10ms\n\
         [c]\nnew_group\nrw=read\nsize=1m\nbs=4k\nthinktime=10ms\nnumber_ios=40\n",
    ),
    (
        "a rate for each direction",
        "[a]\nrw=rw\nsize=400k\nbs=4k\nrate_iops=40\nrwmixread=80\nnumber_ios=24\n",
    ),
    ("two rates", "[a]\nrw=randrw\nsize=400k\nbs=4k\nrate_iops=40,20\nnumber_ios=24\n"),
    ("a rate of one direction", "[a]\nrw=rw\nsize=400k\nbs=4k\nrate_iops=40,\nnumber_ios=12\n"),
    (
        "a rate with several calls in flight",
        "[a]\nrw=read\nsize=400k\nbs=4k\nioengine=io_uring\niodepth=4\nrate=400k\nnumber_ios=40\n",
    ),
    (
        "rate_iops is of the smallest block",
        "[a]\nrw=write\nsize=400k\nbssplit=4k/50:16k/50\nrate_iops=100\nnumber_ios=20\n",
    ),
    ("number_ios is of each loop", "[a]\nrw=read\nsize=64k\nbs=4k\nnumber_ios=10\nloops=3\n"),
    (
        "number_ios does not end what is time_based",
        "[a]\nrw=read\nsize=64k\nbs=8k\nnumber_ios=5\ntime_based\nthinktime=20ms\nruntime=400ms\n",
    ),
    ("what is sequential stays so", "[a]\nrw=read\nsize=256k\nbs=4k\npercentage_random=30\n"),
    ("what is random jumps so often", "[a]\nrw=randread\nsize=256k\nbs=4k\npercentage_random=30\n"),
    ("a block that does not fit is left out", "[a]\nrw=read\nsize=1000k\nbs=64k\n"),
    ("the same at random", "[a]\nrw=randread\nsize=1000k\nbs=64k\n"),
    ("the same at random, where blocks may repeat", "[a]\nrw=randread\nsize=1000k\nbs=64k\nnorandommap\n"),
    ("lengths that fit are drawn", "[a]\nrw=write\nsize=90k\nbsrange=4k-16k\n"),
    ("lengths from a list that fit", "[a]\nrw=write\nsize=101k\nbssplit=4k/50:64k/50\n"),
    ("random lengths cover the file once", "[a]\nrw=randread\nsize=200k\nbssplit=4k/50:64k/50\n"),
    ("blocks that are no sectors", "[a]\nrw=read\nsize=100000\nbs=1000\n"),
    ("the same behind an offset", "[a]\nrw=write\nsize=100k\nbs=1000\noffset=7000\n"),
    (
        "a shared file is as large as its last user needs",
        "[a]\nrw=read\nsize=64k\nbs=16k\nfilename=f\n[b]\nrw=read\nsize=128k\nbs=16k\nfilename=f\nstonewall\n",
    ),
    (
        "and as its first user needs",
        "[a]\nrw=read\nsize=128k\nbs=16k\nfilename=f\n[b]\nrw=read\nsize=64k\nbs=16k\nfilename=f\n",
    ),
    (
        "in a larger file more is read than the size",
        "[a]\nrw=read\nfilesize=256k\nsize=64k\noffset=16k\nio_size=400k\nbs=16k\n",
    ),
    ("in a file of the size it is read again", "[a]\nrw=read\nsize=64k\noffset=16k\nio_size=160k\nbs=16k\n"),
    (
        "with calls in flight the larger file is read from its start again",
        "[a]\nrw=read\nfilesize=256k\nsize=64k\nloops=2\nbs=16k\ndirect=1\nioengine=libaio\niodepth=1\n",
    ),
    ("but not for less than a block", "[a]\nrw=read\nsize=64k\nio_size=140k\nbs=16k\n"),
    ("files take turns from the first", "[a]\nrw=read\nnrfiles=3\nsize=96k\nbs=4k\n"),
    ("a due sync after the last write is left out", "[a]\nrw=write\nsize=40k\nbs=4k\nfsync=5\n"),
    ("files are synced at the end of each loop", "[a]\nrw=write\nsize=40k\nbs=4k\nloops=2\nend_fsync=1\n"),
    (
        "a delay counts from the start of the run",
        "[a]\nrw=read\nsize=16k\nbs=4k\nthinktime=50ms\n[b]\nstonewall\nrw=read\nsize=16k\nbs=4k\nstartdelay=100ms\n",
    ),
    (
        "what has no size takes the file that is there",
        "[a]\nrw=write\nfilename=f\noffset=16k\nsize=32k\nbs=4k\n[b]\nstonewall\nrw=read\nfilename=f\nbs=8k\noffset=8k\n",
    ),
    (
        "files that are done one after the other take turns when time is left",
        "[a]\nrw=read\nsize=16k\nnrfiles=2\nfile_service_type=sequential\nbs=4k\ntime_based\nruntime=200ms\nthinktime=8ms\n",
    ),
    ("what has no size and no file is refused", "[a]\nrw=read\nfilename=f\nbs=8k\n"),
    (
        "a steady state ends a job",
        "[a]\nrw=read\nsize=1m\nbs=4k\nrate_iops=50\ntime_based\nruntime=8s\nss=iops:30%\nss_dur=3\n",
    ),
    (
        "a steady state is looked for behind its ramp",
        "[a]\nrw=write\nsize=1m\nbs=4k\nrate=200k\ntime_based\nruntime=8s\nss=bw_slope:30%\nss_dur=2s\nss_ramp=1\n",
    ),
    (
        "a reporting group is steady as one, and those that have ended do not count",
        "[global]\nsize=1m\nbs=4k\ntime_based\ngroup_reporting\nss=iops_slope:15%\nss_dur=3\n[a]\nrate_iops=90\nruntime=1500ms\n\
         [b]\nrate_iops=30\nruntime=9s\n",
    ),
    (
        "rates count anew after the ramp",
        "[a]\nrw=read\nsize=1m\nbs=4k\nrate_iops=50\nramp_time=200ms\ntime_based\nruntime=400ms\n",
    ),
    (
        "a share is one of the file that a job above has made",
        "[m]\nrw=write\nfilename=q\nbs=4k\nsize=64k\n[b]\nstonewall\nrw=read\nfilename=q\nbs=4k\nsize=25%\noffset=50%\n\
         [c]\nstonewall\nrw=write\nfilename=q\nbs=4k\nsize=100%\noffset=32k\n",
    ),
    ("a share of a filesize", "[a]\nrw=read\nbs=4k\nfilesize=1m\nsize=75%\noffset=512k\n"),
    ("a share without a file is refused", "[a]\nrw=read\nbs=4k\nsize=25%\n"),
    ("what was written is read again", "[a]\nrw=write\nbs=4k\nsize=64k\nverify=crc32c\nloops=2\n"),
    (
        "what was written is read again after some writes",
        "[a]\nrw=write\nbs=4k\nsize=64k\nverify=crc32c\nverify_backlog=4\nverify_backlog_batch=2\n",
    ),
    ("verify and more than the size", "[a]\nrw=write\nbs=4k\nsize=64k\nverify=md5\nio_size=128k\n"),
    (
        "verify between writes and more than the size",
        "[a]\nrw=randwrite\nbs=4k\nsize=64k\nverify=md5\nverify_backlog=2\nio_size=176k\n",
    ),
    (
        "number_ios counts reads between writes",
        "[a]\nrw=write\nbs=4k\nsize=92k\nnumber_ios=14\nverify=crc32c\nverify_backlog=2\n",
    ),
    (
        "a file that begins again has another one's turn first",
        "[a]\nrw=read\nbs=3000\nsize=18000\nnrfiles=3\nfile_service_type=roundrobin:4\ntime_based\nruntime=400ms\nrate_iops=40\n",
    ),
    (
        "of several files, two are in use, for three calls each",
        "[a]\nrw=read\nbs=4k\nsize=128k\nnrfiles=4\nopenfiles=2\nfile_service_type=roundrobin:3\n",
    ),
    ("a share of a new file is its beginning", "[a]\nrw=read\nbs=4k\nsize=64k\noffset=50%\n"),
    (
        "a share of a file that others make is of what they make",
        "[m]\nrw=write\nfilename=q\nbs=4k\nsize=64k\n[b]\nstonewall\nrw=read\nfilename=q\nbs=4k\nsize=64k\noffset=50%\n",
    ),
    (
        "files are made, and no call",
        "[a]\nrw=write\nbs=4k\nsize=64k\ncreate_only=1\n[b]\nstonewall\nrw=read\nbs=4k\nsize=64k\n",
    ),
    ("an offset of nothing", "[a]\nrw=read\nbs=4k\nsize=64k\noffset=0%\n"),
    (
        "files of another name",
        "[a]\nrw=write\nbs=4k\nsize=64k\nnrfiles=2\nnumjobs=2\nfilename_format=f.$jobnum.$filenum\n",
    ),
    ("a split below 100 percent", "[a]\nrw=write\nbssplit=4k/20:16k/10\nsize=400k\n"),
];
