//! What is it? Random places, read in the same order twice, tell a disk from flash from neither.
//!
//! | what is seen | it is |
//! |---|---|
//! | the same sectors come by at whole revolutions | a disk |
//! | every place takes about as long as every other | flash, or a virtual disk that behaves like it |
//! | the second time nearly all come at once | a page cache in between |
//! | revolutions, but many answers beside them | a disk that another program uses as well |
//! | none of these | a virtual disk, or a busy device: refused |

use super::Refusal;
use super::drive::{Bench, Ns, median, quantile_of};
use super::rotation::{self, Turn};

/// The kinds that can be fitted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Disk(Turn),
    Flash,
}

/// What is known from the first look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Basics {
    /// A granule that was just read, read again, ns.
    pub(super) again: f64,
    /// A granule somewhere, on average, ns.
    pub(super) access: f64,
}

/// Places that are read twice.
const PLACES: usize = 128;
/// The number of other places that displace the places from the buffer of any drive.
const MORE_PLACES: usize = 1024;
/// A disk alone on its path has hardly any answers beside the revolutions.
const OUTLIERS_MOST: f64 = 0.2;
/// More than that beside them, and the revolutions are chance.
const RHYTHM_MOST: f64 = 0.4;
/// Flash: the middle eight tenths of all times are as near to each other as this share of the median.
const FLASH_SPREAD: f64 = 0.4;

fn pass(b: &mut Bench<'_>, places: &[u64]) -> Result<Vec<Ns>, Refusal> {
    places.iter().map(|&p| b.touch(p)).collect()
}

fn took(answers: &[Ns]) -> Vec<f64> {
    answers.iter().map(Ns::took).collect()
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

/// Places that are read in the same order would all come back after the same time. So the order changes, but
/// not by much: a place is not read again before most others were.
fn shuffle(b: &mut Bench<'_>, places: &mut [u64], first: &mut [Ns]) {
    const NEAR: usize = PLACES / 4;
    for block in (0..PLACES).step_by(NEAR) {
        for i in 1..NEAR {
            let j = b.chance.below(i as u64 + 1) as usize;
            places.swap(block + i, block + j);
            first.swap(block + i, block + j);
        }
    }
}

/// Looks.
pub(super) fn identify(b: &mut Bench<'_>) -> Result<(Kind, Basics), Refusal> {
    b.step("what it is");
    let at = b.fresh();
    b.touch(at)?;
    let again = median(&took(&pass(b, &[at; 24])?));
    let mut places: Vec<u64> = (0..PLACES).map(|_| b.fresh()).collect();
    let mut first = pass(b, &places)?;
    shuffle(b, &mut places, &mut first);
    let mut second = pass(b, &places)?;
    let access = took(&first).iter().sum::<f64>() / PLACES as f64;
    // At once: like a place just read, and much less than the first time.
    let quick = |took: f64| took < (1.5 * again + 20_000.0).min(0.5 * access);
    if took(&second).iter().filter(|t| quick(**t)).count() * 10 >= PLACES {
        // A large buffer of the drive, or memory in between?
        let others: Vec<u64> = (0..MORE_PLACES).map(|_| b.fresh()).collect();
        pass(b, &others)?;
        second = pass(b, &places)?;
        let quick = took(&second).iter().filter(|t| quick(**t)).count();
        if quick * 10 >= PLACES * 9 {
            return Err(Refusal::Inconsistent(format!(
                "{quick} of {PLACES} places read before {MORE_PLACES} others are still answered at once ({:.3} ms, at first {:.3} ms): a page \
                 cache, or some other memory, is between; read the device itself with direct I/O",
                ms(median(&took(&second))),
                ms(median(&took(&first)))
            )));
        }
    }
    let basics = Basics { again, access };
    let distances: Vec<f64> = first
        .iter()
        .zip(&second)
        .filter(|(a, b)| !quick(a.took()) && !quick(b.took()))
        .map(|(a, b)| b.done - a.done)
        .collect();
    let all: Vec<f64> = took(&first).into_iter().chain(took(&second)).collect();
    let (low, mid, high) = (quantile_of(&all, 0.1), median(&all), quantile_of(&all, 0.9));
    if (high - low) / mid < FLASH_SPREAD {
        return Ok((Kind::Flash, basics));
    }
    let turn = if distances.len() * 2 > PLACES { rotation::find(&distances) } else { None };
    let range = format!("{:.3} to {:.3} ms", ms(low), ms(high));
    // A random place is half a revolution away on average, and a seek.
    let has_arm = |t: &Turn| access > t.ns / 2.0;
    match &turn {
        Some(t) if t.outliers <= OUTLIERS_MOST && has_arm(t) => Ok((Kind::Disk(*t), basics)),
        Some(t) if t.outliers <= RHYTHM_MOST && has_arm(t) => Err(Refusal::Inconsistent(format!(
            "a rotation of {:.0} rpm shows, but {:.0} % of the answers do not fit it: another program is using the disk, or the way to it \
             is too noisy",
            60e9 / t.ns,
            100.0 * t.outliers
        ))),
        _ => Err(Refusal::Inconsistent(format!(
            "random reads take {range}, with no rotation and not all alike: not a disk or flash by itself, but a virtual or networked disk, or \
             one that other programs use"
        ))),
    }
}
