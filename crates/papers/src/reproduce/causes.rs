//! Why published numbers are missed: the entries of `docs/deviations.md`, section *Published rows that miss*.

use super::Cause;

//= deviates miss-longest-call
pub(super) const LONGEST: Cause = Cause {
    id: "miss-longest-call",
    why: "the longest call of a run waits for a single event, such as metadata of an earlier run (miss-longest-call)",
};

//= deviates miss-cold-maps
pub(super) const COLD_MAPS: Cause =
    Cause { id: "miss-cold-maps", why: "how many block maps were not in memory is a guess (miss-cold-maps)" };

//= deviates miss-as-spread
pub(super) const AS_SPREAD: Cause = Cause {
    id: "miss-as-spread",
    why: "as treats random readers as unequally as published in kind, and less so (miss-as-spread)",
};

//= deviates miss-new-files
pub(super) const NEW_FILES: Cause = Cause {
    id: "miss-new-files",
    why: "a direct write to a new file also writes its indirect block, it seems; ours has a CPU cost instead (miss-new-files)",
};

//= deviates miss-mixed
pub(super) const MIXED: Cause = Cause {
    id: "miss-mixed",
    why: "a call of the writer is two requests at once here, and one after the other there, it seems (miss-mixed)",
};

//= deviates miss-fsck
pub(super) const FSCK: Cause = Cause {
    id: "miss-fsck",
    why: "a single process's check does not depend on the scheduler here (miss-fsck)",
};

//= deviates miss-vmstat
pub(super) const VMSTAT: Cause =
    Cause { id: "miss-vmstat", why: "the disk and host of the vmstat run are not known (miss-vmstat)" };

//= deviates miss-cfq-starts
pub(super) const CFQ_STARTS: Cause = Cause {
    id: "miss-cfq-starts",
    why: "cfq starts programs more slowly here beside ten readers than was claimed (miss-cfq-starts)",
};

//= deviates miss-alike
pub(super) const ALIKE: Cause = Cause {
    id: "miss-alike",
    why: "bfq and cfq move about the same here; the claim's tests are not described (miss-alike)",
};

//= deviates miss-meanwhile
pub(super) const MEANWHILE: Cause = Cause {
    id: "miss-meanwhile",
    why: "throughput while commands start compares different loads (miss-meanwhile)",
};

//= deviates miss-samples
pub(super) const SAMPLES: Cause = Cause {
    id: "miss-samples",
    why: "the source's samples drift against its slices, and ours are a mean over layouts (miss-samples)",
};

//= deviates miss-stand-in
pub(super) const STAND_IN: Cause = Cause {
    id: "miss-stand-in",
    why: "the stand-in of the program computes and reads more than the program did (miss-stand-in)",
};

//= deviates miss-cfq-flash
pub(super) const CFQ_FLASH: Cause = Cause {
    id: "miss-cfq-flash",
    why: "cfq lets a start beside random readers on flash wait longer than was published (miss-cfq-flash)",
};

//= deviates miss-one-process
pub(super) const ONE_PROCESS: Cause = Cause {
    id: "miss-one-process",
    why: "the drive answered one process on ten cores in 54 us and one on one core in 68; nothing else tells the two rows apart (miss-one-process)",
};

//= deviates miss-run-queue
pub(super) const RUN_QUEUE: Cause = Cause {
    id: "miss-run-queue",
    why: "who waits longest for one of ten saturated processors depends on the kernel's run queues, which are simple here (miss-run-queue)",
};
