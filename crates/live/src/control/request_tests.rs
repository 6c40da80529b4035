//! Lines and words against what they ask for, and what is said of those that ask for nothing that there is.

use super::change::*;
use super::request::*;
use fairhead_core::sched::any::preset;
use fairhead_core::sched::catalogue::Catalogue;
use fairhead_core::sched::deadline::Deadline;
use fairhead_core::sched::outside::{Factory, Of};
use fairhead_core::units::{Class, Duration, Weight};
use std::num::NonZeroU64;

/// The presets, and one scheduler more.
fn catalogue() -> Catalogue {
    static MINE: Of<Deadline> = Of::named("mine", "deadline again");
    static OUTSIDE: [&dyn Factory; 1] = [&MINE];
    Catalogue::new(&OUTSIDE).unwrap()
}

fn parse(text: &str) -> Request {
    Request::parse(text.as_bytes(), &catalogue()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn refused(text: &str) -> String {
    let message = Request::parse(text.as_bytes(), &catalogue()).unwrap_err();
    assert!(!message.chars().any(char::is_control) && message.len() < 600, "{message:?}");
    message
}

fn words(text: &str) -> Result<Request, String> {
    let line = line_of_words(&text.split(' ').collect::<Vec<_>>())?;
    Request::parse(line.as_bytes(), &catalogue())
}

#[test]
fn each_command_and_each_word_of_it() {
    assert_eq!(parse(r#"{"do":"stats"}"#), Request::Stats);
    assert_eq!(parse(" {\"do\" : \"metrics\"}\r"), Request::Metrics);
    assert_eq!(parse(r#"{"do":"remove","group":"/a//b/"}"#), Request::Remove("a/b".to_owned()));
    assert_eq!(parse(r#"{"do":"make","group":"a"}"#), Request::Make("a".to_owned(), Change::default()));
    let all = r#"{"do":"set","group":"a","weight":300,"leaf_weight":"7","class":"rt","rbps":"50m","wbps":1000,
        "riops":5,"wiops":"max","burst":"1s","min_iops":3,"latency":"5ms"}"#;
    let change = Change {
        weight: Weight::new(300),
        leaf_weight: Weight::new(7),
        class: Some(Class::RealTime),
        rbps: Some(NonZeroU64::new(50 << 20)),
        wbps: Some(NonZeroU64::new(1000)),
        riops: Some(NonZeroU64::new(5)),
        wiops: Some(None),
        burst: Some(Duration::from_secs(1)),
        min_iops: Some(3),
        latency: Some(Some(Duration::from_ms(5))),
    };
    assert_eq!(parse(all), Request::Set("a".to_owned(), change));
    assert_eq!(
        parse(r#"{"do":"set","group":"a","rbps":null}"#),
        Request::Set("a".to_owned(), Change { rbps: Some(None), ..Change::default() })
    );
    let none = Request::Set("a".to_owned(), Change { latency: Some(None), ..Change::default() });
    assert_eq!(parse(r#"{"do":"set","group":"a","latency":null}"#), none);
    assert_eq!(words("set a latency=max"), Ok(none));
    let mut cfq = (preset("cfq").unwrap().config)();
    assert_eq!(parse(r#"{"do":"sched","name":"cfq"}"#), Request::Sched(Box::new(cfq)));
    cfq.set("slice_idle", 4_000_000).unwrap();
    assert_eq!(
        parse(r#"{"do":"sched","name":"cfq","tunables":{"slice_idle":"4ms"}}"#),
        Request::Sched(Box::new(cfq))
    );
    assert_eq!(parse(r#"{"do":"depth","requests":8}"#), Request::Depth(Some(8)));
    assert_eq!(parse(r#"{"do":"depth","requests":"auto"}"#), Request::Depth(None));
    assert_eq!(words("depth 1024"), Ok(Request::Depth(Some(1024))));
    for wrong in ["0", "1025", "-1", "70000", "1.5", "many"] {
        let text = format!(r#"{{"do":"depth","requests":"{wrong}"}}"#);
        assert_eq!(refused(&text), format!("depth {wrong}: 1 to 1024, or auto"));
    }
    assert_eq!(words("depth").unwrap_err(), "depth: which requests?");
    assert_eq!(
        parse(r#"{"do":"tune","tunables":{"quantum":8,"low_latency":false}}"#),
        Request::Tune(vec![
            ("quantum".to_owned(), "8".to_owned()),
            ("low_latency".to_owned(), "0".to_owned())
        ])
    );
}

#[test]
fn a_scheduler_from_outside_is_named_as_a_preset_is() {
    let mut mine = catalogue().find("mine").unwrap().config;
    assert_eq!(words("sched mine"), Ok(Request::Sched(Box::new(mine))));
    mine.set("read_expire", 7_000_000).unwrap();
    assert_eq!(words("sched mine read_expire=7ms"), Ok(Request::Sched(Box::new(mine))));
    assert_eq!(words("sched mien").unwrap_err(), "unknown scheduler 'mien'; did you mean 'mine'?");
    assert!(words("sched elephant").unwrap_err().ends_with(", mine"), "all names are listed");
}

#[test]
fn a_group_is_told_by_words_of_a_command_line() {
    let mut change = Change::default();
    for (key, value) in [("weight", "300"), ("rbps", " 50m "), ("wiops", "max"), ("min_iops", "3")] {
        change.set(key, value).unwrap();
    }
    let set = r#"{"do":"set","group":"a","weight":300,"rbps":"50m","wiops":null,"min_iops":3}"#;
    assert_eq!(parse(set), Request::Set("a".to_owned(), change));
    let mut refused = |key, value| change.set(key, value).unwrap_err();
    assert_eq!(refused("wieght", "3"), "unknown word 'wieght'; did you mean 'weight'?");
    assert_eq!(refused("rbps", "50"), "rbps=50: sizes have a unit: b, k, m, g or t, as in 50m");
    assert_eq!(refused("weight", "0"), "weight=0: 1 to 10000");
}

#[test]
fn words_say_the_same() {
    assert_eq!(words("stats"), Ok(Request::Stats));
    assert_eq!(
        words("set a weight=300 rbps=50m class=idle"),
        Ok(parse(r#"{"do":"set","group":"a","weight":300,"rbps":"50m","class":"idle"}"#))
    );
    assert_eq!(words("remove a/b"), Ok(Request::Remove("a/b".to_owned())));
    assert_eq!(
        words("sched cfq slice_idle=4ms"),
        Ok(parse(r#"{"do":"sched","name":"cfq","tunables":{"slice_idle":"4ms"}}"#))
    );
    assert_eq!(words("tune quantum=8"), Ok(parse(r#"{"do":"tune","tunables":{"quantum":8}}"#)));
    for (text, message) in [
        ("stat", "unknown command 'stat'; did you mean 'stats'?"),
        ("set", "set: which group?"),
        ("set weight=3", "set: which group?"),
        ("set a", "set changes nothing; add a word such as weight=300"),
        ("set a weight", "set: 'weight' has no '='; write weight=300"),
        ("set a wieght=3", "set: unknown word 'wieght'; did you mean 'weight'?"),
        ("set a weight=3 weight=4", "set: weight is said twice"),
        (
            "set a group=b",
            "set: unknown word 'group'; there are weight, leaf_weight, class, rbps, wbps, riops, wiops, burst, min_iops, latency",
        ),
        ("sched", "sched: which name?"),
        ("sched cfq slice_idle", "sched: 'slice_idle' has no '='; write slice_idle=4ms"),
        ("stats now", "stats takes nothing more, such as 'now'"),
        ("tune", "tune changes nothing; add a tunable such as slice_idle=4ms"),
    ] {
        assert_eq!(words(text).unwrap_err(), message, "{text}");
    }
}

#[test]
fn mistakes_name_what_would_be_right() {
    let example = r#"write a line such as {"do":"stats"}"#;
    assert!(refused("").starts_with("not JSON: EOF") && refused("").ends_with(example));
    assert_eq!(refused("[]"), format!("not an object; {example}"));
    assert_eq!(refused("{}"), format!("it does not say what to \"do\"; {example}"));
    assert_eq!(refused(r#"{"do":1}"#), format!("\"do\" is not a word; {example}"));
    for (text, message) in [
        (r#"{"do":"sett"}"#, "unknown command 'sett'; did you mean 'set'?"),
        (
            r#"{"do":"elephant"}"#,
            "unknown command 'elephant'; there are stats, metrics, make, set, remove, sched, tune, depth, exports, export add, export remove, export resize",
        ),
        (r#"{"do":"stats","x":1}"#, "stats takes nothing more, such as 'x'"),
        (r#"{"do":"set","group":3}"#, "set: group is not a text"),
        (r#"{"do":"set","group":"a","weigth":3}"#, "set: unknown word 'weigth'; did you mean 'weight'?"),
        (r#"{"do":"set","group":"a","weight":0}"#, "weight=0: 1 to 10000"),
        (r#"{"do":"set","group":"a","weight":-1}"#, "weight=-1: 1 to 10000"),
        (r#"{"do":"set","group":"a","weight":1e3}"#, "weight=1000.0: 1 to 10000"),
        (r#"{"do":"set","group":"a","weight":[]}"#, "weight: neither a number nor a text"),
        (
            r#"{"do":"set","group":"a","latency":0}"#,
            "latency=0: no disk does that; write a time such as 5ms, or max",
        ),
        (
            r#"{"do":"set","group":"a","latency":5}"#,
            "latency=5: times have a unit: us, ms, s, m or h, as in 8ms",
        ),
        (r#"{"do":"set","group":"a","class":"fast"}"#, "class=fast: rt, be or idle"),
        (r#"{"do":"set","group":"a","rbps":"50"}"#, "rbps=50: sizes have a unit: b, k, m, g or t, as in 50m"),
        (r#"{"do":"set","group":"a","riops":0}"#, "riops=0: would never do anything; max is no limit"),
        (r#"{"do":"set","group":"a","burst":"2h"}"#, "burst=2h: at most an hour"),
        (r#"{"do":"set","group":"a","min_iops":4294967296}"#, "min_iops=4294967296: no disk does that"),
        (r#"{"do":"sched","name":"bqf"}"#, "unknown scheduler 'bqf'; did you mean 'bfq'?"),
        (
            r#"{"do":"sched","name":"cfq","tunables":3}"#,
            r#"tunables: not an object, such as {"slice_idle":"4ms"}"#,
        ),
        (
            r#"{"do":"sched","name":"cfq","tunables":{"quantum":null}}"#,
            "quantum: neither a number nor a text",
        ),
        (
            "{\"do\":\"remove\",\"group\":\"a\\u001b[2Jb\"}",
            "group 'a?[2Jb': control characters are for terminals",
        ),
    ] {
        assert_eq!(refused(text), message, "{text}");
    }
}

#[test]
fn what_is_too_much_is_refused() {
    let deep = format!(r#"{{"do":"make","group":"{}"}}"#, "a/".repeat(17));
    assert!(refused(&deep).contains("at most 16 levels"));
    let long = format!(r#"{{"do":"make","group":"{}"}}"#, "a".repeat(2000));
    assert!(refused(&long).contains("at most 16 levels and 1024 bytes"));
    assert!(refused(&"[".repeat(10_000)).starts_with("not JSON: recursion limit"));
    assert!(refused(&" ".repeat(LINE_MAX + 1)).contains("longer than 65536 bytes"));
    assert!(Request::parse(b"{\"do\":\"\xff\"}", &catalogue()).unwrap_err().starts_with("not JSON"));
}

#[test]
fn requests_about_exports() {
    use super::ExportRequest;
    use crate::nbd::Export;
    let add = |text: &str| match parse(text) {
        Request::Export(ExportRequest::Add(export, change)) => (*export, change),
        other => panic!("{other:?}"),
    };
    let (export, change) = add(r#"{"do":"export add","name":"vm","file":"/srv/vm.img","readonly":true,
        "allow_uid":[1000,"1001"],"allow_gid":7,"connections":4,"group":"a/b","weight":300}"#);
    let expected = Export {
        group: "a/b".to_owned(),
        read_only: true,
        allow_uids: vec![1000, 1001],
        allow_gids: vec![7],
        connections_max: Some(4),
        ..Export::new("vm", "/srv/vm.img")
    };
    assert_eq!((export, change.weight), (expected.clone(), Weight::new(300)));
    let text = "export add vm=/srv/vm.img,readonly,allow_uid=1000,allow_uid=1001,allow_gid=7,connections=4,group=a/b";
    let Ok(Request::Export(ExportRequest::Add(export, _))) = words(text) else { panic!("{text}") };
    assert_eq!(*export, expected);
    let Ok(Request::Export(ExportRequest::Add(export, _))) = words("export add vm=vm.img") else { panic!() };
    assert!(export.file.is_absolute() && export.file.ends_with("vm.img"), "the caller's folder");
    let remove = |force| Ok(Request::Export(ExportRequest::Remove { name: "vm".to_owned(), force }));
    assert_eq!(words("export remove vm"), remove(false));
    assert_eq!(
        (words("export remove vm --force"), words("export remove vm force")),
        (remove(true), remove(true))
    );
    let resize = |size| Ok(Request::Export(ExportRequest::Resize { name: "vm".to_owned(), size }));
    assert_eq!(words("export resize vm 20g"), resize(20 << 30));
    assert_eq!(Ok(parse(r#"{"do":"export resize","name":"vm","size":4096}"#)), resize(4096));
    assert_eq!(words("exports"), Ok(Request::Export(ExportRequest::List)));
    for (text, why) in [
        ("export", "export: add, remove or resize?"),
        ("export ad vm", "export: unknown action 'ad'; did you mean 'add'?"),
        ("export add vm", "export add vm: write NAME=FILE, such as vm1=/srv/vm1.img"),
        ("export add vm=/a,readonly,readonly", "export add: readonly is said twice"),
        ("export add vm=/a,readonly=1", "readonly=1: it has no value"),
        ("export add vm=/a,allow_uid=me", "allow_uid=me: not a number, such as allow_uid=1000"),
        ("export add vm=/a,sice=1", "export add: unknown key 'sice'; there are"),
        ("export remove vm now", "export remove: 'now'; the only word is --force"),
        ("export resize vm 20", "size=20: sizes have a unit"),
        ("export resize vm 20g now", "export resize takes nothing more, such as 'now'"),
        ("exports now", "exports takes nothing more, such as 'now'"),
    ] {
        let message = words(text).unwrap_err();
        assert!(message.starts_with(why), "{text}: {message}");
    }
    assert!(refused(r#"{"do":"export add","name":"vm","file":"vm.img"}"#).contains("not an absolute path"));
    assert!(refused(r#"{"do":"export add","file":"/vm.img"}"#).contains("which name?"));
    assert!(refused(r#"{"do":"export remove","name":"vm","force":1}"#).contains("true or false"));
}
