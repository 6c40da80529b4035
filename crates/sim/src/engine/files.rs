//! From the names in a job file to places on the disk.
//!
//! Clients that name the same file share it. Files are laid out in the order of the job file, one after the other,
//! from sector 20 000 on (behind where a file system keeps its own), each after a small gap that the run's seed draws:
//! the angle between two files decides how alternating readers lock to the platter, so a result should be a mean over
//! several such layouts.

use crate::error::SimError;
use crate::job::{self, Job, JobFile, Placement};
use crate::layout::Layout;
use crate::metrics::Result;
use crate::rng::Rng;
use fairhead_core::Sector;
use std::collections::BTreeMap;

/// Where the first file starts.
//= devices.md 3.1
const FIRST_SECTOR: u64 = 20_000;
/// Gaps are multiples of a block and shorter than this: several tracks of any disk built so far.
const GAP_SECTORS_MAX: u64 = 8192;
const BLOCK_SECTORS: u64 = 8;
/// Pieces of a scattered file.
const SCATTER_SECTORS: u64 = 256;

/// A file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) layout: Layout,
    /// Its size in sectors.
    pub(super) size: u64,
    /// Blocks below this have been allocated, in sectors.
    pub(super) allocated: u64,
}

/// All files, and which of them each client uses.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) files: Vec<File>,
    /// By client, in the order of [`JobFile::clients`].
    pub(super) of_client: Vec<Vec<u32>>,
}

impl Files {
    pub(super) fn place(jobs: &JobFile, capacity: u64, seed: u64) -> Result<Self> {
        let mut placer = Placer {
            capacity,
            next: FIRST_SECTOR,
            rng: Rng::new(seed, "layout"),
            files: Vec::new(),
            by_name: BTreeMap::new(),
        };
        let of_client = jobs.clients().map(|c| placer.of_client(c.job, c.clone)).collect::<Result<_>>()?;
        Ok(Self { files: placer.files, of_client })
    }
}

struct Placer {
    capacity: u64,
    next: u64,
    rng: Rng,
    files: Vec<File>,
    by_name: BTreeMap<String, u32>,
}

impl Placer {
    fn of_client(&mut self, job: &Job, clone: u32) -> Result<Vec<u32>> {
        job.file_names(clone)
            .into_iter()
            .map(|name| match self.by_name.get(&name) {
                Some(&file) => Ok(file),
                None => self.place(job, clone, name),
            })
            .collect()
    }

    fn place(&mut self, job: &Job, clone: u32, name: String) -> Result<u32> {
        let raw = name.starts_with("/dev/") || job.program.is_some();
        let size = if raw { self.capacity } else { self.size_of(job) };
        let layout =
            if raw { Layout::Contiguous { start: Sector(0) } } else { self.lay_out(job, clone, size)? };
        let new = job.writes() && !job.overwrite && !job.fallocate && !raw;
        self.files.push(File { layout, size, allocated: if new { 0 } else { u64::MAX } });
        #[allow(clippy::cast_possible_truncation, reason = "job files are limited to a few thousand clients")]
        let index = (self.files.len() - 1) as u32;
        self.by_name.insert(name, index);
        Ok(index)
    }

    fn size_of(&self, job: &Job) -> u64 {
        let disk = self.capacity * 512;
        let files = job.file_names(0).len() as u64;
        let bytes = match (job.filesize, job.size) {
            (Some(f), _) => f.bytes_of(disk),
            (None, Some(s)) => s.bytes_of(disk) / files,
            (None, None) => 0,
        };
        bytes.div_ceil(512)
    }

    fn lay_out(&mut self, job: &Job, clone: u32, size: u64) -> Result<Layout> {
        let first = clone == 0;
        let from = match job.placement {
            Some(Placement::At(sector)) if first => sector.0,
            Some(Placement::Percent(p)) if first => self.capacity / 100 * u64::from(p),
            _ => self.next,
        };
        let gap = self.rng.below(GAP_SECTORS_MAX / BLOCK_SECTORS) * BLOCK_SECTORS;
        let start = from + gap;
        let layout = match job.layout {
            job::Layout::Contiguous | job::Layout::Ext2 => Layout::Contiguous { start: Sector(start) },
            job::Layout::Interleaved { piece_bytes } => {
                let piece = u64::from(piece_bytes).div_ceil(512);
                let files = u64::from(job.numjobs.max(2));
                // All clones' files start with their first pieces side by side.
                let base = if first { start } else { from - (size.div_ceil(piece) * files) * piece };
                let base = base + if first { 0 } else { piece * u64::from(clone) };
                Layout::Interleaved { start: Sector(base), piece, stride: piece * files }
            }
            job::Layout::Scattered => self.scatter(size),
        };
        let end = layout.end(size);
        if end > self.capacity {
            return Err(SimError::Job {
                job: job.name.clone(),
                message: format!(
                    "its files need {} MiB up to sector {end}, but the disk has {} sectors; use a smaller size=, fewer numjobs= or a larger disk",
                    size / 2048,
                    self.capacity
                ),
            });
        }
        self.next = self.next.max(end);
        Ok(layout)
    }

    /// Pieces anywhere on the disk; they may overlap with other files, which costs a simulation nothing.
    fn scatter(&mut self, size: u64) -> Layout {
        let slots = (self.capacity - FIRST_SECTOR.min(self.capacity / 2)) / SCATTER_SECTORS;
        let pieces = size.div_ceil(SCATTER_SECTORS).max(1);
        let map = (0..pieces).map(|i| {
            let slot = self.rng.below(slots.max(2) - 1);
            (i * SCATTER_SECTORS, Sector(FIRST_SECTOR.min(self.capacity / 2) + slot * SCATTER_SECTORS))
        });
        Layout::Mapped(map.collect())
    }
}
