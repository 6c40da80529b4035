use super::*;

const MS: Duration = Duration::from_ms(1);
const NS: Duration = Duration::from_ns(1);
const NONE: Duration = Duration::ZERO;

/// A disk of the first guess of the rate: interactive raising lasts for 10.5 s.
const SPEED: Speed = Speed { peak: 9333, greedy: false };

fn rule() -> Raise {
    Raise {
        setting: Setting {
            on: true,
            interactive: true,
            soft: true,
            factor: 30,
            len: NONE,
            soft_len: MS * 300,
            service_max: 120_000,
            idle_min: MS * 2000,
            async_quiet: MS * 500,
            soft_rate: 7000,
            greedy_within: MS * 24,
            tick: NS,
            rotational: true,
            as_kernel: false,
        },
    }
}

fn with(change: impl FnOnce(&mut Setting)) -> Raise {
    let mut rule = rule();
    change(&mut rule.setting);
    rule
}

fn at(ms: u64) -> Instant {
    Instant::EPOCH + MS * ms
}

fn view(ms: u64) -> View {
    View::at(at(ms))
}

/// A queue that was created at 0, and is not raised.
fn plain() -> Raising {
    Raising::new(at(0))
}

/// A queue that is raised as interactive since `start`, for 10 s.
fn interactive(start: u64) -> Raising {
    Raising { factor: 30, start: at(start), len: MS * 10_000, ..plain() }
}

/// A queue that is raised as soft real-time since `start`.
fn soft(start: u64) -> Raising {
    Raising { factor: 3000, start: at(start), len: MS * 300, ..plain() }
}

fn change(before: u32, factor: u32, why: Reason, at_most: Duration) -> Option<Change> {
    Some(Change { before, factor, why, at_most })
}

/// The end of raising by `before`.
fn ended(before: u32) -> Option<Change> {
    change(before, 1, Reason::RaiseEnd, NONE)
}

fn len() -> Duration {
    rule().len(SPEED)
}

/// A sync queue of one task, of which nothing else is known.
const WAKING: Waking =
    Waking { burst: false, in_flight: false, usual: true, drained_at: None, all_far: false, known: true };

#[test]
//= docs/reference/bfq.md#38-interactive-queues type=test
fn interactive_raising_lasts_as_long_as_a_large_program_takes_to_start() {
    let len = |rotational, peak, greedy| with(|s| s.rotational = rotational).len(Speed { peak, greedy });
    assert_eq!(len(true, 9333, false), Duration::from_ns(14000 * 7_000_000_000 / 9333));
    assert_eq!(len(true, 14_000, false), MS * 7000);
    assert_eq!(len(false, 22_000, false), MS * 3750);
    assert_eq!((len(false, 60_000, false), len(true, 100, false)), (MS * 3000, MS * 25_000), "bounds");
    assert_eq!(len(true, 0, false), MS * 25_000, "an unknown rate");
    assert_eq!(len(true, 14_000, true), len(true, 9333, false), "greedy: as if the rate were not known");
    assert_eq!(len(true, 9000, true), len(true, 9000, false), "it may be slower");
    assert_eq!(with(|s| s.len = MS * 700).len(SPEED), MS * 700, "as set");
    let ticks = |rotational, peak| {
        let rule = with(|s| (s.tick, s.rotational) = (MS * 4, rotational));
        rule.len(Speed { peak, greedy: false })
    };
    assert_eq!((ticks(true, 9333), ticks(false, 22_000)), (MS * 10_500, MS * 3748), "in whole ticks");
}

#[test]
fn a_factor_says_what_a_queue_is_raised_as() {
    let rule = rule();
    let kinds =
        |raising: Raising| (raising.is_raised(), rule.is_interactive(&raising), rule.is_soft(&raising));
    assert_eq!(kinds(plain()), (false, false, false));
    assert_eq!(kinds(interactive(0)), (true, true, false));
    assert_eq!(kinds(soft(0)), (true, false, true));
    assert_eq!([1, 30, 3000].map(|factor| rule.len_of(factor, SPEED)), [NONE, len(), MS * 300]);
    let twice = Raising { factor: 2, ..plain() };
    assert!(twice.is_raised() && with(|s| s.factor = 2).is_interactive(&twice));
    // With a factor of 1 no queue is raised as interactive.
    let rule = with(|s| s.factor = 1);
    assert!(!rule.is_interactive(&plain()) && !rule.is_soft(&plain()));
}

