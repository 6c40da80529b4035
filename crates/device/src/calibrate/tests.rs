//! Disks whose parameters are known are calibrated through their latencies alone, and what comes out is
//! compared.

use super::drive::Chance;
use super::*;
use crate::geometry::{Arm, Geometry};
use crate::params::{DiskParams, Zone};
use crate::seek::SeekCurve;
use fairhead_core::units::{Instant, Sectors};

/// A drive that must not be written to.
struct ReadOnly(Modelled);

impl Drive for ReadOnly {
    fn bounds(&self) -> Bounds {
        self.0.bounds()
    }
    fn now(&self) -> Instant {
        self.0.now()
    }
    fn read(&mut self, start: u64, sectors: u32) -> Result<Answer, Refusal> {
        self.0.read(start, sectors)
    }
    fn read_many(&mut self, list: &[(u64, u32)], depth: usize) -> Result<Vec<Answer>, Refusal> {
        self.0.read_many(list, depth)
    }
    fn write(&mut self, start: u64, _: u32) -> Result<Answer, Refusal> {
        panic!("a write at {start}, and none was asked for")
    }
    fn wait_until(&mut self, at: Instant) -> Result<(), Refusal> {
        self.0.wait_until(at)
    }
}

fn measured(params: &DeviceParams, noise: Noise, seed: u64) -> Result<Calibration, Refusal> {
    let mut drive = ReadOnly(Modelled::new(params, noise, seed).unwrap());
    calibrate(&mut drive, &Options { seed, ..Options::default() })
}

fn disk_of(c: &Calibration) -> &DiskParams {
    let DeviceParams::Disk(q) = &c.params else { panic!("a disk was taken for something else") };
    q
}

fn preset_disk(name: &str) -> DiskParams {
    let Ok(DeviceParams::Disk(p)) = DeviceParams::preset(name) else { panic!("{name} is a disk") };
    p
}

/// A figure of a disk, as it is and as it was found.
#[derive(Debug)]
struct Row {
    what: String,
    is: f64,
    found: f64,
}

impl Row {
    fn error(&self) -> f64 {
        (self.found / self.is - 1.0).abs()
    }
}

fn seek_ms(p: &DiskParams, tracks: u64) -> f64 {
    let cyl = (tracks / u64::from(p.heads)).max(1);
    SeekCurve::new(p).time(Arm::default(), Arm { track: tracks, cyl }) as f64 / 1e6
}

/// What must come out: seeks over several distances, rotation, rates over the disk, and the read buffer.
fn rows(p: &DiskParams, q: &DiskParams) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut row = |what: String, is: f64, found: f64| rows.push(Row { what, is, found });
    row("rpm".into(), p.rpm.into(), q.rpm.into());
    let tracks: u64 = p.zones.iter().map(|z| z.tracks).sum();
    let mut d = u64::from(p.heads);
    while d < tracks {
        row(format!("seek over {d} tracks, ms"), seek_ms(p, d), seek_ms(q, d));
        d *= 8;
    }
    row("full stroke, ms".into(), seek_ms(p, tracks * 95 / 100), seek_ms(q, tracks * 95 / 100));
    let (a, b) = (Geometry::new(p), Geometry::new(q));
    let least = a.capacity.min(b.capacity);
    row("capacity".into(), a.capacity as f64, b.capacity as f64);
    for i in 0..11 {
        let at = (least - 40_000) / 10 * i;
        let rate = |g: &Geometry| 20_000.0 * 512e3 / (g.place(at + 20_000).phase - g.place(at).phase) as f64;
        row(format!("rate at {} %, MB/s", 10 * i), rate(&a), rate(&b));
    }
    row("segments".into(), p.nseg.into(), q.nseg.into());
    if p.ra_max.0 > 0 || q.ra_max.0 > 0 {
        row("look-ahead, sectors".into(), p.ra_max.0.into(), q.ra_max.0.into());
    }
    let hit = |p: &DiskParams| p.ov_hit.as_ns() as f64 + 64.0 * 512e9 / p.bus_rate as f64;
    row("hit of 32 KiB, ns".into(), hit(p), hit(q));
    rows
}

