//! In the place of the compiler's own functions, nothing: the kernel has `memcpy` and its kin, and code that
//! needs the others (floats, 128-bit division) is not to link.
#![allow(internal_features, reason = "the compiler takes these functions from this crate alone")]
#![feature(compiler_builtins)]
#![compiler_builtins]
#![no_builtins]
#![no_std]
