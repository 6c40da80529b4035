//! Where the arm is, and where it has to be for a sector.

/// Where the arm is: the track fixes the surface too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Arm {
    pub(crate) track: u64,
    pub(crate) cyl: u64,
}

/// Everything that positioning to a sector needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) phase: u64,
    pub(crate) arm: Arm,
    /// The time of one sector: what rounding may cost without losing a revolution.
    pub(crate) sector_time: u64,
}
