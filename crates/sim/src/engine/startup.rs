//! Application start-up: a chain of cold reads, each of which waits for the one before, with computing in
//! between.
//!
//! ```text
//!   CPU gap ─► read ─► CPU gap ─► read ─► …        about half of the reads jump, the others continue
//!                        └─► burst: 29 blocks behind it, sent for without waiting
//! ```
//!
//! Nothing of it can be hurried by a deeper queue: the start-up time is the number of reads times what each
//! has to wait. Twenty readers that keep 4 MB queued ahead of each read make an xterm that takes 0.2 s alone
//! take 2 s.
//!
//! What is drawn: the order of the sizes, which reads jump, which send for a burst, and where the pieces lie.
//! What is not: how many reads of each size there are, how many jump, how much is computed: those are the
//! profile's. All pieces are apart, so that every read of a start-up is cold. A repetition reads the same
//! blocks again, after the page cache has been dropped.
//!
//! What it does not do: a second process (the trace of xterm has 86 requests of the X server), writes, and
//! libraries that happen to be in memory.
//
//= docs/reference/hosts.md#application-start-up
//= docs/reference/benchmarks.md#3-start-up-latency (iterations, pause, time-out)
//= docs/reference/benchmarks.md#4-replayed-start-ups (read-ahead requests by trace)

use super::program::{Step, Turn};
use crate::job::Application;
use crate::metrics::StartUp;
use crate::rng::Rng;
use fairhead_core::{Duration, Instant};

/// Bytes over which the pieces of an application are spread unless `size` says otherwise: its share of a
/// system's installed files. In the trace of xterm half of the jumps are shorter than 0.6 GB.
const SPREAD_BYTES: u64 = 4 << 30;
/// Blocks of 4 KiB in a burst of read-ahead.
//= docs/reference/hosts.md#application-start-up: bursts of about 29
const BURST_BLOCKS: u32 = 29;
const BLOCK_SECTORS: u32 = 8;
const KIB_SECTORS: u32 = 2;

