//! See `fairhead_fuzz::trace_iolog`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::trace_iolog(data));
