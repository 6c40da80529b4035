//! The disk model against recorded drives, by the parameters that DiskSim has of them: the demerit figure
//! stays within 0.02 ms of DiskSim's own, but for one. Needs the recordings beside the repository; says
//! `skipped` without them.

use std::path::Path;

use fairhead_device::DeviceParams;
use fairhead_papers::validate::{demerit, read_recording, replay, sorted_ms};
use fairhead_trace::open;

/// DiskSim's own figure, ms, by how much ours may be worse, and how many things of its files are noted.
///
/// `hp_c3323a` is the one miss of the bar of 0.02 ms: what its writes take more than in the model is not in
/// its files (docs/validate.md). These leave the bus to the system around the drive, which is noted.
const DRIVES: [(&str, f64, f64, usize); 5] = [
    ("cheetah9LP", 0.107, 0.02, 0),
    ("ibm18es", 0.135, 0.02, 0),
    ("atlas10k", 0.268, 0.02, 0),
    ("barracuda", 0.349, 0.02, 0),
    ("hp_c3323a", 0.306, 0.08, 1),
];

#[test]
fn the_figure_is_as_good_as_disksims() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/disksim");
    if !folder.is_dir() {
        return println!("skipped: no shared data");
    }
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|e| format!("{name}: {e}"));
    for (drive, theirs, worse, noted) in DRIVES {
        let specs = read(&format!("{drive}.diskspecs")).unwrap();
        let (params, notes) = DeviceParams::from_disksim(&specs, drive, &mut |file| read(file)).unwrap();
        assert_eq!(notes.len(), noted, "{drive}: every key is known: {notes:?}");
        assert_eq!(DeviceParams::from_toml(&params.to_toml(), drive), Ok(params.clone()), "{drive}");
        let recording = read_recording(open(&folder.join(format!("{drive}.trace"))).unwrap(), drive).unwrap();
        let measured: Vec<_> = recording.iter().map(|r| r.response).collect();
        let model = replay(&params, &recording).unwrap();
        let ours = demerit(&sorted_ms(&measured), &sorted_ms(&model));
        println!("{drive}: {:.3} ms, {:.1} %; DiskSim {theirs} ms", ours.ms, ours.percent);
        assert!(ours.ms <= theirs + worse, "{drive}: {:.3} ms, DiskSim {theirs} ms", ours.ms);
    }
}
