//! Just enough of a shell: `for` loops, variables, parentheses, `echo … >`, `ionice`, `cgexec`.
//!
//! A construct that this does not understand and that may decide which job a request belongs to is refused by
//! name: a load that is read wrongly is judged wrongly.

use super::expand::{Token, Variables, is_name, tokens};
use super::process;
use std::ops::Range;

/// A command that matters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Command {
    /// A group gets a weight.
    Weight { group: String, weight: u16 },
    /// `fio` runs in a group.
    Run(process::Run),
}

/// What is not understood, and in which line of the script, counted from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in super::super) struct Refusal {
    pub(in super::super) line: usize,
    pub(in super::super) what: String,
}

/// More than any recording unrolls to.
const COMMANDS_MAX: u32 = 1 << 16;
/// More than any recording nests.
const DEPTH_MAX: u32 = 8;

/// The commands of a script, loops unrolled, each with its line.
pub(super) fn commands(script: &str) -> Result<Vec<(usize, Command)>, Refusal> {
    let mut shell =
        Shell { found: Vec::new(), groups: vec![(String::new(), Variables::default())], commands: 0 };
    shell.script(script, 0, &process::Run::default(), 0)?;
    Ok(shell.found)
}

/// The state of a shell.
struct Shell {
    found: Vec<(usize, Command)>,
    /// The group and the variables, for each open parenthesis.
    groups: Vec<(String, Variables)>,
    commands: u32,
}

/// Tokens that are run, with the place of the script that they are from.
#[derive(Clone, Copy)]
struct Script<'a> {
    tokens: &'a [Token],
    /// What stood before `sh -c`.
    before: &'a process::Run,
    first_line: usize,
    depth: u32,
}

impl Script<'_> {
    fn word(&self, at: usize) -> Option<&str> {
        match self.tokens.get(at) {
            Some(Token::Word { text, .. }) => Some(text),
            _ => None,
        }
    }

    fn refuse<T>(&self, at: usize, what: String) -> Result<T, Refusal> {
        let line = self.tokens.get(at).or(self.tokens.last()).map_or(0, Token::line);
        Err(Refusal { line: self.first_line + line, what })
    }

    /// Where the loop ends whose body begins at `at`: its `done`.
    fn done(&self, at: usize) -> Option<usize> {
        let mut open = 1;
        (at..self.tokens.len()).find(|&at| {
            let is_first = at.checked_sub(1).is_none_or(|before| match &self.tokens[before] {
                Token::Word { text, .. } => matches!(text.as_str(), "do" | "{" | "then" | "else"),
                _ => true,
            });
            match self.word(at).filter(|_| is_first) {
                Some("for" | "while" | "until" | "select") => open += 1,
                Some("done") => open -= 1,
                _ => {}
            }
            open == 0
        })
    }

    /// The words from `at` to what ends a command.
    fn command(&self, at: usize) -> Range<usize> {
        let ends = |t: &Token| matches!(t, Token::End { .. } | Token::Open { .. } | Token::Close { .. });
        let len = self.tokens[at..].iter().position(ends).unwrap_or(self.tokens.len() - at);
        at..at + len
    }
}

impl Shell {
    fn script(
        &mut self,
        text: &str,
        first_line: usize,
        before: &process::Run,
        depth: u32,
    ) -> Result<(), Refusal> {
        let tokens = tokens(text).map_err(|(line, what)| Refusal { line: first_line + line, what })?;
        self.list(Script { tokens: &tokens, before, first_line, depth })
    }

    /// Runs commands one after the other.
    fn list(&mut self, script: Script<'_>) -> Result<(), Refusal> {
        let mut at = 0;
        while let Some(token) = script.tokens.get(at) {
            match token {
                Token::End { .. } | Token::Into { .. } => at += 1,
                Token::Open { .. } => {
                    self.groups.extend(self.groups.last().cloned());
                    at += 1;
                }
                Token::Close { .. } => {
                    if self.groups.len() > 1 {
                        self.groups.pop();
                    }
                    at += 1;
                }
                Token::Word { text, .. } => at = self.statement(script, at, text)?,
            }
        }
        Ok(())
    }

    /// Runs what begins with the word at `at`, and returns where the next begins.
    fn statement(&mut self, script: Script<'_>, at: usize, first: &str) -> Result<usize, Refusal> {
        match first {
            "for" => return self.repeat(script, at),
            "while" | "until" => return script.refuse(at, format!("`{first}`, a loop of unknown length")),
            "if" | "case" | "select" | "function" => {
                return script.refuse(at, format!("`{first}`, whose course the log does not show"));
            }
            "let" | "read" | "eval" | "source" | "." | "xargs" | "parallel" | "systemd-run" | "chrt" => {
                return script.refuse(at, format!("`{first}`, whose effect the log does not show"));
            }
            "{" | "}" | "!" | "then" | "fi" | "do" | "done" | "export" => return Ok(at + 1),
            _ => {}
        }
        self.commands += 1;
        if self.commands > COMMANDS_MAX {
            return script.refuse(at, format!("`for`, with more than {COMMANDS_MAX} commands in all"));
        }
        let command = script.command(at);
        if command.len() == 1 && matches!(script.tokens.get(command.end), Some(Token::Open { .. })) {
            return script.refuse(at, format!("`{first}()`, a function"));
        }
        self.command(script, command.clone())?;
        Ok(command.end)
    }

