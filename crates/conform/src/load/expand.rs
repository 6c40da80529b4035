//! Words of a shell: taken apart, and with variables, sums, `$(seq …)` and braces in place.

use std::collections::BTreeMap;

/// A piece of a script, and its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// Without its quotation marks, but not yet expanded.
    Word {
        text: String,
        quoted: bool,
        line: usize,
    },
    /// `;`, `&`, `|` or the end of a line.
    End {
        line: usize,
    },
    Open {
        line: usize,
    },
    Close {
        line: usize,
    },
    /// `>`, whose target follows.
    Into {
        line: usize,
    },
}

impl Token {
    pub(super) fn line(&self) -> usize {
        match self {
            Self::Word { line, .. }
            | Self::End { line }
            | Self::Open { line }
            | Self::Close { line }
            | Self::Into { line } => *line,
        }
    }
}

/// Takes a script apart; an error has its line and what is not understood.
pub(super) fn tokens(script: &str) -> Result<Vec<Token>, (usize, String)> {
    let mut reader = Reader { rest: script, line: 0, word: None, quoted: false, found: Vec::new() };
    while let Some(c) = reader.rest.chars().next() {
        reader.next(c).map_err(|what| (reader.line, what))?;
    }
    reader.end_word();
    Ok(reader.found)
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    /// The word so far.
    word: Option<String>,
    quoted: bool,
    found: Vec<Token>,
}

impl Reader<'_> {
    fn next(&mut self, c: char) -> Result<(), String> {
        let line = self.line;
        match c {
            '\\' => self.escaped(),
            '$' | '`' if inside(self.rest).is_some() => self.word_of(inside(self.rest).unwrap_or(1)),
            '\'' | '"' => return self.quote(c),
            '#' if self.word.is_none() => {
                let len = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = &self.rest[len..];
            }
            '<' if self.rest.starts_with("<<") => return Err("`<<`, a text within the script".to_owned()),
            '(' if self.rest.starts_with("((") => return Err("`((`, an arithmetic command".to_owned()),
            ';' | '&' | '|' | '\n' | '(' | ')' | '>' | '<' => {
                self.end_word();
                self.found.push(match c {
                    '(' => Token::Open { line },
                    ')' => Token::Close { line },
                    '>' => Token::Into { line },
                    // Not a file that a command writes.
                    '<' => Token::Word { text: "<".to_owned(), quoted: true, line },
                    _ => Token::End { line },
                });
                self.line += usize::from(c == '\n');
                self.rest = &self.rest[1..];
                // `2>&1` and `>|`: the sign ends no command.
                if c == '>' {
                    self.rest = self.rest.trim_start_matches(['>', '&', '|']);
                }
            }
            _ if c.is_whitespace() => {
                self.end_word();
                self.rest = &self.rest[c.len_utf8()..];
            }
            _ => self.word_of(c.len_utf8()),
        }
        Ok(())
    }

    /// The number of bytes that belong to the word.
    fn word_of(&mut self, len: usize) {
        let (text, rest) = self.rest.split_at(len);
        self.word.get_or_insert_default().push_str(text);
        self.line += text.matches('\n').count();
        self.rest = rest;
    }

    /// A backslash: joins lines, or takes the meaning of the next sign.
    fn escaped(&mut self) {
        self.rest = &self.rest[1..];
        match self.rest.chars().next() {
            Some('\n') => {
                self.rest = &self.rest[1..];
                self.line += 1;
            }
            Some(c) => self.word_of(c.len_utf8()),
            None => {}
        }
    }

    fn quote(&mut self, mark: char) -> Result<(), String> {
        let Some(len) = self.rest[1..].find(mark) else { return Err(format!("{mark} without its end")) };
        self.rest = &self.rest[1..];
        self.quoted = true;
        self.word_of(len);
        self.rest = &self.rest[1..];
        Ok(())
    }

    fn end_word(&mut self) {
        let quoted = std::mem::take(&mut self.quoted);
        if let Some(text) = self.word.take() {
            self.found.push(Token::Word { text, quoted, line: self.line });
        }
    }
}