fn off(rows: &[Row], most: f64) -> Vec<String> {
    rows.iter()
        .filter(|r| r.error() > most)
        .map(|r| format!("{}: {:.4} is, {:.4} found", r.what, r.is, r.found))
        .collect()
}

/// Any disk that a manufacturer might have made, and some that none would.
fn random_disk(c: &mut Chance) -> DiskParams {
    let mut p = preset_disk("ide2004");
    p.rpm = [4200, 5400, 5900, 7200, 10_000, 15_000, 3000 + c.below(12_000) as u32][c.below(7) as usize];
    p.heads = 1 + c.below(12) as u32;
    let outer = 120.0 * 30_f64.powf(c.unit());
    let inner = outer * (0.45 + 0.5 * c.unit());
    let zones = 1 + c.below(24);
    let tracks = (30_000.0 * 100_f64.powf(c.unit())) as u64;
    p.zones = (0..zones)
        .map(|i| Zone {
            tracks: tracks / zones,
            spt: (outer + (inner - outer) * i as f64 / (zones.max(2) - 1) as f64) as u32,
        })
        .collect();
    let us = |x: f64| Duration::from_ns((1000.0 * x) as u64);
    p.t_switch = us(200.0 + 1300.0 * c.unit());
    p.seek_a = us(p.t_switch.as_us() as f64 * (0.8 + 0.5 * c.unit()));
    let cylinders = (tracks / u64::from(p.heads)) as f64;
    p.seek_knee = (cylinders * (0.1 + 0.4 * c.unit())) as u64;
    p.seek_b = us((2000.0 + 6000.0 * c.unit()) / (p.seek_knee as f64).sqrt());
    p.seek_c_ps = (1e9 * (2.0 + 8.0 * c.unit()) / cylinders) as u64;
    p.ov_hit = us(10.0 + 100.0 * c.unit());
    p.ov_miss = p.ov_hit + us(20.0 + 400.0 * c.unit());
    p.ra_abort = None;
    let media = outer * 512.0 * f64::from(p.rpm) / 60.0;
    p.bus_rate = (media * (1.5 + 8.0 * c.unit())) as u64;
    p.nseg = 1 + c.below(64) as u32;
    p.ra_max = Sectors(if c.below(8) == 0 { 0 } else { (64.0 * 64_f64.powf(c.unit())) as u32 / 8 * 8 });
    p.buffer_bytes = u64::from(p.nseg) * p.ra_max.bytes().max(1 << 17) * (1 + c.below(4));
    p.ra_keep = 1 + c.below(p.nseg.into()) as u32;
    p.queue_depth = if c.below(2) == 0 { 1 } else { 31 };
    p.ra_on_hit = c.below(4) == 0;
    p.read_on_arrival = c.below(4) == 0;
    p.max_request = Sectors(1024);
    p
}

/// The times of a path and of answers that are heard late.
fn noise(path_us: u64, jitter_us: u64, spikes_permille: u32, spike_us: u64) -> Noise {
    let us = Duration::from_us;
    Noise {
        path: us(path_us),
        jitter: us(jitter_us),
        spikes_permille,
        spike: us(spike_us),
        ..Noise::default()
    }
}

fn row(what: &str, is: u64, found: u64) -> Row {
    Row { what: what.to_owned(), is: is as f64, found: found as f64 }
}

/// Three hard disks of 2001, 2006 and 2020: an IDE drive, a SATA drive without a queue, and a drive with one,
/// of 250 times the size.
const DISKS: [&str; 3] = ["ide2004", "sata2009", "nas2020"];

#[test]
//= docs/reference/devices.md#51-microbenchmarks type=test
fn the_parameters_of_the_presets_come_back() {
    for name in DISKS {
        let p = preset_disk(name);
        for seed in 1..=4 {
            let c = measured(&DeviceParams::Disk(p.clone()), Noise::default(), seed).unwrap();
            let q = disk_of(&c);
            let mut rows = rows(&p, q);
            rows.extend([
                row("buffer", p.buffer_bytes, q.buffer_bytes),
                row("ov_miss", p.ov_miss.as_ns(), q.ov_miss.as_ns()),
                row("t_switch", p.t_switch.as_ns(), q.t_switch.as_ns()),
                row("queue", p.queue_depth.into(), q.queue_depth.into()),
                row("ra_keep", p.ra_keep.into(), q.ra_keep.into()),
            ]);
            assert_eq!(off(&rows, 0.1), Vec::<String>::new(), "{name}, seed {seed}");
            assert!(c.demerit.percent < 8.0, "{name}, seed {seed}: {:?}", c.demerit);
            let again = DeviceParams::from_toml(&c.to_toml(), "again.toml").unwrap();
            assert_eq!(again, c.params, "the file says what was found");
        }
    }
}

