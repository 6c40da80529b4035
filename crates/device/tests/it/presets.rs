//! The built-in presets are complete and documented, and every mistake in a user's file gets one clear line.

use fairhead_device::{Device, DeviceParams, preset_names, preset_text};

fn error(text: &str) -> String {
    match DeviceParams::from_toml(text, "my.toml") {
        Err(e) => e.to_string(),
        Ok(p) => panic!("accepted: {text}\n{p:?}"),
    }
}

#[test]
fn presets_make_devices() {
    for name in preset_names() {
        let params = DeviceParams::preset(name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(params.name(), *name);
        assert!(params.about().len() > 20, "{name} says what it is");
        let facts = Device::new(&params).unwrap_or_else(|e| panic!("{e}")).facts();
        assert!(facts.queue_depth >= 1 && facts.capacity > 1 << 20, "{name}: {facts:?}");
    }
}

#[test]
//= docs/reference/devices.md#31-ide2004, docs/reference/devices.md#32-sata2009 type=test
//= docs/reference/devices.md#34-solid-state-presets, docs/reference/devices.md#35-nas2020 type=test
fn sizes_are_those_of_the_drives() {
    for (name, gb) in [
        ("ide2004", 30),
        ("sata2009", 244),
        ("nas2020", 7669),
        ("greedy_ncq", 7669),
        ("dual_actuator", 7669),
        ("flashcard2010", 8),
        ("plextor_m5s", 256),
        ("sata_ssd", 1000),
        ("nvme", 1000),
        ("980pro", 1000),
        ("pcie4", 2000),
        ("pcie5", 2000),
        ("dramless", 1000),
        ("emmc51", 64),
        ("microsd_a1", 64),
    ] {
        let params = DeviceParams::preset(name).unwrap_or_else(|e| panic!("{e}"));
        let facts = Device::new(&params).unwrap_or_else(|e| panic!("{e}")).facts();
        assert_eq!(facts.capacity * 512 / 1_000_000_000, gb, "{name}");
    }
}

#[test]
fn every_value_of_a_preset_names_its_source() {
    const MARKS: [&str; 5] = ["[datasheet]", "[review]", "[calibrated]", "[structure]", "[assumed]"];
    for name in preset_names() {
        let text = preset_text(name).unwrap_or_default();
        let (mut above, mut values) = (String::new(), 0);
        for line in text.lines() {
            if line.starts_with('#') {
                above.push_str(line);
            } else if line.is_empty() {
                above.clear();
            } else if !["kind", "about"].iter().any(|k| line.starts_with(k)) {
                values += 1;
                let sourced = MARKS.iter().any(|m| line.contains(m) || above.contains(m));
                assert!(sourced, "{name}: no source for: {line}");
            }
        }
        // Few if it refers to other presets, which then have the rest.
        let starts = text.lines().any(|l| l.starts_with("base = "));
        let is_set = text.lines().any(|l| l == "kind = \"raid1\"");
        assert!(starts || is_set || values >= 13, "{name} has {values} values");
    }
}

#[test]
fn a_user_changes_what_differs() {
    let text = "base = \"ide2004\"\nra_keep = 16\nov_hit = \"50us\"\nlayout = { serpentine = 300 }\nname = \"mine\"\n";
    let (Ok(DeviceParams::Disk(mine)), Ok(DeviceParams::Disk(base))) =
        (DeviceParams::from_toml(text, "my.toml"), DeviceParams::preset("ide2004"))
    else {
        panic!("both are disks")
    };
    assert_eq!((mine.ra_keep, mine.ov_hit.as_ns(), mine.name.as_str()), (16, 50_000, "mine"));
    assert_eq!((mine.ov_miss, &mine.zones), (base.ov_miss, &base.zones), "the rest stays");
}

#[test]
fn units_are_read_exactly() {
    let with = |line: &str| {
        let Ok(DeviceParams::Disk(p)) =
            DeviceParams::from_toml(&format!("base = \"ide2004\"\n{line}"), "my.toml")
        else {
            panic!("refused: {line}")
        };
        p
    };
    assert_eq!(with("ov_miss = \"0.30ms\"").ov_miss.as_ns(), 300_000);
    assert_eq!(with("ov_miss = \"0.0003 s\"").ov_miss.as_ns(), 300_000);
    assert_eq!(with("ov_miss = \"12.5µs\"").ov_miss.as_ns(), 12_500);
    assert_eq!(with("seek_c = \"16.5ns\"").seek_c_ps, 16_500);
    assert_eq!(with("bus_rate = \"1.5MiB/s\"").bus_rate, 1_572_864);
    assert_eq!(with("ra_max = \"0B\"").ra_max.0, 0);
    assert_eq!(with("low_water = 0.25").low_water_permille, 250);
    assert_eq!(with("ra_abort = \"0ms\"").ra_abort.map(|d| d.as_ns()), Some(0));
    assert_eq!(with("ra_abort = \"ov_miss\"").ra_abort, None);
    assert_eq!(with("zones = [{ tracks = 5, spt = 20 }, { tracks = 6, spt = 10 }]").zones[1].spt, 10);
    let zones = with("zones = { count = 3, tracks = 10, spt = [30, 20] }").zones;
    let zones: Vec<_> = zones.iter().map(|z| (z.tracks, z.spt)).collect();
    assert_eq!(zones, [(3, 30), (3, 25), (4, 20)], "all tracks are there");
}

#[test]
fn each_mistake_gets_one_clear_line() {
    for (line, message) in [
        ("ov_mis = \"0.3ms\"", "my.toml:2: ov_mis: no such key, did you mean ov_miss?"),
        ("colour = \"red\"", "my.toml:2: colour: no such key"),
        ("ov_miss = 0.3", "my.toml:2: ov_miss: needs a unit, such as \"0.3ms\""),
        ("ov_miss = \"0.3\"", "my.toml:2: ov_miss: needs a unit, such as \"0.3ms\""),
        ("ov_miss = \"-0.3ms\"", "my.toml:2: ov_miss: -0.3ms is not valid; write a value such as \"0.3ms\""),
        ("ov_miss = \"NaNms\"", "my.toml:2: ov_miss: NaNms is not valid; write a value such as \"0.3ms\""),
        (
            "ov_miss = \"0.3 weeks\"",
            "my.toml:2: ov_miss: 0.3 weeks is not valid; write a value such as \"0.3ms\"",
        ),
        ("ov_miss = \"20s\"", "my.toml:2: ov_miss: 20s is out of range: 0ns to 1s"),
        ("actuators = 0", "my.toml:2: actuators: 0 is out of range: 1 to 8"),
        (
            "actuators = 3",
            "my.toml:2: actuators: 3 need a multiple of 3 heads and 3 segments, cache slots and tracks of each zone",
        ),
        ("rpm = 0", "my.toml:2: rpm: 0 is out of range: 60 to 100000"),
        ("rpm = -7200", "my.toml:2: rpm: a whole number from 0 to 4294967295 is needed"),
        ("rpm = 99999999999999999999", "my.toml:2: rpm: a whole number from 0 to 4294967295 is needed"),
        ("heads = 0", "my.toml:2: heads: 0 is out of range: 1 to 1000"),
        ("queue_depth = 0", "my.toml:2: queue_depth: 0 is out of range: 1 to 1024"),
        ("bus_rate = \"85MB\"", "my.toml:2: bus_rate: needs a unit, such as \"85MB/s\""),
        ("bus_rate = \"1B/s\"", "my.toml:2: bus_rate: 1B/s is out of range: 1MB/s to 1000GB/s"),
        ("ra_max = \"3MiB\"", "my.toml:2: ra_max: 3145728B does not fit a buffer of 2097152B"),
        ("ra_max = \"100B\"", "my.toml:2: ra_max: 100 bytes are not whole sectors of 512"),
        ("low_water = 1.5", "my.toml:2: low_water: a share from 0 to 1 is needed, such as 0.5"),
        ("low_water = nan", "my.toml:2: low_water: a share from 0 to 1 is needed, such as 0.5"),
        ("low_water = inf", "my.toml:2: low_water: a share from 0 to 1 is needed, such as 0.5"),
        ("low_water = 1e-1", "my.toml:2: low_water: a share from 0 to 1 is needed, such as 0.5"),
        ("cache_mode = \"back\"", "my.toml:2: cache_mode: \"write-back\" or \"write-through\" is needed"),
        ("ra_on_hit = 1", "my.toml:2: ra_on_hit: true or false is needed"),
        ("zones = []", "my.toml:2: zones: 0 is out of range: 1 to 1000"),
        (
            "zones = [{ tracks = 9, spt = 10 }, { tracks = 9, spt = 20 }]",
            "my.toml:2: zones: zone 1: 20 sectors per track after 10: zones go from the outside in, with fewer each time",
        ),
        (
            "zones = [{ tracks = 0, spt = 10 }]",
            "my.toml:2: zones: zone 0: 0 tracks are out of range: 1 to 1000000000",
        ),
        ("zones = [{ tracks = 9 }]", "my.toml:2: zones: zone 0: spt is needed"),
        ("zones = { count = 0, tracks = 9, spt = [9, 9] }", "my.toml:2: zones: at least one zone, and"),
        ("[zones]\ncount = 4", "my.toml:2: zones: tracks is needed"),
        ("zones.a.b.c.d = 4", "my.toml:2: zones: a: no such key, only count, tracks, spt"),
        ("seek_knee = 0", "my.toml:2: seek_knee: 0 is out of range: 1 to 1000000000"),
        ("seek_b = \"900ms\"", "my.toml:2: seek_b: 900ms times the root of 12000 cylinders is over 1s"),
        ("seek_c = \"2ms\"", "my.toml:2: seek_c: 2000000000ps is out of range: 0ns to 1ms"),
        ("layout = \"spiral\"", "my.toml:2: layout: \"cylinder-major\" or { serpentine = TRACKS } is needed"),
        ("rpm = 7200\nrpm = 5400", "my.toml:3: duplicate key"),
        ("rpm 7200", "my.toml:2: "),
        ("kind = \"card\"", "my.toml:2: kind: the base is of kind disk"),
    ] {
        let got = error(&format!("base = \"ide2004\"\n{line}\n"));
        assert!(got.starts_with(message), "{line}\n  says:   {got}\n  wanted: {message}");
        assert!(!got.contains('\n'), "one line: {got}");
    }
}

#[test]
fn a_wrong_kind_or_preset_gets_one_clear_line() {
    assert_eq!(
        error(""),
        "my.toml:1: kind = one of \"disk\", \"card\", \"ssd\", \"raid1\", \"raid0\", or base = a preset, is needed"
    );
    assert_eq!(
        error("kind = \"disc\""),
        "my.toml:1: kind: disc is not valid; write one of \"disk\", \"card\", \"ssd\", \"raid1\", \"raid0\""
    );
    assert_eq!(error("kind = \"disk\""), "my.toml:1: rpm: is needed (or base = a preset to start from)");
    assert_eq!(error("base = \"ide2005\""), "my.toml:1: base: no preset ide2005, did you mean ide2004?");
    assert_eq!(error("kind = 4"), "my.toml:1: kind: a word in quotes is needed");
    let unknown = DeviceParams::preset("floppy").map(|p| p.name().to_owned());
    let all = "no preset floppy; there are ide2004, sata2009, nas2020, greedy_ncq, dual_actuator, raid1_2009, flashcard2010, \
               plextor_m5s, sata_ssd, nvme, 980pro, pcie4, pcie5, dramless, emmc51, microsd_a1";
    assert_eq!(unknown.map_err(|e| e.to_string()), Err(all.to_owned()));
}

#[test]
fn each_mistake_in_a_solid_state_drive_gets_one_clear_line() {
    for (line, message) in [
        ("slc_full = \"both\"", "slc_full: \"direct\", \"fold\" or \"drain\" is needed"),
        ("slc = \"0B\"\nslc_full = \"fold\"", "slc_full: \"fold\" needs a part of the cache of its own, slc"),
        ("slc_dynamic = \"4KiB\"", "slc_dynamic: 4096B is out of range: 32768B to 1000204886016B"),
        ("cell_bits = 1", "cell_bits: 1 is out of range: 2 to 5"),
        ("fill = 1.5", "fill: a share from 0 to 1 is needed, such as 0.5"),
        ("copy_back = 1", "copy_back: true or false is needed"),
        ("pcie = 7", "pcie: 7 is out of range: 0 to 6"),
        ("pcie = 4\npcie_lanes = 0", "pcie_lanes: 0 is out of range: 1 to 16"),
        (
            "pcie = 3\nlink_rate = \"4GB/s\"",
            "link_rate: 4000000000B/s is too much: PCIe 3 x4 carries 3938MB/s",
        ),
        ("channels = 0", "channels: 0 is out of range: 1 to 64"),
        (
            "channels = 64\ndies_per_channel = 64",
            "dies_per_channel: 4096 dies are too many: at most 1024 in all",
        ),
        ("planes = 9", "planes: 9 is out of range: 1 to 8"),
        ("page = \"2KiB\"", "page: 2048B is out of range: 4096B to 262144B"),
        ("page = \"12KiB\"", "page: 12288B is not a power of two"),
        ("page = 16", "page: needs a unit, such as \"256KiB\""),
        ("pages_per_block = 0", "pages_per_block: 0 is out of range: 1 to 65536"),
        ("t_read = \"2s\"", "t_read: 2s is out of range: 0ns to 1s"),
        ("t_red = \"2us\"", "t_red: no such key, did you mean t_read?"),
        ("t_cmd = \"2s\"", "t_cmd: 2s is out of range"),
        ("channel_rate = \"1kB/s\"", "channel_rate: 1000B/s is out of range: 1MB/s to 1000GB/s"),
        ("link_rate = \"1MB\"", "link_rate: needs a unit, such as \"85MB/s\""),
        ("cmd_servers = 65", "cmd_servers: 65 is out of range: 1 to 64"),
        ("queue_depth = 1025", "queue_depth: 1025 is out of range: 1 to 1024"),
        ("write_buffer = \"32KiB\"", "write_buffer: 32768B is out of range: 65536B to"),
        ("prefetch = \"8KiB\"", "prefetch: 8192B is out of range: 16384B to"),
        ("slc = \"2TB\"", "slc: 2000000000000B is out of range: 32768B to 1000204886016B"),
        ("slc_idle = \"2000000s\"", "slc_idle: 2000000s is out of range"),
        ("spare = 1.5", "spare: a share from 0 to 1 is needed, such as 0.5"),
        ("write_amplification = 0.5", "write_amplification: must be 1 to 100"),
        ("write_amplification = \"2\"", "write_amplification: a number is needed, such as 2.5"),
        ("half_duplex = 1", "half_duplex: true or false is needed"),
        ("capacity = \"1KiB\"", "capacity: 1024B is out of range"),
        ("au = \"2KiB\"", "au: 2048B is out of range: 4096B to 1073741824B"),
        ("au = \"4MiB\"\nopen_au = 0", "open_au: 0 is out of range: 1 to 1024"),
        ("au = \"4MiB\"\ncmd_servers = 2", "cmd_servers: must be 1 with allocation units"),
        ("max_request = \"512B\"", "max_request: 512B is out of range"),
        (
            "driver = \"scsi\"",
            "driver: one of \"usb\", \"pata\", \"mmc\", \"ahci\", \"sas\", \"nvme\", \"virtio\", \"loop\" is needed",
        ),
        ("kind = \"disk\"", "kind: the base is of kind ssd"),
    ] {
        let got = error(&format!("base = \"nvme\"\n{line}\n"));
        let at = 1 + line.lines().count();
        let wanted = format!("my.toml:{at}: {message}");
        assert!(got.starts_with(&wanted), "{line}\n  says:   {got}\n  wanted: {wanted}");
        assert!(!got.contains('\n'), "one line: {got}");
    }
    assert_eq!(error("kind = \"ssd\""), "my.toml:1: capacity: is needed (or base = a preset to start from)");
}

/// A value that a key depends on may be the one that the file does not set.
#[test]
fn mistakes_in_a_set_get_one_clear_line() {
    for (line, message) in [
        (
            "members = 2",
            "my.toml:2: members: a list of presets is needed, such as [\"sata2009\", \"sata2009\"]",
        ),
        ("members = [\"sata2009\"]", "my.toml:2: members: 1 is out of range: 2 to 8"),
        (
            "members = [\"sata2008\", \"sata2009\"]",
            "my.toml:2: members: no preset sata2008, did you mean sata2009?",
        ),
        ("members = [\"raid1_2009\", \"sata2009\"]", "my.toml:2: members: a set cannot contain a set"),
        ("queues = \"two\"", "my.toml:2: queues: \"per-member\" or \"one\" is needed"),
        ("rpm = 7200", "my.toml:2: rpm: no such key"),
    ] {
        assert_eq!(error(&format!("base = \"raid1_2009\"\n{line}\n")), message);
    }
    assert_eq!(
        error("kind = \"raid1\"\n"),
        "my.toml:1: members: is needed (or base = a preset to start from)",
        "a set of nothing"
    );
}

#[test]
fn a_value_may_clash_with_one_of_the_base() {
    let got = error("base = \"ide2004\"\nbuffer = \"128KiB\"");
    assert_eq!(got, "my.toml: ra_max: 262144B does not fit a buffer of 131072B");
}

/// Presets cut, doubled, and with bytes replaced: an error or a device, never a panic, always one line.
#[test]
fn damaged_text_never_panics() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % n
    };
    const PIECES: [&str; 16] = [
        "9",
        "99999999999999999999",
        "-1",
        "nan",
        "inf",
        "\"",
        "'",
        "[",
        "{",
        "}",
        "=",
        "\n",
        "\0",
        "\u{202e}é",
        "1e999",
        "ms",
    ];
    for i in 0..3000 {
        let name = preset_names()[i % preset_names().len()];
        let mut text: Vec<char> = preset_text(name).unwrap_or_default().chars().collect();
        for _ in 0..=below(4) {
            let at = below(text.len());
            let end = (at + below(6)).min(text.len());
            text.splice(at..end, PIECES[below(PIECES.len())].chars());
        }
        let text: String = text.into_iter().collect();
        match DeviceParams::from_toml(&text, "my\n.toml") {
            Ok(params) => assert!(Device::new(&params).is_ok(), "what was accepted can be made"),
            Err(e) => assert!(!e.to_string().contains(['\n', '\0']), "one line: {e:?}"),
        }
    }
    let deep = format!("zones = {}", "[".repeat(100_000));
    assert!(DeviceParams::from_toml(&deep, "my.toml").is_err());
    let deep = format!("{} = 1", vec!["a"; 50_000].join("."));
    assert!(DeviceParams::from_toml(&deep, "my.toml").is_err());
}

