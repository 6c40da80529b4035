//! A scheduler over many cells.

use crate::advise::EQUAL;

/// The regrets of a scheduler over many cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The geometric mean.
    pub mean: f64,
    /// The regret that nine of ten cells do not exceed (nearest rank).
    pub p90: f64,
    /// The largest.
    pub worst: f64,
    /// The number of cells in which no scheduler is better by [`EQUAL`] or more.
    pub best_in: usize,
    /// The cells and their regrets, the largest first.
    pub cells: Vec<(usize, f64)>,
}

impl Summary {
    /// Sums up the regrets of cells; `None` if there are none.
    ///
    /// ```
    /// use fairhead_sim::arena::Summary;
    /// let summary = Summary::of([(0, 1.0), (1, 4.0)]).unwrap();
    /// assert!((summary.mean - 2.0).abs() < 1e-12);
    /// assert_eq!((summary.worst, summary.best_in, summary.cells[0]), (4.0, 1, (1, 4.0)));
    /// ```
    #[must_use]
    pub fn of(regrets: impl IntoIterator<Item = (usize, f64)>) -> Option<Self> {
        let mut cells: Vec<(usize, f64)> = regrets.into_iter().collect();
        cells.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let worst = cells.first()?.1;
        let sum: f64 = cells.iter().map(|c| libm::log(c.1)).sum();
        #[allow(clippy::cast_precision_loss, reason = "numbers of cells")]
        let mean = libm::exp(sum / cells.len() as f64);
        // A tenth of the cells may be worse.
        let p90 = cells[cells.len() / 10].1;
        let best_in = cells.iter().filter(|c| c.1 < EQUAL).count();
        Some(Self { mean, p90, worst, best_in, cells })
    }
}