#[test]
fn timing_noise_is_borne() {
    // What a busy host adds: 40 us of path, up to 50 us more each way, and now and then milliseconds.
    for (name, noise) in [
        ("ide2004", noise(40, 50, 20, 3000)),
        ("sata2009", noise(40, 50, 20, 3000)),
        ("nas2020", noise(40, 50, 5, 2000)),
        ("nas2020", noise(100, 20, 0, 0)),
    ] {
        let p = preset_disk(name);
        for seed in 1..=3 {
            let c = measured(&DeviceParams::Disk(p.clone()), noise, seed).unwrap();
            let mut rows = rows(&p, disk_of(&c));
            // A path is in every overhead.
            let path_ns = (noise.path + noise.jitter).as_ns() as f64;
            rows.iter_mut().filter(|r| r.what.starts_with("hit")).for_each(|r| r.found -= path_ns);
            assert_eq!(off(&rows, 0.1), Vec::<String>::new(), "{name}, seed {seed}, {noise:?}");
        }
    }
}

/// An idle machine whose processors sleep: the first hits behind a miss take longer than others.
#[test]
fn whoever_answers_may_sleep_meanwhile() {
    for name in DISKS {
        let p = preset_disk(name);
        for seed in 1..=3 {
            let noise = Noise { sleep: Duration::from_us(300), ..noise(30, 10, 0, 0) };
            let c = measured(&DeviceParams::Disk(p.clone()), noise, seed).unwrap();
            let q = disk_of(&c);
            let rows = [
                row("segments", p.nseg.into(), q.nseg.into()),
                row("look-ahead", p.ra_max.0.into(), q.ra_max.0.into()),
                row("buffer", p.buffer_bytes, q.buffer_bytes),
                row("ra_keep", p.ra_keep.into(), q.ra_keep.into()),
            ];
            assert_eq!(off(&rows, 0.1), Vec::<String>::new(), "{name}, seed {seed}");
            assert!(c.demerit.percent < 10.0, "{name}, seed {seed}: {:?}", c.demerit);
        }
    }
}

#[test]
fn another_program_on_the_disk_is_noticed() {
    for name in DISKS {
        let params = DeviceParams::preset(name).unwrap();
        for (permille, seed) in [(100, 1), (100, 2), (300, 3)] {
            let noise = Noise { others_permille: permille, ..Noise::default() };
            match measured(&params, noise, seed) {
                Err(Refusal::Inconsistent(why)) => {
                    assert!(why.contains("another program") || why.contains("busy"), "{name}: {why}");
                }
                other => panic!("{name} with {permille} in a thousand: {other:?}"),
            }
        }
        // Little of it: a word.
        let c = measured(&params, Noise { others_permille: 15, ..Noise::default() }, 5);
        let said = c.as_ref().map_or(true, |c| c.notes.iter().any(|n| n.contains("something else")));
        assert!(said, "{name}: {c:?}");
    }
}

#[test]
fn too_much_noise_is_refused_or_told() {
    let params = DeviceParams::preset("nas2020").unwrap();
    let e = measured(&params, noise(100, 3000, 0, 0), 1);
    assert!(matches!(e, Err(Refusal::Inconsistent(_))), "3 ms of jitter: {e:?}");
    let c = measured(&DeviceParams::preset("ide2004").unwrap(), noise(40, 400, 0, 0), 1).unwrap();
    assert!(c.notes.iter().any(|n| n.contains("short seeks")), "{:?}", c.notes);
}