/// Reads of one class: how many, and their sizes in KiB by turns.
type Class = (u32, &'static [u32]);

/// The classes in which the counts are published. The sizes within are those of xterm's trace, in about its
/// proportions.
const KIB_4: &[u32] = &[4];
const KIB_8_TO_16: &[u32] = &[8, 12, 16, 16, 16];
const KIB_17_TO_32: &[u32] = &[20, 28, 32, 32];
const KIB_33_TO_64: &[u32] = &[44, 56, 64, 64];
const KIB_65_TO_127: &[u32] = &[68, 72, 76, 80, 104];
const KIB_128: &[u32] = &[128];

/// What an application does when it starts.
struct Profile {
    reads: &'static [Class],
    /// Percent of the reads that do not continue the one before.
    jump_pct: u32,
    /// CPU time in all.
    cpu: Duration,
    /// How many reads send for a burst.
    bursts: u32,
}

/// The recommended mix: 60 % of 4 KiB, 15 % of 16 KiB, 10 % of 64 KiB, 15 % of 128 KiB.
macro_rules! mix {
    ($reads:literal) => {
        &[
            ($reads * 60 / 100, KIB_4),
            ($reads * 15 / 100, &[16]),
            ($reads * 10 / 100, &[64]),
            ($reads * 15 / 100, KIB_128),
        ]
    };
}

const fn profile(application: Application) -> Profile {
    match application {
        // 164 reads; 554 read-ahead requests.
        Application::Xterm => Profile {
            reads: &[
                (89, KIB_4),
                (37, KIB_8_TO_16),
                (8, KIB_17_TO_32),
                (7, KIB_33_TO_64),
                (14, KIB_65_TO_127),
                (9, KIB_128),
            ],
            jump_pct: 55,
            cpu: Duration::from_ms(175),
            bursts: 19,
        },
        // 789 reads; 1992 read-ahead requests. The share of jumps is xterm's, the CPU time as much per read
        // as in the mean of xterm and oowriter: no trace has either.
        Application::GnomeTerminal => Profile {
            reads: &[
                (554, KIB_4),
                (104, KIB_8_TO_16),
                (28, KIB_17_TO_32),
                (26, KIB_33_TO_64),
                (55, KIB_65_TO_127),
                (22, KIB_128),
            ],
            jump_pct: 55,
            cpu: Duration::from_ms(720),
            bursts: 69,
        },
        // 606 reads; 662 read-ahead requests. The CPU time is that of oowriter, which it descends from.
        Application::LoWriter => Profile {
            reads: &[
                (136, KIB_4),
                (57, KIB_8_TO_16),
                (19, KIB_17_TO_32),
                (28, KIB_33_TO_64),
                (117, KIB_65_TO_127),
                (249, KIB_128),
            ],
            jump_pct: 53,
            cpu: Duration::from_ms(680),
            bursts: 23,
        },
        // Bursts in lowriter's proportion.
        Application::OoWriter => {
            Profile { reads: mix!(900), jump_pct: 53, cpu: Duration::from_ms(680), bursts: 34 }
        }
        // Bursts in the proportion of the three traces together: 111 to 1559 reads.
        Application::Konsole => {
            Profile { reads: mix!(2500), jump_pct: 55, cpu: Duration::from_ms(540), bursts: 178 }
        }
        // No trace of `bash -c exit` is known: an assumption. A quarter of xterm, the smallest program that
        // one is known of, in all but the CPU time: a shell that exits at once does little more than be
        // linked.
        Application::Bash => Profile {
            reads: &[
                (22, KIB_4),
                (9, KIB_8_TO_16),
                (2, KIB_17_TO_32),
                (2, KIB_33_TO_64),
                (4, KIB_65_TO_127),
                (2, KIB_128),
            ],
            jump_pct: 55,
            cpu: Duration::from_ms(10),
            bursts: 5,
        },
    }
}

impl Profile {
    /// The sizes of all reads in sectors, class by class.
    fn sizes(&self) -> Vec<u32> {
        let of_class = |&(count, kib): &Class| {
            kib.iter().cycle().take(count as usize).map(|k| k * KIB_SECTORS).collect::<Vec<_>>()
        };
        self.reads.iter().flat_map(of_class).collect()
    }

    fn reads(&self) -> u32 {
        self.reads.iter().map(|c| c.0).sum()
    }

    /// How many sectors are read, bursts and all.
    fn sectors(&self) -> u64 {
        let bursts = u64::from(self.bursts * BURST_BLOCKS * BLOCK_SECTORS);
        self.sizes().into_iter().map(u64::from).sum::<u64>() + bursts
    }
}

/// How many sectors a start-up reads: less room it cannot do with.
pub(super) fn sectors_needed(application: Application) -> u64 {
    profile(application).sectors()
}

/// The bytes over which a start-up is spread on a disk of `disk` bytes, if the job does not say.
pub(super) const fn spread_bytes(disk: u64) -> u64 {
    if SPREAD_BYTES < disk / 4 { SPREAD_BYTES } else { disk / 4 }
}

/// The reads of a start-up within a region of `sectors`, at least as many as it [needs](sectors_needed).
fn draw(application: Application, sectors: u64, rng: &mut Rng) -> Vec<Step> {
    let profile = profile(application);
    let reads = profile.reads();
    let mut sizes = profile.sizes();
    shuffle(&mut sizes, rng);
    let jumps = choose(sizes.len(), 1, (reads * profile.jump_pct / 100).max(1) as usize - 1, rng, |_| true);
    let bursts = choose(sizes.len(), 0, profile.bursts as usize, rng, |i| sizes[i] == BLOCK_SECTORS);
    let cpu = profile.cpu / u64::from(reads);
    let mut steps: Vec<Step> = Vec::with_capacity(sizes.len());
    // First as runs of reads that follow each other, with the offset in the run; then the runs get their
    // places.
    let mut runs: Vec<(usize, u64)> = Vec::new();
    for (i, &len) in sizes.iter().enumerate() {
        if i == 0 || jumps[i] {
            runs.push((i, 0));
        }
        let Some((_, at)) = runs.last_mut() else { continue };
        let burst = if bursts[i] { BURST_BLOCKS } else { 0 };
        // Three of four reads of a block are of metadata, as in xterm's trace (67 of 89).
        let meta = len == BLOCK_SECTORS && (bursts[i] || i % 4 != 3);
        steps.push(Step { offset: *at, len, cpu, burst, meta });
        *at += u64::from(len + burst * BLOCK_SECTORS);
    }
    spread(&mut steps, &runs, sectors, rng);
    steps
}

/// Puts the runs, given as their first step and length, anywhere in `sectors`, in any order and apart.
fn spread(steps: &mut [Step], runs: &[(usize, u64)], sectors: u64, rng: &mut Rng) {
    let used: u64 = runs.iter().map(|r| r.1).sum();
    let free_blocks = sectors.saturating_sub(used) / u64::from(BLOCK_SECTORS);
    let mut gaps: Vec<u64> = runs.iter().map(|_| rng.below(free_blocks + 1)).collect();
    gaps.sort_unstable();
    let mut order: Vec<usize> = (0..runs.len()).collect();
    shuffle(&mut order, rng);
    let mut before = 0;
    for (gap, run) in gaps.into_iter().zip(order) {
        let (first, len) = runs[run];
        let end = runs.get(run + 1).map_or(steps.len(), |next| next.0);
        let start = gap * u64::from(BLOCK_SECTORS) + before;
        steps[first..end].iter_mut().for_each(|s| s.offset += start);
        before += len;
    }
}

fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for i in (1..items.len()).rev() {
        #[allow(clippy::cast_possible_truncation, reason = "at most i")]
        items.swap(i, rng.below(i as u64 + 1) as usize);
    }
}

