//! The integration tests, in one program.

mod after_a_completion;
mod flash_verdicts;
mod fresh_readers;
mod hosts_of_blk_mq;
mod options;
mod outside;
mod plans;
mod replay;
mod stop;
mod write_back_like_linux;
