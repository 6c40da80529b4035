//! See `fairhead_fuzz::control`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::control(data));
