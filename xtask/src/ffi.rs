//! `cargo xtask ffi`: what a kernel asks of the C library beside its tests.
//!
//! - **No float and no 128-bit division.** A build without std, for a processor that has neither, calls a
//!   function for each (`__aeabi_dadd`, `__udivti3`): none of our objects may name one.
//! - **No stack frame above 1 KiB** on any path but creation: the prologues in the disassembly of the release
//!   library say how much each function takes. Functions of the standard library that write a panic's message
//!   are not ours, and there is no kernel with them.
//! - **A panic without std** comes to the hook of the linking side, and the elevator then serves what waits
//!   (`tests/c/no_std.c`).
//!
//! Where a tool or the target is missing, it says so and passes.

use crate::outcome::Outcome;
use crate::shell::{capture, cargo, command, exists};
use std::collections::BTreeMap;

/// The target without std that core and its C library are built for.
pub(crate) const BARE_METAL: &str = "thumbv7em-none-eabi";

/// The largest frame, in bytes: a sixteenth of a kernel's stack.
const FRAME: u64 = 1024;

/// What is on the path of creation only: the allocating calls, and the text of an error.
const CREATION: &[&str] =
    &["fh_create", "fairhead::create::", "Scheduler>::new", "Elevator<S>::new", "::Cfq::with"];

/// Beginnings of the compiler's functions for floats and for 128-bit division.
const FORBIDDEN: &[&str] =
    &["__aeabi_d", "__aeabi_f", "__udivti", "__umodti", "__divti", "__modti", "__udivmodti"];

pub(crate) fn check() -> Result<Outcome, String> {
    if !cfg!(target_arch = "x86_64") {
        return Ok(Outcome::Skipped("prologues are read on x86-64".into()));
    }
    if !exists("objdump") || !exists("nm") {
        return Ok(Outcome::Skipped("objdump and nm (binutils) are not there".into()));
    }
    capture(&mut cargo("build --quiet --profile dist --package fairhead-core-ffi"))?;
    let library = crate::dist::target().join("dist/libfairhead.so");
    let text = capture(command("objdump", "-d -C --no-show-raw-insn").arg(&library))?;
    let frames = frames(&String::from_utf8_lossy(&text.stdout));
    let ours: Vec<_> = frames.iter().filter(|(name, _)| is_ours(name)).collect();
    if !ours.iter().any(|(name, _)| name.starts_with("fh_dispatch")) {
        return Err(format!("{} names no fh_dispatch", library.display()));
    }
    let large: Vec<String> = (ours.iter().filter(|(name, bytes)| **bytes > FRAME && !is_creation(name)))
        .map(|(name, bytes)| format!("  {bytes:>6} bytes in {name}"))
        .collect();
    if !large.is_empty() {
        return Err(format!("stack frames above {FRAME} bytes outside of creation:\n{}", large.join("\n")));
    }
    let largest = ours.iter().filter(|(name, _)| !is_creation(name)).map(|(_, bytes)| **bytes).max();
    let largest = largest.unwrap_or_default();
    let (symbols, hook) = (symbols()?, hook()?);
    let count = ours.len();
    Ok(Outcome::Passed(format!("{count} functions, the largest frame {largest} bytes; {symbols}; {hook}")))
}

