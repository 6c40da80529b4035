//! Patterns of `*`, `?` and `[…]`, as udev and tuned have them. A backslash takes a character's meaning away.

/// Whether the text fits the pattern.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    fits(&pattern, &text)
}

/// Goes along the text once. Where it does not fit, the last star takes one character more: an earlier star
/// could not do better.
fn fits(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where the last star stands, and how far it reaches.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, t));
            p += 1;
            continue;
        }
        if p == pattern.len() && t == text.len() {
            return true;
        }
        if let Some(length) = text.get(t).and_then(|&c| takes(&pattern[p..], c)) {
            (p, t) = (p + length, t + 1);
            continue;
        }
        let Some((at, reach)) = star.filter(|(_, reach)| *reach < text.len()) else { return false };
        star = Some((at, reach + 1));
        (p, t) = (at + 1, reach + 1);
    }
}

/// How many characters of the pattern stand for the character; `None` if it does not fit.
fn takes(pattern: &[char], c: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['\\', p, ..] => (*p == c).then_some(2),
        ['[', set @ ..] => {
            let end = set.iter().position(|&c| c == ']')?;
            is_in(&set[..end], c).then_some(end + 2)
        }
        [p, ..] => (*p == c).then_some(1),
        [] => None,
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
        assert!(glob("****", "x") && glob("*ab", "aab") && glob("a*b*c", "axbxbxc") && !glob("a*b", "axc"));
        assert!(!glob("[", "[") && !glob("", "x") && !glob("\\", "a") && glob("*", ""));
        // A row of stars does not cost a power of their number.
        assert!(!glob(&"*a".repeat(50), &"a".repeat(49)) && !glob(&"a*".repeat(50), &"b".repeat(1000)));
    }
}