    /// `for NAME in WORDS; do BODY; done`.
    fn repeat(&mut self, script: Script<'_>, at: usize) -> Result<usize, Refusal> {
        let wrong = |what: &str| script.refuse(at, format!("`for` {what}"));
        let Some(name) = script.word(at + 1).filter(|name| is_name(name)) else {
            return wrong("without a variable");
        };
        if script.word(at + 2) != Some("in") {
            return wrong("without `in WORDS`");
        }
        let words = script.command(at + 3);
        let begin = (words.end..script.tokens.len()).find(|at| script.word(*at) == Some("do"));
        let Some((body, done)) = begin.and_then(|b| Some((b + 1, script.done(b + 1)?))) else {
            return wrong("without `do … done`");
        };
        if script.depth >= DEPTH_MAX {
            return wrong("nested too deeply");
        }
        let values = self.expand(script, words)?;
        if let Some(unknown) = values.iter().find(|v| v.contains(['$', '`'])) {
            return wrong(&format!("{name} in {unknown}: the words are not in the log"));
        }
        let inside = Script { tokens: &script.tokens[body..done], depth: script.depth + 1, ..script };
        for value in values {
            self.variables().set(name, value);
            self.list(inside)?;
        }
        Ok(done + 1)
    }

    fn variables(&mut self) -> &mut Variables {
        &mut self.groups.last_mut().expect("the outermost stays").1
    }

    /// The words of a command with variables in place; a redirection is `>` and its target.
    fn expand(&mut self, script: Script<'_>, command: Range<usize>) -> Result<Vec<String>, Refusal> {
        let mut words = Vec::new();
        for at in command {
            match &script.tokens[at] {
                Token::Into { .. } => words.push(">".to_owned()),
                Token::Word { text, quoted, .. } => {
                    let more = self.variables().expand(text, *quoted);
                    words.extend(more.or_else(|what| script.refuse(at, what))?);
                }
                _ => {}
            }
        }
        Ok(words)
    }

