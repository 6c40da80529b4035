//! Job files, drawn from the options that the lab obeys.
//!
//! Left out is what docs/job-files.md lists under *Where fio and Fairhead differ*, and what has no result
//! that could be compared: a pattern that runs for a time without pauses does as much as the disk allows.

use fairhead_sim::rng::Rng;
use std::fmt::Write as _;

/// The job file of a seed.
pub(super) fn job_file(seed: u64) -> String {
    let mut d = Draw { rng: Rng::new(seed, "fio_differential"), text: String::from("[global]\n") };
    let jobs = d.one_of(&[1, 1, 1, 2, 2, 3]);
    // One kind of time for a file: real time is short.
    let timed = d.chance(35);
    let exits = timed && jobs > 1 && d.chance(15);
    if d.chance(15) {
        d.line("group_reporting", "");
    }
    let shared = jobs > 1 && d.chance(20);
    for i in 0..jobs {
        writeln!(d.text, "[{}]", ["a", "b", "c"][i]).expect("a string");
        d.section(Section { first: i == 0, timed, exits, shared });
    }
    d.text
}

#[derive(Clone, Copy)]
struct Section {
    first: bool,
    timed: bool,
    exits: bool,
    shared: bool,
}

struct Draw {
    rng: Rng,
    text: String,
}

/// What has been drawn for a job, as far as other options hang on it.
struct Job {
    mixed: bool,
    random: bool,
    writes: bool,
    /// Block sizes of reads and writes are the same.
    block: u64,
    /// Lengths are drawn.
    lengths: bool,
    size: u64,
    /// The file has no rest behind its last block.
    whole_blocks: bool,
    /// Several calls are in flight.
    deep: bool,
    /// There is a ramp. When it is over, fio forgets how far it is in a zone.
    ramps: bool,
    /// A job ends others.
    exits: bool,
    /// There are several files. fio has no rule for how their zones continue together.
    files: bool,
    timed: bool,
}

