//! Kernels of a newer Debian than the machine's: `cargo xtask kernel test --kernel 7.3`.
//!
//! - Packages come from the suite trixie and its backports, from the mirror that the machine uses. apt keeps
//!   their index in a folder of its own, `target/kernel/trixie`: the machine's sources stay as they are.
//! - The kernel's build runs programs of that suite: the compiler, objtool, modpost. They want a newer C
//!   library than the machine may have. The suite's library is unpacked beside them, and each program becomes
//!   a script that starts it with the suite's loader.

use crate::shell::{capture, command};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The suite, which has newer kernels in its backports.
const SUITE: &str = "trixie";

/// The libraries of the compiler and of the kernel's tools.
const LIBRARIES: [&str; 8] =
    ["libc6", "libelf1t64", "zlib1g", "libzstd1", "libgmp10", "libmpfr6", "libmpc3", "libisl23"];

/// The prefix of the names of the compiler's programs, and where the compiler has its parts.
const TARGET: &str = "x86_64-linux-gnu-";
const PARTS: &str = "usr/libexec/gcc/x86_64-linux-gnu";

/// Where apt finds packages: in the machine's sources, or in others.
#[derive(Default)]
pub(crate) struct Apt {
    options: Vec<String>,
}

impl Apt {
    /// A program of apt's for these sources.
    pub(crate) fn command(&self, program: &str, args: &str) -> Command {
        let mut command = command(program, "");
        command.args(&self.options).args(args.split_whitespace());
        command
    }

    /// The sources of the newer suite, with an index of today's.
    fn newer() -> Result<Self, String> {
        let folder = crate::dist::target().join("kernel").join(SUITE);
        let named = |e: std::io::Error| format!("{}: {e}", folder.display());
        for name in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(name)).map_err(named)?;
        }
        let targets = ["--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages"];
        let listed = capture(command("apt-get", "indextargets").args(targets))?.stdout;
        let listed = String::from_utf8_lossy(&listed);
        let mirror = mirror(&listed);
        let lines = format!("deb {mirror} {SUITE} main\ndeb {mirror} {SUITE}-backports main\n");
        fs::write(folder.join("sources.list"), lines).map_err(named)?;
        let place = folder.display();
        let apt = Self {
            options: [
                format!("-oDir::Etc::SourceList={place}/sources.list"),
                "-oDir::Etc::SourceParts=/dev/null".into(),
                format!("-oDir::State::Lists={place}/lists"),
                format!("-oDir::Cache={place}/cache"),
                "-oAcquire::Languages=none".into(),
            ]
            .into(),
        };
        // apt-get update succeeds although an index cannot be had, and says so.
        let said = capture(&mut apt.command("apt-get", "update -q"))?;
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        match said.lines().find(|line| line.starts_with("W: Failed") || line.starts_with("E:")) {
            Some(line) => Err(line.to_owned()),
            None => Ok(apt),
        }
    }
}

/// The mirror of Debian's that the machine uses. `listed`: a label and an address in each line.
fn mirror(listed: &str) -> &str {
    let mut addresses = listed.lines().filter_map(|line| line.strip_prefix("Debian "));
    addresses.next().unwrap_or("http://deb.debian.org/debian/")
}

/// A kernel of the newer suite, and the compiler that its modules are built with.
pub(crate) struct Newer {
    pub(crate) apt: Apt,
    /// The kernel's version, such as `7.3.4+deb13`.
    pub(crate) version: String,
    /// The compiler's major version, such as `14`.
    compiler: String,
}

impl Newer {
    /// The newest kernel of a series; an error that says why there is none.
    pub(crate) fn find(series: &str) -> Result<Self, String> {
        let apt = Apt::newer().map_err(|said| {
            let said = said.lines().last().unwrap_or_default();
            format!("no index of {SUITE} ({said})")
        })?;
        let pattern = format!("^linux-headers-{}\\..*-cloud-amd64$", series.replace('.', "\\."));
        let listed = capture(apt.command("apt-cache", "search --names-only").arg(pattern))?.stdout;
        let version = newest(&String::from_utf8_lossy(&listed))
            .ok_or_else(|| format!("{SUITE}-backports has no linux-headers-{series}.*-cloud-amd64"))?;
        let headers = format!("linux-headers-{version}-cloud-amd64");
        let depends = capture(apt.command("apt-cache", "depends").arg(&headers))?.stdout;
        let compiler = compiler(&String::from_utf8_lossy(&depends))
            .ok_or_else(|| format!("{headers} depends on no gcc"))?;
        Ok(Self { apt, version, compiler })
    }

    /// The packages of the suite that the build and the tests need, other than the headers.
    pub(crate) fn names(&self) -> Vec<String> {
        let (version, compiler) = (&self.version, &self.compiler);
        let mut names = vec![
            format!("linux-binary-{version}-cloud-amd64"),
            format!("linux-modules-{version}-cloud-amd64"),
            format!("gcc-{compiler}-x86-64-linux-gnu"),
            format!("cpp-{compiler}-x86-64-linux-gnu"),
        ];
        names.extend(LIBRARIES.map(str::to_owned));
        names
    }