#[test]
fn a_change_says_what_was_and_for_how_long_what_is_lasts() {
    let mut raising = interactive(0);
    let end = raising.change(1, Reason::RaiseEnd);
    assert_eq!(end, change(30, 1, Reason::RaiseEnd, MS * 10_000));
    assert_eq!(raising.change(1, Reason::RaiseEnd), None, "nothing changes");
    assert_eq!(raising.factor(), 1);
}

#[test]
fn only_what_a_raised_queue_is_served_counts() {
    let (mut raised, mut not) = (interactive(0), plain());
    raised.served(8);
    raised.served(16);
    not.served(8);
    assert_eq!((raised.service, not.service), (24, 0));
}

#[test]
fn a_queue_that_was_idle_for_more_than_two_seconds_is_interactive() {
    let drained = |ms| Waking { drained_at: Some(at(ms)), ..WAKING };
    let looks = |rule: &Raise, waking| {
        let wakeup = rule.look(&view(5000), &Raising { soft_from: at(9000), ..plain() }, waking);
        assert_eq!(wakeup.deserves, waking.known && wakeup.interactive, "{waking:?}");
        wakeup.interactive
    };
    let rule = rule();
    assert!(looks(&rule, WAKING) && looks(&rule, drained(2999)) && !looks(&rule, drained(3000)));
    for waking in [
        Waking { burst: true, ..WAKING },
        Waking { in_flight: true, ..WAKING },
        Waking { usual: false, ..WAKING },
    ] {
        assert!(!looks(&rule, waking), "{waking:?}");
        assert_eq!(rule.look(&view(5000), &plain(), waking).burst, waking.burst);
    }
    assert!(looks(&rule, Waking { known: false, all_far: true, ..WAKING }), "but it is not raised");
    assert!(!looks(&with(|s| s.interactive = false), WAKING));
}

#[test]
fn a_queue_that_becomes_busy_late_enough_is_soft_real_time() {
    let busy = Waking { drained_at: Some(at(99)), ..WAKING };
    let looks = |rule: &Raise, ms, waking: Waking| {
        let wakeup = rule.look(&view(ms), &Raising { soft_from: at(100), ..plain() }, waking);
        assert_eq!(wakeup.deserves, waking.known && wakeup.soft, "{ms} {waking:?}");
        wakeup.soft
    };
    let rule = rule();
    assert!(!looks(&rule, 100, busy) && looks(&rule, 101, busy));
    for waking in [
        Waking { burst: true, ..busy },
        Waking { in_flight: true, ..busy },
        Waking { usual: false, ..busy },
        Waking { all_far: true, ..busy },
    ] {
        assert!(!looks(&rule, 101, waking), "{waking:?}");
    }
    assert!(looks(&rule, 101, Waking { known: false, ..busy }));
    assert!(!looks(&with(|s| s.soft = false), 101, busy));
    assert!(!looks(&with(|s| s.soft_rate = 0), 101, busy));
    assert!(looks(&with(|s| s.soft_rate = 1), 101, busy));
}

/// Looks of queues that become busy.
const NO: Wakeup = Wakeup { interactive: false, soft: false, burst: false, deserves: false };
const INTERACTIVE: Wakeup = Wakeup { interactive: true, deserves: true, ..NO };
const SOFT: Wakeup = Wakeup { soft: true, deserves: true, ..NO };
const BURST: Wakeup = Wakeup { burst: true, ..NO };

/// At 1000 ms, without a split.
fn wakes(rule: &Raise, raising: &mut Raising, wakeup: Wakeup) -> Woken {
    rule.woke(&view(1000), raising, wakeup, None, SPEED)
}

