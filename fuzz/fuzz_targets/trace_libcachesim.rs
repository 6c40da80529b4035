//! See `fairhead_fuzz::trace_libcachesim`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::trace_libcachesim(data));
