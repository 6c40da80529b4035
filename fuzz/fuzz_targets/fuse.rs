//! See `fairhead_fuzz::fuse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::fuse(data));
