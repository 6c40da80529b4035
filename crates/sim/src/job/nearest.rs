//! "Did you mean …?": the known word nearest to a mistyped one.
//!
//! The distance counts insertions, deletions, substitutions and swaps of neighbours (Damerau's four typing errors, in
//! the "optimal string alignment" form), so `iodpeth` is one step from `iodepth`.
//
//= Damerau 1964, "A technique for computer detection and correction of spelling errors"

/// Words longer than this are not compared: nothing that we know is half as long.
const WORD_CHARS_MAX: usize = 64;

/// The word of `known` nearest to `word`, if one is near enough to be what was meant: at most one mistake in three
/// letters. Of equally near ones the first.
///
/// ```
/// use fairhead_sim::job::nearest;
/// assert_eq!(nearest("iodpeth", ["iodepth", "ioengine"]), Some("iodepth"));
/// assert_eq!(nearest("colour", ["iodepth", "ioengine"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters: Vec<char> = word.chars().take(WORD_CHARS_MAX + 1).flat_map(char::to_lowercase).collect();
    if letters.is_empty() || letters.len() > WORD_CHARS_MAX {
        return None;
    }
    let limit = (letters.len() / 3).max(1);
    known
        .into_iter()
        .map(|k| (distance(&letters, k), k))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// The number of typing errors between `a` and `b`.
fn distance(a: &[char], b: &str) -> usize {
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    // Three rows of the usual table: the one before the last is needed for swaps.
    let mut before_last: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &ca) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &cb) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(ca != cb)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && ca == b[j - 1] && a[i - 1] == cb {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = last;
        last = row;
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(a: &str, b: &str) -> usize {
        distance(&a.chars().collect::<Vec<_>>(), b)
    }

    #[test]
    fn counts_the_four_kinds_of_mistake() {
        assert_eq!(d("deadline", "deadline"), 0);
        assert_eq!(d("dedline", "deadline"), 1, "a letter left out");
        assert_eq!(d("deaddline", "deadline"), 1, "one too many");
        assert_eq!(d("deadlime", "deadline"), 1, "a wrong one");
        assert_eq!(d("daedline", "deadline"), 1, "two swapped");
        assert_eq!(d("", "bfq"), 3);
        assert_eq!(d("cfq", "bfq-v0"), 4);
    }

    #[test]
    fn suggests_only_what_is_near() {
        assert_eq!(nearest("cqf", ["noop", "cfq"]), Some("cfq"));
        assert_eq!(nearest("CFQ", ["noop", "cfq"]), Some("cfq"));
        assert_eq!(nearest("xyz", ["noop", "cfq"]), None);
        assert_eq!(nearest("", ["noop"]), None);
        assert_eq!(nearest(&"n".repeat(100_000), ["noop"]), None);
    }
}
