use super::*;

/// A drive of 2 surfaces, 2 zones and one line of each kind; `$seek` is the mechanical model's part.
fn text(seek: &str) -> String {
    let mut t =
        String::from("# a comment { with a brace\ndisksim_disk TINY {\n Model = source tiny.model,\n");
    for (what, ms) in [("Read hit", "0.1"), ("Read miss", "0.3"), ("Write hit", "0.2"), ("Write miss", "0.5")]
    {
        t.push_str(&format!("{what} over. after read = {ms}, {what} over. after write = 1{ms},\n"));
    }
    t.push_str(
        "Bulk sector transfer time = 0.1, Number of buffer segments = 3, Segment size (in blks) = 64,\n",
    );
    t.push_str("Buffer continuous read = 2, Enable caching in buffer = 1, Maximum read-ahead (blks) = 99,\n");
    t.push_str(
        "Minimum read-ahead (blks) = 0, Fast write level = 2, Maximum number of write segments = 2,\n",
    );
    t.push_str("Scheduler = disksim_ioqueue { Scheduling policy = 1 }, Read completion overhead = 0.01\n}\n");
    t.push_str(
        "dm_disk TINY_model { Number of data surfaces = 2, Number of cylinders = 20, Block count = 3900,\n",
    );
    t.push_str(&format!("Mechanical Model = dm_mech_g1 {{ {seek} Head switch time = 0.5,\n"));
    t.push_str("Add. write settling delay = 0.25, Rotation speed (in rpms) = 6000.0 },\n");
    t.push_str("Layout Model = dm_layout_g1 { Sparing scheme used = 9, Zones = [\n");
    for (first, last, spt) in [(0, 9, 100), (11, 19, 110)] {
        t.push_str(&format!(
            "dm_layout_g1_zone {{ First cylinder number = {first}, Last cylinder number = {last}, \
             Blocks per track = {spt}, Skew for track switch = 5.5, Skew for cylinder switch = 9., \
             Number of spares = 7, slips = [ 4, 3 ], defects = [ ] }},\n"
        ));
    }
    t + "] } }\n"
}

/// The drive, and what is noted. The text's second block is a file of its own.
fn read_all(text: &str) -> Result<(DiskParams, Vec<String>), String> {
    let (text, model) = text.split_at(text.find("dm_disk").unwrap_or(text.len()));
    let files = &mut |name: &str| match name {
        "tiny.model" => Ok(model.to_owned()),
        "tiny.diskspecs" => Ok(self::text(FILE).split("dm_disk").next().unwrap_or("").to_owned()),
        "tiny.seek" => Ok("Seek distances measured: 2\n5, 2.5\n1,\t1.25\n".to_owned()),
        _ => Err(format!("no {name}")),
    };
    match DeviceParams::from_disksim(text, "tiny.diskspecs", files) {
        Ok((DeviceParams::Disk(p), notes)) => Ok((p, notes)),
        Ok(_) => unreachable!("a disk"),
        Err(e) => Err(e.to_string()),
    }
}

fn read(text: &str) -> Result<DiskParams, String> {
    read_all(text).map(|r| r.0)
}

const FILE: &str = "Seek type = extracted, Full seek curve = tiny.seek,";

