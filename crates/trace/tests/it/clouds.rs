//! cloudPhysics as CSV and VSCSI, libCacheSim's CSV, and MQSim: columns, units and damage.

use fairhead_trace::{Format, Op, Record, read};
use std::io::Cursor;

fn all(bytes: &[u8], format: Format) -> Vec<Record> {
    let trace = read("t", Cursor::new(bytes.to_vec())).unwrap();
    assert_eq!(trace.format(), format, "{}", String::from_utf8_lossy(bytes));
    trace.map(Result::unwrap).collect()
}

/// The error of a text, of its beginning or a line.
fn error(bytes: &[u8]) -> String {
    match read("t", Cursor::new(bytes.to_vec())) {
        Ok(mut trace) => trace.find_map(Result::err).map(|e| e.to_string()).unwrap_or_default(),
        Err(e) => e.to_string(),
    }
}

/// Time in us, operation, sector and sectors.
fn rows(bytes: &[u8], format: Format) -> Vec<(u64, Op, u64, u32)> {
    all(bytes, format).iter().map(|r| (r.at.as_us(), r.op, r.sector.0, r.sectors)).collect()
}

#[test]
fn cloud_physics_with_and_without_its_header() {
    let text = include_str!("../cases/cloudphys.csv");
    // Times in us: 5633800611441, 5633800745540, 5633800745541.
    let expected = [
        (0, Op::Read, 42_932_745, 1),
        (134_099, Op::Write, 42_932_746, 2),
        (134_100, Op::Read, 42_932_747, 1),
    ];
    assert_eq!(rows(text.as_bytes(), Format::CloudPhysics), expected);
    let bare = text.split_once('\n').unwrap().1;
    assert_eq!(rows(bare.as_bytes(), Format::CloudPhysics), expected);
    // Columns in another order, another separator, words in capitals, and more columns.
    let other = "op\tsize\tobject\ttime\tvm\nRead\t512\t42932745\t5633800611441\tw01\n";
    assert_eq!(rows(other.as_bytes(), Format::CloudPhysics), [expected[0]]);
}

#[test]
fn a_byte_order_mark_and_other_line_ends_change_nothing() {
    let plain = "time,object,op,size\n1,8,read,512\n2,16,write,512\n";
    let marked = format!("\u{feff}{}", plain.replace('\n', "\r\n"));
    assert_eq!(rows(marked.as_bytes(), Format::CloudPhysics), rows(plain.as_bytes(), Format::CloudPhysics));
    let bare = "\u{feff}5,8,write,512\r\n";
    assert_eq!(rows(bare.as_bytes(), Format::CloudPhysics), [(0, Op::Write, 8, 1)]);
    let msr = "\u{feff}128166372003061629,src1,0,Read,0,512,60\r\n";
    assert_eq!(rows(msr.as_bytes(), Format::Msr), [(0, Op::Read, 0, 1)]);
}

#[test]
fn lib_cache_sim_by_the_names_of_its_columns() {
    let expected = [(0, Op::Write, 42_000_745, 1), (1_000_000, Op::Read, 40_409_000, 13)];
    for text in [
        "version,time,op,size,lbn\n1,33800,2a,512,42000745\n1,33801,28,6656,40409000\n",
        "1,33800,2a,512,42000745\n1,33801,28,6656,40409000\n",
        "# time, obj_id, obj_size, op\n33800, 42000745, 512, write\n33801, 40409000, 6656, read\n",
        "timestamp|obj-id|size|op|next_access_vtime\n33800|42000745|512|set|9\n33801|40409000|6656|get|-2\n",
        "\"time\",\"id\",\"len\",\"cmd\"\n\"33800\",\"42000745\",\"512\",\"0x2a\"\n33801,40409000,6656,88\n",
    ] {
        assert_eq!(rows(text.as_bytes(), Format::LibCacheSim), expected, "{text}");
    }
    // Times with decimals; without operations all are reads; a flush has no sector.
    let text = "time,obj_id,obj_size\n0.5,8,512\n0.75,16,4096\n";
    assert_eq!(rows(text.as_bytes(), Format::LibCacheSim), [(0, Op::Read, 8, 1), (250_000, Op::Read, 16, 8)]);
    let text = "version,time,op,size,lbn\n2,1,35,0,0\n2,2,91,0,7\n";
    let flush = |at| (at, Op::Flush, 0, 0);
    assert_eq!(rows(text.as_bytes(), Format::LibCacheSim), [flush(0), flush(1_000_000)]);
}

#[test]
fn headers_of_other_formats_are_theirs() {
    for (text, format) in [
        ("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n", Format::Msr),
        ("device_id,opcode,offset,length,timestamp\n", Format::Alibaba),
        ("Timestamp,Offset,Size,IOType,VolumeID\n", Format::Tencent),
    ] {
        assert!(all(text.as_bytes(), format).is_empty());
    }
}

