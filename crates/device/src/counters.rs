//! What a device did: plain counts and sums, for reports and tests. Nothing here decides anything.

use crate::DeviceOp;
use fairhead_core::units::{Duration, Instant};

/// Counts since the device was made. Inner work (look-ahead, destage) is counted when it is evaluated, which
/// is lazy: at the latest when the next command needs to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Read commands completed or chosen so far.
    pub reads: u64,
    /// Write commands accepted so far.
    pub writes: u64,
    /// Flush commands.
    pub flushes: u64,
    /// Discard commands.
    pub discards: u64,
    /// Bytes read by the host.
    pub bytes_read: u64,
    /// Bytes written by the host.
    pub bytes_written: u64,
    /// Reads served from the buffer, including data of cached writes.
    pub hits: u64,
    /// Reads that only had to wait until the running look-ahead came by.
    pub streaming_hits: u64,
    /// Reads that had to position the arm.
    pub misses: u64,
    /// Hits that stopped the look-ahead of another stream.
    pub foreign_stops: u64,
    /// Movements to another track, head switches included.
    pub seeks: u64,
    /// Time spent in them, settling included.
    pub seek_time: Duration,
    /// Time spent waiting for a sector to come by.
    pub rotational_wait: Duration,
    /// Continuations of where the media had just stopped that still waited for more than half a revolution.
    pub lost_revolutions: u64,
    /// Sectors read without having been asked for yet.
    pub look_ahead_sectors: u64,
    /// Times the look-ahead was full and the media stood still.
    pub look_ahead_full: u64,
    /// Extents of cached writes brought to the media; on a solid-state device, units programmed.
    pub destages: u64,
    /// Sectors of them.
    pub destaged_sectors: u64,
    /// Writes that extended the most recent extent.
    pub tail_merges: u64,
    /// Writes that had to wait for room in the cache.
    pub write_waits: u64,
    /// Reads that stood behind such writes (solid-state, where they share the buffer).
    pub read_waits: u64,
    /// Writes that went to the media before they completed.
    pub media_writes: u64,
    /// Allocation units closed with garbage collection (flash).
    pub unit_merges: u64,
    /// Small writes off the append point (flash).
    pub page_rewrites: u64,
    /// Pages moved by garbage collection (solid-state).
    pub page_moves: u64,
    /// Blocks erased, on all planes of a die together (solid-state).
    pub erases: u64,
    /// Programs and erases suspended for a read (solid-state).
    pub suspends: u64,
    /// Time with at least one command of the host in flight, in periods that have ended.
    /// [`crate::Device::busy_time`] adds the present one.
    pub(crate) busy_time: Duration,
}

impl Counters {
    /// The time with a command in flight until `now`; one has been since `since`, if any is.
    pub(crate) fn busy_time_until(&self, now: Instant, since: Option<Instant>) -> Duration {
        self.busy_time + since.map_or(Duration::ZERO, |since| now.saturating_since(since))
    }

    /// Returns the sum over the members of a composition; `busy_time` does not add up, and is zero.
    #[must_use]
    pub fn sum<'a>(members: impl Iterator<Item = &'a Self>) -> Self {
        members.fold(Self::default(), |total, member| total.plus(member))
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            flushes: self.flushes + other.flushes,
            discards: self.discards + other.discards,
            bytes_read: self.bytes_read + other.bytes_read,
            bytes_written: self.bytes_written + other.bytes_written,
            hits: self.hits + other.hits,
            streaming_hits: self.streaming_hits + other.streaming_hits,
            misses: self.misses + other.misses,
            foreign_stops: self.foreign_stops + other.foreign_stops,
            seeks: self.seeks + other.seeks,
            seek_time: self.seek_time + other.seek_time,
            rotational_wait: self.rotational_wait + other.rotational_wait,
            lost_revolutions: self.lost_revolutions + other.lost_revolutions,
            look_ahead_sectors: self.look_ahead_sectors + other.look_ahead_sectors,
            look_ahead_full: self.look_ahead_full + other.look_ahead_full,
            destages: self.destages + other.destages,
            destaged_sectors: self.destaged_sectors + other.destaged_sectors,
            tail_merges: self.tail_merges + other.tail_merges,
            write_waits: self.write_waits + other.write_waits,
            read_waits: self.read_waits + other.read_waits,
            media_writes: self.media_writes + other.media_writes,
            unit_merges: self.unit_merges + other.unit_merges,
            page_rewrites: self.page_rewrites + other.page_rewrites,
            page_moves: self.page_moves + other.page_moves,
            erases: self.erases + other.erases,
            suspends: self.suspends + other.suspends,
            busy_time: Duration::ZERO,
        }
    }

    /// Adds `commands` commands of a kind.
    pub(crate) fn count_command(&mut self, op: DeviceOp, commands: u64) {
        *match op {
            DeviceOp::Read => &mut self.reads,
            DeviceOp::Write => &mut self.writes,
            DeviceOp::Flush => &mut self.flushes,
            DeviceOp::Discard => &mut self.discards,
        } += commands;
    }

    /// Takes away commands, and bytes written, that `other` says were counted once too often.
    pub(crate) fn uncount(&mut self, other: &Self) {
        self.reads -= other.reads;
        self.writes -= other.writes;
        self.flushes -= other.flushes;
        self.discards -= other.discards;
        self.bytes_written -= other.bytes_written;
    }
}