impl Draw {
    fn chance(&mut self, percent: u8) -> bool {
        self.rng.percent(percent)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.rng.below(all.len() as u64)).unwrap_or(0)]
    }

    /// A number from `low` to `high`.
    fn number(&mut self, low: u64, high: u64) -> u64 {
        low + self.rng.below(high - low + 1)
    }

    fn line(&mut self, key: &str, value: impl std::fmt::Display) {
        let value = value.to_string();
        let is = if value.is_empty() { "" } else { "=" };
        writeln!(self.text, "{key}{is}{value}").expect("a string");
    }

    fn section(&mut self, s: Section) {
        let rw = self.one_of(&["read", "read", "write", "randread", "randwrite", "rw", "randrw"]);
        self.line("rw", rw);
        let direct = self.chance(30);
        if direct {
            self.line("direct", 1);
        }
        let mut job = Job {
            mixed: rw.ends_with("rw"),
            random: rw.starts_with("rand"),
            writes: rw.ends_with("write") || rw.ends_with("rw"),
            block: 4096,
            lengths: false,
            size: 0,
            whole_blocks: true,
            deep: false,
            ramps: false,
            exits: s.exits,
            files: false,
            timed: s.timed && (s.first || self.chance(70)),
        };
        self.blocks(&mut job, direct);
        self.sizes(&mut job, direct, s);
        self.engine(&mut job, direct);
        if job.timed {
            self.times(&mut job);
        } else {
            self.amounts(&job);
        }
        self.patterns(&job);
        // What others write into the file, fio takes for an error.
        let is_alone = !s.shared && !job.timed && !job.deep && !job.lengths;
        // Where blocks may repeat, and in a mix, it is chance how many are read again.
        let section = self.text.rsplit('[').next().unwrap_or("");
        let repeats = section.contains("norandommap") || section.contains("random_distribution");
        if is_alone && !repeats && job.writes && !job.mixed && self.chance(20) {
            self.verify();
        }
        self.syncs(&job);
        self.order(&job, s);
        self.processors();
    }

    fn blocks(&mut self, job: &mut Job, direct: bool) {
        let sizes: &[u64] =
            if direct { &[512, 4096, 8192, 16384] } else { &[1000, 3000, 4096, 4096, 8192, 20480] };
        job.block = self.one_of(sizes);
        let (block, most) = (job.block, job.block * self.number(2, 6));
        match self.number(0, 99) {
            // With a map of visited blocks, fio confuses blocks of two sizes.
            0..=9 if job.mixed && !job.random => {
                self.line("bs", format!("{block},{}", block * 2));
                job.lengths = true;
            }
            10..=19 => {
                self.line("bsrange", format!("{block}-{most}"));
                job.lengths = true;
            }
            20..=29 => {
                let share = self.number(10, 90);
                // They need not add up.
                let other = if self.chance(30) { self.number(5, 95) } else { 100 - share };
                self.line("bssplit", format!("{block}/{share}:{most}/{other}"));
                job.lengths = true;
            }
            _ => self.line("bs", block),
        }
    }

    fn sizes(&mut self, job: &mut Job, direct: bool, s: Section) {
        let blocks = self.number(1, 24);
        let rest = if self.chance(30) { self.rng.below(job.block) } else { 0 };
        job.size = blocks * job.block + if direct { rest / 512 * 512 } else { rest };
        if job.lengths {
            job.size = job.size.max(job.block * 8);
        }
        self.line("size", job.size);
        job.whole_blocks = job.size.is_multiple_of(job.block);
        let unit = if direct { 512 } else { self.one_of(&[1000, 4096, 16384]) };
        if self.chance(20) {
            let offset = unit * self.number(1, 20);
            self.line("offset", offset);
        } else if self.chance(5) {
            self.line("offset", "0%");
        }
        if s.shared {
            self.line("filename", "shared");
        } else if self.chance(15) {
            let files = self.number(2, 4);
            if job.size / files >= job.block && job.size.is_multiple_of(files) {
                self.line("nrfiles", files);
                job.files = true;
                job.whole_blocks = (job.size / files).is_multiple_of(job.block);
                let service = self.one_of(&["roundrobin", "roundrobin", "sequential", "random"]);
                let calls = if self.chance(30) { format!(":{}", self.number(2, 4)) } else { String::new() };
                self.line("file_service_type", format!("{service}{calls}"));
                if self.chance(25) {
                    let open = self.number(1, files);
                    self.line("openfiles", open);
                }
                if self.chance(20) {
                    self.line("filename_format", "f.$jobname.$jobnum.$filenum");
                }
            }
        } else if self.chance(12) {
            self.line("filesize", (job.size * 2).next_multiple_of(512) + 512 * 64);
            job.whole_blocks = false;
        }
        if self.chance(20) {
            let clones = self.number(2, 3);
            self.line("numjobs", clones);
            if self.rng.percent(40) {
                let increment = unit * self.number(1, 30);
                self.line("offset_increment", increment);
            }
        }
    }

    fn engine(&mut self, job: &mut Job, direct: bool) {
        let engine = self
            .one_of(&["", "", "", "sync", "vsync", "pvsync2", "libaio", "libaio", "io_uring", "io_uring"]);
        if engine.is_empty() {
            return;
        }
        self.line("ioengine", engine);
        if engine == "io_uring" || engine == "libaio" && direct {
            let depth = self.one_of(&[1, 2, 4, 8]);
            self.line("iodepth", depth);
            job.deep = depth > 1;
        }
    }

    /// How much is done, of what takes no time.
    fn amounts(&mut self, job: &Job) {
        if self.chance(20) {
            let more = self.number(1, 3 * job.size);
            self.line("io_size", more.max(job.block).next_multiple_of(512));
        }
        if self.chance(20) {
            let loops = self.number(2, 3);
            self.line("loops", loops);
        }
        if self.chance(20) {
            let calls = self.number(1, 30);
            self.line("number_ios", calls);
        }
    }

    /// Pauses and rates: each file takes less than a second.
    fn times(&mut self, job: &mut Job) {
        let calls = self.number(5, 30);
        let forever = self.chance(30);
        if forever {
            let ms = self.number(300, 600);
            self.line("time_based", "");
            self.line("runtime", format!("{ms}ms"));
        } else {
            self.line("number_ios", calls);
            if self.chance(30) {
                let ms = self.number(100, 500);
                self.line("runtime", format!("{ms}ms"));
            }
        }
        // fio forgets think times when the ramp is over, and ends a job if the ramp is over with the file.
        let blocks = job.size / job.block;
        let ramps = forever && !job.exits && !job.lengths && blocks > 3 && self.chance(25);
        job.ramps = ramps;
        if ramps || self.chance(50) {
            let calls_per_s = self.number(30, 100);
            if ramps {
                // Over in the middle of the file's first loop, in which there are `calls_per_s` of each
                // direction.
                let directions = if job.mixed { 2 } else { 1 };
                let ms = (500 * blocks / (calls_per_s * directions)).min(200);
                self.line("ramp_time", format!("{ms}ms"));
            }
            let list = |d: &mut Self, per: u64| match d.number(0, 2) {
                0 if job.mixed => format!("{},{}", per, per / 2),
                _ => per.to_string(),
            };
            if self.chance(50) {
                let value = list(self, calls_per_s);
                self.line("rate_iops", value);
            } else {
                let value = list(self, calls_per_s * job.block);
                self.line("rate", value);
            }
        }
        if !ramps && (self.chance(60) || !self.text.rsplit('[').next().unwrap_or("").contains("rate")) {
            let blocks = self.one_of(&[1, 1, 1, 2, 3, 5]);
            let most = if forever { 40 } else { (600 * blocks / calls).clamp(3, 40) };
            let ms = self.number(2, most);
            self.line("thinktime", format!("{ms}ms"));
            if blocks > 1 {
                self.line("thinktime_blocks", blocks);
            }
            if self.chance(20) {
                self.line("thinktime_spin", format!("{}us", ms * 300));
            }
        }
    }

    fn patterns(&mut self, job: &Job) {
        if job.mixed && self.chance(60) {
            let percent = self.one_of(&[0, 10, 30, 70, 80, 95, 100]);
            self.line("rwmixread", percent);
        }
        if self.chance(15) {
            let percent = self.number(0, 100);
            self.line("percentage_random", percent);
        }
        if job.random && self.chance(20) {
            self.line("norandommap", "");
        }
        // A last block that does not fit ends a job with a skewed distribution, by chance; so do random calls
        // in zones.
        if job.random && job.whole_blocks && self.chance(20) {
            let how = self.one_of(&["zipf:1.2", "pareto:0.3", "normal:20"]);
            self.line("random_distribution", how);
        } else if !job.random && !job.lengths && !job.ramps && !job.files && self.chance(8) {
            let zone = self.number(1, 4) * 4096;
            self.line("zonemode", "strided");
            self.line("zonesize", zone);
            self.line("zonerange", zone);
            let skip = self.number(0, 3) * 4096;
            self.line("zoneskip", skip);
        }
    }

    /// What is written is read again.
    fn verify(&mut self) {
        let how = self.one_of(&["crc32c", "md5", "null", "pattern"]);
        self.line("verify", how);
        if how == "pattern" {
            self.line("verify_pattern", "0xff");
        }
        if self.chance(40) {
            let backlog = self.number(1, 6);
            self.line("verify_backlog", backlog);
            if self.chance(50) {
                let batch = self.number(1, backlog);
                self.line("verify_backlog_batch", batch);
            }
        }
        if self.chance(15) {
            self.line("do_verify", 0);
        }
    }

    fn syncs(&mut self, job: &Job) {
        if !job.writes {
            return;
        }
        for key in ["fsync", "fdatasync"] {
            // fio syncs with all calls that are free, and counts each for number_ios.
            if !job.deep && self.chance(15) {
                let every = self.number(1, 6);
                self.line(key, every);
            }
        }
        for key in ["end_fsync", "fsync_on_close"] {
            if self.chance(10) {
                self.line(key, 1);
            }
        }
        if self.chance(10) {
            let how = self.one_of(&["sync", "dsync"]);
            self.line("sync", how);
        }
    }

    /// Draws which jobs wait for which others, and which are reported together.
    fn order(&mut self, job: &Job, s: Section) {
        if s.first {
            if s.exits {
                self.line("exitall", "");
            }
        } else if self.chance(30) {
            let wall = self.one_of(&["stonewall", "wait_for_previous"]);
            self.line(wall, "");
        } else {
            if self.chance(30) {
                self.line("new_group", "");
            }
            // With exitall, fio can wait for ever for what has not begun.
            if s.timed && !s.exits && self.chance(30) {
                let ms = self.number(20, 300);
                self.line("startdelay", format!("{ms}ms"));
            }
        }
        if self.chance(15) {
            self.line("group_reporting", "");
        }
        // Without a seed, fio draws the same kinds and lengths in each pass over a file in sequence that ends
        // in a part of a block.
        let repeats = !job.random && (job.mixed && !job.whole_blocks || job.lengths);
        if self.chance(10) || repeats {
            let seed = self.number(1, 1000);
            // With 251, fio begins with thirteen reads of a mix and with small lengths, in each run.
            self.line("randseed", if seed == 251 { 1251 } else { seed });
        }
        debug_assert!(job.block > 0);
    }

    /// Which processors clones share or have to themselves: of those that this machine has, as fio refuses
    /// others.
    fn processors(&mut self) {
        if !self.chance(25) {
            return;
        }
        let last = std::thread::available_parallelism().map_or(0, |n| n.get().min(4) - 1);
        let cpu = self.number(0, last as u64);
        let list = match self.number(0, 2) {
            0 => cpu.to_string(),
            1 => format!("{cpu}-{last}"),
            _ => format!("{last},{cpu}"),
        };
        self.line("cpus_allowed", list);
        if self.chance(60) {
            let policy = self.one_of(&["shared", "split", "split"]);
            self.line("cpus_allowed_policy", policy);
        }
    }
}
