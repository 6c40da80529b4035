//! The text of DiskSim's parameter files: blocks of `key = value,` within braces.
//!
//! ```text
//!     disksim_disk NAME {             a block: its kind, its name
//!        Model = source a.model,      the block in that file, in this place
//!        Zones = [ zone { … }, … ],   a list; of blocks, of words
//!        Bulk sector transfer time = 0.1,   # a comment
//!     }
//!     source b.diskspecs              between blocks: the blocks of that file
//!     instantiate [ disk0 ] as NAME   passed over, as topologies are
//! ```
//!
//! Every entry knows its line, and whether it was read: an entry that was not read is a parameter that
//! DiskSim does not have.
//!
//! What this does not do: know any key.
//= Bucy et al. 2008, The DiskSim Simulation Environment 4.0 Reference Manual, section 3

use crate::params::{ParamError, printable};
use crate::preset::{decimal, nearest_word};
use std::cell::Cell;
use std::rc::Rc;

/// Gives the text of a file that another one names, or says why not.
pub(super) type Files<'a> = &'a mut dyn FnMut(&str) -> Result<String, String>;

/// What stands behind a key.
pub(super) enum Value {
    Word(String),
    List(Vec<Value>),
    Block(Block),
}

struct Entry {
    key: String,
    value: Value,
    line: usize,
    asked: Cell<bool>,
}

/// A block with where it stands, for messages.
pub(super) struct Block {
    /// The words before the brace.
    head: String,
    file: Rc<str>,
    line: usize,
    entries: Vec<Entry>,
}

/// Blocks within blocks, and files within files; DiskSim's have three.
const DEPTH: u32 = 16;

/// The blocks of a file that are not within others, and those of the files that it names between them.
pub(super) fn blocks(text: &str, name: &str, files: Files<'_>) -> Result<Vec<Block>, ParamError> {
    let mut all = Vec::new();
    read_file(text, name, files, 0, &mut all)?;
    Ok(all)
}

fn read_file(
    text: &str,
    name: &str,
    files: Files<'_>,
    depth: u32,
    all: &mut Vec<Block>,
) -> Result<(), ParamError> {
    let mut reader = Reader { text, at: 0, line: 1, from: 1, file: name.into(), files };
    if depth > DEPTH {
        return Err(reader.error("too many files within files"));
    }
    loop {
        let (head, end) = reader.words();
        let words: Vec<&str> = head.split(' ').collect();
        for pair in words.windows(2).filter(|w| w[0] == "source") {
            let inner = reader.source(pair[1])?;
            read_file(&inner, pair[1], reader.files, depth + 1, all)?;
        }
        match end {
            Some('{') => all.push(reader.block(head, depth)?),
            Some('[') => drop(reader.list(depth)?),
            Some(_) => return Err(reader.error("a block NAME { … } is needed")),
            None => return Ok(()),
        }
    }
}

/// Reads the text of one file.
struct Reader<'a, 'f> {
    text: &'a str,
    at: usize,
    line: usize,
    /// The line of the first of the words read last.
    from: usize,
    file: Rc<str>,
    files: Files<'f>,
}

impl Reader<'_, '_> {
    fn error(&self, what: &str) -> ParamError {
        ParamError(format!("{}:{}: {what}", printable(&self.file), self.line))
    }

    fn source(&mut self, file: &str) -> Result<String, ParamError> {
        (self.files)(file).map_err(|e| ParamError(format!("{}:{}: {e}", printable(&self.file), self.from)))
    }

    /// The words up to the next of `{}[],=`, and which it is; comments are left out.
    fn words(&mut self) -> (String, Option<char>) {
        let mut words = String::new();
        let mut comment = false;
        let mut before = true;
        let rest = self.text.get(self.at..).unwrap_or("");
        for (i, c) in rest.char_indices() {
            match c {
                '\n' => {
                    comment = false;
                    self.line += 1;
                }
                '#' => comment = true,
                _ => {}
            }
            if !comment && "{}[],=".contains(c) {
                self.at += i + 1;
                return (words.split_whitespace().collect::<Vec<_>>().join(" "), Some(c));
            }
            if before && !comment && !c.is_whitespace() {
                (before, self.from) = (false, self.line);
            }
            words.push(if comment { ' ' } else { c });
        }
        self.at = self.text.len();
        (words.split_whitespace().collect::<Vec<_>>().join(" "), None)
    }

