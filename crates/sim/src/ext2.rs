//! Where ext2 puts a file's blocks.
//!
//! The disk is cut into groups of 32 768 blocks of 4 KiB. A block's *goal* is the one behind the last block
//! of its file; a file without blocks starts in its directory's group, at one of 16 places (*colours*) that
//! its process's number picks. From the goal on the allocator takes the next free block and sets up to 7
//! blocks behind it aside for that file. Every 4 MiB an indirect block comes in between.
//!
//! ```text
//!  group:  |head|  colour 1        colour 2        …         colour 15 |
//!                  aaaaaaaaaaaaaaaabbbbbbbb|aaaaaaaa|bbbbbbbb|aaaaaaaa
//!                  └─ file a, alone ─┘└─ a has run into b: from here on they alternate, 8 blocks (32 KiB) each
//! ```
//!
//! Hence files written alone are in one piece but for a block every 4 MiB, files written side by side end up
//! in pieces of 32 KiB, and a sparse file written at random is laid out in the order of the writing.
//!
//! It does not free blocks, reserve any for root, or know of directories: all files of a [`File::new`] group
//! share one.
//
//= docs/reference/hosts.md#file-layout

/// Sectors of a block.
pub const BLOCK_SECTORS: u64 = 8;
/// Blocks of a group: as many as one block of bitmap has bits.
const GROUP_BLOCKS: u64 = 32_768;
const WORDS: usize = 512;
/// Blocks of inodes in each group: 16 320 inodes of 128 bytes.
//= docs/reference/hosts.md#file-layout
pub const INODE_BLOCKS: u64 = 510;
/// Block and inode bitmap.
pub const BITMAP_BLOCKS: u64 = 2;
/// From one colour's place in a group to the next.
const COLOUR_BLOCKS: u64 = 2048;
const COLOURS: u64 = 16;
/// Blocks that a file has set aside at most, the one being allocated included.
const WINDOW: u64 = 8;
/// Blocks that an inode knows itself.
pub const DIRECT: u64 = 12;
/// Blocks that an indirect block knows.
pub const PER_INDIRECT: u64 = 1024;
/// No block. Block 0 is the superblock's, so it is never a file's.
const HOLE: u32 = 0;

/// The file system: which blocks are taken.
#[derive(Debug, Clone)]
pub struct Ext2 {
    /// Bitmaps of groups that were looked at; a set bit is a taken block.
    groups: Vec<Option<Box<[u64; WORDS]>>>,
    blocks: u64,
    descriptor_blocks: u64,
}

/// A file: its blocks and its allocator's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    group: u64,
    colour: u64,
    blocks: Vec<u32>,
    /// Indirect blocks, in file order.
    indirect: Vec<u32>,
    /// The block last allocated: in the file and on the disk.
    last: Option<(u64, u64)>,
    /// Set aside: the first block and how many.
    window: (u64, u64),
}

/// The disk has no free block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSpace;

/// The blocks of metadata that an allocation changed, for the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touched {
    /// The block of the bitmap.
    pub bitmap: u32,
    /// The block of the inode table.
    pub inode: u32,
    /// The indirect block, if the file's block is known to one.
    pub indirect: Option<u32>,
}

impl File {
    /// An empty file of a process with the number `pid`, whose directory is in the group of `sector`.
    #[must_use]
    pub fn new(sector: u64, pid: u64) -> Self {
        Self {
            group: sector / BLOCK_SECTORS / GROUP_BLOCKS,
            colour: pid % COLOURS,
            blocks: Vec::new(),
            indirect: Vec::new(),
            last: None,
            window: (0, 0),
        }
    }

    /// Returns the place of a block of the file, if it has been allocated.
    #[must_use]
    pub fn block(&self, index: u64) -> Option<u32> {
        usize::try_from(index).ok().and_then(|i| self.blocks.get(i)).copied().filter(|&b| b != HOLE)
    }

    /// How many blocks from `index` on are alike: one after the other on the disk, or all holes; at most
    /// `max`.
    #[must_use]
    pub fn run(&self, index: u64, max: u64) -> u64 {
        let first = self.block(index);
        let is_next = |i: u64| match (first, self.block(index + i)) {
            (Some(first), Some(b)) => u64::from(b) == u64::from(first) + i,
            (None, None) => true,
            _ => false,
        };
        (1..max).find(|&i| !is_next(i)).unwrap_or(max)
    }

    /// How many blocks it reaches to.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Whether it has no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The nearest block to the left that the same indirect block knows, or else that indirect block, or else
    /// the file's own place in its directory's group.
    fn find_near(&self, index: u64) -> u64 {
        let region = region_of(index);
        let first = region.map_or(0, |r| DIRECT + r * PER_INDIRECT);
        let left = (first..index).rev().find_map(|i| self.block(i));
        let own = || region.and_then(|r| self.indirect.get(at(r))).copied().filter(|&b| b != HOLE);
        left.or_else(own).map_or(self.group * GROUP_BLOCKS + self.colour * COLOUR_BLOCKS, u64::from)
    }
}

/// Which indirect block knows a block of a file.
const fn region_of(index: u64) -> Option<u64> {
    if index < DIRECT { None } else { Some((index - DIRECT) / PER_INDIRECT) }
}