#[test]
fn flash_comes_back() {
    let DeviceParams::Card(p) = DeviceParams::preset("flashcard2010").unwrap() else { unreachable!() };
    for seed in 1..=3 {
        let c = measured(&DeviceParams::Card(p.clone()), noise(0, 10, 5, 1000), seed).unwrap();
        let DeviceParams::Card(q) = &c.params else { panic!("{:?}", c.params) };
        assert!(q.read_latency.as_ns().abs_diff(p.read_latency.as_ns()) < p.read_latency.as_ns() / 30);
        assert!(q.read_per_kib_ps.abs_diff(p.read_per_kib_ps) < p.read_per_kib_ps / 30);
        assert!(c.demerit.percent < 8.0, "{:?}", c.demerit);
    }
    for name in ["emmc51", "microsd_a1", "plextor_m5s", "sata_ssd"] {
        let DeviceParams::Ssd(p) = DeviceParams::preset(name).unwrap() else { unreachable!() };
        let c = measured(&DeviceParams::Ssd(p.clone()), Noise::default(), 2).unwrap();
        let DeviceParams::Ssd(q) = &c.params else { panic!("{name}: {:?}", c.params) };
        let fixed = |p: &crate::SsdParams| (p.t_cmd + p.t_fix + p.t_read).as_ns();
        let mut rows = vec![
            row("link", p.link_rate, q.link_rate),
            row("channel", p.channel_rate, q.channel_rate),
            row("latency but for the transfer", fixed(&p), fixed(q)),
            row("queue", p.queue_depth.into(), q.queue_depth.into()),
            row("page", p.page.bytes(), q.page.bytes()),
        ];
        if p.queue_depth > 1 {
            rows.push(row("command", p.t_cmd.as_ns(), q.t_cmd.as_ns()));
        }
        assert_eq!(off(&rows, 0.1), Vec::<String>::new(), "{name}");
        assert!(c.demerit.percent < 15.0, "{name}: {:?}", c.demerit);
    }
}

#[test]
fn any_disk_comes_back_or_is_refused() {
    let mut refused = Vec::new();
    const DISKS: u64 = 50;
    for seed in 0..DISKS {
        let p = random_disk(&mut Chance::new(seed));
        let c = match measured(&DeviceParams::Disk(p.clone()), Noise::default(), seed) {
            Err(e) => {
                refused.push(format!("{seed}: {e}"));
                continue;
            }
            Ok(c) => c,
        };
        let q = disk_of(&c);
        assert_eq!(q.read_on_arrival, p.read_on_arrival, "seed {seed}");
        let mut rows = rows(&p, q);
        if p.read_on_arrival {
            // Where the overhead ends and the arm begins to move cannot be measured; the sum of both can. And
            // what is picked up on the way fills the buffer before its segments are used up.
            let both = |p: &DiskParams, ms: f64| ms + p.ov_miss.as_ns() as f64 / 1e6;
            rows.retain(|r| r.what != "segments");
            for r in rows.iter_mut().filter(|r| r.what.ends_with("ms")) {
                (r.is, r.found) = (both(&p, r.is), both(q, r.found));
            }
        }
        assert_eq!(off(&rows, 0.1), Vec::<String>::new(), "seed {seed}: {p:?}\nwas found to be {q:?}");
        assert!(c.demerit.percent < 12.0, "seed {seed}: {:?}", c.demerit);
    }
    assert!(refused.len() <= 3, "{refused:#?}");
}

#[test]
fn a_page_cache_is_noticed() {
    for name in ["ide2004", "sata_ssd"] {
        let params = DeviceParams::preset(name).unwrap();
        let mut drive = Modelled::new(&params, Noise::default(), 1).unwrap().behind_a_page_cache();
        let e = calibrate(&mut drive, &Options::default()).unwrap_err();
        assert!(e.to_string().contains("page cache"), "{e}");
    }
}

/// A drive without any rule: each answer takes a random time, from a minimum to a multiple of it.
struct Erratic {
    now: Instant,
    chance: Chance,
    least_us: f64,
    times: f64,
}

impl Drive for Erratic {
    fn bounds(&self) -> Bounds {
        Bounds { sectors: 1 << 26, granule: 8, most: 256 }
    }
    fn now(&self) -> Instant {
        self.now
    }
    fn read(&mut self, _: u64, _: u32) -> Result<Answer, Refusal> {
        let sent = self.now;
        self.now =
            sent + Duration::from_ns((1000.0 * self.least_us * self.times.powf(self.chance.unit())) as u64);
        Ok(Answer { sent, done: self.now })
    }
    fn read_many(&mut self, list: &[(u64, u32)], _: usize) -> Result<Vec<Answer>, Refusal> {
        list.iter().map(|&(a, n)| self.read(a, n)).collect()
    }
    fn write(&mut self, _: u64, _: u32) -> Result<Answer, Refusal> {
        unreachable!("not asked for")
    }
    fn wait_until(&mut self, at: Instant) -> Result<(), Refusal> {
        self.now = self.now.max(at);
        Ok(())
    }
}

