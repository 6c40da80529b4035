//! A disk model against a recorded drive: how far are its response times from the drive's?
//!
//! A recording has each request with the time that the drive took and the time until the next one was sent.
//! The requests are sent to the model with the recorded pauses, each as long after the answer to the one
//! before, and the two *distributions* of response times are compared: the demerit figure is the root mean
//! square of their horizontal distance.
//!
//! ```text
//!     share of requests
//!       1 |            ___----
//!         |       _.-'_.-'         both sorted by time; at each rank the distance d = model - drive,
//!         |     .'<d>'             and the figure is sqrt(mean of d^2), in ms or as a share of the
//!       0 |____/_/__________ ms    drive's mean
//! ```
//!
//! Worked number: answers of 1, 2 and 3 ms against 1, 2 and 6 ms: sqrt(9 / 3) = 1.73 ms, 58 % of the drive's
//! mean of 3 ms.
//!
//! What this does not do: say whether single requests are right. A drive's angle drifts by revolutions
//! between requests, so a model that is right in every parameter still waits for another part of the turn;
//! the distribution does not see that.
//= Ruemmler & Wilkes 1994, demerit figure
//= docs/reference/devices.md#52-metrics

use crate::{Command, Device, DeviceOp, DeviceParams};
use fairhead_core::units::{Duration, Instant, Sector, Sectors, Tag};

/// A request to a drive, and what the drive did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// A write, or else a read.
    pub write: bool,
    /// The first sector.
    pub start: u64,
    /// The length, at least 1 sector.
    pub sectors: u32,
    /// From the request to its answer.
    pub response: Duration,
    /// From the answer to the next request; zero for the last.
    pub think: Duration,
}

/// Sends a recording's requests to a drive, each as long after the answer to the one before as in the
/// recording, and gives the drive's own response times.
///
/// # Errors
/// When the drive is impossible, or a request does not fit it.
pub fn replay(params: &DeviceParams, recording: &[Recorded]) -> Result<Vec<Duration>, String> {
    let mut device = Device::new(params).map_err(|e| e.to_string())?;
    let (capacity, most) = (device.facts().capacity, device.facts().max_request);
    let mut now = Instant::EPOCH + Duration::from_ms(1);
    let mut responses = Vec::with_capacity(recording.len());
    for (i, r) in recording.iter().enumerate() {
        let end = r.start.checked_add(u64::from(r.sectors));
        if end.is_none_or(|end| end > capacity) || r.sectors > most.0 {
            let (name, n) = (params.name(), i + 1);
            return Err(format!(
                "request {n}: {} sectors at {} do not fit {name}, which has {capacity} and takes {} at once",
                r.sectors, r.start, most.0
            ));
        }
        let op = if r.write { DeviceOp::Write } else { DeviceOp::Read };
        let (start, len) = (Sector(r.start), Sectors(r.sectors));
        device.submit(now, Command { tag: Tag(0), op, start, len, fua: false });
        let sent = now;
        while let Some(at) = device.next_event() {
            now = at;
            if device.poll(at).is_some() {
                break;
            }
        }
        responses.push(now.since(sent));
        now = now + r.think;
    }
    Ok(responses)
}

/// The distance between two distributions of response times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Demerit {
    /// The root mean square of the horizontal distance, in ms.
    pub ms: f64,
    /// The figure as a percentage of the drive's mean.
    pub percent: f64,
    /// The mean response time of the recorded drive, in ms.
    pub drive_mean_ms: f64,
    /// The mean response time of the model, in ms.
    pub model_mean_ms: f64,
}

#[allow(clippy::cast_precision_loss, reason = "times below 104 days are exact")]
fn ms(t: Duration) -> f64 {
    t.as_ns() as f64 / 1e6
}

/// Returns response times in ascending order, in ms.
#[must_use]
pub fn sorted_ms(times: &[Duration]) -> Vec<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.into_iter().map(ms).collect()
}

/// Returns the value that `permille` thousandths of the sorted values do not exceed; 0 if there are none.
#[must_use]
pub fn quantile(sorted: &[f64], permille: usize) -> f64 {
    let rank = (sorted.len() * permille).div_ceil(1000).max(1);
    sorted.get(rank.min(sorted.len()).wrapping_sub(1)).copied().unwrap_or(0.0)
}

/// Returns the demerit figure of a model. Both slices are response times in ms, [sorted](sorted_ms) and of
/// the same length. The figure of empty slices is 0.
///
/// ```
/// use fairhead_device::demerit::demerit;
/// let figure = demerit(&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]);
/// assert_eq!((figure.ms, figure.percent), (1.0, 50.0));
/// ```
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "no recording has 2^52 requests")]
pub fn demerit(drive: &[f64], model: &[f64]) -> Demerit {
    let n = drive.len().min(model.len()).max(1) as f64;
    let square = |(a, b): (&f64, &f64)| (a - b) * (a - b);
    let rms = (drive.iter().zip(model).map(square).sum::<f64>() / n).sqrt();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let drive_mean_ms = mean(drive);
    let percent = if drive_mean_ms > 0.0 { 100.0 * rms / drive_mean_ms } else { 0.0 };
    Demerit { ms: rms, percent, drive_mean_ms, model_mean_ms: mean(model) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_is_of_the_distributions_not_of_the_requests() {
        let d = demerit(&[1.0, 2.0, 6.0], &[1.0, 2.0, 3.0]);
        assert!((d.ms - 3f64.sqrt()).abs() < 1e-12 && (d.percent - 100.0 * 3f64.sqrt() / 3.0).abs() < 1e-9);
        let ms = |v: [u64; 3]| sorted_ms(&v.map(Duration::from_ms));
        assert_eq!(demerit(&ms([5, 1, 9]), &ms([9, 5, 1])).ms, 0.0, "the same times in another order");
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 500), 2.0);
        assert_eq!((quantile(&[1.0, 2.0], 1000), quantile(&[], 500)), (2.0, 0.0));
    }

    #[test]
    fn think_times_count_from_the_answer() {
        let params = DeviceParams::preset("ide2004").unwrap();
        let r = |start| Recorded {
            write: false,
            start,
            sectors: 8,
            response: Duration::ZERO,
            think: Duration::from_ms(5),
        };
        // The drive reads ahead of the first request while it is idle, so the second is a hit.
        let times = replay(&params, &[r(1000), r(1008)]).unwrap();
        assert!(times[0] > Duration::from_ms(1) && times[1] < Duration::from_us(200), "{times:?}");
        let beyond = replay(&params, &[r(u64::MAX)]).unwrap_err();
        assert!(beyond.starts_with("request 1: "), "{beyond}");
    }
}
