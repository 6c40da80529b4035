//! What came out of runs, as pictures and as one page: `fairhead run … --report FILE.html` and `--pictures DIR`.
//!
//! ```text
//!   journal::Sink ─► Recorder ─► Recording ─┐  (bounded: thinned and added up while the run goes on, and said so)
//!   metrics::Outcome ───────────────────────┼─► pictures ─► .svg files
//!   advise::Advice, tables, sentences ──────┘      └──────► page ─► one .html file: no script, style, font or picture from elsewhere
//! ```
//!
//! **Pictures** are SVG, written here and not by a plotting crate. `plotters`, the candidate, fixes each colour in an attribute, so that a page
//! cannot turn it dark or print it; it writes an element for each dot, so that 20,000 of them are a megabyte; it puts text at a place in
//! pixels, so that a picture that fits 1280 pixels is unreadable at 400. Here a picture has fixed pixels for what is written and stretches what is
//! drawn ([`svg`]), and it has no more in it than lines, bars and letters.
//!
//! **The page** has the verdict first, then the tables that the terminal shows, then picture by picture what they rest on, each with its
//! numbers in a table behind it. It can be read without colour (letters, dashes), without a mouse, without a script and on paper.
//!
//! **Figures** are not computed here: they are those of [`fairhead_sim::metrics`] and [`fairhead_sim::advise`], in the words of the terminal's tables.
//!
//! What it does not do: know the command line, or run anything.

#![forbid(unsafe_code)]

mod cast;
pub mod page;
pub mod pictures;
mod recording;
mod runs;
mod scale;
pub mod svg;
mod table;
mod verdict;
pub mod words;

pub use cast::Cast;
pub use recording::{Recorder, Recording};
pub use runs::{Run, Runs};
pub use table::{Cell, Table};
