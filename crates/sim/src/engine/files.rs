//! From the names in a job file to places on the disk.
//!
//! Clients that name the same file share it. Files are laid out in the order of the job file, one after the
//! other, from sector 20 000 on (behind where a file system keeps its own), each after a small gap that the
//! run's seed draws: the angle between two files decides how alternating readers lock to the platter, so a
//! result should be a mean over several such layouts.
//!
//! Files in an ext2 layout get their blocks from its allocator: those that exist before the run as if all
//! clones of the job had written theirs at the same time, the others as they are written.

use super::program::TABLE_BYTES;
use super::{player, program, startup};
use crate::error::SimError;
use crate::ext2::{self, Ext2};
use crate::job::{self, Direction, DiskId, Engine, Job, JobFile, Metadata, Placement, Program};
use crate::layout::Layout;
use crate::metrics::Result;
use crate::rng::Rng;
use fairhead_core::Sector;
use std::collections::BTreeMap;

/// Where the first file starts.
//= docs/reference/devices.md#31-ide2004
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
    /// The disk that it lies on.
    pub(super) disk: DiskId,
    /// Its size in sectors.
    pub(super) size: u64,
    /// Blocks below this have been allocated, in sectors; all of a file that is [old](Self::is_old).
    pub(super) allocated: u64,
    /// Where `file_append` begins to write, in sectors.
    pub(super) append_from: u64,
    /// Whether it is the disk itself, past any file system.
    pub(super) is_disk: bool,
    /// Which of its indirect blocks the host has not read yet; empty: it has all.
    unread_maps: Vec<bool>,
}

impl File {
    const OLD: u64 = u64::MAX;

    /// A file, all of whose block map the host knows.
    const fn new(layout: Layout, disk: DiskId, size: u64, allocated: u64, append_from: u64) -> Self {
        Self { layout, disk, size, allocated, append_from, is_disk: false, unread_maps: Vec::new() }
    }

    /// The host forgets where its blocks are, but for those that the inode knows itself.
    fn forget_map(&mut self) {
        let blocks = self.size.div_ceil(ext2::BLOCK_SECTORS).saturating_sub(ext2::DIRECT);
        self.unread_maps = vec![true; usize::try_from(blocks.div_ceil(ext2::PER_INDIRECT)).unwrap_or(0)];
    }

    /// Whether there are indirect blocks that the host has not read.
    pub(super) const fn has_unread_maps(&self) -> bool {
        !self.unread_maps.is_empty()
    }

    /// Where the indirect block lies that has to be read before the data at `offset` can be, if one has to.
    pub(super) fn unread_map(&self, offset: u64) -> Option<Sector> {
        if self.unread_maps.is_empty() {
            return None;
        }
        let region = (offset / ext2::BLOCK_SECTORS).checked_sub(ext2::DIRECT)? / ext2::PER_INDIRECT;
        let unread = self.unread_maps.get(usize::try_from(region).ok()?)?;
        // In line, before the first block that it lists.
        let first = (ext2::DIRECT + region * ext2::PER_INDIRECT) * ext2::BLOCK_SECTORS;
        unread.then(|| Sector(self.layout.piece(first, 1).0.0.saturating_sub(ext2::BLOCK_SECTORS)))
    }

    /// The indirect block for the data at `offset` is being read.
    pub(super) fn map_is_read(&mut self, offset: u64) {
        let region = (offset / ext2::BLOCK_SECTORS).saturating_sub(ext2::DIRECT) / ext2::PER_INDIRECT;
        if let Some(unread) = usize::try_from(region).ok().and_then(|r| self.unread_maps.get_mut(r)) {
            *unread = false;
        }
    }

    /// Whether it was there before the run.
    pub(super) const fn is_old(&self) -> bool {
        self.allocated == Self::OLD
    }
}

/// All files, and which of them each client uses.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) files: Vec<File>,
    /// By client, in the order of [`JobFile::clients`].
    pub(super) of_client: Vec<Vec<u32>>,
    /// How long in bytes the shortest of its files was when a client was set up, by client.
    pub(super) known: Vec<u64>,
    /// The length in bytes of a client's shortest file before the client was set up, as jobs above made it; 0
    /// for a new file. By client.
    pub(super) before: Vec<u64>,
    /// By disk.
    pub(super) disks: Vec<Disk>,
}

