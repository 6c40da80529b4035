//! See `fairhead_fuzz::disksim_drive`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::disksim_drive(data));
