//! Every option, alias and engine that the installed fio lists is known here.

use super::{engines, options, parse};
use std::process::Command;

/// What fio prints, without its colours. `None`: there is no fio.
fn fio(argument: &str) -> Option<String> {
    let out = Command::new("fio").arg(argument).output().ok()?;
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// The first word of each line that has a colon behind it.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|l| l.split_once(": ")).map(|(name, _)| name.trim()).filter(|n| !n.contains(' '))
}

#[test]
fn every_option_and_alias_of_fio_is_known() {
    let Some(all) = fio("--cmdhelp") else { return println!("skipped: no fio") };
    let options: Vec<&str> = names(&all).filter(|n| !n.is_empty()).collect();
    assert!(options.len() > 190, "{options:?}");
    let mut aliases = 0;
    for option in options {
        let help = fio(&format!("--cmdhelp={option}")).unwrap();
        let alias = help.lines().find_map(|l| l.trim().strip_prefix("alias:")).map(str::trim);
        aliases += usize::from(alias.is_some());
        let main = options::find(option).unwrap_or_else(|| panic!("{option} is not known")).0;
        if let Some(alias) = alias {
            let of_alias = options::find(alias).unwrap_or_else(|| panic!("{alias} is not known")).0;
            assert_eq!(of_alias, main, "{alias} is another name for {option}");
        }
    }
    assert!(aliases >= 20, "{aliases} aliases");
}

#[test]
fn every_engine_of_fio_and_its_options_are_known() {
    let Some(all) = fio("--enghelp") else { return println!("skipped: no fio") };
    let known: Vec<&str> = engines::all().collect();
    let listed: Vec<&str> = all.split_whitespace().skip(3).collect();
    assert!(listed.len() > 25, "{listed:?}");
    for engine in listed {
        assert!(known.contains(&engine), "{engine} is not known");
        for option in fio(&format!("--enghelp={engine}")).unwrap().lines().filter_map(|l| l.split_once(": "))
        {
            let key = option.0.trim();
            let is_known = options::find(key).is_some() || engines::refusal_of_option(key).is_some();
            assert!(is_known, "{key} of {engine} is not known");
        }
    }
}

#[test]
fn what_is_not_simulated_is_refused_for_its_own_reason() {
    for (line, reason) in [
        ("ioengine=net", "ioengine=net does I/O over a network and not to a disk"),
        ("ioengine=falloc", "ioengine=falloc changes files' metadata and moves no data"),
        ("ioengine=external:/x.so", "'ioengine=/x.so' is loaded from a file, and not simulated"),
        ("hostname=x", "option 'hostname' belongs to ioengine=net, which is not simulated"),
        ("atomic=1", "option 'atomic' is not simulated, and would change the load; remove it"),
        ("ioengine=libiao", "unknown value 'libiao' for 'ioengine'; did you mean 'libaio'?"),
    ] {
        let reason = reason.replace("'ioengine=/x.so'", "'ioengine=external:/x.so'");
        let error = parse(&format!("[j]\nsize=1m\n{line}\n"), "j").unwrap_err();
        assert_eq!(error.to_string(), format!("j:3: {reason}"));
    }
}

#[test]
fn other_names_mean_the_same() {
    let of = |line: &str| parse(&format!("[j]\nsize=1m\n{line}\n"), "j").unwrap().jobs;
    assert_eq!(of("timeout=5"), of("runtime=5"));
    assert_eq!(of("nr_files=2"), of("nrfiles=2"));
    assert_eq!(of("fill_fs=1\nnrfiles=2"), of("nrfiles=2"), "a size is the limit");
    let full = parse("[j]\nrw=write\nfill_fs=1\n", "j").unwrap().jobs;
    assert_eq!(full[0].filesize, Some(crate::job::Size::Percent(99)));
}