/// What is known of a disk that files are put on.
#[derive(Debug)]
pub(super) struct Disk {
    /// Its size in sectors.
    capacity: u64,
    /// Where the next file goes.
    next: u64,
    /// The file system that allocates blocks, if a job wants one, and the file that stands for its metadata.
    pub(super) ext2: Option<Ext2>,
    pub(super) metadata: Option<u32>,
}

impl Files {
    /// The disk that a file lies on; the first for calls without a file.
    pub(super) fn disk_of(&self, file: u32) -> DiskId {
        self.files.get(file as usize).map_or(DiskId::default(), |f| f.disk)
    }

    /// Puts the files of jobs on disks of these capacities, in sectors.
    pub(super) fn place(jobs: &JobFile, capacities: impl Iterator<Item = u64>, seed: u64) -> Result<Self> {
        let disk = |capacity| Disk { capacity, next: FIRST_SECTOR, ext2: None, metadata: None };
        let mut placer = Placer {
            jobs,
            disks: capacities.map(disk).collect(),
            rng: Rng::new(seed, "layout"),
            files: Vec::new(),
            by_name: BTreeMap::new(),
            sizes: BTreeMap::new(),
            first_pid: 0,
        };
        if jobs.jobs.iter().any(|j| j.layout == job::Layout::Ext2) {
            placer.make_ext2();
        }
        let (known, before) = placer.measure();
        let clients = jobs.clients().enumerate();
        let of_client = clients.map(|(i, c)| placer.of_client(c.job, c.clone, i)).collect::<Result<_>>()?;
        let Placer { files, disks, .. } = placer;
        Ok(Self { files, of_client, known, before, disks })
    }

    /// What a share as `offset` is one of, where the client's files have `whole` bytes: of a disk all of it,
    /// of files what jobs above have made of them.
    //= fio-3.33: a share of a file that is new is its beginning, seen in logs of offsets
    pub(super) fn whole_of_offset(&self, job: &Job, client: usize, whole: u64) -> u64 {
        let is_all = job.is_raw_disk() || job.engine == Engine::Null || job.program.is_some();
        if is_all { whole } else { self.before[client] }
    }

    /// The size in bytes of the disk that a client's first file lies on.
    pub(super) fn disk_bytes(&self, client: usize) -> u64 {
        let file = self.of_client[client].first().map(|&f| &self.files[f as usize]);
        self.disks[file.map_or(0, |f| f.disk.index())].capacity * 512
    }
}

struct Placer<'a> {
    jobs: &'a JobFile,
    disks: Vec<Disk>,
    rng: Rng,
    files: Vec<File>,
    by_name: BTreeMap<String, u32>,
    /// How much of each file its users need, in bytes, in all and before an append.
    sizes: BTreeMap<String, (u64, u64)>,
    first_pid: u64,
}