#[test]
fn a_drive_is_what_its_files_say() {
    let p = read(&text(FILE)).unwrap();
    assert_eq!((p.rpm, p.heads, p.nseg, p.ra_max, p.segment), (6000, 2, 3, Sectors(64), Sectors(64)));
    assert_eq!(p.seek_table, [(1, Duration::from_us(1250)), (5, Duration::from_us(2500))]);
    // The skew of the second zone, 5.5 sectors of 110, is as long as the head switch.
    assert_eq!((p.t_switch, p.write_settle), (Duration::from_us(500), Duration::from_us(250)));
    assert_eq!((p.bus_rate, p.ra_stop, p.wc_slots), (5_120_000, RaStop::Cylinder, 2));
    let o = p.overheads.unwrap();
    assert_eq!(o.read_miss, [Duration::from_us(300), Duration::from_us(10_300)]);
    assert_eq!((o.read_end, o.write_end), (Duration::from_us(10), Duration::ZERO));
    let extra = "Fast write level = 2, Extra write disconnect = 1, Extradisc command overhead = 0.7, \
                 Extradisc inter-disconnect delay = 0.2,";
    let o = read(&text(FILE).replace("Fast write level = 2,", extra)).unwrap().overheads.unwrap();
    assert_eq!((o.write_hit, o.write_miss), ([Duration::from_us(900); 2], [Duration::from_us(700); 2]));
    let z = &p.map[1];
    assert_eq!((z.first_cylinder, z.cylinders, z.track_skew, z.cylinder_skew), (11, 9, 5500, 9000));
    assert_eq!((z.spares, z.unit, &*z.slips, p.map_capacity), (7, None, &[3, 4][..], 3900));
    assert!(crate::Disk::new(&p).is_ok_and(|d| d.facts().capacity == 3900));
}

#[test]
fn overheads_are_where_the_manual_puts_them() {
    let with = |more: &str| {
        let t = text(FILE).replacen("Fast write", &format!("{more}, Fast write"), 1);
        let p = read(&t).unwrap();
        (p.overheads.unwrap(), p)
    };
    let us = Duration::from_us;
    let parts = "First reselect overhead = 0.1, Data preparation overhead = 0.02, Read disconnect afterread = 0.3, \
                 Write completion overhead = 0.004, Minimum seek delay = 1.5";
    let (o, p) = with(parts);
    assert_eq!((o.read_leave, o.read_join), ([us(300), us(0)], us(120)));
    assert_eq!((o.write_miss[0], o.write_data[0], o.write_media_end), (us(500), us(520), us(104)));
    assert_eq!(p.write_seek_min, us(1500));
    let (o, _) = with(&format!("{parts}, Never disconnect = 1"));
    assert_eq!((o.read_leave[0], o.read_join, o.write_media_end), (us(0), us(20), us(4)));
    let (o, _) = with(&format!("{parts}, Time scale for overheads = 0.5"));
    assert_eq!((o.read_miss[0], o.read_join, o.write_media_end), (us(150), us(60), us(52)));
}

#[test]
fn the_cache_is_what_the_manual_says() {
    let with =
        |more: &str| read(&text(FILE).replacen("Fast write", &format!("{more}, Fast write"), 1)).unwrap();
    let p = with("Use separate write segment = 1, Combine seq writes = 0, Immediate buffer write = 1");
    assert_eq!(
        (p.nseg, p.wc_slots, p.wc_merge, p.write_anywhere, p.read_anywhere),
        (2, 1, false, true, false)
    );
    let p =
        with("Set watermark by reqsize = 0, Immed transfer partial hit = 0, High (read) water mark = 0.5");
    assert_eq!((p.watermark_of_segment, p.partial_hits, p.read_watermark_permille), (true, false, Some(500)));
    let p =
        read(&text(FILE).replace("Enable caching in buffer = 1", "Enable caching in buffer = 0")).unwrap();
    assert!(!p.read_cache && p.ra_max == Sectors(0));
}