#[test]
fn a_queue_that_is_not_raised_is_if_it_deserves_it() {
    let before = Raising { service: 7, interrupted: Some(at(3)), soft_pending: true, ..plain() };
    let mut raising = before;
    let woken = wakes(&rule(), &mut raising, Wakeup { interactive: true, ..NO });
    assert_eq!(woken, Woken { change: None, anew: false, first: false });
    assert_eq!((raising.soft_pending, raising.service), (false, 7), "the pace of the last batch is over");

    let mut raising = before;
    let woken = wakes(&rule(), &mut raising, INTERACTIVE);
    let begin = change(1, 30, Reason::RaisedInteractive, len());
    assert_eq!(woken, Woken { change: begin, anew: true, first: true });
    assert_eq!((raising.service, raising.len, raising.factor), (0, len(), 30));

    let mut raising = before;
    let woken = wakes(&rule(), &mut raising, SOFT);
    let begin = change(1, 3000, Reason::RaisedSoftRealTime, MS * 300);
    assert_eq!(woken, Woken { change: begin, anew: true, first: true });
    assert_eq!((raising.service, raising.interrupted), (7, None));
}

#[test]
fn a_raised_queue_that_was_idle_for_long_begins_another_period() {
    let before = Raising { service: 7, len: MS, ..interactive(0) };
    let mut raising = before;
    let woken = wakes(&rule(), &mut raising, INTERACTIVE);
    assert_eq!(woken, Woken { change: None, anew: true, first: false });
    assert_eq!((raising.service, raising.len), (0, len()));
    let mut raising = before;
    let woken = wakes(&with(|s| s.as_kernel = true), &mut raising, INTERACTIVE);
    assert_eq!(woken, Woken { change: None, anew: false, first: false });
    assert_eq!((raising.service, raising.len), (7, len()), "as in the kernel");
    let again = change(3000, 30, Reason::RaisedInteractive, len());
    assert_eq!(wakes(&rule(), &mut soft(0), INTERACTIVE).change, again);
}

#[test]
fn a_raised_queue_of_a_large_burst_is_raised_no_longer() {
    let mut raising = interactive(0);
    let woken = wakes(&rule(), &mut raising, Wakeup { soft: true, ..BURST });
    assert_eq!(woken, Woken { change: ended(30), anew: false, first: false });
    assert_eq!((raising.factor, raising.period()), (1, (at(0), NONE)));
    assert_eq!(wakes(&rule(), &mut plain(), BURST).change, None);
}

#[test]
fn soft_real_time_interrupts_an_interactive_period_and_is_prolonged() {
    let mut raising = interactive(500);
    let woken = wakes(&rule(), &mut raising, SOFT);
    let begin = change(30, 3000, Reason::RaisedSoftRealTime, MS * 300);
    assert_eq!(woken, Woken { change: begin, anew: false, first: false });
    assert_eq!((raising.interrupted, raising.start), (Some(at(500)), at(1000)));
    let woken = rule().woke(&view(1200), &mut raising, SOFT, None, SPEED);
    assert_eq!(woken.change, None);
    assert_eq!((raising.interrupted, raising.start), (Some(at(500)), at(1200)), "again 300 ms");
    let woken = rule().woke(&view(1300), &mut raising, NO, None, SPEED);
    assert_eq!((woken.change, raising.start), (None, at(1200)), "neither of the two");
}

#[test]
fn nothing_changes_for_two_seconds_after_a_split_or_while_the_rule_is_off() {
    let split = |ms| {
        let woken = rule().woke(&view(ms), &mut plain(), INTERACTIVE, Some(at(100)), SPEED);
        woken.change.is_some()
    };
    assert!(!split(2100) && split(2101));
    let mut raising = Raising { soft_pending: true, ..plain() };
    assert_eq!(wakes(&with(|s| s.on = false), &mut raising, INTERACTIVE).change, None);
    assert!(!raising.soft_pending);
}