impl Placer<'_> {
    /// A file is as large as the largest that any of its users needs, in whatever order they stand in the job
    /// file. Returns how large, in bytes, those of each client are when it is set up: by it or by those
    /// before it, and how large they were before. fio sets up the first clone of a job, then the others
    /// from the last.
    fn measure(&mut self) -> (Vec<u64>, Vec<u64>) {
        let (mut known, mut before) = (Vec::new(), Vec::new());
        for job in &self.jobs.jobs {
            let first = known.len();
            known.resize(first + job.numjobs as usize, 0);
            before.resize(known.len(), 0);
            if job.engine == Engine::Null {
                continue;
            }
            for clone in std::iter::once(0).chain((1..job.numjobs).rev()) {
                let names = job.file_names(clone);
                let sizes = names.iter().map(|name| self.sizes.get(name).map_or(0, |s| s.0));
                let old = sizes.min().unwrap_or(0);
                before[first + clone as usize] = old;
                let mut shortest = u64::MAX;
                for (i, name) in names.into_iter().enumerate() {
                    let disk = self.jobs.disk_of(job, clone, i);
                    let (append_from, size) = self.needed(job, clone, disk, old);
                    let size = self.drawn_size(job).unwrap_or(size);
                    let known = self.sizes.entry(name).or_default();
                    *known = (known.0.max(size), known.1.max(append_from));
                    shortest = shortest.min(known.0);
                }
                known[first + clone as usize] = if shortest == u64::MAX { 0 } else { shortest };
            }
        }
        (known, before)
    }

    /// The size of a file of a job whose `filesize` is a range.
    //= fio-3.33: with bs=4k and filesize=10k-20k, files of 8, 12 and 16 KiB
    fn drawn_size(&mut self, job: &Job) -> Option<u64> {
        let (least, most) = (job.filesize?.bytes_of(0), job.filesize_max?);
        let block = u64::from(job.smallest_block()).max(1);
        let drawn = least + self.rng.below(most.saturating_sub(least) + 1);
        Some((drawn / block).max(1) * block)
    }

    fn make_ext2(&mut self) {
        self.first_pid = self.rng.next_u64();
        for (i, number) in (0..self.disks.len()).zip(0..) {
            let capacity = self.disks[i].capacity;
            let layout = Layout::Contiguous { start: Sector(0) };
            let whole = self.add(File::new(layout, DiskId(number), capacity, File::OLD, 0));
            let disk = &mut self.disks[i];
            (disk.ext2, disk.metadata) = (Some(Ext2::new(capacity)), Some(whole));
        }
    }

    fn add(&mut self, file: File) -> u32 {
        self.files.push(file);
        u32::try_from(self.files.len() - 1).expect("job files are limited to a few thousand files")
    }

    fn of_client(&mut self, job: &Job, clone: u32, client: usize) -> Result<Vec<u32>> {
        if clone == 0 && job.layout == job::Layout::Ext2 && !is_raw(job, "") {
            self.grow_together(job, client as u64)?;
        }
        if job.engine == Engine::Null {
            return Ok((0..job.file_count()).map(|_| self.add_nothing(job, clone)).collect());
        }
        let names = job.file_names(clone).into_iter().enumerate();
        names.map(|(i, name)| self.of_name(job, clone, name, self.jobs.disk_of(job, clone, i))).collect()
    }

    /// The file of a name, which lies on one disk.
    fn of_name(&mut self, job: &Job, clone: u32, name: String, disk: DiskId) -> Result<u32> {
        let Some(&file) = self.by_name.get(&name) else { return self.place(job, clone, name, disk) };
        let lies_on = self.files[file as usize].disk;
        if lies_on == disk {
            return Ok(file);
        }
        let label = |d: DiskId| self.jobs.disks.get(d.index()).map_or("", |d| d.label.as_str());
        let message = format!(
            "its file '{name}' is on disk '{}', and would lie on '{}' here; give it another name, or the same fh_disk=",
            label(lies_on),
            label(disk)
        );
        Err(SimError::Job { job: job.name.clone(), message })
    }

    /// What a job's calls go to that reach no disk: as large as the job says, and nowhere.
    fn add_nothing(&mut self, job: &Job, clone: u32) -> u32 {
        let size = self.needed(job, clone, DiskId(0), 0).1;
        self.add(File::new(Layout::Contiguous { start: Sector(0) }, DiskId(0), size, File::OLD, 0))
    }

    fn place(&mut self, job: &Job, clone: u32, name: String, disk: DiskId) -> Result<u32> {
        let raw = is_raw(job, &name);
        let capacity = self.disks[disk.index()].capacity;
        let (append_from, size) = if raw { (0, capacity) } else { self.size_of(&name) };
        let layout =
            if raw { Layout::Contiguous { start: Sector(0) } } else { self.lay_out(job, clone, disk, size)? };
        let is_new = is_written_first(job) && (job.append || !job.fallocate) && !raw;
        let allocated = if is_new { append_from } else { File::OLD };
        let mut file = File::new(layout, disk, size, allocated, append_from);
        file.is_disk = raw;
        if job.metadata == Metadata::Cold && !raw {
            file.forget_map();
        }
        let index = self.add(file);
        self.by_name.insert(name, index);
        Ok(index)
    }

    /// All files of all clones of a job in an ext2 layout. Those that exist before the run were written by
    /// all clones at the same time, each writing its files one after the other.
    fn grow_together(&mut self, job: &Job, client: u64) -> Result<()> {
        let is_new = is_written_first(job);
        let names: Vec<Vec<String>> = (0..job.numjobs).map(|clone| job.file_names(clone)).collect();
        for k in 0..names[0].len() {
            let fresh: Vec<(usize, &String)> = names.iter().map(|n| &n[k]).enumerate().collect();
            let mut side_by_side: Vec<(String, ext2::File, u64, DiskId)> = Vec::new();
            for (clone, name) in fresh {
                if !self.by_name.contains_key(name) && !side_by_side.iter().any(|(n, ..)| n == name) {
                    let disk = self.jobs.disk_of(job, u32::try_from(clone).unwrap_or(0), k);
                    let sector = self.start_of(job, disk);
                    let pid = self.first_pid.wrapping_add(client + clone as u64);
                    let (append_from, size) = self.size_of(name);
                    let old = if is_new { append_from } else { size }.div_ceil(ext2::BLOCK_SECTORS);
                    side_by_side.push((name.clone(), ext2::File::new(sector, pid), old, disk));
                }
            }
            // Block by block, one of each file in turn: files that grow at the same time are interleaved on
            // the disk.
            for block in 0..side_by_side.iter().map(|f| f.2).max().unwrap_or(0) {
                for (name, file, _, disk) in side_by_side.iter_mut().filter(|f| block < f.2) {
                    let size = self.sizes.get(name).map_or(0, |s| s.0.div_ceil(512));
                    let disk = &mut self.disks[disk.index()];
                    let fs = disk.ext2.as_mut().expect("made before the first file");
                    fs.allocate(file, block).map_err(|_| no_space(job, size, disk.capacity))?;
                }
            }
            for (name, file, _, disk) in side_by_side {
                let (append_from, size) = self.size_of(&name);
                let layout = Layout::Grown(Box::new(file));
                let allocated = if is_new { append_from } else { File::OLD };
                let mut file = File::new(layout, disk, size, allocated, append_from);
                if job.metadata == Metadata::Cold {
                    // The indirect blocks are read again in the run, as after a remount.
                    file.forget_map();
                }
                let index = self.add(file);
                self.by_name.insert(name, index);
            }
        }
        Ok(())
    }

    /// Where a job's first file on a disk goes.
    fn start_of(&self, job: &Job, disk: DiskId) -> u64 {
        let disk = &self.disks[disk.index()];
        match job.placement {
            Some(Placement::At(sector)) => sector.0,
            Some(Placement::Percent(p)) => disk.capacity / 100 * u64::from(p),
            None => disk.next,
        }
    }

    /// How much a file holds before an append, and in all, in sectors.
    fn size_of(&self, name: &str) -> (u64, u64) {
        self.sizes.get(name).map_or((0, 0), |&(size, append_from)| (append_from / 512, size.div_ceil(512)))
    }

    /// How much one client needs each of its files to hold before an append, and in all, in bytes. They had
    /// `old` bytes before.
    //= fio-3.33: sizes of files seen after runs with offset, filesize and shared names
    fn needed(&self, job: &Job, clone: u32, disk: DiskId, old: u64) -> (u64, u64) {
        let disk = self.disks[disk.index()].capacity * 512;
        let files = job.file_count();
        let share = |s: job::Size| s.bytes_of(disk) / files;
        let of_file = is_share_of_file(job);
        let bytes = match (job.filesize, job.size) {
            // A share of files that jobs above have made; a share of a size is how long the file is.
            (None, Some(_)) if of_file => 0,
            (Some(f), Some(s)) if of_file => {
                let file = f.bytes_of(disk);
                file.min(s.bytes_of(file).saturating_add(offset(job, clone, old)))
            }
            (Some(f), Some(s)) if job.append => {
                return (f.bytes_of(disk), f.bytes_of(disk) + share(s));
            }
            (Some(f), _) => f.bytes_of(disk),
            // The data begin at the offset. A share is one of what the file was before.
            (None, Some(s)) => share(s) + offset(job, clone, old),
            (None, None) => program_bytes(job, disk),
        };
        (0, bytes)
    }

    fn lay_out(&mut self, job: &Job, clone: u32, disk: DiskId, size: u64) -> Result<Layout> {
        // Of the clones whose files lie on this disk, the first.
        let before = |c: u32| (0..job.file_count()).any(|i| self.jobs.disk_of(job, c, i as usize) == disk);
        let first = clone == 0 || (self.disks.len() > 1 && !(0..clone).any(before));
        let Disk { capacity, next, .. } = self.disks[disk.index()];
        let from = if first { self.start_of(job, disk) } else { next };
        let gap = self.rng.below(GAP_SECTORS_MAX / BLOCK_SECTORS) * BLOCK_SECTORS;
        let start = from + gap;
        let layout = match job.layout {
            job::Layout::Contiguous | job::Layout::Ext2 => Layout::Contiguous { start: Sector(start) },
            job::Layout::Interleaved { piece_bytes } => {
                let piece = u64::from(piece_bytes).div_ceil(512);
                let files = u64::from(job.numjobs.max(2));
                // The last clone's is the longest, if offset_increment makes them differ.
                let size = size.max(self.needed(job, job.numjobs - 1, disk, 0).1.div_ceil(512));
                // All clones' files start with their first pieces side by side.
                let base = if first { start } else { from - (size.div_ceil(piece) * files) * piece };
                let base = base + if first { 0 } else { piece * u64::from(clone) };
                Layout::Interleaved { start: Sector(base), piece, stride: piece * files }
            }
            job::Layout::Scattered => self.scatter(capacity, size),
        };
        let end = layout.end(size);
        if end > capacity {
            return Err(no_space(job, size, capacity));
        }
        self.disks[disk.index()].next = next.max(end);
        Ok(layout)
    }

    /// Pieces anywhere on the disk; they may overlap with other files, which costs a simulation nothing.
    fn scatter(&mut self, capacity: u64, size: u64) -> Layout {
        let slots = (capacity - FIRST_SECTOR.min(capacity / 2)) / SCATTER_SECTORS;
        let pieces = size.div_ceil(SCATTER_SECTORS).max(1);
        let map = (0..pieces).map(|i| {
            let slot = self.rng.below(slots.max(2) - 1);
            (i * SCATTER_SECTORS, Sector(FIRST_SECTOR.min(capacity / 2) + slot * SCATTER_SECTORS))
        });
        Layout::Mapped(map.collect())
    }
}