/// Marks `count` of the indices `from..len` that are `fit`, drawn evenly.
fn choose(len: usize, from: usize, count: usize, rng: &mut Rng, fit: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut candidates: Vec<usize> = (from..len).filter(|&i| fit(i)).collect();
    shuffle(&mut candidates, rng);
    let mut chosen = vec![false; len];
    candidates.into_iter().take(count).for_each(|i| chosen[i] = true);
    chosen
}

/// One start-up after another.
#[derive(Clone, Debug)]
pub(super) struct StartUps {
    steps: Vec<Step>,
    /// The next of them.
    next: usize,
    iterations: u32,
    pause: Duration,
    timeout: Duration,
    /// When the current start-up began.
    begun: Option<Instant>,
    /// How long those before took.
    done: Vec<StartUp>,
}

impl StartUps {
    /// Makes the start-ups that the job asks for, in a region of `sectors` sectors.
    pub(super) fn new(application: Application, job: &crate::job::Job, sectors: u64, rng: &mut Rng) -> Self {
        Self {
            steps: draw(application, sectors, rng),
            next: 0,
            iterations: job.iterations,
            pause: job.iteration_pause,
            timeout: job.timeout,
            begun: None,
            done: Vec::new(),
        }
    }

    /// The next thing to do, when the one before is done.
    pub(super) fn next(&mut self, now: Instant) -> Turn {
        if self.begun.is_none() {
            if self.done.len() >= self.iterations as usize {
                return Turn::End;
            }
            (self.begun, self.next) = (Some(now), 0);
            return Turn::Begin;
        }
        if let Some(&step) = self.steps.get(self.next) {
            self.next += 1;
            return Turn::Read(step);
        }
        self.end(now, true);
        if self.done.len() < self.iterations as usize { Turn::Pause(now + self.pause) } else { Turn::End }
    }

    /// Ends the current start-up, if there is one.
    fn end(&mut self, now: Instant, finished: bool) {
        if let Some(begun) = self.begun.take() {
            self.done.push(StartUp { took: now.since(begun), finished });
        }
    }

    /// Gives up, at a time-out or the end of the run.
    pub(super) fn give_up(&mut self, now: Instant) {
        self.end(now, false);
        self.iterations = 0;
    }

    /// Gives up if the current start-up, the `iteration`th, has run out of time. Returns whether it has.
    pub(super) fn time_out(&mut self, now: Instant, iteration: u32) -> bool {
        let is_over = self.begun.is_some() && self.iteration() == iteration;
        if is_over {
            self.give_up(now);
        }
        is_over
    }