#[test]
fn mq_sim_counts_in_nanoseconds() {
    let text = "4711300 1 520000 16 0\n4724300 1 520016 16 1\n\n4731301 0 8 2048 0\n";
    assert_eq!(
        rows(text.as_bytes(), Format::MqSim),
        [(0, Op::Write, 520_000, 16), (13, Op::Read, 520_016, 16), (20, Op::Write, 8, 2048)]
    );
    let all = all(text.as_bytes(), Format::MqSim);
    assert_eq!((all[0].device, all[2].at.as_ns()), (all[1].device, 20_001));
    assert_ne!(all[0].device, all[2].device);
}

/// A record of version 1.
fn one(length: u32, command: u16, sector: u64, us: u64) -> Vec<u8> {
    let mut bytes = [9_u32, length, 1].map(u32::to_le_bytes).concat();
    bytes.extend([command, 0x011c].map(u16::to_le_bytes).concat());
    bytes.extend([sector, us].map(u64::to_le_bytes).concat());
    bytes
}

/// A record of version 2.
fn two(length: u32, command: u16, sector: u64, us: u64, response_us: u64) -> Vec<u8> {
    let mut bytes = [command, 0x0224].map(u16::to_le_bytes).concat();
    bytes.extend([9, length, 1].map(u32::to_le_bytes).concat());
    bytes.extend([sector, us, response_us].map(u64::to_le_bytes).concat());
    bytes
}

#[test]
fn vscsi_of_both_versions() {
    let bytes = [one(512, 0x2a, 8, 5_633_000_000_100), one(6656, 0x28, 64, 5_633_000_000_200)].concat();
    assert_eq!(rows(&bytes, Format::Vscsi), [(0, Op::Write, 8, 1), (100, Op::Read, 64, 13)]);
    assert!(all(&bytes, Format::Vscsi).iter().all(|r| r.completed.is_none()));
    let bytes = [two(512, 0x8a, 8, 1000, 300), two(4096, 0x88, 64, 1100, 0)].concat();
    assert_eq!(rows(&bytes, Format::Vscsi), [(0, Op::Write, 8, 1), (100, Op::Read, 64, 8)]);
    let ends: Vec<_> = all(&bytes, Format::Vscsi).iter().map(|r| r.completed.map(|t| t.as_us())).collect();
    assert_eq!(ends, [Some(300), None]);
    // One record is a trace; commands that are no requests are passed over; a flush has no sector.
    assert_eq!(all(&one(512, 0x2a, 8, 5), Format::Vscsi).len(), 1);
    let bytes = [one(36, 0x12, 0, 1), one(0, 0x35, 7, 2), one(0, 0x00, 0, 3), one(512, 0x08, 8, 4)].concat();
    assert_eq!(rows(&bytes, Format::Vscsi), [(0, Op::Flush, 0, 0), (2, Op::Read, 8, 1)]);
}

#[test]
fn damage_is_told_with_its_place() {
    let head = "version,time,op,size,lbn\n";
    for (text, message) in [
        (format!("{head}1,5,2a,512\n"), "t:2: 4 fields; the object would be field 5"),
        (
            format!("{head}1,5,zz,512,8\n"),
            "t:2: operation 'zz': expected read or write, or a SCSI command such as 28 or 2a",
        ),
        (
            format!("{head}1,5,2a,512,key-7\n"),
            "t:2: 'key-7' is not a sector as an object: expected a whole number in range",
        ),
        (
            "time,object,op,size\n5,8,read,x\n".to_owned(),
            "t:2: 'x' is not a size: expected a whole number in range",
        ),
        ("1 0 8 8 1\n2 0 8 8 2\n".to_owned(), "t:2: type '2': expected 0 for a write or 1 for a read"),
        (
            "1 0 8 8 1\n2 0 8 8\n".to_owned(),
            "t:2: 4 fields; a request has 5: arrival time in ns, device, sector, sectors, type",
        ),
    ] {
        assert_eq!(error(text.as_bytes()), message, "{text}");
    }
    let good = one(512, 0x2a, 8, 5);
    let mut bytes = good.repeat(20);
    bytes.extend(&two(512, 0x2a, 8, 5, 5)[..32]);
    assert_eq!(
        error(&bytes),
        "t: byte 640: no record begins here: expected version 1 or 2 and a command of one byte"
    );
    assert_eq!(error(&good.repeat(3)[..70]), "t: byte 64: the file ends in a record: 6 bytes of 32");
    let far = one(512, 0x2a, u64::MAX, 5);
    assert!(error(&far).starts_with("t: byte 0: sector 18446744073709551615 is beyond every disk"));
    let late = one(512, 0x2a, 8, u64::MAX);
    assert_eq!(error(&late), "t: byte 0: '18446744073709551615' is not a time: it is too large");
}
