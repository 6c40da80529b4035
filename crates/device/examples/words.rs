//! `words DISK`: a preset or a TOML file as the row of numbers that `simdisk.ko` takes.
//!
//! ```text
//! cargo run -p fairhead-device --example words nas2020 > nas2020.words
//! cat nas2020.words > /sys/module/simdisk/parameters/add
//! ```

use fairhead_device::DeviceParams;
use std::process::ExitCode;

fn read(disk: &str) -> Result<DeviceParams, String> {
    if fairhead_device::preset_names().contains(&disk) {
        return DeviceParams::preset(disk).map_err(|e| e.to_string());
    }
    let text = std::fs::read_to_string(disk).map_err(|e| format!("{disk}: no preset, and no file: {e}"))?;
    DeviceParams::from_toml(&text, disk).map_err(|e| e.to_string())
}

fn main() -> ExitCode {
    let Some(disk) = std::env::args().nth(1) else {
        eprintln!("usage: words DISK, a preset or a TOML file");
        return ExitCode::from(2);
    };
    match read(&disk) {
        Ok(params) => {
            let words: Vec<String> = params.to_words().iter().map(u64::to_string).collect();
            println!("{}", words.join(" "));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("words: {why}");
            ExitCode::FAILURE
        }
    }
}
