//! Draws the results of runs as pictures and as one page: `fairhead run … --report FILE.html` and
//! `--pictures DIR`.
//!
//! ```text
//!   journal::Sink ─► Recorder ─► Recording ─┐  (bounded: thinned and added up while the run goes on, and said so)
//!   metrics::Outcome ───────────────────────┼─► pictures ─► .svg files
//!   advise::Advice, tables, sentences ──────┘      └──────► page ─► one .html file: no script, style, font or picture from elsewhere
//! ```
//!
//! **Pictures** are SVG, written by this crate and not by a plotting crate. `plotters`, the candidate, fixes
//! each colour in an attribute, so that a page cannot have a dark style or one for print; it writes an
//! element for each dot, so that 20,000 dots take a megabyte; and it places text in pixels, so that a picture
//! that fits 1280 pixels is unreadable at 400. Here text has fixed sizes while the drawing stretches
//! ([`svg`]), and a picture consists of lines, bars and letters only.
//!
//! **The page** has the verdict first, then the tables that the terminal shows, then the pictures behind
//! them, each with its numbers in a table. It can be read without colour (letters, dashes), without a mouse,
//! without a script and on paper.
//!
//! **A sweep** has a page of its own ([`grid`]): bars, lines and heat maps.
//! **The arena** has one, too ([`arena`]): a heat map of regrets for each scheduler.
//!
//! **Figures** are not computed here. They come from [`fairhead_sim::metrics`] and [`fairhead_sim::advise`],
//! with the words of the terminal's tables.

#![forbid(unsafe_code)]

pub mod arena;
#[cfg(test)]
mod boxes;
pub mod grid;
pub mod page;
mod participants;
pub mod pictures;
mod recording;
mod runs;
mod scale;
pub mod svg;
mod table;
mod text;
pub mod verdict;
pub mod words;

pub use participants::Participants;
pub use recording::{Recorder, Recording};
pub use runs::{Run, Runs};
pub use table::{Cell, Table};
