//! `fairhead reproduce` from the outside, on a few rows.

use std::process::{Command, Output};

use serde_json::Value;

fn reproduce(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).arg("reproduce").args(args).output().unwrap()
}

fn text(args: &[&str]) -> String {
    let out = reproduce(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(String::from_utf8_lossy(&out.stderr), "", "no progress bar in a pipe");
    String::from_utf8(out.stdout).unwrap()
}

/// One group of clients: four published numbers.
const ROW: [&str; 5] = ["cfq-seeky-ssd-2010", "--only", "R001-P-0", "--layouts", "1"];

#[test]
fn json_has_an_object_for_each_published_number() {
    let all: Vec<Value> =
        serde_json::from_str(&text(&[&ROW[..], &["--output-format", "json"]].concat())).unwrap();
    let find = |metric: &str| all.iter().find(|f| f["metric"] == metric).unwrap();
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|f| f["row"] == "R001-P-0" && f["seed"] == 1 && f["layouts"] == 1));
    let aggregate = find("aggrb");
    // docs/reference/published-results.md#21-results, patched run, group 0.
    assert_eq!((&aggregate["published"], &aggregate["calibration"]), (&4409.into(), &false.into()));
    let ours = aggregate["ours"].as_f64().unwrap();
    let error = aggregate["error"].as_f64().unwrap();
    assert!((ours / 4409.0 - 1.0 - error).abs() < 1e-6, "{aggregate}");
}

#[test]
fn the_table_and_csv_have_a_line_for_each_published_number_and_the_seed() {
    let table = text(&[&ROW[..], &["--seed", "9"]].concat());
    assert!(table.contains("1 layout, seed 9\n"), "{table}");
    assert_eq!(table.lines().filter(|l| l.starts_with("R001-P-0 ")).count(), 4, "{table}");
    assert_eq!(text(&[&ROW[..], &["--output-format", "csv"]].concat()).lines().count(), 5);
}

#[test]
fn a_source_without_numbers_has_rows_of_ours() {
    let rows = ["bfq-2010", "--layouts", "1", "--only", "10r-seq-bash-bfq-v8"];
    let table = text(&rows);
    assert!(table.contains("3 are ours alone"), "{table}");
    let json: Vec<Value> =
        serde_json::from_str(&text(&[&rows[..], &["--output-format", "json"]].concat())).unwrap();
    assert!(json.iter().all(|f| f["published"].is_null() && f["error"].is_null() && f["verdict"] == "new"));
    let csv = text(&[&rows[..], &["--output-format", "csv"]].concat());
    assert!(csv.lines().skip(1).all(|l| l.split(',').nth(3) == Some("")), "{csv}");
}

#[test]
fn scans_with_and_without_the_controller_stand_side_by_side() {
    let rows = ["io-controller-v9-2009", "--layouts", "1", "--only", "R003-E-noop"];
    let json: Vec<Value> =
        serde_json::from_str(&text(&[&rows[..], &["--output-format", "json"]].concat())).unwrap();
    let ours = |metric: &str| {
        let f = json.iter().find(|f| f["metric"] == metric).unwrap();
        (f["published"].clone(), f["ours"].as_f64().unwrap(), f["verdict"].as_str().unwrap())
    };
    // docs/reference/published-results.md#41-equal-weights; versions 8 and 9 are one simulation.
    let (without, with) = (ours("without_second"), ours("second"));
    assert_eq!((&without.0, without.2), (&138.into(), "calibrates"));
    assert_eq!((&with.0, with.2), (&serde_json::json!([48.4, 48.8]), "ok"));
    assert_eq!(json.len(), 4);
    assert!(without.1 > 2.5 * with.1, "{without:?} {with:?}");
}

#[test]
fn weights_and_classes_pass_their_check() {
    for (rows, numbers) in [("R003-W-1000-500", 4), ("R003-P", 4)] {
        let table = text(&["io-controller-v9-2009", "--layouts", "1", "--only", rows, "--check"]);
        assert!(table.contains(&format!("{numbers} numbers: ")) && table.contains(" 0 missed"), "{table}");
    }
}

