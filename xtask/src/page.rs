//! `cargo xtask page`: the lab as one HTML file that works without a server.
//!
//! ```text
//!   crates/browser ─ cargo, wasm32 ─► module ─ gzip, base64 ─┐
//!   crates/browser/page/{page.html,page.css,page.js,engine.js} ─┼─► target/page/fairhead.html
//!   crates/report/src/picture.css: the colours ──────────────┘
//! ```
//!
//! `--check` also compares what the module answers with what the program writes, byte by byte, under Node.js,
//! and tries the page in a headless Chromium: `crates/browser/tests/page.mjs` says what has to hold.

use crate::dist;
use crate::outcome::Outcome;
use crate::shell::{capture, cargo, command, exists, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Where the page is, and pictures of it after a check.
pub(crate) const FOLDER: &str = "target/page";

/// The name of the page.
pub(crate) const PAGE: &str = "fairhead.html";

/// The most bytes of the page, as a server that compresses sends it.
const COMPRESSED_MAX: u64 = 1 << 20;

const TARGET: &str = "wasm32-unknown-unknown";

/// Makes the page; answers where it is and how large.
pub(crate) fn make() -> Result<String, String> {
    let page = build()?;
    let packed = gzip(&page)?.len() as u64;
    let size = fs::metadata(&page).map_err(|e| format!("{}: {e}", page.display()))?.len();
    if packed > COMPRESSED_MAX {
        return Err(format!("{FOLDER}/{PAGE} has {packed} bytes compressed, above {COMPRESSED_MAX}"));
    }
    Ok(format!("{FOLDER}/{PAGE}: {} KB, {} KB compressed", size / 1000, packed / 1000))
}

fn build() -> Result<PathBuf, String> {
    let args = format!("build --quiet --locked --profile wasm --target {TARGET} --package fairhead-browser");
    capture(&mut cargo(&args))?;
    let read = |path: &str| fs::read_to_string(root().join(path)).map_err(|e| format!("{path}: {e}"));
    let part = |name: &str| read(&format!("crates/browser/page/{name}"));
    let (engine, script) = (part("engine.js")?, part("page.js")?);
    if let Some(name) = [&engine, &script].iter().position(|t| t.contains("</script")) {
        return Err(format!("script {name} of the page ends the element that it is in"));
    }
    let html = part("page.html")?
        .replace("{{palette}}", &palette(&read("crates/report/src/picture.css")?))
        .replace("{{style}}", part("page.css")?.trim_end())
        .replace("{{engine}}", &engine)
        .replace("{{script}}", &script)
        .replace("{{wasm}}", &base64(&gzip(&wasm())?));
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder).map_err(|e| format!("{FOLDER}: {e}"))?;
    let page = folder.join(PAGE);
    fs::write(&page, html).map_err(|e| format!("{}: {e}", page.display()))?;
    Ok(page)
}

/// The module.
fn wasm() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join(TARGET).join("wasm/fairhead_browser.wasm")
}

/// The lines of a style sheet that name colours for light and dark.
fn palette(css: &str) -> String {
    let is_palette =
        |line: &&str| line.starts_with(":root{") || line.starts_with("@media (prefers-color-scheme");
    css.lines().filter(is_palette).collect::<Vec<_>>().join("\n")
}

/// A file, compressed; the same bytes each time.
fn gzip(path: &Path) -> Result<Vec<u8>, String> {
    capture(command("gzip", "-9 -n -c").arg(path)).map(|output| output.stdout)
}

/// Bytes as letters (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = char::from(LETTERS[(bits >> (18 - 6 * i) & 63) as usize]);
            text.push(if i <= three.len() { letter } else { '=' });
        }
    }
    text
}

/// What the module and the program are both asked: as JSON, and as arguments.
const CASES: [(&str, &str); 3] = [
    (
        r#"{"job":"app-start","disk":"nas2020","schedulers":["mq-deadline","bfq"],"set":["bfq.slice_idle=4ms"]}"#,
        "app-start --disk nas2020 --sched mq-deadline,bfq --set bfq.slice_idle=4ms",
    ),
    (
        r#"{"job":"random-readers","disk":"nvme","schedulers":["none","kyber"],"seed":7,"runtime":"100ms"}"#,
        "random-readers --disk nvme --sched none,kyber --seed 7 --runtime 100ms",
    ),
    (
        r#"{"job":"tenants","disk":"sata2009","schedulers":["cfq","adios"],"runtime":"5s"}"#,
        "tenants --disk sata2009 --sched cfq,adios --runtime 5s",
    ),
];

/// Whether the compiler can build for [`TARGET`].
fn has_target() -> Result<bool, String> {
    let sysroot = capture(&mut command("rustc", "--print sysroot"))?;
    let sysroot = String::from_utf8_lossy(&sysroot.stdout).trim().to_owned();
    Ok(Path::new(&sysroot).join("lib/rustlib").join(TARGET).exists())
}

/// Makes the page and tries it.
pub(crate) fn check() -> Result<Outcome, String> {
    // As `rust-toolchain.toml` says; a toolchain that was there before may lack it.
    if capture(&mut command("rustup", &format!("target add {TARGET}"))).is_err() && !has_target()? {
        return Ok(Outcome::Skipped(format!("rustup target add {TARGET}")));
    }
    let made = make()?;
    if !exists("node") {
        return Ok(Outcome::Skipped(format!("{made}; node is not here to run it")));
    }
    let chromium = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| exists(name));
    let folder = root().join(FOLDER);
    let write =
        |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).map_err(|e| format!("{name}: {e}"));
    let mut cases = Vec::new();
    let program = dist::tests_program()?;
    for (i, (question, args)) in CASES.iter().enumerate() {
        let native = capture(&mut command(&program, &format!("run {args} --output-format json")))?;
        write(&format!("native-{i}.json"), &native.stdout)?;
        cases.push(format!("{{\"question\":{question},\"native\":\"native-{i}.json\"}}"));
    }
    write("cases.json", format!("[{}]", cases.join(",\n")).as_bytes())?;
    let mut node = command("node", "crates/browser/tests/page.mjs");
    node.arg(wasm()).arg(folder.join(PAGE)).arg(chromium.unwrap_or("-")).arg(&folder);
    let said = capture(&mut node)?;
    let said = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    match chromium {
        Some(_) => Ok(Outcome::Passed(format!("{made}; {said}"))),
        None => Ok(Outcome::Skipped(format!("{made}; {said}; chromium is not here to open it"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_letters_as_in_the_rfc() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn the_colours_are_those_of_reports() {
        let css = fs::read_to_string(root().join("crates/report/src/picture.css")).expect("a style sheet");
        let palette = palette(&css);
        assert_eq!(palette.lines().count(), 2, "{palette}");
        assert!(palette.contains("--k7:") && palette.contains("--on:"), "{palette}");
    }
}