    /// Makes the suite's programs below `root` run on this machine.
    pub(crate) fn prepare(&self, root: &Path) -> Result<(), String> {
        let compiler = format!("{TARGET}gcc-{}", self.compiler);
        let program = root.join("usr/bin").join(&compiler);
        let mut all = vec![program.clone()];
        for folder in [format!("usr/lib/linux-kbuild-{}", self.version), PARTS.to_owned()] {
            programs(&root.join(folder), &mut all);
        }
        for program in &all {
            start_by_loader(program, root).map_err(|e| format!("{}: {e}", program.display()))?;
        }
        // Alone in a folder of the path: the suite's other programs are not for this machine.
        let folder = path(root);
        let made = fs::create_dir_all(&folder).and_then(|()| symlink(&program, folder.join(&compiler)));
        made.map_err(|e| format!("{}: {e}", folder.display()))
    }
}

/// The folder below `root` that a build must have in its path.
pub(crate) fn path(root: &Path) -> PathBuf {
    root.join("path")
}

/// The newest version among packages of headers, one in each line.
fn newest(listed: &str) -> Option<String> {
    let versions = listed.lines().filter_map(|line| {
        let name = line.split_whitespace().next()?.strip_prefix("linux-headers-")?;
        name.strip_suffix("-cloud-amd64")
    });
    versions.max_by_key(|version| numbers(version)).map(str::to_owned)
}

/// The numbers in a text, in their order.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// The major version of the compiler among what a package of headers depends on.
fn compiler(depends: &str) -> Option<String> {
    depends.lines().find_map(|line| {
        let name = line.trim().strip_prefix("Depends: gcc-")?;
        name.strip_suffix("-for-host").map(str::to_owned)
    })
}

/// Adds the programs below a folder to a list: files that may be run and are ELF. Libraries have a suffix.
fn programs(folder: &Path, all: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && !path.is_symlink() {
            programs(&path, all);
        } else if path.extension().is_none_or(|suffix| suffix != "so") && is_program(&path) {
            all.push(path);
        }
    }
}

fn is_program(path: &Path) -> bool {
    let may_run =
        fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    may_run && fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"))
}

/// Puts a script in the place of a program, which gets the suffix `.elf`. The program sees the name that the
/// script was called by: the compiler finds its parts from there.
fn start_by_loader(program: &Path, root: &Path) -> std::io::Result<()> {
    let mut moved = program.as_os_str().to_owned();
    moved.push(".elf");
    fs::rename(program, &moved)?;
    let (root, moved) = (root.display(), Path::new(&moved).display());
    let script = format!(
        "#!/bin/sh\nexec '{root}/usr/lib64/ld-linux-x86-64.so.2' --argv0 \"$0\" \
         --library-path '{root}/usr/lib/x86_64-linux-gnu' '{moved}' \"$@\"\n"
    );
    fs::write(program, script)?;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_found_by_its_numbers() {
        let listed = "linux-headers-7.2.9+deb13-cloud-amd64 - Linux 7.2.9\n\
                      linux-headers-7.2.12+deb13-cloud-amd64 - Linux 7.2.12\n\
                      linux-headers-7.2.11+deb13-cloud-amd64 - Linux 7.2.11\n\
                      linux-headers-7.2.40+deb13-rt-amd64 - Linux 7.2.40\n";
        assert_eq!(newest(listed).as_deref(), Some("7.2.12+deb13"));
        assert_eq!(newest(""), None);
    }

    #[test]
    fn the_compiler_is_the_one_that_headers_depend_on() {
        let depends = "linux-headers-7.3.4+deb13-cloud-amd64\n  Depends: gcc-14-for-host\n    gcc-14\n";
        assert_eq!(compiler(depends).as_deref(), Some("14"));
        assert_eq!(compiler("  Depends: gcc-14-base\n"), None);
    }

    #[test]
    fn the_mirror_is_the_machines() {
        let listed = "Debian-Security http://a/debian-security/\nDebian http://a/debian/\nDebian http://b/\n";
        assert_eq!(mirror(listed), "http://a/debian/");
        assert_eq!(mirror(""), "http://deb.debian.org/debian/");
    }

    #[test]
    fn a_script_starts_a_program_by_the_loader() {
        let root = std::env::temp_dir().join(format!("fairhead-loader-{}", std::process::id()));
        let bin = root.join("bin");
        fs::create_dir_all(&bin).expect("a folder");
        let files = [
            ("data", "\x7fELF", 0o644),
            ("library.so", "\x7fELF", 0o755),
            ("script", "#!/bin/sh", 0o755),
            ("tool", "\x7fELF", 0o755),
        ];
        for (name, text, mode) in files {
            fs::write(bin.join(name), text).expect("a file");
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(mode)).expect("its mode");
        }
        let mut all = Vec::new();
        programs(&root, &mut all);
        assert_eq!(all, [bin.join("tool")]);
        start_by_loader(&all[0], &root).expect("it can be moved");
        assert!(bin.join("tool.elf").exists());
        let script = fs::read_to_string(&all[0]).expect("a script");
        assert!(script.contains("--argv0 \"$0\"") && script.contains("bin/tool.elf' \"$@\""), "{script}");
        fs::remove_dir_all(root).expect("it was there");
    }
}