#[test]
fn the_question_that_nobody_answered_has_a_table_marked_as_ours() {
    let rows = ["io-controller-v9-2009", "--layouts", "1", "--only", "R003-Q4-noop"];
    let table = text(&rows);
    let at = table.find("ours, new: no published figures)\n").unwrap_or_else(|| panic!("{table}"));
    let lines: Vec<&str> = table[at..].lines().skip(1).take(3).collect();
    assert_eq!(lines[0], "row                  mean ms  median ms  p99 ms  max ms  readers MB/s");
    assert!(lines[1].starts_with("R003-Q4-noop ") && lines[2].starts_with("R003-Q4-noop+groups "), "{table}");
    assert!(table.contains("10 are ours alone"), "{table}");
}

#[test]
fn a_number_names_the_same_source() {
    let named = text(&ROW);
    assert!(named.starts_with("cfq-seeky-ssd-2010: "), "{named}");
    assert_eq!(text(&[&["001"], &ROW[1..]].concat()), named);
}

#[test]
fn threads_change_nothing() {
    let run = |n| text(&[&ROW[..3], &["--layouts", "2", "--threads", n]].concat());
    assert_eq!(run("1"), run("2"));
}

#[test]
fn check_agrees_with_the_verdicts() {
    let rows = ["cfq-seeky-ssd-2010", "--layouts", "1", "--only", "R001-P"];
    let misses = text(&rows).lines().filter(|l| l.ends_with("MISS")).count();
    let out = reproduce(&[&rows[..], &["--check"]].concat());
    assert_eq!(out.status.code(), Some(i32::from(misses > 0)));
    let errors = String::from_utf8(out.stderr).unwrap();
    assert_eq!(errors.lines().filter(|l| l.contains(": published ")).count(), misses, "{errors}");
}