/// The bytes that each function takes of the stack: what its prologue subtracts, and what it pushes.
fn frames(disassembly: &str) -> BTreeMap<String, u64> {
    let mut frames = BTreeMap::new();
    let (mut name, mut bytes, mut pushed) = (String::new(), 0, 0);
    for line in disassembly.lines() {
        if let Some((_, rest)) = line.split_once(" <")
            && let Some(next) = rest.strip_suffix(">:")
        {
            (name, bytes, pushed) = (next.to_owned(), 0, 0);
            continue;
        }
        let Some(code) = line.split('\t').nth(1) else { continue };
        let hex = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
        if code.starts_with("push ") {
            pushed += 8;
        } else if let Some(by) = code.trim_end().strip_suffix(",%rsp").and_then(|c| c.split_once("$0x")) {
            if code.starts_with("sub") {
                bytes = bytes.max(hex(by.1));
            }
        } else if let Some(by) = code.trim_end().strip_suffix("(%rsp),%r11").and_then(|c| c.split_once("-0x"))
        {
            // A frame of several pages is touched page by page, down to here.
            bytes = bytes.max(hex(by.1));
        }
        // Functions of one name (made for several types) count as their largest.
        let frame = frames.entry(name.clone()).or_insert(0);
        *frame = (*frame).max(bytes + pushed);
    }
    frames
}

fn is_ours(name: &str) -> bool {
    name.starts_with("fh_") || name.contains("fairhead")
}

fn is_creation(name: &str) -> bool {
    CREATION.iter().any(|part| name.contains(part))
}

/// Builds for a processor without floats and wide divisions, and looks for calls of their functions.
fn symbols() -> Result<String, String> {
    let add = command("rustup", &format!("target add {BARE_METAL}")).output();
    if !add.is_ok_and(|out| out.status.success()) {
        return Ok(format!("skipped: symbols (no target {BARE_METAL} here)"));
    }
    let build = format!(
        "rustc --quiet --profile dist --package fairhead-core-ffi --no-default-features --crate-type staticlib --target {BARE_METAL}"
    );
    capture(&mut cargo(&build))?;
    let library = crate::dist::target().join(BARE_METAL).join("dist/libfairhead.a");
    let listed = capture(command("nm", "-A -u").arg(&library))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    // Lines are "…/libfairhead.a:MEMBER:   U SYMBOL"; other members are the compiler's own functions.
    let ours: Vec<&str> = listed.lines().filter(|line| line.contains(".a:fairhead-")).collect();
    if ours.is_empty() {
        return Err(format!("{} has no member of ours", library.display()));
    }
    let bad: Vec<&str> = (ours.iter().copied())
        .filter(|line| {
            line.split_whitespace().last().is_some_and(|s| FORBIDDEN.iter().any(|f| s.starts_with(f)))
        })
        .collect();
    if bad.is_empty() {
        return Ok("no float, no 128-bit division".to_owned());
    }
    Err(format!("floats or 128-bit division:\n{}", bad.join("\n")))
}

/// Links the library without std into a program in C, whose panic hook goes back to the caller.
fn hook() -> Result<String, String> {
    const HOST: &str = "x86_64-unknown-linux-gnu";
    if !exists("cc") {
        return Ok("skipped: the panic hook (no C compiler)".to_owned());
    }
    let build = format!(
        "rustc --quiet --profile dist --package fairhead-core-ffi --no-default-features --crate-type staticlib --target {HOST}"
    );
    capture(cargo(&build).args(["--config", "profile.dist.panic=\"abort\""]))?;
    let library = crate::dist::target().join(HOST).join("dist/libfairhead.a");
    let program = library.with_file_name("no_std");
    let source = "crates/core-ffi/tests/c/no_std.c";
    let flags = "-std=gnu11 -O1 -Wall -Wextra -Werror -Icrates/core-ffi/include -o";
    capture(command("cc", flags).arg(&program).arg(source).arg(&library))?;
    capture(&mut command(&program, ""))?;
    Ok("a panic without std comes to the hook".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_from_prologues() {
        let text = "
0000000000001000 <fh_small>:
    1000:\tpush   %rbx
    1001:\tsub    $0x20,%rsp
    1005:\tret
0000000000002000 <fairhead_core::large>:
    2000:\tpush   %rbp
    2001:\tlea    -0x3000(%rsp),%r11
    2008:\tsub    $0x1000,%rsp
";
        let frames = frames(text);
        assert_eq!(frames["fh_small"], 0x28);
        assert_eq!(frames["fairhead_core::large"], 0x3008);
    }
}
