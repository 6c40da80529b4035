//! The picture of `fairhead` without a command: a bar for each way to schedule, and what to do next.
//!
//! ```text
//!   none, deadline, mq-deadline, kyber  ████████████████████████████████████████  20.0s
//!   bfq                                 █▍                                       692ms
//! ```

use super::table::time;
use crate::out::{Colour, Look};
use fairhead_core::Duration;
use fairhead_lab::output::text;

/// Schedulers under which the program takes the same time.
pub(crate) struct Bar {
    /// Their names.
    pub(crate) names: Vec<String>,
    /// How long the program takes to start.
    pub(crate) took: Duration,
}

/// The length of the longest bar, in characters.
const WIDTH: u64 = 32;

/// The picture as text of at most 15 lines.
pub(crate) fn render(bars: &[Bar], look: &Look) -> String {
    let longest = bars.iter().map(|b| b.took).max().unwrap_or(Duration::ZERO);
    let shortest = bars.iter().map(|b| b.took).min().unwrap_or(Duration::ZERO);
    let label = |b: &Bar| b.names.join(", ");
    let width = bars.iter().map(|b| label(b).len()).max().unwrap_or(0);
    let mut text =
        "Ten programs stream from a 7200 rpm disk. One more starts, and is up after:\n\n".to_owned();
    for b in bars {
        let (on, off) = look.paint(if b.took == shortest { Colour::Good } else { Colour::Plain });
        let bar = bar(b.took, longest, look.is_unicode);
        let pad = usize::try_from(WIDTH).unwrap_or(0).saturating_sub(bar.chars().count());
        text.push_str(&format!("  {:width$}  {on}{bar}{off}{:pad$}  {}\n", label(b), "", time(b.took)));
    }
    text.push_str(
        "\nThe disk and the load are the same; only the order of the requests differs.\n\n\
         fairhead doctor         what is wrong with this machine's disks, and the cure\n\
         fairhead advise backup  the best scheduler for a load on a disk, and why\n\
         fairhead run my.fio     your load (a fio job file) under every scheduler\n\
         fairhead --all          this load under every scheduler\n",
    );
    text
}

/// A bar for a time, by the longest.
fn bar(took: Duration, longest: Duration, is_unicode: bool) -> String {
    let eighths = (took.as_ns() * WIDTH * 8).div_ceil(longest.as_ns().max(1)).max(1);
    text::bar(usize::try_from(eighths).unwrap_or(0), is_unicode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(is_coloured: bool, is_unicode: bool) -> Look {
        Look { is_coloured, is_unicode }
    }

    fn bars() -> Vec<Bar> {
        let bar = |names: &[&str], ms| Bar {
            names: names.iter().map(|n| (*n).to_owned()).collect(),
            took: Duration::from_ms(ms),
        };
        vec![bar(&["none", "kyber"], 20_000), bar(&["cfq"], 10_000), bar(&["bfq"], 300)]
    }

    #[test]
    fn bars_are_as_long_as_their_times() {
        let text = render(&bars(), &look(false, true));
        let cells = |name: &str| {
            let line = text.lines().find(|l| l.trim_start().starts_with(name)).unwrap();
            line.chars().filter(|c| *c == '█').count()
        };
        assert_eq!((cells("none, kyber"), cells("cfq"), cells("bfq")), (32, 16, 0));
        assert!(text.contains("  ▌  "), "four eighths of a character: {text}");
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    }

    #[test]
    fn plain_ascii_without_colours_is_plain_ascii() {
        assert!(render(&bars(), &look(false, false)).is_ascii());
        assert!(!render(&bars(), &look(false, true)).contains('\x1b'));
        let coloured = render(&bars(), &look(true, false));
        assert_eq!(coloured.matches("\x1b[32m").count(), 1, "only the best is green: {coloured}");
    }

    #[test]
    fn columns_end_together() {
        let text = render(&bars(), &look(false, true));
        let ends: Vec<usize> = text
            .lines()
            .filter(|l| l.starts_with("  "))
            .map(|l| l.chars().count() - l.rsplit(' ').next().unwrap().chars().count())
            .collect();
        assert!(ends.windows(2).all(|w| w[0] == w[1]), "{text}");
    }
}
