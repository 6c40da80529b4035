//! Records where on the disk requests were, and when, in cells of time and place; a client has each cell at
//! most once.

use fairhead_core::Duration;

/// The first size of cells: about a microsecond times 4 KiB. Both are doubled as often as necessary.
const FIRST_TIME_SHIFT: u32 = 10;
const FIRST_SECTOR_SHIFT: u32 = 3;
/// The most cells that are kept; half as many are shown.
const MOST: usize = 16_000;
/// The approximate number of dots in the width and in the height of a picture.
const ACROSS: u64 = 1000;
const UP: u64 = 360;

/// A cell of a client. Time and place are in units of the cell's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) who: usize,
    pub(crate) row: u64,
    pub(crate) column: u64,
}

/// The cells in which requests began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    time_shift: u32,
    sector_shift: u32,
    cells: Vec<Cell>,
}

impl Default for Cells {
    fn default() -> Self {
        Self { time_shift: FIRST_TIME_SHIFT, sector_shift: FIRST_SECTOR_SHIFT, cells: Vec::new() }
    }
}

impl Cells {
    /// Records that a request of a client began.
    pub(crate) fn mark(&mut self, who: usize, at: Duration, sector: u64) {
        let cell = Cell { who, row: sector >> self.sector_shift, column: at.as_ns() >> self.time_shift };
        if self.cells.last() != Some(&cell) {
            self.cells.push(cell);
        }
        if self.cells.len() >= 2 * MOST {
            self.unite();
            while self.cells.len() > MOST {
                self.coarsen();
            }
        }
    }

    /// Reduces the cells to the number that a picture shows.
    pub(crate) fn finish(&mut self) {
        self.unite();
        while self.cells.len() > MOST / 2 || self.across() > ACROSS || self.up() > UP {
            self.coarsen();
        }
    }

    fn unite(&mut self) {
        self.cells.sort_unstable();
        self.cells.dedup();
    }

    /// Doubles the cells in the direction in which there are more of them than a picture has dots.
    fn coarsen(&mut self) {
        let more_up = self.up() * ACROSS > self.across() * UP;
        let (row, column) = if more_up { (1, 0) } else { (0, 1) };
        self.sector_shift += row;
        self.time_shift += column;
        for c in &mut self.cells {
            (c.row, c.column) = (c.row >> row, c.column >> column);
        }
        self.unite();
    }

    fn across(&self) -> u64 {
        self.cells.iter().map(|c| c.column + 1).max().unwrap_or(0)
    }

    fn up(&self) -> u64 {
        let (low, high) = self.rows();
        high - low
    }

    /// Returns the first row, and the one after the last.
    fn rows(&self) -> (u64, u64) {
        let low = self.cells.iter().map(|c| c.row).min().unwrap_or(0);
        let high = self.cells.iter().map(|c| c.row + 1).max().unwrap_or(0);
        (low, high)
    }

    /// Returns the first sector, and the one after the last, to the precision of a cell.
    pub(crate) fn sectors(&self) -> (u64, u64) {
        let (low, high) = self.rows();
        (low << self.sector_shift, high << self.sector_shift)
    }

    /// Returns all cells, sorted by client, place and time.
    pub(crate) fn all(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the length of a cell in nanoseconds.
    pub(crate) const fn time_ns(&self) -> u64 {
        1 << self.time_shift
    }

    /// Returns the height of a cell in sectors.
    pub(crate) const fn height(&self) -> u64 {
        1 << self.sector_shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests all over a disk of 2 TB, and one stream in a corner of it.
    fn a_million() -> Cells {
        let mut cells = Cells::default();
        for i in 0..1_000_000u64 {
            let at = Duration::from_us(i * 20);
            if i % 2 == 0 {
                cells.mark(0, at, i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32);
            } else {
                cells.mark(1, at, (3 << 30) + i * 8);
            }
        }
        cells.finish();
        cells
    }

    #[test]
    fn a_million_requests_are_some_thousand_cells() {
        let cells = a_million();
        assert!((1000..=MOST / 2).contains(&cells.all().len()), "{}", cells.all().len());
        assert!(cells.across() <= ACROSS && cells.up() <= UP);
        assert_eq!(cells, a_million(), "it is always the same");
        // Every request is in a cell of its client's.
        for i in (1..1_000_000u64).step_by(9998) {
            let column = (i * 20_000) >> cells.time_shift;
            let row = ((3 << 30) + i * 8) >> cells.sector_shift;
            let has = cells.all().contains(&Cell { who: 1, row, column });
            assert!(has, "request {i}");
        }
    }

    #[test]
    fn few_requests_stay_apart() {
        let mut cells = Cells::default();
        cells.mark(0, Duration::from_ms(1), 0);
        cells.mark(0, Duration::from_ms(2), 8);
        cells.finish();
        assert_eq!(cells.all().len(), 2);
        assert_eq!(Cells::default().sectors(), (0, 0));
    }
}
