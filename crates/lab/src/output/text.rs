//! Text for terminals: lines of words, and bars.

/// Words in lines of at most `width` columns; a longer word has a line of its own.
#[must_use]
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_ascii_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A bar, as long as this many eighths of a character; in whole ones without Unicode. More than nothing is
/// seen.
#[must_use]
pub fn bar(eighths: usize, is_unicode: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let (whole, rest) = (eighths / 8, eighths % 8);
    if is_unicode {
        return "█".repeat(whole) + EIGHTHS[rest];
    }
    "#".repeat((whole + rest / 4).max(usize::from(eighths > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_between_words() {
        assert_eq!(wrapped(" one  two three ", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), Vec::<String>::new());
        assert_eq!(wrapped("longer-than-that", 3), ["longer-than-that"]);
    }

    #[test]
    fn bars_are_as_long_as_asked() {
        assert_eq!([0, 1, 8, 20].map(|n| bar(n, true)), ["", "▏", "█", "██▌"]);
        assert_eq!([0, 1, 8, 19, 20].map(|n| bar(n, false)), ["", "#", "#", "##", "###"]);
    }
}
