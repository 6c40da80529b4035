//! See `fairhead_fuzz::trace_spc`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::trace_spc(data));