/// How long `$(…)`, `$((…))`, `${…}`, `` `…` `` is that the text begins with.
fn inside(text: &str) -> Option<usize> {
    let (begin, open, close) = match text.as_bytes() {
        [b'`', ..] => return text[1..].find('`').map(|len| len + 2),
        [b'$', b'(', ..] => (1, '(', ')'),
        [b'$', b'{', ..] => (1, '{', '}'),
        _ => return None,
    };
    let mut depth = 0;
    for (at, c) in text.char_indices().skip(begin) {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// Whether it can name a variable.
pub(super) fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_letter) && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// More words than any loop of a recording has.
const WORDS_MAX: u64 = 10_000;
/// Longer than any word of a recording, in bytes.
const WORD_MAX: usize = 1 << 16;

/// The variables of a shell.
#[derive(Clone, Default, Debug)]
pub(super) struct Variables {
    known: BTreeMap<String, String>,
}

impl Variables {
    pub(super) fn set(&mut self, name: &str, value: String) {
        self.known.insert(name.to_owned(), value);
    }

    /// The words that a word stands for. What has no value stays as it is written.
    pub(super) fn expand(&self, word: &str, quoted: bool) -> Result<Vec<String>, String> {
        if quoted {
            return Ok(vec![self.replace(word)?]);
        }
        let mut words = Vec::new();
        for word in braces(word)? {
            let text = self.replace(&word)?;
            // A substitution that is not known is one word, whatever is in it.
            let is_known = !text.contains("$(") && !text.contains('`');
            if is_known { words.extend(text.split_whitespace().map(str::to_owned)) } else { words.push(text) }
        }
        Ok(words)
    }

    fn replace(&self, word: &str) -> Result<String, String> {
        let (mut out, mut rest) = (String::new(), word);
        while let Some(at) = rest.find(['$', '`']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let len = inside(rest).unwrap_or_else(|| 1 + name_len(&rest[1..]));
            let (text, after) = rest.split_at(len);
            out.push_str(&self.value(text)?);
            if out.len() > WORD_MAX {
                return Err(format!("a word of more than {WORD_MAX} bytes"));
            }
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    /// What `$NAME`, `${NAME}`, `$((…))` or `$(seq …)` stands for.
    fn value(&self, text: &str) -> Result<String, String> {
        if let Some(inside) = text.strip_prefix("$((").and_then(|t| t.strip_suffix("))")) {
            return Ok(self.sum(inside).map_or_else(|| text.to_owned(), |sum| sum.to_string()));
        }
        let command = text.strip_prefix("$(").and_then(|t| t.strip_suffix(')'));
        let command = command.or_else(|| text.strip_prefix('`').and_then(|t| t.strip_suffix('`')));
        if let Some(command) = command {
            let words = self.replace(command)?;
            let mut words = words.split_whitespace();
            if words.clone().any(|w| matches!(w, "fio" | "ionice") || w.ends_with("/fio")) {
                return Err(format!("{text}, a command whose output is read"));
            }
            if words.next() == Some("seq")
                && let Some(numbers) = seq(words)?
            {
                return Ok(numbers.join(" "));
            }
            return Ok(text.to_owned());
        }
        let name = text.strip_prefix("${").and_then(|t| t.strip_suffix('}')).unwrap_or(&text[1..]);
        Ok(self.known.get(name).cloned().unwrap_or_else(|| text.to_owned()))
    }

    /// Sums and products of numbers and variables.
    fn sum(&self, text: &str) -> Option<i64> {
        let mut total: i64 = 0;
        let (mut product, mut sign, mut operator) = (0_i64, 1_i64, "+".to_owned());
        for token in pieces(text) {
            let name = token.trim_start_matches('$');
            let value = self.known.get(name).map_or(token.as_str(), |value| value.trim());
            if let Ok(number) = value.parse::<i64>() {
                product = match operator.as_str() {
                    "*" => product.checked_mul(number)?,
                    "/" => product.checked_div(number)?,
                    "%" => product.checked_rem(number)?,
                    _ => number,
                };
                continue;
            }
            match token.as_str() {
                "+" | "-" => {
                    total = total.checked_add(sign.checked_mul(product)?)?;
                    sign = if token == "-" { -1 } else { 1 };
                    product = 0;
                }
                "*" | "/" | "%" => {}
                _ => return None,
            }
            operator = token;
        }
        total.checked_add(sign.checked_mul(product)?)
    }
}

/// How long the name is behind a `$`; names of one sign, such as `$$` and `$!`, too.
fn name_len(text: &str) -> usize {
    let len = text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    if len == 0 { usize::from(text.starts_with(['$', '!', '?', '@', '*', '#'])) } else { len }
}

/// Numbers, names and signs.
fn pieces(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut joins = false;
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        let is_word = c.is_ascii_alphanumeric() || c == '_' || c == '$';
        match found.last_mut() {
            Some(last) if joins && is_word && c != '$' => last.push(c),
            _ => found.push(c.to_string()),
        }
        joins = is_word;
    }
    found
}

/// `seq LAST`, `seq FIRST LAST`, `seq FIRST STEP LAST`; `None` for its options and for what has no value.
fn seq<'a>(words: impl Iterator<Item = &'a str>) -> Result<Option<Vec<String>>, String> {
    let Some(numbers) = words.map(|w| w.parse().ok()).collect::<Option<Vec<i64>>>() else { return Ok(None) };
    match numbers[..] {
        [last] => range(1, last, 1),
        [first, last] => range(first, last, 1),
        [first, step, last] if step != 0 => range(first, last, step),
        _ => return Ok(None),
    }
    .map(Some)
}

fn range(first: i64, last: i64, step: i64) -> Result<Vec<String>, String> {
    let is_inside = |n: i64| if step > 0 { n <= last } else { n >= last };
    let numbers = std::iter::successors(Some(first), |n| n.checked_add(step)).take_while(|n| is_inside(*n));
    if last.abs_diff(first) / step.unsigned_abs().max(1) >= WORDS_MAX && is_inside(first) {
        return Err(format!("{{{first}..{last}}}, more than {WORDS_MAX} words"));
    }
    Ok(numbers.map(|n| n.to_string()).collect())
}

/// `a{1..3}` and `a{x,y}`.
fn braces(word: &str) -> Result<Vec<String>, String> {
    let as_it_is = || Ok(vec![word.to_owned()]);
    // `${…}` is no such.
    let begin = word.char_indices().find(|(at, c)| *c == '{' && !word[..*at].ends_with('$'));
    let Some((before, rest)) = begin.map(|(at, _)| (&word[..at], &word[at + 1..])) else { return as_it_is() };
    let Some((inside, after)) = rest.split_once('}').filter(|(inside, _)| !inside.contains('{')) else {
        return as_it_is();
    };
    let middles = if let Some((first, rest)) = inside.split_once("..") {
        let (last, step) = rest.split_once("..").unwrap_or((rest, "1"));
        let [Ok(first), Ok(last), Ok(step)] = [first, last, step].map(str::parse::<i64>) else {
            return Err(format!("'{{{inside}}}', whose ends are no numbers"));
        };
        let step = i64::try_from(step.unsigned_abs().max(1)).unwrap_or(i64::MAX);
        range(first, last, if first <= last { step } else { -step })?
    } else if inside.contains(',') {
        inside.split(',').map(str::to_owned).collect()
    } else {
        return as_it_is();
    };
    let mut words = Vec::new();
    let afters = braces(after)?;
    for middle in &middles {
        words.extend(afters.iter().map(|after| format!("{before}{middle}{after}")));
        if words.len() as u64 > WORDS_MAX {
            return Err(format!("'{word}', more than {WORDS_MAX} words"));
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums() {
        let mut variables = Variables::default();
        variables.set("i", "3".to_owned());
        for (text, value) in [
            ("2*16", Some(32)),
            ("1+2*3-4", Some(3)),
            ("7", Some(7)),
            ("-5", Some(-5)),
            (" i * 2 + $i ", Some(9)),
            ("i%2", Some(1)),
            ("x", None),
            ("9223372036854775807*2", None),
            ("1/0", None),
        ] {
            assert_eq!(variables.sum(text), value, "{text}");
        }
    }

    #[test]
    fn words_keep_what_has_no_value() {
        let mut variables = Variables::default();
        variables.set("a", "x y".to_owned());
        let expand = |word, quoted| variables.expand(word, quoted).unwrap().join("|");
        assert_eq!(expand("$a$b", false), "x|y$b");
        assert_eq!(expand("$a", true), "x y");
        assert_eq!(expand("${a}-$$-${a:-3}", true), "x y-$$-${a:-3}");
        assert_eq!(expand("$(ls -l)", false), "$(ls -l)");
        assert_eq!(expand("p{1..2}{a,b}", false), "p1a|p1b|p2a|p2b");
        assert_eq!(expand("{}", false), "{}");
    }

    #[test]
    fn no_text_makes_it_panic() {
        for text in ["$", "$(", "${", "`", "\\", "'", "\"a", "$((", "{", "{1..", "ä$ö", "a>&2", "{1..a}"] {
            if let Ok(tokens) = tokens(text) {
                for token in tokens {
                    if let Token::Word { text, quoted, .. } = token {
                        let _ = Variables::default().expand(&text, quoted);
                    }
                }
            }
        }
    }
}
