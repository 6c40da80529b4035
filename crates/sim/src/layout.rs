//! Where a file's bytes lie on the disk.
//!
//! Nothing decides a disk's speed as much. A [`Layout`] answers, for a range of a file, the pieces of disk it
//! occupies: one piece if the file is contiguous, one per 32 KiB if it was written next to others by an old
//! file system.

use crate::ext2;
use fairhead_core::{Sector, Sectors};

/// A piece of disk: where it starts and how long it is.
pub type Piece = (Sector, Sectors);

/// A file's place on the disk. Offsets and lengths are in sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All in one piece.
    Contiguous {
        /// Where the piece starts.
        start: Sector,
    },
    /// In pieces of one size, at equal distances: `k` files that grew side by side have `stride = k * piece`.
    Interleaved {
        /// Where the first piece starts.
        start: Sector,
        /// How long a piece is.
        piece: u64,
        /// From the start of one piece to the start of the next.
        stride: u64,
    },
    /// Anything else: pieces in file order as (offset in the file, start on disk), each reaching to the next.
    Mapped(Vec<(u64, Sector)>),
    /// Block by block, as the file system allocated them; the only layout that may have holes and that grows.
    Grown(Box<ext2::File>),
}

impl Layout {
    /// The start of a piece that is a hole: no disk at all.
    pub const HOLE: Sector = Sector(u64::MAX);

    /// The piece that starts at `offset`, of at most `len` sectors: as long as the file is contiguous there.
    /// The piece of a hole starts at [`Self::HOLE`].
    #[must_use]
    pub fn piece(&self, offset: u64, len: u32) -> Piece {
        let (start, room) = match self {
            Self::Contiguous { start } => (Sector(start.0 + offset), u64::from(len)),
            Self::Interleaved { start, piece, stride } => {
                let within = offset % piece;
                (Sector(start.0 + offset / piece * stride + within), piece - within)
            }
            Self::Mapped(map) => {
                let i = map.partition_point(|&(at, _)| at <= offset).saturating_sub(1);
                let (at, start) = map[i];
                let room = map.get(i + 1).map_or(u64::MAX, |next| next.0 - offset);
                (Sector(start.0 + (offset - at)), room)
            }
            Self::Grown(file) => {
                let (index, within) = (offset / ext2::BLOCK_SECTORS, offset % ext2::BLOCK_SECTORS);
                let blocks = (within + u64::from(len)).div_ceil(ext2::BLOCK_SECTORS);
                let room = file.run(index, blocks) * ext2::BLOCK_SECTORS - within;
                let at = |block: u32| Sector(u64::from(block) * ext2::BLOCK_SECTORS + within);
                (file.block(index).map_or(Self::HOLE, at), room)
            }
        };
        #[allow(clippy::cast_possible_truncation, reason = "at most len")]
        let n = room.min(u64::from(len)) as u32;
        (start, Sectors(n))
    }

    /// All pieces of `offset..offset + len`, none longer than `max`.
    pub fn pieces(&self, offset: u64, len: u32, max: Sectors) -> impl Iterator<Item = Piece> + '_ {
        let mut done = 0;
        std::iter::from_fn(move || {
            (done < len).then(|| {
                let piece = self.piece(offset + u64::from(done), (len - done).min(max.0));
                done += piece.1.0;
                piece
            })
        })
    }

    /// The highest sector that a file of `size` sectors touches, plus one.
    #[must_use]
    pub fn end(&self, size: u64) -> u64 {
        if size == 0 {
            return 0;
        }
        match self {
            Self::Contiguous { .. } | Self::Interleaved { .. } => self.piece(size - 1, 1).0.0 + 1,
            Self::Grown(file) => {
                let blocks =
                    (0..file.len().min(size.div_ceil(ext2::BLOCK_SECTORS))).filter_map(|i| file.block(i));
                blocks.max().map_or(0, |b| (u64::from(b) + 1) * ext2::BLOCK_SECTORS)
            }
            Self::Mapped(map) => map
                .iter()
                .enumerate()
                .filter(|(_, (at, _))| *at < size)
                .map(|(i, (at, start))| start.0 + map.get(i + 1).map_or(size, |n| n.0.min(size)) - at)
                .max()
                .unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(layout: &Layout, offset: u64, len: u32) -> Vec<(u64, u32)> {
        layout.pieces(offset, len, Sectors(256)).map(|(s, n)| (s.0, n.0)).collect()
    }

    #[test]
    fn a_contiguous_file_is_cut_only_at_the_largest_request() {
        let file = Layout::Contiguous { start: Sector(1000) };
        assert_eq!(pieces(&file, 8, 600), [(1008, 256), (1264, 256), (1520, 88)]);
    }

    #[test]
    fn a_call_of_64_kib_on_pieces_of_32_is_two_requests() {
        let file = Layout::Interleaved { start: Sector(0), piece: 64, stride: 128 };
        assert_eq!(pieces(&file, 128, 128), [(256, 64), (384, 64)]);
        assert_eq!(file.end(128), 192);
    }

    #[test]
    fn a_grown_file_has_pieces_and_holes() {
        let mut fs = ext2::Ext2::new(8 << 20);
        let mut file = ext2::File::new(0, 1);
        for block in [0, 1, 4] {
            fs.allocate(&mut file, block).unwrap();
        }
        let layout = Layout::Grown(Box::new(file));
        // Colour 1 starts at block 2048; block 4 follows block 1 on the disk, in the order of the writing.
        let (hole, first) = (Layout::HOLE.0, 2048 * 8);
        assert_eq!(pieces(&layout, 4, 40), [(first + 4, 12), (hole, 16), (first + 16, 8), (hole, 4)]);
        assert_eq!(layout.end(40), first + 24);
    }

    #[test]
    fn a_map_is_followed_piece_by_piece() {
        let file = Layout::Mapped(vec![(0, Sector(500)), (10, Sector(90)), (30, Sector(7000))]);
        assert_eq!(pieces(&file, 5, 30), [(505, 5), (90, 20), (7000, 5)]);
        assert_eq!(file.end(20), 510);
    }
}
