//! Questions, and what comes back: answers as the command line writes them, or one line that says what is
//! wrong.

use fairhead_lab::{Answer, Disk, Job, Question};

/// A question that takes no time.
fn small() -> Question {
    let text = "[reader]\nrw=randread\nsize=256k\nbs=4k\ndirect=1\nnumjobs=2\n".to_owned();
    Question {
        job: Job::Text { name: "small.fio".to_owned(), text },
        schedulers: vec!["deadline".to_owned(), "bfq".to_owned()],
        ..Question::default()
    }
}

fn refused(question: &Question) -> String {
    match question.answer() {
        Ok(_) => panic!("it was answered"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn an_answer_is_the_same_each_time_and_in_every_format() {
    let answer = small().answer().unwrap();
    assert!(answer.json() == small().answer().unwrap().json(), "not the same twice");
    assert!(answer.json() != Question { seed: 2, ..small() }.answer().unwrap().json(), "the seed is ignored");
    assert_eq!(answer.csv().lines().count(), 3);
    assert!(answer.table().starts_with("small.fio on nas2020, host of 2020, seed 1\n"));
    assert!(answer.pictured.is_empty() && answer.why.is_empty());
}

#[test]
fn pictures_and_explanations_change_no_figure() {
    let question = Question { why: Some("reader.0".to_owned()), ..small() };
    let answer = Answer::of(question.plan().unwrap(), true, |_| None).unwrap();
    assert!(answer.outcomes == small().answer().unwrap().outcomes, "a figure has changed");
    assert_eq!(answer.why.len(), 2);
    let page = answer.page("a test").unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Where the time of reader.0 went"));
    assert!(
        answer
            .pictures()
            .unwrap()
            .iter()
            .any(|(name, svg)| name == "throughput-bfq.svg" && svg.contains("<svg"))
    );
}

#[test]
fn a_disk_may_be_a_text() {
    let text = fairhead_device::preset_text("nas2020").unwrap().to_owned();
    let disk = Disk::Toml { name: "mine.toml".to_owned(), text };
    let same = Question { disk, host: Some("2020".to_owned()), ..small() }.answer().unwrap();
    let (same, named) = (same.outcomes, small().answer().unwrap().outcomes);
    assert!(same == named, "the preset and its text differ");
}

#[test]
fn what_is_wrong_is_one_line_that_says_what_would_be_right() {
    let schedulers = |name: &str| Question { schedulers: vec![name.to_owned()], ..small() };
    let job = |text: &str| Question {
        job: Job::Text { name: "j.fio".to_owned(), text: text.to_owned() },
        ..Question::default()
    };
    let set = |text: &str| Question { set: vec![text.to_owned()], ..small() };
    for (question, message) in [
        (schedulers("bfg"), "unknown scheduler 'bfg'; did you mean 'bfq'?"),
        (
            Question { disk: Disk::Named("nas2021".to_owned()), ..small() },
            "unknown disk 'nas2021'; did you mean 'nas2020'?",
        ),
        (
            Question { job: Job::Named("appstart".to_owned()), ..small() },
            "no workload 'appstart'; did you mean 'app-start'?",
        ),
        (job("[a]\nrw=raed\n"), "j.fio:2: unknown value 'raed' for 'rw'; did you mean 'read'?"),
        (
            set("deadline.fifobatch=1"),
            "--set deadline.fifobatch=1: deadline has no tunable 'fifobatch'; did you mean 'fifo_batch'?",
        ),
        (
            Question { runtime: Some("0s".to_owned()), ..small() },
            "'--runtime=0s' is zero; write a time such as --runtime=10s",
        ),
    ] {
        assert_eq!(refused(&question), message);
    }
    let traced = refused(&job("[a]\nfh_startup_trace=mine.trace\n"));
    assert!(traced.contains("there are no files here") && !traced.contains('\n'), "{traced}");
}
