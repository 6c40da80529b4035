//! What each operation of the kernel's has the front do for a caller, in counts: no kernel, no disk and no
//! clock.
//!
//! What is read or changed of a file's data is in the queue, on the account of the caller's group, and its
//! limits count it. What is about names and attributes is a job of other threads, one for each call, where
//! users take turns. What the kernel says for itself is done at once, and is the same few words each time.

use super::tests::Stage;
use super::*;
use crate::fuse::OPCODES;
use crate::fuse::shares::extra;
use crate::neighbours::judge_limited;

/// Where an operation goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Goes {
    /// To the disk, for the group of its caller.
    ToDisk,
    /// To a thread for names.
    ToThread,
    /// Nowhere: the kernel speaks for itself, and callers cannot make it do so for nothing.
    Nowhere,
}

/// Where an operation of this name goes. One that is not named here is about names: it must be a job.
fn goes(name: &str) -> Goes {
    match name {
        "READ" | "WRITE" | "FSYNC" | "FALLOCATE" | "COPY_FILE_RANGE" => Goes::ToDisk,
        "INIT" | "INTERRUPT" | "RELEASE" => Goes::Nowhere,
        _ => Goes::ToThread,
    }
}

/// Words that are right for an operation: numbers, and names where it has some.
fn words(number: u32) -> Vec<u8> {
    let is_right = |bytes: &Vec<u8>| Operation::parse(number, bytes).is_some();
    let zeros = (0..15).map(|words| vec![0; 8 * words]);
    // A count of one byte, or a name, may be what is needed; a copy or a read of nothing is none.
    let names = |head: usize| [vec![0; 8 * head], b"name\0other\0".to_vec()].concat();
    let found = zeros.chain((0..4).map(names)).find(is_right);
    let mut bytes = found.unwrap_or_else(|| panic!("operation {number}: no words are right for it"));
    let len_at = match number {
        opcode::READ | opcode::WRITE => Some(16),
        opcode::FALLOCATE => Some(16),
        opcode::COPY_FILE_RANGE => Some(40),
        _ => None,
    };
    if let Some(at) = len_at {
        bytes[at..at + 4].copy_from_slice(&4096_u32.to_ne_bytes());
    }
    bytes
}

fn header(number: u32, unique: u64) -> Header {
    Header { opcode: number, unique, node: 2, uid: 1000, gid: 1000, pid: 7, entry: None }
}

/// Has the front do an operation; returns whether it was answered at once.
fn ask(stage: &mut Stage, number: u32, unique: u64, bytes: &[u8]) -> bool {
    let operation = Operation::parse(number, bytes).expect("right words");
    if number == opcode::WRITE {
        // Its data have come.
        stage.front.incoming.read(&File::open("/dev/zero").expect("zeros")).expect("zeros");
    }
    let header = header(number, unique);
    stage.front.answer_or_begin(&mut stage.context, &header, &operation, bytes, 4096).is_some()
}

fn stage_with_threads() -> (Stage, mpsc::Receiver<Job>) {
    let mut stage = Stage::new();
    let (heard, jobs) = mpsc::channel();
    let threads = NameThreads::start(move |job| drop(heard.send(job)), |_| ()).expect("a thread");
    stage.front.workers = Some(Arc::new(threads));
    (stage, jobs)
}

#[test]
fn each_operation_is_on_the_account_of_its_caller() {
    for &(name, number) in OPCODES {
        let (mut stage, jobs) = stage_with_threads();
        let bytes = words(number);
        let count = 20;
        let answered = (1..=count).filter(|&i| ask(&mut stage, number, i, &bytes)).count();
        let waiting = stage.front.waiting.len();
        let groups: Vec<GroupId> = stage.context.queue.busy_groups().collect();
        match goes(name) {
            Goes::ToDisk => {
                assert_eq!((answered, waiting), (0, count as usize), "{name}: each waits for the disk");
                let caller = stage.context.groups.find("job/7").expect("the caller's group");
                assert_eq!(groups.len(), count as usize, "{name}");
                assert!(groups.iter().all(|&group| group == caller), "{name}: for its caller");
            }
            Goes::ToThread => {
                assert_eq!((answered, waiting, groups.len()), (0, 0, 0), "{name}: a thread does it");
                let all: Vec<Job> = (0..count).map(|_| jobs.recv().expect("a job")).collect();
                // A close may be one in an exec, whose process cannot be asked for its group.
                let caller = match name {
                    "FLUSH" => GroupId::ROOT,
                    _ => stage.context.groups.find("job/7").expect("the caller's group"),
                };
                assert!(all.iter().all(|job| job.header.opcode == number && job.header.uid == 1000));
                assert!(all.iter().all(|job| job.group == caller), "{name}: its group's turn");
            }
            Goes::Nowhere => {
                assert_eq!((waiting, groups.len()), (0, 0), "{name}: nothing waits");
                assert!(jobs.try_recv().is_err(), "{name}: no job");
            }
        }
    }
}

