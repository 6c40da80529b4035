//! Division of products that need more than 64 bits, without the compiler's 128-bit division.
//!
//! A kernel does not have that function (`__udivti3`), and it costs more than the 64-bit instruction that
//! suffices nearly always. So a product that fits into 64 bits is divided by that instruction, and any other
//! bit by bit. Example: 2^63 × 6 / 3 does not fit on the way, and the answer, 2^64, not at all: it is
//! `u64::MAX`.
//!
//! It divides by 64-bit numbers only.

/// Returns `a * b / c`, rounded down; `u64::MAX` if it is more.
///
/// # Panics
/// If `c` is 0.
#[inline]
pub(crate) fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => div_rem_long(u128::from(a) * u128::from(b), c).0,
    }
}

/// Returns `n / d`, rounded down, and `n % d`; the first is `u64::MAX` if it is more.
///
/// # Panics
/// If `d` is 0.
#[inline]
pub(crate) fn div_rem(n: u128, d: u64) -> (u64, u64) {
    match u64::try_from(n) {
        Ok(n) => (n / d, n % d),
        Err(_) => div_rem_long(n, d),
    }
}

/// Returns `n / d`, rounded up; `u64::MAX` if it is more.
///
/// # Panics
/// If `d` is 0.
#[inline]
pub(crate) fn div_ceil(n: u128, d: u64) -> u64 {
    let (quotient, rest) = div_rem(n, d);
    quotient.saturating_add(u64::from(rest > 0))
}

/// One bit of the quotient at a time.
#[cold]
#[inline(never)]
#[allow(clippy::cast_possible_truncation, reason = "the two halves of a number")]
fn div_rem_long(n: u128, d: u64) -> (u64, u64) {
    let (high, low) = ((n >> 64) as u64, n as u64);
    let (is_too_large, mut rest, mut quotient) = (high >= d, high % d, 0);
    for bit in (0..64).rev() {
        // The rest is below the divisor, so twice the rest needs one bit more than there are.
        let overflows = rest >> 63 == 1;
        rest = rest << 1 | low >> bit & 1;
        if overflows || rest >= d {
            rest = rest.wrapping_sub(d);
            quotient |= 1 << bit;
        }
    }
    (if is_too_large { u64::MAX } else { quotient }, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::Random;

    #[test]
    fn it_is_the_division_of_128_bits() {
        let mut chance = Random::new(1);
        let mut draw = || {
            let bits = chance.next() % 64;
            chance.next() >> bits
        };
        for _ in 0..20_000 {
            let (a, b, d) = (draw(), draw(), draw().max(1));
            let n = u128::from(a) * u128::from(b);
            let quotient = u64::try_from(n / u128::from(d)).unwrap_or(u64::MAX);
            let rest = u64::try_from(n % u128::from(d)).unwrap();
            assert_eq!(div_rem(n, d), (quotient, rest), "{n} / {d}");
            assert_eq!(div_rem_long(n, d), (quotient, rest), "{n} / {d}, the long way");
            assert_eq!(mul_div(a, b, d), quotient, "{a} * {b} / {d}");
            let up = u64::try_from(n.div_ceil(u128::from(d))).unwrap_or(u64::MAX);
            assert_eq!(div_ceil(n, d), up, "{n} / {d}, up");
        }
    }
}
