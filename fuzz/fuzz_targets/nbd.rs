//! See `fairhead_fuzz::nbd`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::nbd(data));