/// Tags are the driver's, whatever the drive takes at a time; without a key they are those of the usual
/// driver.
#[test]
fn tags_are_the_drivers() {
    let tags = |text: &str| {
        let disk = DeviceParams::from_toml(text, "d.toml").unwrap();
        let facts = Device::new(&disk).unwrap().facts();
        (facts.tags(), facts.queue_depth)
    };
    for (text, expected) in [
        ("base = \"sata2009\"", (32, 1)),
        ("base = \"nas2020\"", (32, 31)),
        ("base = \"nas2020\"\ndriver = \"usb\"", (1, 31)),
        ("base = \"microsd_a1\"", (64, 1)),
        ("base = \"emmc51\"\nqueue_depth = 16", (16, 16)),
        ("base = \"flashcard2010\"", (1, 1)),
        ("base = \"ide2004\"", (1, 1)),
        ("base = \"nas2020\"\ndriver = \"virtio\"", (256, 31)),
        ("base = \"nvme\"", (1023, 1023)),
    ] {
        assert_eq!(tags(text), expected, "{text}");
    }
    let written =
        DeviceParams::from_toml("base = \"nas2020\"\ndriver = \"sas\"", "d.toml").unwrap().to_toml();
    assert_eq!(tags(&written), (1024, 31), "the key is kept in a copy");
}
