//! See `fairhead_fuzz::kernel_log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::kernel_log(data));
