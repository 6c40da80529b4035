//! See `fairhead_fuzz::disk_preset`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::disk_preset(data));