#[test]
fn an_async_queue_without_requests_for_more_than_500_ms_is_interactive() {
    let before = Raising { start: at(1000), service: 7, ..plain() };
    let came = |rule: &Raise, ms, raising: &mut Raising| rule.arrived_async(&view(ms), raising, SPEED);
    assert_eq!(came(&rule(), 1500, &mut { before }), None);
    let mut raising = before;
    let begin = change(1, 30, Reason::RaisedAsync, len());
    assert_eq!((came(&rule(), 1501, &mut raising), raising.service), (begin, 0));
    assert_eq!(came(&rule(), 9000, &mut raising), None, "it is raised");
    let mut raising = before;
    let kernel = with(|s| s.as_kernel = true);
    assert_eq!((came(&kernel, 1501, &mut raising), raising.service), (begin, 7));
    for off in [with(|s| s.on = false), with(|s| s.interactive = false)] {
        assert_eq!(came(&off, 9000, &mut { before }), None);
    }
}

#[test]
fn a_period_begins_with_the_request_that_raises_the_queue() {
    let start = |rule: &Raise, factor, before, interactive| {
        let mut raising = Raising { factor, ..plain() };
        rule.arrived(&view(9), &mut raising, before, interactive);
        raising.start == at(9)
    };
    let rule = rule();
    assert!(start(&rule, 30, 1, false), "raised now");
    assert!(start(&rule, 1, 30, false), "raised no longer");
    assert!(start(&rule, 30, 30, true), "another period");
    assert!(!start(&rule, 30, 30, false));
    assert!(!start(&with(|s| s.on = false), 1, 1, true));
}

#[test]
fn the_time_for_which_a_soft_real_time_queue_waits_is_added() {
    let selected = |mut raising: Raising, ms, waits_since| {
        rule().selected(&view(ms), &mut raising, at(waits_since));
        raising.start
    };
    // It waits since the period began or before: the period begins now.
    assert_eq!((selected(soft(100), 150, 40), selected(soft(100), 150, 100)), (at(150), at(150)));
    assert_eq!(selected(soft(100), 200, 170), at(130), "it waited for 30 ms of it");
    assert_eq!(selected(soft(100), 200, 200), at(100), "it does not wait yet");
    assert_eq!(selected(soft(100), 200, 500), at(100));
    assert_eq!(selected(soft(200), 200, 100), at(200));
    assert_eq!(selected(interactive(100), 200, 170), at(100), "not if it is interactive");
}

/// Asks until nothing changes; answers the factors.
fn reviewed(rule: &Raise, ms: u64, raising: &mut Raising, burst: bool) -> (bool, [Option<u32>; 3]) {
    let may = rule.may_be_over(&view(ms), raising, || burst);
    let factors = [(); 3].map(|()| rule.review(&view(ms), raising, burst, SPEED).map(|c| c.factor));
    (may, factors)
}

const NOTHING: [Option<u32>; 3] = [None; 3];
const END: [Option<u32>; 3] = [Some(1), None, None];

#[test]
fn interactive_raising_ends_after_its_time_or_service_or_in_a_large_burst() {
    let served = |service| Raising { service, ..interactive(1000) };
    let rule = rule();
    for (ms, service, burst, over) in [
        (11_000, 0, false, false),
        (11_001, 0, false, true),
        (2000, 120_000, false, false),
        (2000, 120_001, false, true),
        (2000, 0, true, true),
    ] {
        let mut raising = served(service);
        let expected = if over { END } else { NOTHING };
        assert_eq!(reviewed(&rule, ms, &mut raising, burst), (over, expected), "{ms} {service} {burst}");
        let (start, soft_from) = if over { (ms, ms) } else { (1000, 0) };
        assert_eq!((raising.start, raising.soft_from), (at(start), at(soft_from)));
        assert_eq!(raising.len, if over { NONE } else { MS * 10_000 });
    }
    let (may, changes) = reviewed(&rule, 99_000, &mut plain(), true);
    assert_eq!((may, changes), (false, NOTHING), "it is not raised");
}

#[test]
fn a_soft_real_time_period_ends_after_its_time_whatever_it_was_served() {
    let mut raising = Raising { service: 999_999, ..soft(1000) };
    assert_eq!(reviewed(&rule(), 1300, &mut raising, false), (true, NOTHING));
    let before = raising.soft_from;
    assert_eq!(reviewed(&rule(), 1301, &mut raising, false), (true, END));
    assert_eq!(raising.soft_from, before, "a soft real-time queue may be so again");
}