#[test]
fn what_is_neither_disk_nor_flash_is_said_to_be_neither() {
    for (least_us, times) in [(60.0, 30.0), (900.0, 4.0), (3000.0, 3.0), (4000.0, 1.8)] {
        for seed in 0..8 {
            let mut drive = Erratic { now: Instant::from_ns(1), chance: Chance::new(seed), least_us, times };
            let e = calibrate(&mut drive, &Options::default()).unwrap_err().to_string();
            assert!(
                e.contains("virtual or networked disk"),
                "{least_us} us, {times} times, seed {seed}: {e}"
            );
        }
    }
}

#[test]
fn failures_end_it_with_one_line() {
    let params = DeviceParams::preset("ide2004").unwrap();
    let drive = || Modelled::new(&params, Noise::default(), 1).unwrap();
    let run = |mut drive: Modelled, budget| {
        let e = calibrate(&mut drive, &Options { budget, ..Options::default() }).unwrap_err();
        assert!(!e.to_string().contains('\n'));
        e
    };
    let e = run(drive().with_bad_sectors(30_000_000), None);
    assert!(matches!(&e, Refusal::Failed(why) if why.contains("input/output error")), "{e}");
    for requests in [1, 100, 1000, 10_000] {
        assert_eq!(run(drive().interrupted_after(requests), None), Refusal::Interrupted);
    }
    let e = run(drive(), Some(Duration::from_secs(10)));
    assert!(matches!(&e, Refusal::TooShort(why) if why.contains("least that is needed")), "{e}");
    let mut small = preset_disk("ide2004");
    small.zones = vec![Zone { tracks: 100, spt: 500 }];
    let small = Modelled::new(&DeviceParams::Disk(small), Noise::default(), 1).unwrap();
    assert!(matches!(run(small, None), Refusal::TooShort(_)));
}

#[test]
fn a_budget_is_kept_and_does_as_well() {
    for (name, seconds) in [("ide2004", 50), ("nas2020", 50)] {
        let p = preset_disk(name);
        let mut drive = Modelled::new(&DeviceParams::Disk(p.clone()), Noise::default(), 1).unwrap();
        let budget = Some(Duration::from_secs(seconds));
        let c = calibrate(&mut drive, &Options { budget, ..Options::default() }).unwrap();
        assert!(c.took < Duration::from_secs(seconds + seconds / 10), "{name}: {}", c.took);
        assert_eq!(off(&rows(&p, disk_of(&c)), 0.1), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn who_may_write_finds_the_write_cache() {
    for name in DISKS {
        let p = preset_disk(name);
        let mut drive = Modelled::new(&DeviceParams::Disk(p.clone()), Noise::default(), 1).unwrap();
        let c = calibrate(&mut drive, &Options { write: true, ..Options::default() }).unwrap();
        let q = disk_of(&c);
        let (is, found) = (f64::from(p.wc_slots), f64::from(q.wc_slots));
        assert!((found / is - 1.0).abs() < 0.1, "{name}: {found} slots, {is} are");
        let (is, found) = (p.wc_bytes as f64, q.wc_bytes as f64);
        assert!((found / is - 1.0).abs() < 0.3, "{name}: {found} bytes, {is} are");
        assert!(q.ov_write.as_ns().abs_diff(p.ov_write.as_ns()) < 2000, "{name}: {}", q.ov_write);
    }
    let mut p = preset_disk("ide2004");
    p.cache_mode = crate::CacheMode::WriteThrough;
    let mut drive = Modelled::new(&DeviceParams::Disk(p), Noise::default(), 1).unwrap();
    let c = calibrate(&mut drive, &Options { write: true, ..Options::default() }).unwrap();
    assert_eq!(disk_of(&c).cache_mode, crate::CacheMode::WriteThrough);
}
