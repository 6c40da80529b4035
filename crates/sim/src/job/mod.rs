//! fio job files: the subset that users of I/O benchmarks write, and Fairhead's own options under the prefix `fh_`.

mod model;

pub use model::{
    BlockSize, Client, Direction, Distribution, Engine, FileService, Job, JobFile, Layout, Pattern, PerOp,
    Placement, Program, Size, SyncMode,
};
