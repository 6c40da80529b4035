//! fio's command line: jobs without a job file.
//!
//! ```text
//! fio --direct=1 --name=a --rw=randread --size=1g --name=b --rw=write common.fio --output-format=json
//!     └────────┘ └──────────────────────────────┘ └───────────────┘ └────────┘ └───────────────────┘
//!     all jobs    a job                            another          files: read  fio's own: [`Asked`]
//! ```
//!
//! Words are as fio takes them: one dash or two, `--size=1g` or `--size 1g`; what stands before the first
//! `name` is for all jobs, those of files too. `fio` and `sudo` in front are skipped, so that a line may be
//! pasted. Messages name the word instead of a line.
//!
//! What it does not do: shorten words (`--out` for `--output`), or run as a server.
//
//= fio-3.33 HOWTO "Command line options"; the order of files and words, and what takes a value, were seen

use super::JobError;
use super::engines::refusal_of_option;
use super::error::clean;
use super::model::JobFile;
use super::options::{Effect, find};
use super::parse::{Parser, no_job, text_of, unknown_option};
use super::surroundings::{ReadFile, Surroundings};

/// What a command line is called in messages and reports.
const NAME: &str = "command line";

/// The most words of a command line.
const WORDS_MAX: usize = 10_000;

/// Options of fio itself that change nothing here, and whether they have a value.
const DISPLAY: &[(&str, bool)] = &[
    ("eta", true),
    ("eta-newline", true),
    ("eta-interval", true),
    ("status-interval", true),
    ("alloc-size", true),
    ("max-jobs", true),
    ("bandwidth-log", false),
    ("terse-version", true),
    ("append-terse", false),
    ("readonly", false),
    ("warnings-fatal", false),
    ("debug", true),
    ("idle-prof", true),
    ("trigger-file", true),
    ("trigger-timeout", true),
    ("trigger", true),
    ("trigger-remote", true),
    ("aux-path", true),
];

/// Options of fio itself that ask for something else than a run.
const OTHER: &str = "parse-only merge-blktrace-only version help cpuclock-test crctest cmdhelp enghelp showcmd server \
                     daemonize client remote-config inflate-log";

/// Switches of which fio's parser knows that they have no value, beside those that do something here.
const BARE: &str = "bs_unaligned exitall_on_error refill_buffers thread threads verify_only zero_buffers fixedbufs \
                    registerfiles sqthread_poll nonvectored uncached userspace_reap";

/// What fio's own options ask for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// `--output`: the file for the result.
    pub output: Option<String>,
    /// `--output-format=json` or `json+`.
    pub json: bool,
}

