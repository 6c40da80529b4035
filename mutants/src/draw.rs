//! Which changes are tried.

/// The items in an order that follows from the seed: every order is as likely.
//= G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (SplitMix64)
pub(crate) fn shuffled<T>(mut all: Vec<T>, mut state: u64) -> Vec<T> {
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    for i in (1..all.len()).rev() {
        #[allow(clippy::cast_possible_truncation, reason = "below the length")]
        all.swap(i, (next() % (i as u64 + 1)) as usize);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_order_and_another_seed_another() {
        let order = |seed| shuffled((0..50).collect::<Vec<u32>>(), seed);
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let mut all = order(3);
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<u32>>());
    }
}