/// A row whose verdict is clear ends early with `--check`, in the table for people alone.
#[test]
fn a_check_runs_no_longer_than_it_takes_to_judge() {
    let rows = ["bfq-v8-2016", "--only", "S-seq-xterm-bfq"];
    let checked = |more: &[&str]| {
        let out = reproduce(&[&rows[..], &["--check"], more].concat());
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let (early, whole) = (checked(&[]), text(&rows));
    let verdict = |table: &str| {
        let line = table.lines().find(|l| l.starts_with("R004-S-seq-xterm-bfq ")).unwrap();
        line.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!((verdict(&early), verdict(&whole)), ("ok".to_owned(), "ok".to_owned()));
    let note = early.lines().find_map(|l| l.strip_prefix("note: ")?.split_once(" of 16 runs: "));
    let made: u32 = note.unwrap_or_else(|| panic!("{early}")).0.parse().unwrap();
    assert!((3..16).contains(&made) && early.contains("; mean of up to 16 layouts, seed 1\n"), "{early}");
    assert!(!whole.contains(" of 16 runs: ") && whole.contains("; mean of 16 layouts, seed 1\n"), "{whole}");
    let json = ["--output-format", "json"];
    assert_eq!(checked(&json), text(&[&rows[..], &json].concat()));
}

#[test]
fn an_idle_start_has_no_published_time() {
    let rows = ["bfq-v8-2016", "--layouts", "1", "--only", "S-idle-xterm-noop", "--output-format", "json"];
    let json: Vec<Value> = serde_json::from_str(&text(&rows)).unwrap();
    assert_eq!(
        (json.len(), &json[0]["published"], json[0]["verdict"].as_str()),
        (1, &Value::Null, Some("new"))
    );
}

#[test]
fn a_claim_is_judged_in_the_cell_that_it_speaks_of() {
    let rows = ["bfq-2010", "--layouts", "1", "--only", "R002-5r5w-seq-none", "--output-format", "json"];
    let json: Vec<Value> = serde_json::from_str(&text(&rows)).unwrap();
    let claims: Vec<&Value> = json.iter().filter(|f| f["metric"] == "throughput_gain").collect();
    assert_eq!(claims.len(), 2, "one for each CFQ");
    assert!(claims.iter().all(|f| f["published"] == "1.15-1.3"), "{claims:?}");
    let rate = |row: &str| {
        json.iter().find(|f| f["row"] == row && f["metric"] == "throughput").unwrap()["ours"]
            .as_f64()
            .unwrap()
    };
    for claim in claims {
        let gain = rate("R002-5r5w-seq-none-bfq-v8") / rate(claim["row"].as_str().unwrap());
        assert!((claim["ours"].as_f64().unwrap() - gain).abs() < 2e-3, "{claim} {gain}");
    }
}

#[test]
fn what_is_shown_without_a_verdict_has_a_reason() {
    let rows = ["io-controller-v9-2009", "--layouts", "1", "--only", "R003-watch", "--output-format", "json"];
    let json: Vec<Value> = serde_json::from_str(&text(&rows)).unwrap();
    let listed: Vec<&Value> = json.iter().filter(|f| f["verdict"] == "listed").collect();
    assert!(!listed.is_empty() && listed.iter().all(|f| f["reason"].is_string()), "{listed:?}");
}

#[test]
fn what_is_not_there_is_misuse() {
    for (args, line) in [
        (&["bfq-2011"][..], "fairhead: there is no source 'bfq-2011'; did you mean 'bfq-2010'?\n"),
        (
            &["x"],
            "fairhead: there is no source 'x'; known are cfq-timeslices-2004, cfq-seeky-ssd-2010, bfq-2010, \
             io-controller-v9-2009, bfq-v8-2016, icpe24\n",
        ),
        (&["cfq-seeky-ssd-2010", "--only", "R009"], "fairhead: --only R009: no row has that in its id\n"),
    ] {
        let out = reproduce(args);
        assert_eq!(out.status.code(), Some(2));
        assert_eq!(String::from_utf8_lossy(&out.stderr), line);
    }
}

/// A file in the repository.
fn in_repository(name: &str) -> String {
    format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn figures_of_ones_own_stand_beside_the_labs() {
    let file = in_repository("examples/figures/nvme.csv");
    let args = ["--figures", &file, "--layouts", "1", "--check"];
    let table = text(&args);
    assert_eq!(table.lines().filter(|l| l.contains(".fio")).count(), 7, "{table}");
    let json: Vec<Value> =
        serde_json::from_str(&text(&[&args[..], &["--output-format", "json"]].concat())).unwrap();
    assert!(json.iter().all(|f| f["verdict"] == "ok"), "{json:?}");
}

#[test]
fn figures_that_are_missed_or_cannot_be_read_fail_with_one_line() {
    let folder = std::env::temp_dir().join(format!("fairhead-figures-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("mine.csv");
    std::fs::copy(in_repository("examples/figures/depth32.fio"), folder.join("a.fio")).unwrap();
    for (line, code, told) in [
        ("a.fio,none,iops,1000", 1, "a.fio noop iops: published 1000"),
        ("b.fio,none,iops,1000", 2, "mine.csv:2: no job file"),
        ("a.fio,none,ipos,1000", 2, "mine.csv:2: no metric 'ipos'; did you mean 'iops'?"),
    ] {
        std::fs::write(&file, format!("job,scheduler,metric,published\n{line}\n")).unwrap();
        let out = reproduce(&["--figures", file.to_str().unwrap(), "--layouts", "1", "--check"]);
        let error = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{error}");
        assert!(error.contains(told), "{error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_metric_is_in_the_manual() {
    let page = std::fs::read_to_string(in_repository("docs/reproduce.md")).unwrap();
    for m in fairhead_papers::reproduce::METRICS {
        assert!(page.contains(&format!("| `{}` | {} |", m.name, m.unit)), "{}", m.name);
    }
}