#[test]
fn an_interactive_period_continues_after_the_soft_real_time_one_that_interrupted_it() {
    let interrupted = |service| Raising { interrupted: Some(at(100)), service, ..soft(1000) };
    let mut raising = interrupted(0);
    assert_eq!(reviewed(&rule(), 1301, &mut raising, false), (true, [Some(30), None, None]));
    assert_eq!(raising.period(), (at(100), len()));
    let mut raising = interrupted(120_001);
    assert_eq!(reviewed(&rule(), 1301, &mut raising, false), (true, [Some(30), Some(1), None]));
    let mut raising = interrupted(0);
    assert_eq!(reviewed(&rule(), 1301, &mut raising, true), (true, END), "not in a large burst");
    // It lasts for 10.5 s and a bit, until 10,600 ms: then it is over too.
    for (ms, expected) in [(10_600, [Some(30), None, None]), (10_601, END)] {
        assert_eq!(reviewed(&rule(), ms, &mut interrupted(0), false), (true, expected), "at {ms}");
    }
    // An interactive period does not continue an older one.
    let mut raising = Raising { interrupted: Some(at(100)), len: MS, ..interactive(1000) };
    assert_eq!(reviewed(&rule(), 1301, &mut raising, false), (true, END));
}

#[test]
fn a_soft_real_time_queue_that_seeks_everywhere_is_raised_no_longer() {
    let rule = rule();
    assert_eq!(rule.turned_far(&view(1010), &mut soft(1000), SPEED), ended(3000));
    assert_eq!(rule.turned_far(&view(1010), &mut interactive(1000), SPEED), None);
    let mut raising = Raising { interrupted: Some(at(100)), ..soft(1000) };
    let continued = change(3000, 30, Reason::RaisedInteractive, len());
    assert_eq!(rule.turned_far(&view(1010), &mut raising, SPEED), continued);
}

/// 700 sectors from 0 on: at 7000 per second these last until 100 ms.
const BATCH: Batch = Batch { began: Instant::EPOCH, sectors: 700 };

#[test]
//= docs/reference/bfq.md#39-soft-real-time type=test
fn the_next_batch_of_a_player_comes_when_the_last_would_have_been_played() {
    let expired = |rule: &Raise, ms, soft_from| {
        let mut raising = Raising { soft_from: at(soft_from), ..plain() };
        rule.expired(&view(ms), &mut raising, true, false, BATCH);
        raising.soft_from
    };
    assert_eq!(expired(&rule(), 50, 0), at(100));
    assert_eq!(expired(&rule(), 80, 0), at(104), "24 ms later than a greedy task could come");
    assert_eq!(expired(&rule(), 50, 5000), at(5000), "it never moves back");
    assert_eq!(expired(&with(|s| s.tick = MS * 4), 50, 0), at(100));
    assert_eq!(expired(&with(|s| s.tick = MS * 300), 50, 0), at(74), "in whole ticks: 3 a second");
    for off in [with(|s| s.on = false), with(|s| s.soft = false), with(|s| s.soft_rate = 0)] {
        assert_eq!(expired(&off, 50, 0), at(0));
    }
}

#[test]
fn how_a_queue_paces_itself_shows_when_it_has_nothing_left() {
    let expired = |empty, in_flight| {
        let mut raising = plain();
        rule().expired(&view(50), &mut raising, empty, in_flight, BATCH);
        (raising.soft_from, raising.awaits_completion())
    };
    assert_eq!(expired(true, false), (at(100), false));
    assert_eq!(expired(true, true), (at(0), true), "the last completion will show it");
    assert_eq!([true, false].map(|in_flight| expired(false, in_flight)), [(at(0), false); 2]);
    for (mut raising, expected) in [(plain(), 100), (soft(0), 100), (interactive(0), 0)] {
        rule().completed(&view(50), &mut raising, BATCH);
        assert_eq!(raising.soft_from, at(expected), "{raising:?}");
    }
    for off in [with(|s| s.soft = false), with(|s| s.soft_rate = 0)] {
        let mut raising = plain();
        off.completed(&view(50), &mut raising, BATCH);
        assert_eq!(raising.soft_from, at(0));
    }
    let mut raising = plain();
    with(|s| s.soft_rate = 1).completed(&view(50), &mut raising, BATCH);
    assert_eq!(raising.soft_from, at(700_000), "a sector a second");
}

