//! See `fairhead_fuzz::job_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::job_file(data));