    /// How many start-ups ended before this one.
    pub(super) fn iteration(&self) -> u32 {
        u32::try_from(self.done.len()).unwrap_or(u32::MAX)
    }

    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How long each took, at the end of the run.
    pub(super) fn into_times(self) -> Vec<StartUp> {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;

    const GIB_SECTORS: u64 = 1 << 21;

    fn steps(application: Application, seed: u64) -> Vec<Step> {
        draw(application, GIB_SECTORS, &mut Rng::new(seed, "test"))
    }

    /// Reads, bytes read by those who wait, bytes of read-ahead.
    fn figures(application: Application) -> (usize, u64, u64) {
        let all = steps(application, 1);
        let read: u64 = all.iter().map(|s| u64::from(s.len) * 512).sum();
        let ahead: u64 = all.iter().map(|s| u64::from(s.burst) * 4096).sum();
        (all.len(), read, ahead)
    }

    #[test]
    fn each_application_reads_what_was_published() {
        use Application::{GnomeTerminal, Konsole, LoWriter, OoWriter, Xterm};
        // Sectors less read-ahead requests; for the last two, of the mix.
        //= docs/reference/benchmarks.md#4-replayed-start-ups type=test
        let published = [
            (Xterm, 164, 12_072 * 512, 554),
            (GnomeTerminal, 789, 41_120 * 512, 1992),
            (LoWriter, 606, 94_968 * 512, 662),
            (OoWriter, 900, 900 * (60 * 4 + 15 * 16 + 10 * 64 + 15 * 128) * 1024 / 100 + 986 * 4096, 986),
            (Konsole, 2500, 2500 * (60 * 4 + 15 * 16 + 10 * 64 + 15 * 128) * 1024 / 100 + 5162 * 4096, 5162),
        ];
        for (application, reads, bytes, ahead_blocks) in published {
            let (n, read, ahead) = figures(application);
            assert_eq!(n, reads, "{application:?}");
            let off = |ours: u64, theirs: u64| ours.abs_diff(theirs) * 100 / theirs;
            assert!(off(read + ahead, bytes) < 5, "{application:?}: {} for {bytes}", read + ahead);
            assert!(
                off(ahead, ahead_blocks * 4096) < 2,
                "{application:?}: {ahead} for {ahead_blocks} blocks"
            );
        }
    }

    #[test]
    fn about_half_of_the_reads_jump() {
        for (application, percent) in [(Application::Xterm, 55), (Application::LoWriter, 53)] {
            for seed in 0..8 {
                let all = steps(application, seed);
                let continues = |w: &[Step]| {
                    w[0].offset + u64::from(w[0].len + w[0].burst * BLOCK_SECTORS) == w[1].offset
                };
                let jumps = 1 + all.windows(2).filter(|w| !continues(w)).count();
                assert_eq!(jumps, all.len() * percent / 100, "{application:?}, seed {seed}");
            }
        }
    }

    #[test]
    fn no_block_is_read_twice_and_none_outside() {
        for seed in 0..8 {
            // As little room as it can do with, and much.
            for sectors in [sectors_needed(Application::Xterm), GIB_SECTORS] {
                let mut pieces: Vec<(u64, u64)> =
                    draw(Application::Xterm, sectors, &mut Rng::new(seed, "test"))
                        .iter()
                        .map(|s| (s.offset, s.offset + u64::from(s.len + s.burst * BLOCK_SECTORS)))
                        .collect();
                pieces.sort_unstable();
                assert!(pieces.windows(2).all(|w| w[0].1 <= w[1].0), "seed {seed}");
                assert!(pieces.iter().all(|p| p.1 <= sectors), "seed {seed}");
                assert!(pieces.iter().all(|p| p.0 % u64::from(BLOCK_SECTORS) == 0), "pages are whole");
            }
        }
    }

    #[test]
    fn the_cpu_time_is_spread_over_the_reads() {
        let cpu: u64 = steps(Application::Xterm, 3).iter().map(|s| s.cpu.as_us()).sum();
        assert!(cpu.abs_diff(175_000) < 200, "{cpu} us");
    }

    #[test]
    fn a_seed_gives_one_start_up() {
        assert_eq!(steps(Application::Bash, 5), steps(Application::Bash, 5));
        assert_ne!(steps(Application::Bash, 5), steps(Application::Bash, 6));
    }

    #[test]
    fn iterations_repeat_the_same_reads_after_a_pause() {
        let job = Job { iterations: 2, iteration_pause: Duration::from_secs(4), ..Job::default() };
        let mut all = StartUps::new(Application::Bash, &job, GIB_SECTORS, &mut Rng::new(1, "test"));
        let mut now = Instant::EPOCH;
        let mut reads = [Vec::new(), Vec::new()];
        for (i, reads) in reads.iter_mut().enumerate() {
            assert_eq!(all.next(now), Turn::Begin);
            assert_eq!(all.iteration(), i as u32);
            for _ in 0..41 {
                let Turn::Read(step) = all.next(now) else { panic!("41 reads, not {}", reads.len()) };
                reads.push(step);
                now = now + Duration::from_ms(10);
            }
            let turn = all.next(now);
            if i == 0 {
                now = now + Duration::from_secs(4);
                assert_eq!(turn, Turn::Pause(now));
            } else {
                assert_eq!(turn, Turn::End);
            }
        }
        assert_eq!(reads[0], reads[1]);
        let took = Duration::from_ms(410);
        assert_eq!(all.into_times(), [StartUp { took, finished: true }; 2]);
    }

    #[test]
    fn a_start_up_that_runs_out_of_time_is_the_last() {
        let job = Job { iterations: 3, ..Job::default() };
        let mut all = StartUps::new(Application::Bash, &job, GIB_SECTORS, &mut Rng::new(1, "test"));
        let now = Instant::EPOCH;
        assert_eq!(all.next(now), Turn::Begin);
        let late = now + all.timeout();
        assert!(!all.time_out(late, 1), "that is another's time-out");
        assert!(all.time_out(late, 0));
        assert!(!all.time_out(late, 0), "once");
        assert_eq!(all.next(late), Turn::End);
        assert_eq!(all.into_times(), [StartUp { took: Duration::from_secs(60), finished: false }]);
    }
}
