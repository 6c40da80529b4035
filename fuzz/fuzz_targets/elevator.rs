//! See `fairhead_fuzz::elevator`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::elevator(data));
