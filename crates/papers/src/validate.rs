//! A disk model against a recorded drive: what was recorded. The figure itself is the device crate's, which a
//! calibration needs too.
//= docs/reference/devices.md#52-metrics

use fairhead_core::units::Duration;
pub use fairhead_device::demerit::{Demerit, Recorded, demerit, quantile, replay, sorted_ms};
use fairhead_trace::{Op, Trace};

/// The requests of a recording in which each was made when the one before had been answered, as DiskSim's
/// are.
///
/// # Errors
/// The first request that is none of these, or what ended the recording too early.
pub fn read_recording(trace: Trace, name: &str) -> Result<Vec<Recorded>, String> {
    let mut recorded: Vec<Recorded> = Vec::new();
    let mut answered = None;
    for (i, record) in trace.enumerate() {
        let r = record.map_err(|e| e.to_string())?;
        let wrong = |what: &str| format!("{name}: request {}: {what}", i + 1);
        let write = match r.op {
            Op::Read => false,
            Op::Write => true,
            Op::Discard | Op::Flush => return Err(wrong("a recording has reads and writes only")),
        };
        let completed = r.completed.ok_or_else(|| wrong("its completion is not recorded"))?;
        if let Some((answered, last)) = answered.zip(recorded.last_mut()) {
            if r.at < answered {
                return Err(wrong(
                    "it was sent before the previous one completed; the recording must have one request at a time",
                ));
            }
            last.think = r.at.saturating_sub(answered);
        }
        answered = Some(completed);
        let response = completed.saturating_sub(r.at);
        let (start, sectors) = (r.sector.0, r.sectors);
        recorded.push(Recorded { write, start, sectors, response, think: Duration::ZERO });
    }
    if recorded.is_empty() { Err(format!("{name}: it has no requests")) } else { Ok(recorded) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(text: &str) -> Result<Vec<Recorded>, String> {
        let trace = fairhead_trace::read("a", std::io::Cursor::new(text.as_bytes().to_vec()));
        read_recording(trace.map_err(|e| e.to_string())?, "a")
    }

    #[test]
    fn requests_are_read_or_named() {
        let r = recording("R Hit  10 4  1500.5  20.0\n\nW Miss 3 1 2 3\nR Doub 3 1 2 3\nR Trip 3 1 2 3\n")
            .unwrap();
        let first = Recorded {
            write: false,
            start: 10,
            sectors: 4,
            response: Duration::from_ns(1_500_500),
            think: Duration::from_us(20),
        };
        assert_eq!((r[0], r[1].write, r[1].think, r.len()), (first, true, Duration::from_us(3), 4));
        for bad in [
            "X Hit 1 1 1 1",
            "R Hit 1 0 1 1",
            "R Hit 1 1 -1 1",
            "R Hit 1 1 1",
            "R Hit 1 1 NaN 1",
            "R Hit 1 1 1 1e99",
        ] {
            let e = recording(&format!("R Hit 1 1 1 1\n{bad}\n")).unwrap_err();
            assert!(e.starts_with("a:2: "), "{bad}: {e}");
        }
        assert!(recording(" \n").is_err());
    }

    #[test]
    fn any_recording_of_one_at_a_time_will_do() {
        // MSR: time and response time in units of 100 ns.
        let msr = |second: u64, took: &str| {
            recording(&format!("1000,a,0,Read,0,512,{took}\n{second},a,0,Write,512,512,70\n"))
        };
        let r = msr(1150, "100").unwrap();
        assert_eq!((r[0].response, r[0].think), (Duration::from_us(10), Duration::from_us(5)));
        let overlap = msr(1099, "100").unwrap_err();
        assert!(overlap.starts_with("a: request 2: it was sent before"), "{overlap}");
        let unknown = recording("0,R,0,4096,5\n").unwrap_err();
        assert!(unknown.starts_with("a: request 1: its completion is not"), "{unknown}");
    }
}
