//! What a job file takes from around it: variables of the environment, and a few facts about the host.
//!
//! ```text
//!   size=${SIZE}            with SIZE=64m   ─► size=64m
//!   bs=2*$pagesize                          ─► bs=8192
//!   numjobs=$ncpus          a host of four  ─► numjobs=4
//! ```
//!
//! As with fio, only what stands behind `=` is expanded, and only next to a keyword is there arithmetic:
//! whole numbers with `+ - * /`. fio hands that to `bc`; in the builds of distributions it knows no
//! expressions in parentheses, and neither do we. The keywords are about the simulated host and not about the
//! machine that simulates it: the result is the same everywhere.
//
//= fio-3.33 HOWTO "Environment variables", "Reserved keywords"; parentheses refused by Debian's build, seen with --parse-only

use super::error::clean;
use crate::host::Host;
use std::borrow::Cow;

/// Reads a file: its bytes, or what is wrong with it in one line.
pub type ReadFile<'a> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'a;

/// The environment that a job file may refer to.
pub struct Surroundings<'a> {
    /// The value of a variable of the environment; `None` if it is not set.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file that the job file includes, or says what is wrong with it; `None` if no file can be read.
    pub include: Option<&'a ReadFile<'a>>,
    /// The host that `$ncpus` and `$mb_memory` are about; `None` if there is not one host.
    pub host: Option<&'a Host>,
}

/// Bytes in a page on all hosts.
const PAGE_BYTES: u64 = 4096;
/// The most that a value may grow to.
const EXPANDED_MAX: usize = super::LINE_BYTES_MAX;

impl Surroundings<'_> {
    /// An environment without variables, without other files and without a host.
    pub const NONE: Surroundings<'static> = Surroundings { variable: &|_| None, include: None, host: None };

    /// The value with everything filled in.
    pub(super) fn expand<'v>(&self, value: &'v str, shown: &str) -> Result<Cow<'v, str>, String> {
        if !value.contains('$') {
            return Ok(Cow::Borrowed(value));
        }
        let value = self.variables(value, shown)?;
        let Some(value) = self.keywords(&value, shown)? else { return Ok(Cow::Owned(value)) };
        if !value.contains(['+', '-', '*', '/']) {
            return Ok(Cow::Owned(value));
        }
        let result = sum(&value).ok_or_else(|| {
            format!("'{shown}': '{}' cannot be worked out; write whole numbers with + - * /", clean(&value))
        })?;
        Ok(Cow::Owned(result.to_string()))
    }

    fn variables(&self, mut rest: &str, shown: &str) -> Result<String, String> {
        let mut out = String::new();
        while let Some((before, behind)) = rest.split_once("${") {
            let Some((name, after)) = behind.split_once('}') else {
                return Err(format!("'{shown}': '${{' has no '}}'"));
            };
            out.push_str(before);
            match (self.variable)(name).filter(|value| !value.is_empty()) {
                Some(value) => out.push_str(&value),
                // fio puts nothing in its place, and then says that it cannot read the option.
                None => {
                    let name = clean(name);
                    return Err(format!(
                        "'{shown}': the environment variable '{name}' is not set; run it with {name}=… in front"
                    ));
                }
            }
            if out.len() > EXPANDED_MAX {
                return Err(format!("'{shown}' becomes longer than {EXPANDED_MAX} bytes"));
            }
            rest = after;
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The value with keywords replaced. `None`: there was none.
    fn keywords(&self, value: &str, shown: &str) -> Result<Option<String>, String> {
        let of_host = |fact: fn(&Host) -> u64| self.host.map(fact);
        let known = [
            ("$pagesize", Some(PAGE_BYTES)),
            ("$mb_memory", of_host(|h| h.memory >> 20)),
            ("$ncpus", of_host(|h| u64::from(h.cpus))),
        ];
        let mut out = value.to_owned();
        for (word, number) in known.into_iter().filter(|(word, _)| value.contains(word)) {
            let Some(number) = number else {
                return Err(format!(
                    "'{shown}': {word} is a host's, and there is not one host; write the value"
                ));
            };
            out = out.replace(word, &number.to_string());
        }
        Ok((out != value).then_some(out))
    }
}

/// `8*24000+1`: products before sums, whole numbers, left to right.
fn sum(text: &str) -> Option<u64> {
    let mut total: i128 = 0;
    let mut rest = text.trim();
    let mut sign = 1;
    loop {
        let end = rest.find(['+', '-']).unwrap_or(rest.len());
        total = total.checked_add(sign * product(&rest[..end])?)?;
        let Some(operator) = rest[end..].chars().next() else { break };
        sign = if operator == '-' { -1 } else { 1 };
        rest = &rest[end + 1..];
    }
    u64::try_from(total).ok()
}

fn product(text: &str) -> Option<i128> {
    let mut result: Option<i128> = None;
    let mut rest = text;
    let mut divides = false;
    loop {
        let end = rest.find(['*', '/']).unwrap_or(rest.len());
        let factor = i128::from(rest[..end].trim().parse::<u64>().ok()?);
        result = Some(match result {
            None => factor,
            Some(before) if divides => before.checked_div(factor)?,
            Some(before) => before.checked_mul(factor)?,
        });
        let Some(operator) = rest[end..].chars().next() else { return result };
        divides = operator == '/';
        rest = &rest[end + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(value: &str) -> Result<String, String> {
        let host = Host { cpus: 4, memory: 3 << 30, ..Host::named("2020").unwrap() };
        let variable = |name: &str| match name {
            "SIZE" => Some("64m".to_owned()),
            "EMPTY" => Some(String::new()),
            "DEEP" => Some("$ncpus".to_owned()),
            _ => None,
        };
        let around = Surroundings { variable: &variable, include: None, host: Some(&host) };
        around.expand(value, "o=v").map(Cow::into_owned)
    }

    #[test]
    fn variables_and_keywords_are_filled_in() {
        for (value, expanded) in [
            ("64m", "64m"),
            ("${SIZE}", "64m"),
            ("a${SIZE}b${SIZE}", "a64mb64m"),
            ("$ncpus", "4"),
            ("2*$pagesize", "8192"),
            ("8*$mb_memory-2*3", "24570"),
            ("$pagesize/3*2", "2730"),
            ("10+$pagesize", "4106"),
            ("${DEEP}", "4"),
            ("$other", "$other"),
        ] {
            assert_eq!(expand(value).as_deref(), Ok(expanded), "{value}");
        }
    }

    #[test]
    fn what_cannot_be_filled_in_is_told() {
        for (value, message) in [
            ("${NONE}", "'o=v': the environment variable 'NONE' is not set; run it with NONE=… in front"),
            ("${EMPTY}", "'o=v': the environment variable 'EMPTY' is not set; run it with EMPTY=… in front"),
            ("${SIZE", "'o=v': '${' has no '}'"),
            ("$ncpus*k", "'o=v': '4*k' cannot be worked out; write whole numbers with + - * /"),
            ("$ncpus-5", "'o=v': '4-5' cannot be worked out; write whole numbers with + - * /"),
            ("$ncpus/0", "'o=v': '4/0' cannot be worked out; write whole numbers with + - * /"),
        ] {
            assert_eq!(expand(value), Err(message.to_owned()), "{value}");
        }
        let none = Surroundings::NONE.expand("$ncpus", "o=v").unwrap_err();
        assert_eq!(none, "'o=v': $ncpus is a host's, and there is not one host; write the value");
        assert_eq!(Surroundings::NONE.expand("$pagesize", "o=v").unwrap(), "4096");
    }
}