    /// Assignments, and what [`process`] knows.
    fn command(&mut self, script: Script<'_>, command: Range<usize>) -> Result<(), Refusal> {
        let at = command.start;
        let words = self.expand(script, command)?;
        let is_assignment = |word: &&String| word.split_once('=').is_some_and(|(name, _)| is_name(name));
        let assignments = words.iter().take_while(is_assignment).count();
        if assignments == words.len() {
            for (name, value) in words.iter().filter_map(|w| w.split_once('=')) {
                self.variables().set(name, value.to_owned());
            }
            return Ok(());
        }
        let group = &mut self.groups.last_mut().expect("the outermost stays").0;
        let done = process::command(&words[assignments..], group, script.before);
        match done.or_else(|what| script.refuse(at, what))? {
            process::Effect::None => Ok(()),
            process::Effect::Weight { group, weight } => {
                self.found.push((script.first_line, Command::Weight { group, weight }));
                Ok(())
            }
            process::Effect::Fio(run) => {
                let line = script.first_line + script.tokens[at].line();
                self.found.push((line, Command::Run(run)));
                Ok(())
            }
            process::Effect::Script(text, run) => {
                if script.depth >= DEPTH_MAX {
                    return script.refuse(at, "`sh -c`, nested too deeply".to_owned());
                }
                self.groups.push((run.group.clone(), Variables::default()));
                let open = self.groups.len();
                let line = script.first_line + script.tokens[at].line();
                let result = self.script(&text, line, &run, script.depth + 1);
                self.groups.truncate(open.saturating_sub(1).max(1));
                result
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What runs, as `group:words`.
    fn runs(script: &str) -> Vec<String> {
        let found = commands(script).unwrap_or_else(|r| panic!("{script}: {r:?}"));
        let text = |c: &Command| match c {
            Command::Run(run) => format!("{}:{}", run.group, run.words.join(" ")),
            Command::Weight { group, weight } => format!("{group}={weight}"),
        };
        found.iter().map(|(_, c)| text(c)).collect()
    }

    fn refused(script: &str) -> (usize, String) {
        let refusal = commands(script).err().unwrap_or_else(|| panic!("understood: {script}"));
        (refusal.line, refusal.what)
    }

    #[test]
    fn loops_nest_and_sums_are_worked_out() {
        let found = runs("for a in 1 2; do for b in x y; do fio $a$b ${a} $((a*3+1)) & done; done; fio end");
        assert_eq!(found, [":1x 1 4", ":1y 1 4", ":2x 2 7", ":2y 2 7", ":end"]);
    }

    #[test]
    fn a_loop_counts_by_seq_and_by_braces() {
        let all = [":a1", ":a2", ":a3"];
        for words in ["$(seq 3)", "$(seq 1 3)", "`seq 3`", "$(seq 1 1 3)", "{1..3}", "1 {2..3}", "{1,2,3}"] {
            assert_eq!(runs(&format!("for i in {words}; do fio a$i; done")), all, "{words}");
        }
        assert_eq!(
            runs("for i in $(seq 8 -3 2) {5..3}; do fio $i; done"),
            [":8", ":5", ":2", ":5", ":4", ":3"]
        );
        assert_eq!(runs("for i in {0..4..2}\ndo\n fio $i\ndone"), [":0", ":2", ":4"]);
        assert_eq!(runs("N=2; for i in $(seq $N); do fio $i; done"), [":1", ":2"]);
    }

    #[test]
    fn variables_have_their_values() {
        assert_eq!(runs("W='--a=1 --b=2'; i=7; fio $W --c=$io$i"), [":--a=1 --b=2 --c=$io7"]);
        assert_eq!(
            runs("a=1; (a=2; fio $a); fio $a"),
            [":2", ":1"],
            "parentheses have variables of their own"
        );
        assert_eq!(runs("export A=3; fio $A # fio of a comment\n"), [":3"]);
        assert_eq!(runs("fio a \\\n  b"), [":a b"]);
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for (script, part) in [
            ("while true; do fio x; done", "`while`"),
            ("until false; do fio x; done", "`until`"),
            ("if true; then fio x; fi", "`if`"),
            ("case $a in b) fio x;; esac", "`case`"),
            ("f() { fio x; }; f", "`f()`"),
            ("for i in $(ls); do fio $i; done", "$(ls)"),
            ("for i in $LIST; do fio $i; done", "$LIST"),
            ("for i; do fio $i; done", "`for`"),
            ("for ((i=0;i<3;i++)); do fio $i; done", "`((`"),
            ("i=0; ((i++)); fio $i", "`((`"),
            ("eval fio x", "`eval`"),
            ("out=$(fio x)", "$(fio x)"),
            ("fio - <<EOF\n[a]\nEOF", "`<<`"),
            ("echo $W > /sys/fs/cgroup/a/io.bfq.weight", "$W"),
            ("echo 0 > /sys/fs/cgroup/a/io.bfq.weight", "1 to 1000"),
            ("echo 300 > io.bfq.weight", "io.bfq.weight"),
            ("echo 300 | tee /sys/fs/cgroup/a/io.bfq.weight", "`tee`"),
            ("echo $$ > /sys/fs/cgroup/$G/cgroup.procs", "$G"),
            ("fio x & echo $! > /sys/fs/cgroup/a/cgroup.procs", "$!"),
            ("ionice -c3 dd if=$DEV of=/dev/null", "`dd`"),
            ("ionice -c3 -p 5", "`ionice -p`"),
            ("ionice -c 7 fio x", "7"),
            ("ionice -c $C fio x", "$C"),
            ("ionice -n 9 fio x", "9"),
            ("for i in {1..999999}; do for j in {1..999999}; do sleep 1; done; done", "{1..999999}"),
        ] {
            let (line, what) = refused(&format!("sleep 1\n{script}"));
            assert!(what.contains(part), "{script}: {what}");
            assert_eq!(line, 1, "{script}");
        }
    }

    #[test]
    fn no_script_takes_for_ever() {
        let loops = "for a in 1 2 3 4 5 6 7 8 9; do ".repeat(8) + "echo $a" + &"; done".repeat(8);
        assert!(refused(&loops).1.contains("commands"));
        let deep = "for a in 1; do ".repeat(30) + "echo $a" + &"; done".repeat(30);
        assert!(refused(&deep).1.contains("deeply"));
        for script in ["for", "for x in", "for x in 1; do fio"] {
            assert!(refused(script).1.contains("`for`"), "{script}");
        }
        assert!(runs(")))( ( (").is_empty());
        assert!(runs("").is_empty());
    }

    #[test]
    fn weights_as_both_hierarchies_write_them() {
        for line in [
            "echo 300 > /sys/fs/cgroup/blkio/a/b/blkio.bfq.weight",
            "echo 'default 300' > /sys/fs/cgroup/a/b/io.bfq.weight",
            "echo \"8:0 300\" >/sys/fs/cgroup/unified/a/b/io.bfq.weight",
            "G=/sys/fs/cgroup/a; for w in 300; do echo $w > $G/b/io.bfq.weight; done",
        ] {
            assert_eq!(runs(line), ["a/b=300"], "{line}");
        }
    }

    #[test]
    fn a_group_holds_inside_its_parentheses() {
        let found =
            runs("(echo 0 > /sys/fs/cgroup/a/cgroup.procs; exec fio x) & cgexec -g blkio:/b fio y; fio z");
        assert_eq!(found, ["a:x", "/b:y", ":z"]);
        let found = runs("sh -c 'echo $$ > /sys/fs/cgroup/a/cgroup.procs; exec fio x' & fio y");
        assert_eq!(found, ["a:x", ":y"]);
    }
}