#[test]
fn the_slowest_part_of_the_way_is_the_bus() {
    let system = "disksim_bus B0 { type = 1, Read block transfer time = 0.25 }\n\
                  disksim_ctlr C { Bulk sector transfer time = 0.05 }\n source tiny.diskspecs\n\
                  instantiate [ disk0 .. disk1 ] as TINY\n topology disksim_bus b [ disksim_disk d [], x y [] ]\n";
    let model = |t: &str| text(FILE)[text(FILE).find("dm_disk").unwrap()..].to_owned() + t;
    assert_eq!(read(&(system.to_owned() + &model(""))).unwrap().bus_rate, 2_048_000);
    // No drive takes another's bus.
    let left = text(FILE).replace("Bulk sector transfer time = 0.1", "Bulk sector transfer time = 0");
    let (p, notes) = read_all(&left).unwrap();
    assert_eq!(p.bus_rate, NO_BUS);
    assert!(notes.len() == 1 && notes[0].contains("none is described"), "{notes:?}");
    assert!(crate::Disk::new(&p).is_ok(), "a bus that takes no time is possible");
    for (name, file, rate) in [
        ("HP_C3323A", "hp_c3323a.parv, 0.14550 ms", 3_518_900),
        ("HP_C2490A_validate", "hp_c2490a.parv, 0.14841 ms", 3_449_902),
    ] {
        let (p, notes) =
            read_all(&left.replace("disksim_disk TINY", &format!("disksim_disk {name}"))).unwrap();
        assert_eq!(p.bus_rate, rate, "{name}");
        assert!(notes.len() == 1 && notes[0].contains(file), "{notes:?}");
    }
}

#[test]
fn a_settling_delay_below_zero_makes_seeks_before_writes_shorter() {
    let t = text(FILE).replace("Add. write settling delay = 0.25", "Add. write settling delay = -0.642000");
    let (p, notes) = read_all(&t).unwrap();
    assert_eq!((p.write_settle, p.write_settle_less), (Duration::ZERO, Duration::from_us(642)));
    assert!(notes.len() == 1 && notes[0].contains("settling delay: is below zero"), "{notes:?}");
    let again = DeviceParams::from_toml(&DeviceParams::Disk(p.clone()).to_toml(), "tiny");
    assert_eq!(again, Ok(DeviceParams::Disk(p)), "and is kept");
    let bad = read(&text(FILE).replace("delay = 0.25", "delay = -x")).unwrap_err();
    assert!(bad.contains("settling delay: -x is no number"), "{bad}");
}

#[test]
fn a_head_switch_takes_no_less_than_the_shortest_seek_or_the_skew() {
    let with = |switch: &str, skew: &str| {
        let t = text(FILE).replace("Head switch time = 0.5", &format!("Head switch time = {switch}"));
        read(&t.replace("Skew for track switch = 5.5", &format!("Skew for track switch = {skew}")))
            .unwrap()
            .t_switch
    };
    // A revolution of 10 ms has 100 and 110 sectors: 20 of 110 are 1.8 ms, the seek of one cylinder takes
    // 1.25 ms.
    assert_eq!(with("0.06", "20"), Duration::from_us(1250));
    assert_eq!(with("0.06", "11"), Duration::from_ms(1));
    assert_eq!(with("2.5", "11"), Duration::from_us(2500), "more, if the file says so");
}

#[test]
fn what_was_asked_for_last_is_kept_or_not() {
    let keeps = |value: &str| {
        let key = format!("Read-ahead over requested = {value}, Fast write");
        read(&text(FILE).replacen("Fast write", &key, 1)).unwrap().keeps_requested
    };
    assert_eq!((keeps("0"), keeps("1"), keeps("-1")), (true, false, false));
    assert!(!read(&text(FILE)).unwrap().keeps_requested);
}

#[test]
fn skews_have_two_units() {
    let zone = |t: &str| read(t).unwrap().map[1].clone();
    let turns = text(FILE).replace("= 5.5, Skew for cylinder", "= 0.05, Skew for cylinder");
    let whole = turns.replace("Sparing scheme used", "Skew units = revolutions, Sparing scheme used");
    assert_eq!((zone(&whole).track_skew, zone(&whole).cylinder_skew), (5500, 990_000));
    let own = turns.replace("Number of spares", "Skew units = revolutions, Number of spares");
    assert_eq!(zone(&own), zone(&whole));
    let e = read(&own.replace("= revolutions", "= degrees")).unwrap_err();
    assert!(e.contains("Skew units: degrees is not supported"), "{e}");
}