#[test]
fn the_expiry_of_a_queue_that_is_not_raised_is_when_it_was_last_heard_of() {
    let start = |rule: &Raise, mut raising: Raising| {
        rule.expired(&view(50), &mut raising, false, false, BATCH);
        raising.start
    };
    assert_eq!((start(&rule(), plain()), start(&rule(), interactive(7))), (at(50), at(7)));
    assert_eq!(start(&with(|s| s.on = false), plain()), at(0));
}

#[test]
fn the_last_completion_of_a_queue_that_others_emptied_shows_its_pace() {
    let pending = |rule: &Raise| {
        let mut raising = plain();
        rule.emptied(&mut raising);
        raising.awaits_completion()
    };
    assert!(pending(&rule()));
    for off in [with(|s| s.on = false), with(|s| s.soft = false), with(|s| s.as_kernel = true)] {
        assert!(!pending(&off));
    }
}

#[test]
fn a_greedy_disk_prolongs_interactive_raising() {
    for (mut raising, expected) in [
        (interactive(0), len()),
        (Raising { len: MS * 20_000, ..interactive(0) }, MS * 20_000),
        (soft(0), MS * 300),
        (plain(), NONE),
    ] {
        rule().protected(&mut raising, SPEED);
        assert_eq!(raising.len, expected, "{raising:?}");
    }
}

#[test]
fn a_stream_suspends_interactive_raising_and_its_end_resumes_it() {
    let mut raising = interactive(100);
    let (end, start, len) = rule().suspend(&view(900), &mut raising).expect("it was raised");
    assert_eq!((Some(end), start, len), (ended(30), at(100), MS * 10_000));
    assert_eq!(raising.factor, 1);
    for mut other in [soft(100), plain()] {
        assert_eq!(rule().suspend(&view(900), &mut other), None);
    }
    for (ms, resumes) in [(10_100, true), (10_101, false)] {
        let mut again = raising;
        let answer = rule().resume(&view(ms), &mut again, start, len);
        let expected = change(1, 30, Reason::RaisedInteractive, MS * 10_000).filter(|_| resumes);
        assert_eq!((answer, again.period() == (start, len)), (expected, resumes), "at {ms}");
    }
    assert_eq!(rule().resume(&view(900), &mut soft(100), start, len), None, "it is raised already");
}

#[test]
fn a_queue_whose_burst_is_small_again_has_what_is_left_of_its_period() {
    let missed = |rule: &Raise, ms, raising: &Raising| rule.missed(&view(ms), raising, at(100), SPEED);
    // 10.5 s and a bit.
    assert_eq!((missed(&rule(), 10_600, &plain()), missed(&rule(), 10_601, &plain())), (Some(len()), None));
    assert_eq!(missed(&rule(), 900, &interactive(100)), None);
    assert_eq!(missed(&with(|s| s.interactive = false), 900, &plain()), None);
}

#[test]
fn a_merge_hands_raising_over_to_a_queue_that_is_not_raised() {
    let before = Raising { interrupted: Some(at(3)), ..soft(100) };
    let (mut left, mut joined) = (before, plain());
    let changes = rule().merged(&mut left, &mut joined);
    assert_eq!(changes, [change(1, 3000, Reason::RaisedSoftRealTime, MS * 300), ended(3000)]);
    assert_eq!((joined.period(), joined.interrupted), ((at(100), MS * 300), Some(at(3))));
    assert_eq!((left.factor, left.len), (1, NONE));
    let (mut left, mut joined) = (interactive(100), soft(700));
    assert_eq!(rule().merged(&mut left, &mut joined), [None, ended(30)]);
    assert_eq!((joined.factor, joined.period()), (3000, (at(700), MS * 300)), "it is raised already");
    let (mut left, mut joined) = (plain(), interactive(700));
    assert_eq!(rule().merged(&mut left, &mut joined), [None, None]);
    assert_eq!(joined.period(), (at(700), MS * 10_000));
    let (mut left, mut joined) = (interactive(100), plain());
    let [taken, _] = rule().merged(&mut left, &mut joined);
    assert_eq!(taken, change(1, 30, Reason::RaisedInteractive, MS * 10_000));
}

