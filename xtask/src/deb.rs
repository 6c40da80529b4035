//! The package for Debian and Ubuntu, and its test.
//!
//! `build` takes what `dist.rs` laid out, gives it the form that Debian's policy asks for (compressed pages
//! and changelog, `copyright`, a stripped program) and has `dpkg-deb` write the archive. The libraries that
//! the package depends on are found by `dpkg-shlibdeps`, so that they fit the system that built it. The
//! package has no scripts: nothing is started, and nothing is left behind.
//!
//! `check` builds one, has lintian read it, installs it with `dpkg --root` in a folder of its own, runs the
//! installed program, removes the package and looks for what stayed. It does not touch the packages of the
//! machine. Source: Debian Policy Manual, chapters 3, 5 and 12; deb-control(5).

use crate::dist::{self, write};
use crate::outcome::Outcome;
use crate::shell::{capture, command, exists, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The address for questions about the package.
const MAINTAINER: &str = "The Fairhead authors <fairhead@users.noreply.github.com>";

const DESCRIPTION: &str = "disk schedulers in a simulator and on live disks
 Fairhead finds the right disk scheduler for a machine and a load: it looks at
 the disks, simulates noop, deadline, CFQ, BFQ, mq-deadline, kyber and older
 schedulers, and explains its choice.
 .
 It also shares a real disk between programs, containers and virtual machines:
 as a FUSE mount, as an NBD server and as a vhost-user-blk device.";

/// Makes the package from the tree. Returns its file.
pub(crate) fn build(tree: &Path, place: &Path) -> Result<PathBuf, String> {
    if !exists("dpkg-deb") {
        return Err("no dpkg-deb: a package can only be built on Debian or Ubuntu".to_owned());
    }
    let pack = place.join("pack");
    let _ = fs::remove_dir_all(&pack);
    fs::create_dir_all(&pack).map_err(|e| format!("{}: {e}", pack.display()))?;
    capture(command("cp", "-r --preserve=mode").arg(tree).arg(pack.join("usr")))?;
    capture(Command::new("strip").arg(pack.join("usr/bin/fairhead")))?;
    documents(&pack.join("usr/share"))?;
    let (version, machine) = (env!("CARGO_PKG_VERSION"), architecture()?);
    let size = capture(Command::new("du").args(["-sk", "--apparent-size"]).arg(&pack))?;
    let size = String::from_utf8_lossy(&size.stdout).split('\t').next().unwrap_or("0").to_owned();
    let control = format!(
        "Package: fairhead\nVersion: {version}\nArchitecture: {machine}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {size}\nDepends: {}\nSuggests: fio, fuse3\nSection: utils\nPriority: optional\n\
         Description: {DESCRIPTION}\n",
        libraries(&pack)?
    );
    write(&pack.join("DEBIAN/control"), control.as_bytes())?;
    let sums = capture(
        Command::new("sh")
            .current_dir(&pack)
            .args(["-c", "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum"]),
    )?;
    write(&pack.join("DEBIAN/md5sums"), &sums.stdout)?;
    capture(Command::new("chmod").args(["-R", "u+w,go-w,a+rX"]).arg(&pack))?;
    let file = file(place)?;
    capture(Command::new("dpkg-deb").args(["--root-owner-group", "-Zxz", "--build"]).arg(&pack).arg(&file))?;
    Ok(file)
}

/// The package's file in that folder.
pub(crate) fn file(place: &Path) -> Result<PathBuf, String> {
    Ok(place.join(format!("fairhead_{}_{}.deb", env!("CARGO_PKG_VERSION"), architecture()?)))
}

/// Compresses pages, and gives `doc/fairhead` the names and the copyright that Debian asks for.
fn documents(share: &Path) -> Result<(), String> {
    let docs = share.join("doc/fairhead");
    let fail = |e: std::io::Error| format!("{}: {e}", docs.display());
    write(&docs.join("changelog"), changelog("fairhead")?.as_bytes())?;
    let mit = fs::read_to_string(docs.join("LICENSE-MIT")).map_err(fail)?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        fs::remove_file(docs.join(name)).map_err(fail)?;
    }
    write(&docs.join("copyright"), copyright(&mit, "").as_bytes())?;
    let pages = capture(
        Command::new("find")
            .args([share.join("man"), docs.join("changelog"), docs.join("CHANGELOG.md")])
            .args(["-type", "f", "-exec", "gzip", "-9n", "{}", "+"]),
    );
    pages.map(|_| ())
}