/// What a word of the command line is.
enum Word<'a> {
    /// An option of a job: key and value.
    Option(&'a str, Option<&'a str>),
    Output(&'a str),
    Format(&'a str),
    Section(&'a str),
    /// Changes nothing here.
    Display(&'static str),
    /// A job file.
    File(&'a str),
}

/// Splits a line as a shell does: blanks, quotes, and a backslash before a character or a line break.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, Some(q)) if c == q => quote = None,
            ('\\', None | Some('"')) => match chars.next() {
                Some('\n') | None => {}
                Some(c) => word.get_or_insert_default().push(c),
            },
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The words without what stands before them in a terminal, one line in one word split.
fn plain(words: &[String]) -> Vec<String> {
    let mut words = match words {
        [line] if line.contains(" -") || line.starts_with("fio ") => shell_words(line),
        words => words.iter().filter(|w| !matches!(w.trim(), "" | "\\")).cloned().collect(),
    };
    let is_front = |word: &str| matches!(word, "$" | "#" | "sudo" | "fio") || word.ends_with("/fio");
    let front = words.iter().take_while(|w| is_front(w)).count();
    words.drain(..front);
    words
}

/// The word at the front, and how many words it takes.
fn word(words: &[String]) -> Result<(Word<'_>, usize), String> {
    let text = words[0].as_str();
    let Some(option) = text.strip_prefix("--").or_else(|| text.strip_prefix('-')).filter(|o| !o.is_empty())
    else {
        return Ok((Word::File(text), 1));
    };
    let (key, value) = option.split_once('=').map_or((option, None), |(k, v)| (k, Some(v)));
    let taken = if value.is_some() { 1 } else { 2 };
    let behind = || value.or_else(|| words.get(1).map(String::as_str));
    let needed =
        || behind().ok_or_else(|| format!("option '--{}' has no value; write --{key}=…", clean(key)));
    match key {
        "output" => return Ok((Word::Output(needed()?), taken)),
        "output-format" => return Ok((Word::Format(needed()?), taken)),
        "minimal" => return Ok((Word::Format("terse"), 1)),
        "section" => return Ok((Word::Section(needed()?), taken)),
        _ => {}
    }
    if let Some((name, has_value)) = DISPLAY.iter().find(|(name, _)| *name == key) {
        let taken = if *has_value { needed().map(|_| taken)? } else { 1 };
        return Ok((Word::Display(name), taken));
    }
    if OTHER.split_ascii_whitespace().any(|other| other == key) {
        return Err(format!("'--{key}' asks fio for something else than a run; there is no such thing here"));
    }
    if refusal_of_option(key).is_none() && find(key).is_none() {
        return Err(unknown_option(key));
    }
    let is_bare = matches!(find(key), Some((_, Effect::Switch(_))))
        || BARE.split_ascii_whitespace().any(|bare| bare == key);
    if is_bare {
        return Ok((Word::Option(key, value), 1));
    }
    Ok((Word::Option(key, Some(needed()?)), taken))
}

/// What fio's own options on a command line ask for. What is wrong with the line is left out.
#[must_use]
pub fn asked(words: &[String]) -> Asked {
    let words = plain(words);
    let (mut asked, mut at) = (Asked::default(), 0);
    while let Some(rest) = words.get(at..).filter(|rest| !rest.is_empty()) {
        let Ok((word, taken)) = word(rest) else { break };
        match word {
            Word::Output(file) => asked.output = Some(file.to_owned()),
            Word::Format(format) => asked.json |= format.split(',').any(|f| f.starts_with("json")),
            _ => {}
        }
        at += taken;
    }
    asked
}

/// Reads the jobs of fio's command line, and of the job files that it names, by means of `read`.
///
/// # Errors
/// The first thing that is wrong, with its word, or with its file and line.
///
/// ```
/// use fairhead_sim::job::{Surroundings, parse_command_line};
/// let words: Vec<String> = ["--name=a", "--rw=randread", "--size=1g"].map(String::from).into();
/// let none = |_: &str| Err("no files here".to_owned());
/// let file = parse_command_line(&words, &none, &Surroundings::NONE).unwrap();
/// assert_eq!((file.jobs.len(), file.jobs[0].name.as_str()), (1, "a"));
/// ```
pub fn parse_command_line(
    words: &[String],
    read: &ReadFile<'_>,
    around: &Surroundings<'_>,
) -> Result<JobFile, JobError> {
    let words = plain(words);
    let mut line = Line { words: &words, files: Vec::new(), lines: words.len(), parser: Parser::default() };
    let made = line.read(read, around);
    let Line { words, files, parser, .. } = line;
    let name = files.first().map_or(NAME, |f| f.0.as_str()).to_owned();
    let made = made.and_then(|()| parser.finish(&name));
    made.map_err(|(at, message)| match (at as usize, message.is_empty()) {
        (_, true) => {
            let all = files.first().map_or(String::new(), |f| f.2.clone());
            let what = if all.is_empty() {
                "there is no job in it; add one such as --name=reader --size=1g".to_owned()
            } else {
                no_job(&all)
            };
            JobError { file: name, line: 0, message: what }
        }
        (0, _) => JobError { file: name, line: 0, message },
        (at, _) if at <= words.len() => {
            JobError { file: format!("{NAME}, {}", words[at - 1]), line: 0, message }
        }
        (at, _) => {
            let (file, before, _) =
                files.iter().rfind(|f| f.1 < at).map_or((NAME, 0, ""), |f| (&f.0, f.1, ""));
            JobError { file: file.to_owned(), line: u32::try_from(at - before).unwrap_or(0), message }
        }
    })
}

/// A command line while it is read. Its words count as lines, and those of its files as lines behind them.
struct Line<'w> {
    words: &'w [String],
    /// Name, number of lines before, and text of each job file so far.
    files: Vec<(String, usize, String)>,
    lines: usize,
    parser: Parser,
}

impl Line<'_> {
    fn read(&mut self, read: &ReadFile<'_>, around: &Surroundings<'_>) -> Result<(), (u32, String)> {
        if self.words.len() > WORDS_MAX {
            return Err((0, format!("there are {} words; at most {WORDS_MAX}", self.words.len())));
        }
        let (mut at, mut paths, mut is_first) = (0, Vec::new(), true);
        while at < self.words.len() {
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let fail = |message| (number, message);
            let (word, taken) = word(&self.words[at..]).map_err(fail)?;
            match word {
                Word::Option("name", Some(name)) => {
                    self.parser.begin(name, number)?;
                    is_first = false;
                }
                Word::Option(key, value) => {
                    if std::mem::take(&mut is_first) {
                        self.parser.begin("global", number)?;
                    }
                    let value = value.map_or(String::new(), |v| format!("={v}"));
                    self.parser.option(&format!("{key}{value}"), number, around).map_err(fail)?;
                }
                Word::Display(name) => self.parser.ignore(name),
                Word::Section(name) => self.parser.choose(name),
                Word::Output(_) | Word::Format(_) => {}
                Word::File(path) => paths.push((path, number)),
            }
            at += taken;
        }
        for (path, number) in paths {
            let fail = |message| (number, message);
            let bytes = read(path).map_err(fail)?;
            let text = text_of(&bytes).map_err(fail)?.to_owned();
            self.parser.close()?;
            self.files.push((path.to_owned(), self.lines, text.clone()));
            for line in text.lines() {
                self.lines += 1;
                self.parser.line(line, u32::try_from(self.lines).unwrap_or(u32::MAX), around)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Direction, Size};

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn parse(line: &str) -> Result<JobFile, String> {
        let read = |name: &str| match name {
            "g.fio" => Ok(b"[global]\nbs=8k\nsize=4m\n".to_vec()),
            "j.fio" => Ok(b"[q]\nrw=write\n[r]\nsize=1m\n".to_vec()),
            "wrong.fio" => Ok(b"[q]\nsize=1m\niodpeth=3\n".to_vec()),
            name => Err(format!("cannot read '{name}'")),
        };
        parse_command_line(&words(line), &read, &Surroundings::NONE).map_err(|e| e.to_string())
    }

    #[test]
    fn jobs_are_taken_from_fios_command_line() {
        let file =
            parse("fio --bs=16k --name=a --rw=randread --size=1g --norandommap --name=b --size=2g").unwrap();
        let got: Vec<_> =
            file.jobs.iter().map(|j| (j.name.as_str(), j.size, j.bs.read.max_bytes())).collect();
        assert_eq!(got, [("a", Some(Size::Bytes(1 << 30)), 16384), ("b", Some(Size::Bytes(2 << 30)), 16384)]);
        assert!(file.jobs[0].norandommap && !file.jobs[1].norandommap);
        assert_eq!(file.written.global, [("bs", "16k".to_owned())]);
    }

    /// The recipes of many pages: one dash, the name at the end, values as words of their own.
    #[test]
    fn words_may_have_one_dash_and_values_apart() {
        let line = "sudo fio -filename=/dev/sdb1 -direct=1 -iodepth 1 -thread -rw=randrw -rwmixread=70 -ioengine=psync \
                    -bs=16k -size=200G -numjobs=30 -runtime=100 -group_reporting -name=mytest";
        let file = parse(line).unwrap();
        let job = &file.jobs[0];
        assert_eq!((job.name.as_str(), job.numjobs, job.rw.direction), ("mytest", 30, Direction::Mixed));
        assert!(job.direct && job.group_reporting && job.is_raw_disk());
        let global = parse("--name=global --size=1m --name=a").unwrap();
        assert_eq!((global.jobs.len(), global.jobs[0].size), (1, Some(Size::Bytes(1 << 20))));
    }

    #[test]
    fn a_line_in_one_word_is_split_as_a_shell_does() {
        let line = "fio --name=\"two words\" \\\n  --size=1m '--description=a # b' --rw=read".to_owned();
        let none = |_: &str| Err(String::new());
        let file = parse_command_line(&[line], &none, &Surroundings::NONE).unwrap();
        assert_eq!(file.jobs[0].name, "two words");
        assert_eq!(file.jobs[0].description.as_deref(), Some("a # b"));
    }

    #[test]
    fn files_come_behind_the_jobs_of_the_line() {
        let file = parse("--size=2m j.fio --name=x --rw=read").unwrap();
        let got: Vec<_> = file.jobs.iter().map(|j| (j.name.as_str(), j.size)).collect();
        let bytes = |b| Some(Size::Bytes(b));
        assert_eq!(got, [("x", bytes(2 << 20)), ("q", bytes(2 << 20)), ("r", bytes(1 << 20))]);
        let only = parse("--size=2m --section=r j.fio").unwrap();
        assert_eq!(only.jobs.iter().map(|j| j.name.as_str()).collect::<Vec<_>>(), ["r"]);
        // As with fio, [global] of a file is for the jobs of files.
        assert_eq!(parse("g.fio --name=x --size=1m").unwrap().jobs[0].bs.read.max_bytes(), 4096);
    }

    #[test]
    fn fios_own_options_are_read() {
        let wishes = asked(&words("fio --output=o.json --output-format json+ --eta=never --name=a"));
        assert_eq!(wishes, Asked { output: Some("o.json".to_owned()), json: true });
        let file = parse("--eta=always --status-interval 1 --minimal --name=a --size=1m --thread").unwrap();
        assert_eq!(file.notes, ["ignored: eta, status-interval, thread (no effect in a simulation)"]);
        assert_eq!(asked(&words("--minimal --name=a")), Asked::default());
    }

    #[test]
    fn what_is_wrong_with_a_line_names_the_word() {
        for (line, message) in [
            (
                "--name=a --iodpeth=3",
                "command line, --iodpeth=3: unknown option 'iodpeth'; did you mean 'iodepth'?",
            ),
            ("--name=a", "command line, --name=a: job 'a' has no size; write one such as size=1g"),
            ("--name=a --rw", "command line, --rw: option '--rw' has no value; write --rw=…"),
            (
                "--rw=read --size=1m",
                "command line: there is no job in it; add one such as --name=reader --size=1g",
            ),
            ("--name=a --size=1m none", "command line, none: cannot read 'none'"),
            ("wrong.fio", "wrong.fio:3: unknown option 'iodpeth'; did you mean 'iodepth'?"),
            (
                "--name=a --size=1m --client=x",
                "command line, --client=x: '--client' asks fio for something else than a run; there is no such thing here",
            ),
            (
                "--name=a --size=1.5m",
                "command line, --size=1.5m: 'size=1.5m': fio reads up to the decimal point and takes it for 1 without a unit; write a whole number, such as size=1536k",
            ),
        ] {
            assert_eq!(parse(line).unwrap_err(), message, "{line}");
        }
        assert!(parse("g.fio").unwrap_err().starts_with("g.fio: there is no job in it, only [global]"));
    }
}
