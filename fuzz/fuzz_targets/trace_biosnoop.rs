//! See `fairhead_fuzz::trace_biosnoop`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::trace_biosnoop(data));
