#![no_std]
pub mod table;
pub mod units;
