//! See `fairhead_fuzz::vhost_messages`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fairhead_fuzz::vhost_messages(data));