/// As an index of a vector.
fn at(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

impl Ext2 {
    /// Makes an empty file system on a disk of `sectors` sectors.
    #[must_use]
    pub fn new(sectors: u64) -> Self {
        // Blocks are counted in 32 bits, as on the disk.
        let blocks = (sectors / BLOCK_SECTORS).min(u64::from(u32::MAX));
        let groups = blocks.div_ceil(GROUP_BLOCKS);
        Self { groups: vec![None; at(groups)], blocks, descriptor_blocks: (groups * 32).div_ceil(4096) }
    }

    /// Allocates block `index` of the file, which has none there.
    ///
    /// # Errors
    /// If the disk is full.
    pub fn allocate(&mut self, file: &mut File, index: u64) -> Result<Touched, NoSpace> {
        let mut goal = match file.last {
            Some((i, b)) if i + 1 == index => b + 1,
            _ => file.find_near(index),
        };
        let mut indirect = None;
        if let Some(r) = region_of(index).map(at) {
            if file.indirect.len() <= r {
                file.indirect.resize(r + 1, HOLE);
            }
            if file.indirect[r] == HOLE {
                let block = self.take(file, goal)?;
                file.indirect[r] = narrow(block);
                goal = block + 1;
            }
            indirect = Some(file.indirect[r]);
        }
        let block = self.take(file, goal)?;
        if file.blocks.len() <= at(index) {
            file.blocks.resize(at(index) + 1, HOLE);
        }
        file.blocks[at(index)] = narrow(block);
        file.last = Some((index, block));
        let bitmap = self.head(block / GROUP_BLOCKS);
        let inode = self.head(file.group) + BITMAP_BLOCKS + file.colour;
        Ok(Touched { bitmap: narrow(bitmap), inode: narrow(inode), indirect })
    }

    /// From the file's window, if the goal is there; else a new block and a new window.
    fn take(&mut self, file: &mut File, goal: u64) -> Result<u64, NoSpace> {
        let (start, count) = file.window;
        if count > 0 && (goal == start || goal + 1 == start) {
            file.window = (start + 1, count - 1);
            return Ok(start);
        }
        for block in start..start + count {
            self.set(block, false);
        }
        file.window = (0, 0);
        let block = self.find_free(goal.min(self.blocks.saturating_sub(1))).ok_or(NoSpace)?;
        self.set(block, true);
        let end = (block / GROUP_BLOCKS + 1) * GROUP_BLOCKS;
        let mut next = block + 1;
        while next < (block + WINDOW).min(end) && !self.is_taken(next) {
            self.set(next, true);
            next += 1;
        }
        file.window = (block + 1, next - block - 1);
        Ok(block)
    }

    fn find_free(&mut self, goal: u64) -> Option<u64> {
        if !self.is_taken(goal) {
            return Some(goal);
        }
        let boundary = (goal + 64) & !63;
        if let Some(block) = (goal + 1..boundary).find(|&b| !self.is_taken(b)) {
            return Some(block);
        }
        let group = goal / GROUP_BLOCKS;
        if let Some(block) = self.find_byte(group, goal % GROUP_BLOCKS).or_else(|| self.find_bit(group)) {
            return Some(block);
        }
        let groups = self.groups.len() as u64;
        (1..groups)
            .map(|i| (group + i) % groups)
            .find_map(|g| self.find_byte(g, 0).or_else(|| self.find_bit(g)))
    }

    /// The first aligned run of 8 free blocks behind `from` in the group, walked back to where its free
    /// blocks begin.
    fn find_byte(&mut self, group: u64, from: u64) -> Option<u64> {
        let words = self.group(group);
        let byte = (from / 8 + u64::from(from > 0)..GROUP_BLOCKS / 8)
            .find(|&b| words[at(b / 8)] >> (b % 8 * 8) & 0xff == 0)?;
        let first = group * GROUP_BLOCKS + byte * 8;
        let limit = first.saturating_sub(7).max(group * GROUP_BLOCKS + from);
        Some((limit..first).rev().take_while(|&b| !self.is_taken(b)).last().unwrap_or(first))
    }

    fn find_bit(&mut self, group: u64) -> Option<u64> {
        let words = self.group(group);
        let word = words.iter().position(|&w| w != u64::MAX)?;
        Some(group * GROUP_BLOCKS + word as u64 * 64 + u64::from(words[word].trailing_ones()))
    }

    fn is_taken(&mut self, block: u64) -> bool {
        let within = block % GROUP_BLOCKS;
        block >= self.blocks || self.group(block / GROUP_BLOCKS)[at(within / 64)] >> (within % 64) & 1 == 1
    }

    fn set(&mut self, block: u64, taken: bool) {
        let within = block % GROUP_BLOCKS;
        let word = &mut self.group(block / GROUP_BLOCKS)[at(within / 64)];
        *word = *word & !(1 << (within % 64)) | u64::from(taken) << (within % 64);
    }

    /// The group's bitmap; at first only its head is taken, and what lies beyond the disk.
    fn group(&mut self, group: u64) -> &mut [u64; WORDS] {
        let (start, head) = (group * GROUP_BLOCKS, self.head(group) + BITMAP_BLOCKS + INODE_BLOCKS);
        let blocks = self.blocks;
        self.groups[at(group)].get_or_insert_with(|| {
            let taken = |b: u64| start + b < head || start + b >= blocks;
            Box::new(std::array::from_fn(|w| {
                (0..64).filter(|bit| taken(w as u64 * 64 + bit)).fold(0, |word, bit| word | 1 << bit)
            }))
        })
    }

    /// The first block behind a group's copies of superblock and descriptors, if it has them.
    fn head(&self, group: u64) -> u64 {
        let copies = if has_superblock(group) { 1 + self.descriptor_blocks } else { 0 };
        group * GROUP_BLOCKS + copies
    }
}

/// Groups 0 and 1 and the powers of 3, 5 and 7 have copies of the superblock.
fn has_superblock(group: u64) -> bool {
    let is_power = |base: u64| {
        let mut g = group;
        while g.is_multiple_of(base) && g > 1 {
            g /= base;
        }
        g == 1
    };
    group <= 1 || [3, 5, 7].into_iter().any(is_power)
}

#[allow(clippy::cast_possible_truncation, reason = "Ext2::new keeps block numbers below 2^32")]
const fn narrow(block: u64) -> u32 {
    block as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 GiB, 32 groups.
    fn disk() -> Ext2 {
        Ext2::new(8 << 20)
    }

    /// The physically contiguous pieces of a file as (first block in the file, blocks).
    fn pieces(file: &File) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        let mut i = 0;
        while i < file.len() {
            let n = file.run(i, file.len() - i);
            all.push((i, n));
            i += n;
        }
        all
    }

    #[test]
    fn a_file_written_alone_has_a_gap_of_one_block_every_4_mib() {
        let (mut fs, mut file) = (disk(), File::new(0, 1));
        (0..3000).for_each(|i| assert!(fs.allocate(&mut file, i).is_ok()));
        assert_eq!(pieces(&file), [(0, 12), (12, 1024), (1036, 1024), (2060, 940)]);
        let (a, b) = (file.block(11).unwrap(), file.block(12).unwrap());
        assert_eq!(b, a + 2, "the indirect block lies between");
        assert_eq!(a, 2048 + 11, "colour 1 begins at block 2048 of the group");
    }

    #[test]
    fn files_that_grow_side_by_side_collide_into_pieces_of_32_kib() {
        let mut fs = disk();
        let mut files = [File::new(0, 1), File::new(0, 2)];
        for i in 0..8192 {
            for file in &mut files {
                assert!(fs.allocate(file, i).is_ok());
            }
        }
        // File a starts 2048 blocks before b; once it has met b's blocks both want the same place.
        let long = |f: &File| pieces(f).iter().filter(|p| p.1 > 1000).count();
        let short = |f: &File| pieces(f).iter().filter(|p| (4..=16).contains(&p.1)).count();
        assert!(long(&files[0]) >= 1, "{:?}", pieces(&files[0]));
        assert!(short(&files[0]) > 100, "{:?}", pieces(&files[0]));
        let mut all: Vec<u32> = files.iter().flat_map(|f| f.blocks.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2 * 8192, "no block is given to both");
    }

    #[test]
    fn a_sparse_file_is_laid_out_in_the_order_of_its_writes() {
        let (mut fs, mut file) = (disk(), File::new(0, 3));
        let order = [900_u64, 100, 500, 101, 300, 20];
        order.iter().for_each(|&i| assert!(fs.allocate(&mut file, i).is_ok()));
        let at: Vec<u32> = order.iter().map(|&i| file.block(i).unwrap()).collect();
        let (low, high) = (at.iter().min().unwrap(), at.iter().max().unwrap());
        assert!(high - low < 64, "880 blocks apart in the file, near each other on the disk: {at:?}");
        assert_eq!(file.block(21), None);
        assert_eq!(file.run(21, 79), 79, "a hole up to block 100");
    }

    #[test]
    fn a_group_that_is_full_spills_into_the_next() {
        let (mut fs, mut file) = (disk(), File::new(0, 15));
        (0..40_000).for_each(|i| assert!(fs.allocate(&mut file, i).is_ok()));
        let last = file.block(39_999).unwrap();
        assert!(u64::from(last) > GROUP_BLOCKS, "{last}");
    }

    #[test]
    fn a_full_disk_says_so() {
        let (mut fs, mut file) = (Ext2::new(1024 * BLOCK_SECTORS), File::new(0, 0));
        let fitted = (0..2000).take_while(|&i| fs.allocate(&mut file, i).is_ok()).count();
        // 1024 blocks less superblock, descriptors, bitmaps and inodes, and one indirect block.
        assert_eq!(fitted, 1024 - 2 - 512 - 1);
    }

    #[test]
    fn superblocks_are_in_groups_of_powers_of_3_5_and_7() {
        let with: Vec<u64> = (0..50).filter(|&g| has_superblock(g)).collect();
        assert_eq!(with, [0, 1, 3, 5, 7, 9, 25, 27, 49]);
    }
}