#[test]
fn the_second_layout_says_which_sectors_a_zone_has() {
    let zone = |first: u32, last: u32, lbn: u32, end: u32| {
        format!(
            "dm_layout_g2_zone {{ First cylinder number = {first}, Last cylinder number = {last}, \
             First LBN = {lbn}, Last LBN = {end}, Blocks per track = 100, Zone Skew = 3, \
             Skew for track switch = 5, Skew for cylinder switch = 9 }}"
        )
    };
    let t = text(FILE);
    let layout = |zones: &str| {
        let before = &t[..t.find("Layout Model").unwrap()];
        format!(
            "{before}Layout Model = dm_layout_g2 {{ Layout Map File = tiny.map, Zones = [ {zones} ] }} }}"
        )
    };
    let (p, notes) = read_all(&layout(&(zone(0, 9, 0, 1989) + ", " + &zone(10, 19, 1990, 3989)))).unwrap();
    assert_eq!((p.map[0].spares, p.map[0].offset, p.map[1].spares), (10, 3000, 0));
    assert!(notes.len() == 1 && notes[0].contains("Layout Map File: is not read"), "{notes:?}");
    assert!(crate::Disk::new(&p).is_ok_and(|d| d.facts().capacity == 3900));
    let e = read(&layout(&zone(0, 9, 0, 2000))).unwrap_err();
    assert!(e.contains("2001 sectors do not fit the zone, which has 2000"), "{e}");
}

#[test]
fn what_is_passed_over_is_said() {
    let notes = |t: &str| read_all(t).unwrap().1;
    assert_eq!(notes(&text(FILE)), Vec::<String>::new());
    let t = text(FILE).replacen(
        "Bulk sector",
        "Allow sneaky full read hits = 1,\nRead hits over. after read = 3, Bulk sector",
        1,
    );
    let said = "tiny.diskspecs:9: Read hits over. after read: no such parameter, passed over, \
                did you mean Read hit over. after read?";
    assert_eq!(notes(&t), [said]);
    let said = notes(&text(FILE).replacen("defects = [ ]", "defects = [ 1, 2, 7, 9 ]", 1));
    assert!(said.len() == 1 && said[0].contains("defects: 2 remapped"), "{said:?}");
    let said = notes(&text(FILE).replacen("Block count = 3900", "Block count = 9900", 1));
    assert!(said.len() == 1 && said[0].contains("Block count: the zones hold 3966 sectors"), "{said:?}");
    let said =
        notes(&text("Access time type = averageRotation, Seek type = constant, Constant seek time = 4,"));
    assert!(said.len() == 1 && said[0].starts_with("tiny.model:2: Access time type"), "{said:?}");
}

#[test]
fn spares_are_where_the_scheme_says() {
    let zone = |scheme: u32| {
        let t = text(FILE).replace(
            "Sparing scheme used = 9",
            &format!("Sparing scheme used = {scheme}, Rangesize for sparing = 4"),
        );
        let z = read(&t).unwrap().map[0].clone();
        let slips = z.slips.len();
        (z.spares, z.unit.map(|u| (u.tracks, u.spares, u.at_front)), slips, z.unit.is_some_and(|u| u.kept))
    };
    assert_eq!([zone(0), zone(7)], [(0, None, 2, false); 2]);
    assert_eq!(
        (zone(1), zone(9), zone(10)),
        ((700, None, 200, false), (7, None, 2, false), (9, None, 2, false))
    );
    let unit = |tracks, front, kept| (0, Some((tracks, 7, front)), 2, kept);
    assert_eq!(
        (zone(2), zone(3), zone(5)),
        (unit(2, false, false), unit(1, false, false), unit(2, true, false))
    );
    assert_eq!(
        (zone(4), zone(6), zone(8)),
        (unit(2, false, true), unit(2, true, true), unit(8, false, false))
    );
}