    /// Returns a value, and whether the block or list continues after it.
    fn value(&mut self, close: char, depth: u32) -> Result<(Option<Value>, bool), ParamError> {
        if depth > DEPTH {
            return Err(self.error("too many blocks within blocks"));
        }
        let (word, end) = self.words();
        let value = match end {
            Some('{') => Value::Block(self.block(word, depth + 1)?),
            Some('[') => Value::List(self.list(depth + 1)?),
            Some(c) if c == ',' || c == close => {
                return Ok((self.word(word, depth)?, c == ','));
            }
            _ => return Err(self.error(&format!("a comma or {close} is needed"))),
        };
        match self.words() {
            (w, Some(',')) if w.is_empty() => Ok((Some(value), true)),
            (w, Some(c)) if w.is_empty() && c == close => Ok((Some(value), false)),
            _ => Err(self.error(&format!("a comma or {close} is needed"))),
        }
    }

    /// A word, or the first block of the file that it names.
    fn word(&mut self, word: String, depth: u32) -> Result<Option<Value>, ParamError> {
        let Some(file) = word.strip_prefix("source ") else {
            return Ok((!word.is_empty()).then_some(Value::Word(word)));
        };
        let (text, mut all) = (self.source(file)?, Vec::new());
        read_file(&text, file, self.files, depth + 1, &mut all)?;
        match all.into_iter().next() {
            Some(block) => Ok(Some(Value::Block(block))),
            None => Err(self.error(&format!("{} has no block NAME {{ … }}", printable(file)))),
        }
    }

    fn list(&mut self, depth: u32) -> Result<Vec<Value>, ParamError> {
        let mut list = Vec::new();
        loop {
            let (value, more) = self.value(']', depth)?;
            list.extend(value);
            if !more {
                return Ok(list);
            }
        }
    }

    /// The inside of a block, its opening brace read.
    fn block(&mut self, head: String, depth: u32) -> Result<Block, ParamError> {
        let mut block = Block { head, file: Rc::clone(&self.file), line: self.line, entries: Vec::new() };
        loop {
            match self.words() {
                (key, Some('=')) => {
                    let line = self.from;
                    let (value, more) = self.value('}', depth)?;
                    let value = value.ok_or_else(|| self.error("a value is needed"))?;
                    block.entries.push(Entry { key, value, line, asked: Cell::new(false) });
                    if !more {
                        return Ok(block);
                    }
                }
                (key, Some('}')) if key.is_empty() => return Ok(block),
                (key, Some(',')) if key.is_empty() => {}
                _ => return Err(self.error("key = value is needed")),
            }
        }
    }
}

