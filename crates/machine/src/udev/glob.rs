//! Patterns of `*`, `?` and `[…]`, as udev and tuned have them. A backslash takes a character's meaning away.

/// Whether the text fits the pattern.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    fits(&pattern, &text)
}

fn fits(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        // Two stars are one: a row of them must not cost a power of their number.
        (['*', '*', ..], _) => fits(&pattern[1..], text),
        (['*', rest @ ..], _) => (0..=text.len()).any(|n| fits(rest, &text[n..])),
        (['?', rest @ ..], [_, more @ ..]) => fits(rest, more),
        (['\\', p, rest @ ..], [c, more @ ..]) => p == c && fits(rest, more),
        (['[', set @ ..], [c, more @ ..]) => {
            let Some(end) = set.iter().position(|&c| c == ']') else { return false };
            is_in(&set[..end], *c) && fits(&set[end + 1..], more)
        }
        ([p, rest @ ..], [c, more @ ..]) if p == c => fits(rest, more),
        _ => false,
    }
}

/// Whether the character is in the set `a-z0`, or not in `!a-z0`.
fn is_in(set: &[char], c: char) -> bool {
    let (set, negated) = match set {
        ['!' | '^', rest @ ..] => (rest, true),
        _ => (set, false),
    };
    let mut rest = set;
    let mut found = false;
    while let Some((&first, more)) = rest.split_first() {
        (found, rest) = match more {
            ['-', last, after @ ..] => (found || (first..=*last).contains(&c), after),
            _ => (found || first == c, more),
        };
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(glob("sd[a-z]*", "sda") && glob("sd*[!0-9]", "sda") && !glob("sd*[!0-9]", "sda1"));
        assert!(glob("nvme?n*", "nvme0n1") && !glob("nvme?n*", "sda"));
        assert!(glob("*\\[none\\]*", "[none] bfq") && !glob("\\[none\\]", "n") && glob("", ""));
        assert!(!glob(&"*a".repeat(9), &"b".repeat(20)) && glob("****", "x"));
    }
}