#[test]
fn seek_formulas_become_tables() {
    let at = |seek: &str, d: u64| {
        let table = read(&text(seek)).unwrap().seek_table;
        table.iter().find(|s| s.0 == d).unwrap_or_else(|| panic!("{d} of {table:?}")).1.as_us()
    };
    let three = "Single cylinder seek time = 1.0, Average seek time = 3.0, Full strobe seek time = 5.5,";
    let (line, curve) = (format!("Seek type = linear, {three}"), format!("Seek type = curve, {three}"));
    // The mean is at a third of the 19 cylinders.
    assert_eq!((at(&line, 1), at(&line, 6), at(&line, 19)), (1000, 3000, 5500));
    assert_eq!((at(&line, 2), at(&line, 13)), (1400, 4346), "1000 + 2000/5; 3000 + 2500 * 7/13");
    assert_eq!(at(&curve, 1), 1000);
    // (-10 + 45 - 27.5) / (3 sqrt 19) sqrt 18 + (7 - 45 + 44) / (3 * 19) * 18 + 1 = 5.328
    assert!(at(&curve, 19).abs_diff(5328) <= 1, "{}", at(&curve, 19));
    let six = "HPL seek equation values = [ 10, 2.0, 0.5, 3.0, 0.1, 1.5 ], First ten seek times = [ 9, 8 ],";
    let (hpl, plus) = (format!("Seek type = hpl, {six}"), format!("Seek type = hplplus10, {six}"));
    assert_eq!((at(&hpl, 1), at(&hpl, 4), at(&hpl, 10)), (1500, 3000, 4000));
    assert_eq!((at(&plus, 1), at(&plus, 2), at(&plus, 4)), (9000, 8000, 3000));
    assert_eq!(at("Seek type = constant, Constant seek time = 4,", 7), 4000);
}

#[test]
fn damage_is_one_line() {
    let whole = text(FILE);
    for (from, to, part) in [
        (
            "Segment size",
            "Segmnt size",
            "Segment size (in blks): is needed; is it 'Segmnt size (in blks)' in line",
        ),
        ("= 6000.0", "= fast", "Rotation speed (in rpms): fast is no number"),
        ("extracted", "guessed", "guessed is not known"),
        ("tiny.seek", "other.seek", "no other.seek"),
        ("tiny.model", "other.model", "no other.model"),
        ("disksim_disk TINY", "disksim_bus TINY", "disksim_disk NAME { … } is needed"),
        ("Blocks per track = 110", "Blocks per track = 0", "0 sectors per track are out of range"),
        ("Last cylinder number = 19", "Last cylinder number = 1", "0 tracks are out of range"),
        ("First cylinder number = 11", "First cylinder number = 5", "zone 1 is inconsistent"),
    ] {
        let e = read(&whole.replacen(from, to, 1)).unwrap_err();
        assert!(e.contains(part) && !e.contains('\n') && e.starts_with("tiny."), "{part}: {e}");
    }
    let e = read(&"a b { c = [".repeat(1000)).unwrap_err();
    assert!(e.contains("blocks"), "{e}");
    let e = read("source a.parv\n").unwrap_err();
    assert_eq!(e, "tiny.diskspecs:1: no a.parv");
}

/// Cut anywhere, or with any letter gone: a message or a drive, no panic.
#[test]
fn no_damage_panics() {
    let whole = text(FILE);
    for i in 0..whole.len() {
        let _ = read(&whole[..i]);
        let mut hurt = whole.clone();
        hurt.remove(i);
        if let Ok(p) = read(&hurt) {
            assert!(crate::Disk::new(&p).is_ok(), "without byte {i}");
        }
    }
    for number in ["0", "1", "18446744073709551615", "99999999999", "-1", "1e3"] {
        for key in whole.match_indices("= ").map(|(i, _)| i + 2) {
            let end = key + whole[key..].find([',', '\n', ' ', ']']).unwrap_or(0);
            let hurt = format!("{}{number}{}", &whole[..key], &whole[end..]);
            if let Ok(p) = read(&hurt) {
                assert!(crate::Disk::new(&p).is_ok(), "{number} at {key}");
            }
        }
    }
}
