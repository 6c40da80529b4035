//! `cargo xtask kernel package`: the module for Linux as a package for DKMS, which builds it for each kernel
//! of a machine when that kernel is installed.
//!
//! The package has sources only, in `/usr/src/fairhead-VERSION`: `kernel/` without tests, core and core-ffi,
//! and `dkms.conf`. Its scripts add them to DKMS and remove them. `check` unpacks it and builds the module
//! from what is there as DKMS does, by the command in its `dkms.conf`. Source: dkms(8), deb-control(5).

use crate::deb::{changelog, copyright};
use crate::dist::{target, write};
use crate::kernel_packages::Packages;
use crate::shell::{capture, command, root};
use std::fs;
use std::path::{Path, PathBuf};

const VERSION: &str = env!("CARGO_PKG_VERSION");

const CONTROL: &str = "Package: fairhead-dkms
Version: @VERSION@
Architecture: all
Maintainer: The Fairhead authors <fairhead@users.noreply.github.com>
Depends: dkms, make, gcc, binutils, bpftool, rustc (>= 1.93) | rustc-web (>= 1.93), rust-src (>= 1.93) | rust-web-src (>= 1.93)
Section: kernel
Priority: optional
Description: CFQ, AS, BFQ and other disk schedulers for Linux 6.12 and 7.3
 Sources of fairhead.ko, which DKMS builds for the kernels of this machine. It
 registers schedulers under names that begin with fh-; none is selected by
 itself.
";

const AFTER_INSTALLATION: &str = "#!/bin/sh
set -e
if [ \"$1\" = configure ]; then
	/usr/lib/dkms/common.postinst fairhead @VERSION@ /usr/share/fairhead-dkms '' \"$2\"
fi
";

const BEFORE_REMOVAL: &str = "#!/bin/sh
set -e
if [ \"$(dkms status -m fairhead -v @VERSION@)\" ]; then
	dkms remove -m fairhead -v @VERSION@ --all
fi
";

/// What of `kernel/` is not for users.
const TESTS: [&str; 5] = ["guest", "simdisk", "dkms.conf.in", ".gitignore", "replay.c"];

/// What is linked with the kernel may be had under the kernel's licence.
const MORE_LICENCES: &str = "Files: usr/src/fairhead-*/kernel/*
Copyright: the Fairhead authors
License: GPL-2.0 or Expat

License: GPL-2.0
 The text is in /usr/share/common-licenses/GPL-2.
 The files rust.sh, types.sh and compiler_builtins.rs are under Apache-2.0 or Expat.

";

/// Makes the package. Returns its file.
pub(crate) fn build() -> Result<PathBuf, String> {
    let place = target().join("kernel/package");
    let _ = fs::remove_dir_all(&place);
    let pack = place.join("pack");
    let sources = pack.join(format!("usr/src/fairhead-{VERSION}"));
    for folder in ["kernel", "crates/core/src", "crates/core-ffi/src", "crates/core-ffi/include"] {
        copy(&root().join(folder), &sources.join(folder))?;
    }
    for name in TESTS {
        remove(&sources.join("kernel").join(name))?;
    }
    remove(&sources.join("kernel/build"))?;
    for name in ["Cargo.toml", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(name), &sources.join(name))?;
    }
    let template = root().join("kernel/dkms.conf.in");
    let template = fs::read_to_string(&template).map_err(|e| format!("{}: {e}", template.display()))?;
    write(&sources.join("dkms.conf"), template.replace("@VERSION@", VERSION).as_bytes())?;
    let docs = pack.join("usr/share/doc/fairhead-dkms");
    let mit = root().join("LICENSE-MIT");
    let mit = fs::read_to_string(&mit).map_err(|e| format!("{}: {e}", mit.display()))?;
    write(&docs.join("copyright"), copyright(&mit, MORE_LICENCES).as_bytes())?;
    write(&docs.join("changelog"), changelog("fairhead-dkms")?.as_bytes())?;
    capture(command("gzip", "-9n").arg(docs.join("changelog")))?;
    let control = [("control", CONTROL), ("postinst", AFTER_INSTALLATION), ("prerm", BEFORE_REMOVAL)];
    for (name, text) in control {
        write(&pack.join("DEBIAN").join(name), text.replace("@VERSION@", VERSION).as_bytes())?;
    }
    capture(command("chmod", "-R u+w,go-w,a+rX").arg(&pack))?;
    for name in ["postinst", "prerm"] {
        capture(command("chmod", "755").arg(pack.join("DEBIAN").join(name)))?;
    }
    let file = place.join(format!("fairhead-dkms_{VERSION}_all.deb"));
    capture(command("dpkg-deb", "--root-owner-group -Zxz --build").arg(&pack).arg(&file))?;
    Ok(file)
}

/// Unpacks the package and builds the module as DKMS would. There is a build of the repository's for the same
/// kernel already: what is slow and comes from the same files is taken from there.
pub(crate) fn check(packages: &Packages) -> Result<(), String> {
    let file = build()?;
    let place = target().join("kernel/package/unpacked");
    capture(command("dpkg-deb", "-x").arg(&file).arg(&place))?;
    let sources = place.join(format!("usr/src/fairhead-{VERSION}"));
    for folder in ["crates/core/src", "crates/core-ffi/src"] {
        capture(command("diff", "-r").arg(root().join(folder)).arg(sources.join(folder)))
            .map_err(|said| format!("the package's {folder}: {said}"))?;
    }
    copy(&packages.build.join("rust"), &sources.join("kernel/build/rust"))?;
    // For make, what is slow is newer than its sources.
    write(&sources.join("kernel/build/rust/built"), b"")?;
    let conf = fs::read_to_string(sources.join("dkms.conf")).map_err(|e| format!("dkms.conf: {e}"))?;
    let line = conf.lines().find_map(|line| line.strip_prefix("MAKE[0]=\"")?.strip_suffix('"'));
    let line = line.ok_or("dkms.conf has no MAKE[0]")?;
    let mut shell = command("sh", "-c");
    shell.arg(line).current_dir(&sources).envs(packages.variables.iter().cloned());
    shell.env("kernel_source_dir", &packages.headers).env("BPFTOOL", &packages.bpftool);
    capture(&mut shell)?;
    let module = sources.join("kernel/build/module/fairhead.ko");
    if !module.exists() || !conf.contains("BUILT_MODULE_LOCATION[0]=\"kernel/build/module\"") {
        return Err(format!("the package builds no {}", module.display()));
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    capture(command("cp", "-r --preserve=mode,timestamps").arg(from).arg(to)).map(|_| ())
}

fn remove(path: &Path) -> Result<(), String> {
    capture(command("rm", "-rf").arg(path)).map(|_| ())
}