/// A word too few for an operation, or none: nothing is done for it.
#[test]
fn words_that_do_not_fit_are_no_operation() {
    let no_words = ["DESTROY", "GETATTR", "READLINK", "STATFS", "OPENDIR", "SYNCFS"];
    for &(name, number) in OPCODES {
        let is_empty_right = Operation::parse(number, &[]).is_some();
        assert_eq!(is_empty_right, no_words.contains(&name), "{name} without words");
    }
}

#[test]
fn limits_count_each_operation_of_the_disk() {
    for &(name, number) in OPCODES.iter().filter(|(name, _)| goes(name) == Goes::ToDisk) {
        let (mut stage, _jobs) = stage_with_threads();
        let bytes = words(number);
        let group = stage.limited_group("job/7", 10);
        let mut done = 0;
        let mut asked = 0;
        for step in 0..2000_u64 {
            stage.context.now = stage.context.now + Duration::from_ms(5);
            if stage.front.waiting.is_empty() {
                done = asked;
                asked += 1;
                ask(&mut stage, number, step + 1, &bytes);
            }
            stage.serve();
        }
        assert!(stage.context.queue.busy_groups().all(|busy| busy == group), "{name}");
        // A copy is a read and a write, each with a limit of its own.
        judge_limited(name, done);
    }
}

/// The kernel's line, and the programs behind it: each asks again as soon as it has its answer.
struct Kernel {
    stage: Stage,
    line: VecDeque<u64>,
    bytes: Vec<u8>,
    answered: [usize; 2],
    busy: Duration,
}

/// What a request takes of the thread, beside its data: more than is believed at first.
const READS: Duration = Duration::from_us(9);

impl Kernel {
    /// `callers` of one group and one of another, which does [`Operation::Read`]s.
    fn new(callers: u64, bytes: Vec<u8>) -> Self {
        let line = (0..=callers).collect();
        Self { stage: Stage::new(), line, bytes, answered: [0; 2], busy: Duration::ZERO }
    }

    /// The front reads as many requests as it does in a turn; the disk does all at once.
    fn turn(&mut self, number: u32) {
        let honest_bytes = words(opcode::READ);
        self.stage.context.busy = Some(self.busy);
        self.stage.context.turns.begin(self.stage.context.now, self.stage.context.busy);
        self.stage.front.begin_turn(&mut self.stage.context);
        for _ in 0..BATCH {
            let Some(caller) = self.line.pop_front() else { break };
            let (number, bytes) =
                if caller == 0 { (opcode::READ, &honest_bytes) } else { (number, &self.bytes) };
            let header = Header { pid: if caller == 0 { 1 } else { 2 }, ..header(number, caller) };
            let operation = Operation::parse(number, bytes).expect("right words");
            match self.stage.front.has_had_its_part(&mut self.stage.context, &header, &operation) {
                Some(until) => self.stage.front.hold_back(until, &header, bytes, 0),
                None => drop(self.stage.front.answer_or_begin(
                    &mut self.stage.context,
                    &header,
                    &operation,
                    bytes,
                    0,
                )),
            }
            self.stage.context.now = self.stage.context.now + READS;
            self.busy += READS;
        }
        let before: Vec<u64> = self.stage.front.waiting.keys().copied().collect();
        self.stage.serve();
        for caller in before.into_iter().filter(|c| !self.stage.front.waiting.contains_key(c)) {
            self.answered[usize::from(caller > 0)] += 1;
            self.line.push_back(caller);
        }
        if self.line.is_empty() {
            self.stage.context.now = self.stage.context.now + READS;
        }
    }
}

