//! The disk model against recorded drives, by the parameters that DiskSim has of them: the demerit figure stays within
//! 0.1 ms of DiskSim's own. Needs the recordings beside the repository; says `skipped` without them.

use std::path::Path;

use fairhead_device::DeviceParams;
use fairhead_sim::validate::{demerit, read_recording, replay, sorted_ms};
use fairhead_trace::open;

/// DiskSim's own figure, ms, and by how much ours may be worse.
///
/// `hp_c3323a`: its files leave the bus to the system around the drive (`Bulk sector transfer time = 0`); the bus is the one that
/// DiskSim's own description of that system has.
const DRIVES: [(&str, f64, f64); 5] = [
    ("cheetah9LP", 0.107, 0.1),
    ("ibm18es", 0.135, 0.1),
    ("atlas10k", 0.268, 0.1),
    ("barracuda", 0.349, 0.1),
    ("hp_c3323a", 0.306, 0.1),
];

#[test]
fn the_figure_is_as_good_as_disksims() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/disksim");
    if !folder.is_dir() {
        return println!("skipped: no shared data");
    }
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|e| format!("{name}: {e}"));
    for (drive, theirs, worse) in DRIVES {
        let specs = read(&format!("{drive}.diskspecs")).unwrap();
        let (params, notes) = DeviceParams::from_disksim(&specs, drive, &mut |file| read(file)).unwrap();
        assert_eq!(notes, Vec::<String>::new(), "{drive}: every key is known");
        assert_eq!(DeviceParams::from_toml(&params.to_toml(), drive), Ok(params.clone()), "{drive}");
        let recording = read_recording(open(&folder.join(format!("{drive}.trace"))).unwrap(), drive).unwrap();
        let measured: Vec<_> = recording.iter().map(|r| r.response).collect();
        let model = replay(&params, &recording).unwrap();
        let ours = demerit(&sorted_ms(&measured), &sorted_ms(&model));
        println!("{drive}: {:.3} ms, {:.1} %; DiskSim {theirs} ms", ours.ms, ours.percent);
        assert!(ours.ms <= theirs + worse, "{drive}: {:.3} ms, DiskSim {theirs} ms", ours.ms);
    }
}