#[test]
fn a_new_queue_that_is_merged_is_remembered_as_raised() {
    let before = Raising { service: 7, interrupted: Some(at(3)), ..plain() };
    let remembered = |rule: &Raise, new| rule.remembered(&view(50), &before, new, SPEED);
    let new = remembered(&rule(), true);
    assert_eq!((new.factor, new.period(), new.interrupted), (30, (at(50), len()), None));
    assert_eq!(new.service, 7);
    let off = [with(|s| s.on = false), with(|s| s.interactive = false)].map(|rule| remembered(&rule, true));
    for same in [remembered(&rule(), false), off[0], off[1]] {
        assert_eq!((same.factor, same.period(), same.interrupted), (1, (at(0), NONE), Some(at(3))));
    }
}

#[test]
fn a_split_gives_raising_back_that_is_not_over() {
    // A queue that is not raised is split off at 1000 ms, for a task that was raised as `was` says.
    let split = |was: Raising, burst| {
        let mut raising = Raising { soft_from: at(7), soft_pending: true, ..plain() };
        let change = rule().split(&view(1000), &mut raising, &was, burst, SPEED);
        assert_eq!((raising.soft_from, raising.soft_pending), (at(7), true), "those are its own");
        assert_eq!((raising.factor, raising.service), (change.map_or(1, |c| c.factor), was.service));
        (change.map(|c| (c.factor, c.why)), raising.period())
    };
    let resumed = |factor, why, start, len| (Some((factor, why)), (at(start), len));
    let was = Raising { service: 9, ..interactive(100) };
    let again = resumed(30, Reason::RaisedInteractive, 100, MS * 10_000);
    assert_eq!(split(was, false), again);
    let soft_again = resumed(3000, Reason::RaisedSoftRealTime, 700, MS * 300);
    assert_eq!((split(soft(700), false), split(soft(699), false)), (soft_again, (None, (at(699), NONE))));
    assert_eq!(split(was, true), (None, (at(100), NONE)), "in a large burst");
    assert_eq!(split(plain(), false), (None, (at(0), NONE)));
    let interrupted = Raising { interrupted: Some(at(50)), ..soft(100) };
    let continued = resumed(30, Reason::RaisedInteractive, 50, len());
    assert_eq!(split(interrupted, false), continued);
    assert_eq!(split(interrupted, true), (None, (at(100), NONE)));
    let not_soft = Raising { interrupted: Some(at(50)), len: MS, ..interactive(100) };
    assert_eq!(split(not_soft, false), (None, (at(100), NONE)), "interactive periods interrupt none");
    // What the queue itself was raised by, it is no longer.
    let mut raised = interactive(900);
    let change = rule().split(&view(1000), &mut raised, &plain(), false, SPEED);
    assert_eq!(change, ended(30));
    let mut raised = interactive(900);
    assert_eq!(rule().split(&view(1000), &mut raised, &soft(100), false, SPEED), ended(30));
}

#[test]
fn all_is_as_it_may_be() {
    for factor in [1, 30, 3000] {
        rule().check(&Raising { factor, ..plain() });
    }
    let mut raising = interactive(0);
    raising.forget();
    with(|s| s.on = false).check(&raising);
    raising.adopt(at(4), MS);
    assert_eq!(raising.period(), (at(4), MS));
}

#[test]
#[should_panic(expected = "raised by 31")]
fn another_factor_is_found() {
    rule().check(&Raising { factor: 31, ..plain() });
}

#[test]
#[should_panic(expected = "S9")]
fn raising_while_the_rule_is_off_is_found() {
    with(|s| s.on = false).check(&interactive(0));
}