/// Whether the `size` of a job is a share of each of its files. Of a disk it is a share, too, but of all of
/// them.
//= fio-3.33 HOWTO "size"; with filesize, offset and files of jobs above seen in its logs
pub(super) fn is_share_of_file(job: &Job) -> bool {
    let on_disk = job.is_raw_disk() || job.engine == Engine::Null;
    matches!(job.size, Some(job::Size::Percent(_))) && job.program.is_none() && !on_disk
}

/// Where in files of `whole` bytes a clone's data begin, in bytes. A share of the file is rounded up to a
/// block.
//= fio-3.33: offsets seen in its logs
pub(super) fn offset(job: &Job, clone: u32, whole: u64) -> u64 {
    let block =
        if job.offset_align > 0 { job.offset_align } else { u64::from(job.smallest_block()) }.max(512);
    let bytes = |size: job::Size| match size {
        job::Size::Bytes(bytes) => bytes,
        job::Size::Percent(_) => size.bytes_of(whole).div_ceil(block) * block,
    };
    bytes(job.offset).saturating_add(bytes(job.offset_increment).saturating_mul(u64::from(clone)))
}

/// The size of a program's file in bytes on a disk of `disk` bytes, if the job does not say.
fn program_bytes(job: &Job, disk: u64) -> u64 {
    match job.program {
        Some(Program::DbScan) => TABLE_BYTES,
        Some(Program::StartUp(_)) => startup::spread_bytes(disk),
        Some(Program::Player { bits_per_s }) => {
            player::film_bytes(bits_per_s, job.runtime.unwrap_or(player::LENGTH))
        }
        Some(Program::Replay) => program::REPLAY_BYTES,
        Some(Program::Fsck | Program::Trace) | None => 0,
    }
}

/// Whether the target is the disk itself.
fn is_raw(job: &Job, name: &str) -> bool {
    name.starts_with("/dev/") || job.program == Some(Program::Fsck)
}

/// Whether the job's files do not exist before it writes them. fio lays out what is read, or asked for by
/// `overwrite`.
//= fio-3.33 HOWTO "overwrite", "file_append"
fn is_written_first(job: &Job) -> bool {
    job.program.is_none() && job.rw.direction == Direction::Write && (job.append || !job.overwrite)
}

/// The error of a job whose files do not fit.
pub(super) fn no_space(job: &Job, size: u64, capacity: u64) -> SimError {
    SimError::Job {
        job: job.name.clone(),
        message: format!(
            "its files of {} MiB do not fit the disk of {} MiB; use a smaller size=, fewer numjobs= or a larger disk",
            size / 2048,
            capacity / 2048
        ),
    }
}