/// A package's changelog in Debian's form. It is made by its authors, so that the changelog is Debian's.
pub(crate) fn changelog(package: &str) -> Result<String, String> {
    let date = capture(&mut command("git", "log -1 --format=%aD"))?;
    Ok(format!(
        "{package} ({}) unstable; urgency=medium\n\n  * All changes are in CHANGELOG.md.\n\n -- {MAINTAINER}  {}",
        env!("CARGO_PKG_VERSION"),
        String::from_utf8_lossy(&date.stdout)
    ))
}

/// The copyright in Debian's form, with the text of the MIT licence. `more`: files with other licences.
pub(crate) fn copyright(mit: &str, more: &str) -> String {
    let indented: String = mit
        .lines()
        .map(|l| if l.trim().is_empty() { " .\n".to_owned() } else { format!(" {l}\n") })
        .collect();
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: fairhead\n\n\
         Files: *\nCopyright: the Fairhead authors\nLicense: Apache-2.0 or Expat\n\n{more}\
         License: Apache-2.0\n The text is in /usr/share/common-licenses/Apache-2.0.\n\n\
         License: Expat\n{indented}"
    )
}

/// The architecture, in Debian's words.
fn architecture() -> Result<String, String> {
    let said = capture(&mut command("dpkg", "--print-architecture"))?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// The packages whose libraries the program needs, with the versions that have what it calls.
fn libraries(pack: &Path) -> Result<String, String> {
    if !exists("dpkg-shlibdeps") {
        return Err("no dpkg-shlibdeps: install dpkg-dev".to_owned());
    }
    // It reads a source package's control file, and is content with an empty one.
    let place = pack.with_file_name("source");
    write(&place.join("debian/control"), b"Source: fairhead\n\nPackage: fairhead\nArchitecture: any\n")?;
    let said = capture(
        Command::new("dpkg-shlibdeps")
            .current_dir(&place)
            .args(["-O", "--ignore-missing-info"])
            .arg(pack.join("usr/bin/fairhead")),
    )?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let found = said.lines().find_map(|l| l.strip_prefix("shlibs:Depends="));
    found.map(str::to_owned).ok_or_else(|| format!("dpkg-shlibdeps says only: {said}"))
}

/// Builds the package of a program in the tests' profile, has it read by lintian, installs it in a folder,
/// runs it, removes it.
pub(crate) fn check() -> Result<Outcome, String> {
    for program in ["dpkg-deb", "dpkg-shlibdeps", "lintian"] {
        if !exists(program) {
            return Ok(Outcome::Skipped(format!("no {program}")));
        }
    }
    let place = dist::folder();
    let file = build(&dist::tree(&place.join("tree"), &dist::tests_program()?)?, &place)?;
    capture(Command::new("lintian").args(["--allow-root", "--fail-on", "error,warning"]).arg(&file))?;
    let at = place.join("root");
    let _ = fs::remove_dir_all(&at);
    write(&at.join("var/lib/dpkg/status"), b"")?;
    let dpkg = |args: &[&str]| {
        let mut command = Command::new("dpkg");
        command.arg(format!("--root={}", at.display())).args(["--force-depends", "--force-not-root"]);
        capture(command.args(["--log=/dev/null"]).args(args))
    };
    dpkg(&["--install", &file.display().to_string()])?;
    let program = at.join("usr/bin/fairhead");
    let said = capture(Command::new(&program).arg("--version").current_dir(root()))?;
    let expected = format!("fairhead {}", env!("CARGO_PKG_VERSION"));
    if !String::from_utf8_lossy(&said.stdout).starts_with(&expected) {
        return Err(format!("the installed program says {}", String::from_utf8_lossy(&said.stdout)));
    }
    dpkg(&["--purge", "fairhead"])?;
    let stayed = at.join("usr");
    if stayed.exists() {
        return Err(format!("after the package is removed there is still {}", stayed.display()));
    }
    let size = fs::metadata(&file).map_or(0, |m| m.len());
    Ok(Outcome::Passed(format!("a package of {} MiB, installed and removed", size.div_ceil(1 << 20))))
}
