//! What became of each change: lines of a file, and their sums.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// A test failed.
    Caught,
    /// The tests took too long, which counts as caught.
    TimedOut,
    /// The tests passed.
    Survived,
    /// It does not compile, so it does not count.
    DoesNotCompile,
}

const NAMES: [(Verdict, &str); 4] = [
    (Verdict::Caught, "caught"),
    (Verdict::TimedOut, "timed out"),
    (Verdict::Survived, "SURVIVED"),
    (Verdict::DoesNotCompile, "does not compile"),
];

/// The verdicts so far, and the file that gets the next ones.
pub(crate) struct Verdicts {
    file: File,
    all: BTreeMap<String, Verdict>,
}

/// The verdicts of a text by the name of the change. A line that was cut off has none.
pub(crate) fn read(text: &str) -> BTreeMap<String, Verdict> {
    let line = |line: &str| {
        let mut columns = line.splitn(3, '\t');
        let verdict = columns.next()?;
        let (verdict, _) = NAMES.iter().find(|(_, name)| *name == verdict)?;
        Some((columns.nth(1)?.to_owned(), *verdict))
    };
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter_map(line).collect()
}

impl Verdicts {
    /// Those of a file, which is made if there is none.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let all = read(&std::fs::read_to_string(path).unwrap_or_default());
        let file = OpenOptions::new().append(true).create(true).open(path);
        Ok(Self { file: file.map_err(|e| format!("{}: {e}", path.display()))?, all })
    }

    pub(crate) fn of(&self, name: &str) -> Option<Verdict> {
        self.all.get(name).copied()
    }

    /// Notes what became of a change, and how that is known.
    pub(crate) fn note(&mut self, name: &str, verdict: Verdict, how: &str) -> Result<(), String> {
        self.all.insert(name.to_owned(), verdict);
        writeln!(self.file, "{}", line(name, verdict, how)).map_err(|e| format!("the file of verdicts: {e}"))
    }
}

pub(crate) fn line(name: &str, verdict: Verdict, how: &str) -> String {
    let (_, text) = NAMES.iter().find(|(one, _)| *one == verdict).expect("each verdict has a name");
    format!("{text}\t{how}\t{name}")
}

/// A table of the verdicts: one row for each crate, each folder, and all.
pub(crate) fn table(all: &[(&str, Verdict)]) -> String {
    let mut rows: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for (name, verdict) in all {
        let file = name.split(':').next().unwrap_or_default();
        let krate = file.split('/').take(2).collect::<Vec<_>>().join("/");
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        // A space is before a slash, so a crate comes before its folders and the sum comes last.
        for row in [krate.as_str(), &format!("{krate} {folder}"), "~"] {
            rows.entry(row.to_owned()).or_default()[*verdict as usize] += 1;
        }
    }
    let mut table = String::from("caught timed-out survived no-compile  share\n");
    for (row, [caught, timed_out, survived, no_compile]) in &rows {
        let of = caught + timed_out + survived;
        #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
        let share = 100.0 * (caught + timed_out) as f64 / of.max(1) as f64;
        let row = match row.split_once(' ') {
            Some((_, folder)) => format!("  {folder}"),
            None => row.replace('~', "all"),
        };
        let _ =
            writeln!(table, "{caught:>6} {timed_out:>9} {survived:>8} {no_compile:>10} {share:>5.1}%  {row}");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read_as_they_were_noted_and_a_cut_line_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.tsv");
        let mut verdicts = Verdicts::open(&path).unwrap();
        verdicts.note("a.rs:1:2: + → -", Verdict::Caught, "core t").unwrap();
        verdicts.note("a.rs:3:4: + → -", Verdict::Survived, "3 tests").unwrap();
        write!(verdicts.file, "caught\tx\ta.rs:5:6: + →").unwrap();
        let again = Verdicts::open(&path).unwrap();
        assert_eq!(again.of("a.rs:1:2: + → -"), Some(Verdict::Caught));
        assert_eq!(again.of("a.rs:3:4: + → -"), Some(Verdict::Survived));
        assert_eq!(again.all.len(), 2);
    }

    #[test]
    fn a_table_has_crates_folders_and_the_sum() {
        let all = [
            ("crates/core/src/units.rs:1:1: x", Verdict::Caught),
            ("crates/core/src/parts/fifo.rs:1:1: x", Verdict::Survived),
            ("crates/sim/src/engine/mod.rs:1:1: x", Verdict::TimedOut),
            ("crates/sim/src/engine/mod.rs:2:1: x", Verdict::DoesNotCompile),
        ];
        let expected = "\
caught timed-out survived no-compile  share
     1         0        1          0  50.0%  crates/core
     1         0        0          0 100.0%    crates/core/src
     0         0        1          0   0.0%    crates/core/src/parts
     0         1        0          1 100.0%  crates/sim
     0         1        0          1 100.0%    crates/sim/src/engine
     1         1        1          1  66.7%  all
";
        assert_eq!(table(&all), expected);
    }
}
