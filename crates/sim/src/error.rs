//! What can go wrong before a run starts.

use fairhead_core::config::ConfigError;
use fairhead_device::ParamError;
use std::fmt;

/// Why a run cannot be made. One line each.
#[derive(Clone, Debug, PartialEq)]
pub enum SimError {
    /// A tunable or limit is out of range.
    Config(ConfigError),
    /// The disk is impossible.
    Disk(ParamError),
    /// The job does not fit the disk or the host.
    Job {
        /// The job's name.
        job: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// A control group cannot be as the jobs say.
    Group(String),
    /// Advice is asked for disks that turn and disks that do not.
    MixedDisks,
    /// The model of a disk has not been read.
    Model(String),
    /// There are more disks, with the members of sets, than a run can have.
    ManyDisks {
        /// How many there are.
        queues: usize,
        /// How many there may be.
        most: usize,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(e) => e.fmt(f),
            Self::Disk(e) => e.fmt(f),
            Self::Job { job, message } => write!(f, "job '{job}': {message}"),
            Self::Group(e) => f.write_str(e),
            Self::MixedDisks => f.write_str(
                "the jobs use both hard disks and flash, which need separate advice; ask for the jobs of each kind",
            ),
            Self::Model(name) => write!(f, "the disk model '{name}' has not been read"),
            Self::ManyDisks { queues, most } => {
                write!(f, "{queues} disks, counting the members of sets, are more than {most}; use fewer")
            }
        }
    }
}

impl std::error::Error for SimError {}

impl From<ConfigError> for SimError {
    fn from(e: ConfigError) -> Self {
        Self::Config(e)
    }
}

impl From<ParamError> for SimError {
    fn from(e: ParamError) -> Self {
        Self::Disk(e)
    }
}
