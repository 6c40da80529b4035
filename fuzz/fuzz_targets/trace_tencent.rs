//! See `fairhead_fuzz::trace_tencent`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::trace_tencent(data));