impl Block {
    /// Whether it is of a kind, such as `disksim_disk`.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.head.rsplit(' ').nth(1) == Some(kind)
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        self.head.rsplit(' ').next().unwrap_or("")
    }

    /// The word before the brace of a block without a name: `dm_layout_g1`.
    pub(super) fn kind(&self) -> &str {
        self.name()
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        let entry = self.entries.iter().find(|e| e.key == key)?;
        entry.asked.set(true);
        Some(entry)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// What is wrong with a key, in its line; without it, in the line where the block begins.
    pub(super) fn error(&self, key: &str, what: &str) -> ParamError {
        ParamError(self.says(key, what))
    }

    /// Returns the message of an error as text.
    pub(super) fn says(&self, key: &str, what: &str) -> String {
        let line = self.entry(key).map_or(self.line, |e| e.line);
        format!("{}:{line}: {key}: {what}", printable(&self.file))
    }

    fn missing(&self, key: &str) -> ParamError {
        let others = self.entries.iter().filter(|e| !e.asked.get());
        let near = nearest_word(key, others.clone().map(|e| e.key.as_str()));
        match near.and_then(|n| others.clone().find(|e| e.key == n)) {
            Some(e) => {
                self.error(key, &format!("is needed; is it '{}' in line {}?", printable(&e.key), e.line))
            }
            None => self.error(key, "is needed"),
        }
    }

    pub(super) fn word(&self, key: &str) -> Result<&str, ParamError> {
        match self.entry(key).map(|e| &e.value) {
            Some(Value::Word(w)) => Ok(w),
            Some(_) => Err(self.error(key, "a word is needed")),
            None => Err(self.missing(key)),
        }
    }

    /// A number in thousandths, millionths and so on.
    pub(super) fn number(&self, key: &str, unit: u64) -> Result<u64, ParamError> {
        let word = self.word(key)?;
        scaled(word, unit)
            .ok_or_else(|| self.error(key, &format!("{} is no number that is possible", printable(word))))
    }

    /// By how much a number is below zero, if it is.
    pub(super) fn below_zero(&self, key: &str, unit: u64) -> Result<Option<u64>, ParamError> {
        let word = self.word(key)?;
        let Some(size) = word.strip_prefix('-') else { return Ok(None) };
        let size = scaled(size, unit);
        let size = size
            .ok_or_else(|| self.error(key, &format!("{} is no number that is possible", printable(word))))?;
        Ok(Some(size))
    }

    /// A number; absent is zero.
    pub(super) fn optional(&self, key: &str, unit: u64) -> Result<u64, ParamError> {
        if self.has(key) { self.number(key, unit) } else { Ok(0) }
    }

    pub(super) fn count(&self, key: &str) -> Result<u64, ParamError> {
        self.number(key, 1)
    }

    pub(super) fn count32(&self, key: &str) -> Result<u32, ParamError> {
        u32::try_from(self.count(key)?).map_err(|_| self.error(key, "is too large"))
    }

    /// Numbers; absent is none, and what is below zero is zero.
    pub(super) fn numbers(&self, key: &str, unit: u64) -> Result<Vec<u64>, ParamError> {
        let number = |v: &Value| match v {
            Value::Word(w) if w.starts_with('-') => scaled(&w[1..], unit).map(|_| 0),
            Value::Word(w) => scaled(w, unit),
            _ => None,
        };
        if !self.has(key) {
            return Ok(Vec::new());
        }
        let numbers = self.list(key)?.iter().map(number).collect::<Option<_>>();
        numbers.ok_or_else(|| self.error(key, "numbers are needed"))
    }

    pub(super) fn list(&self, key: &str) -> Result<&[Value], ParamError> {
        match self.entry(key).map(|e| &e.value) {
            Some(Value::List(l)) => Ok(l),
            Some(_) => Err(self.error(key, "a list is needed")),
            None => Err(self.missing(key)),
        }
    }

    pub(super) fn block(&self, key: &str) -> Result<&Self, ParamError> {
        match self.entry(key).map(|e| &e.value) {
            Some(Value::Block(b)) => Ok(b),
            Some(_) => Err(self.error(key, "a block is needed")),
            None => Err(self.missing(key)),
        }
    }

    /// A list of blocks.
    pub(super) fn blocks(&self, key: &str) -> Result<Vec<&Self>, ParamError> {
        let mut blocks = Vec::new();
        for v in self.list(key)? {
            let Value::Block(b) = v else { return Err(self.error(key, "a list of blocks is needed")) };
            blocks.push(b);
        }
        Ok(blocks)
    }

    /// Adds a note for each entry that was not read and is not among `known`.
    pub(super) fn unknown(&self, known: &[&str], notes: &mut Vec<String>) {
        let asked = self.entries.iter().filter(|e| e.asked.get()).map(|e| e.key.as_str());
        for e in self.entries.iter().filter(|e| !e.asked.get() && !known.contains(&e.key.as_str())) {
            let near = nearest_word(&e.key, asked.clone().chain(known.iter().copied()));
            let near = near.map_or(String::new(), |n| format!(", did you mean {n}?"));
            let (file, key) = (printable(&self.file), printable(&e.key));
            notes.push(format!("{file}:{}: {key}: no such parameter, passed over{near}", e.line));
        }
    }
}

/// `5`, `5.` or `5.25` times `unit`.
pub(super) fn scaled(word: &str, unit: u64) -> Option<u64> {
    decimal(word.strip_suffix('.').unwrap_or(word), unit)
}