/// Two hundred callers of one group fill the kernel's line again and again. One caller of another group, of
/// the same weight, keeps nearly half of what it gets alone, and one alone is held back by nothing.
#[test]
fn many_callers_do_not_crowd_out_one() {
    let run = |callers| {
        let mut kernel = Kernel::new(callers, words(opcode::READ));
        let end = Instant::EPOCH + Duration::from_secs(1);
        while kernel.stage.context.now < end {
            kernel.turn(opcode::READ);
        }
        kernel.answered
    };
    let ([alone, _], [beside, others]) = (run(0), run(200));
    assert!(beside * 100 >= alone * 45, "{beside} beside two hundred, {alone} alone");
    assert!(others * 100 >= alone * 35, "the two hundred have their part, too: {others}");
}

/// Callers of names take little of the thread beside a reader of another group, and what they want while
/// there is none.
#[test]
fn callers_of_names_leave_a_reader_most_of_the_thread() {
    for &(name, number) in OPCODES.iter().filter(|(name, _)| goes(name) == Goes::ToThread) {
        let bytes = words(number);
        if Operation::parse(number, &bytes).as_ref().and_then(extra).is_none() {
            // It ends what others wait for.
            continue;
        }
        let run = |has_reader: bool| {
            let (mut stage, mut now, mut busy, mut done) =
                (Stage::new(), Instant::EPOCH, Duration::ZERO, 0_u64);
            let operation = Operation::parse(number, &bytes).expect("right words");
            let read = words(opcode::READ);
            let reads = Operation::parse(opcode::READ, &read).expect("right words");
            for unique in 0..20_000 {
                (stage.context.now, stage.context.busy) = (now, Some(busy));
                stage.front.begin_turn(&mut stage.context);
                // Each of eight threads has its answer, or waits.
                let caller = Header { pid: 2 + 1000 * (unique % 8) as u32, ..header(number, unique) };
                if stage.front.has_had_its_part(&mut stage.context, &caller, &operation).is_none() {
                    done += 1;
                    (now, busy) = (now + READS, busy + READS);
                }
                if has_reader {
                    let reader = Header { pid: 1, ..header(opcode::READ, unique) };
                    let until = stage.front.has_had_its_part(&mut stage.context, &reader, &reads);
                    assert!(until.is_none(), "{name}: the reader waits for nothing");
                    (now, busy) = (now + READS, busy + READS);
                }
            }
            done * 1000 / (now.since(Instant::EPOCH).as_ns() / READS.as_ns())
        };
        let (beside, alone) = (run(true), run(false));
        // The cost of their own threads is known to be some.
        assert!((10..=64).contains(&beside), "{name}: {beside} of 1000 beside a reader");
        assert!(alone > 990, "{name}: {alone} of 1000 alone");
    }
}

/// A caller that waits for each answer, and uses the thread for nearly all of the time, is not held to its
/// part: a group beside it that asks for little has what it wants. One that asks for more before it has its
/// answers is held.
#[test]
fn a_single_caller_is_never_held_back() {
    for open in [1, 2] {
        let mut stage = Stage::new();
        let bytes = words(opcode::READ);
        let operation = Operation::parse(opcode::READ, &bytes).expect("right words");
        let mut held = 0;
        for unique in 0..10_000 {
            stage.context.busy = Some(READS * unique);
            stage.front.begin_turn(&mut stage.context);
            let pid = if unique % 100 == 0 { 2 } else { 1 };
            let header = Header { pid, ..header(opcode::READ, unique) };
            match stage.front.has_had_its_part(&mut stage.context, &header, &operation) {
                Some(_) => held += 1,
                None => drop(stage.front.answer_or_begin(&mut stage.context, &header, &operation, &bytes, 0)),
            }
            if unique % open == 0 {
                stage.serve();
            }
            stage.context.now = stage.context.now + READS;
        }
        assert_eq!(held > 0, open > 1, "{held} were held of a caller with {open} at a time");
    }
}
