//! See `fairhead_fuzz::vhost_chains`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::vhost_chains(data));
