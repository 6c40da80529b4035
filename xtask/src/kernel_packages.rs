//! What the tests in a kernel are made of: Debian's packages, unpacked below `target/kernel`.

use crate::kernel_newer::{self, Apt, Newer};
use crate::shell::{capture, command, exists};
use std::fs;
use std::path::{Path, PathBuf, absolute};

/// The series of kernels that the module is tried in, unless another one is asked for. The machine's own
/// package sources have it.
pub(crate) const SERIES: &str = "6.12";

/// Debian's compiler for programs that need a new one, and the sources of its library.
const RUST_PAIR: [&str; 2] = ["rustc-web", "rust-web-src"];

/// Everything that is needed, by path.
pub(crate) struct Packages {
    /// The folder of the kernel's headers.
    pub(crate) headers: PathBuf,
    /// The kernel to boot.
    pub(crate) image: PathBuf,
    pub(crate) busybox: PathBuf,
    pub(crate) bpftool: PathBuf,
    /// Variables of the build: for `rust.sh`, and where the kernel's compiler is.
    pub(crate) variables: Vec<(String, String)>,
    /// The folder that modules for this kernel are built in.
    pub(crate) build: PathBuf,
    /// The guest's memory, as QEMU reads it.
    pub(crate) memory: &'static str,
    /// How long the tests in a guest may take, in seconds: minutes, but when other steps leave no processor.
    pub(crate) patience: &'static str,
    modules: PathBuf,
}

impl Packages {
    /// The file of a module of the kernel's.
    pub(crate) fn module(&self, name: &str) -> Option<PathBuf> {
        // Files have - or _ where names have _.
        let wanted = format!("{}.ko.xz", name.replace('-', "_"));
        find(&self.modules, &|file| file.replace('-', "_") == wanted)
    }

    /// These with another kernel, which was built in a folder. Its modules are in the folder `modules` there.
    fn with_kernel(self, built: PathBuf) -> Self {
        Self {
            image: built.join("arch/x86/boot/bzImage"),
            build: built.join("fairhead"),
            memory: "2G",
            // Every access to memory is looked at.
            patience: "14400",
            modules: built.join("modules"),
            headers: built,
            ..self
        }
    }
}

pub(crate) enum Found {
    All(Packages),
    /// Why not.
    Lacking(String),
}

/// The first file below a folder whose name fits.
fn find(folder: &Path, fits: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|e| e.path()).collect();
    entries.sort();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(file) = entries.iter().find(|path| path.is_file() && fits(&name(path))) {
        return Some(file.clone());
    }
    entries.iter().filter(|path| path.is_dir() && !path.is_symlink()).find_map(|path| find(path, fits))
}

/// Finds or fetches everything for a kernel: the newest of a series, such as `6.12`, or the one that was
/// built in a folder, whose name has a `/`.
pub(crate) fn packages(kernel: &str) -> Result<Found, String> {
    if !kernel.contains('/') {
        return packages_of(kernel);
    }
    let built = absolute(kernel).map_err(|e| format!("{kernel}: {e}"))?;
    if !built.join("modules").is_dir() {
        return Err(format!("{kernel}: no kernel that `cargo xtask kernel debug` has built"));
    }
    Ok(match packages_of(SERIES)? {
        Found::All(packages) => Found::All(packages.with_kernel(built)),
        lacking => lacking,
    })
}

/// Finds or fetches everything for the newest kernel of a series.
fn packages_of(series: &str) -> Result<Found, String> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Ok(Found::Lacking("the module is built for x86-64".into()));
    }
    const TOOLS: &[&str] =
        &["apt-get", "apt-cache", "dpkg", "make", "cc", "ld", "objcopy", "strip", "xz", "qemu-system-x86_64"];
    let missing: Vec<&str> = TOOLS.iter().copied().filter(|tool| !exists(tool)).collect();
    if !missing.is_empty() {
        return Ok(Found::Lacking(format!("{} not there", missing.join(", "))));
    }
    let source = match Source::find(series) {
        Ok(source) => source,
        Err(why) => return Ok(Found::Lacking(why)),
    };
    let version = source.version();
    let folder = crate::dist::target().join("kernel");
    let root = folder.join(version);
    let headers = root.join(format!("usr/src/linux-headers-{version}-cloud-amd64"));
    if !root.join("complete").exists() {
        if let Err(said) = source.unpack(&root) {
            let said = said.lines().last().unwrap_or_default();
            return Ok(Found::Lacking(format!("packages cannot be had ({said})")));
        }
        relocate(&headers.join("Makefile"), &root)?;
        fs::write(root.join("complete"), "").map_err(|e| format!("{}: {e}", root.display()))?;
    }
    let Some(mut variables) = library_sources()? else {
        return Ok(Found::Lacking("the sources of Rust's library cannot be had".into()));
    };
    let (image, modules, build) = match source {
        Source::Own(_) => (format!("boot/vmlinuz-{version}-cloud-amd64"), "lib/modules", "build".into()),
        Source::Newer(_) => {
            let path = std::env::var("PATH").unwrap_or_default();
            variables.push(("PATH".into(), format!("{}:{path}", kernel_newer::path(&root).display())));
            let image = format!("usr/lib/modules/{version}-cloud-amd64/vmlinuz");
            (image, "usr/lib/modules", format!("build-{series}"))
        }
    };
    Ok(Found::All(Packages {
        headers,
        image: root.join(image),
        busybox: root.join("bin/busybox"),
        bpftool: root.join("usr/sbin/bpftool"),
        variables,
        build: folder.join(build),
        memory: "1G",
        patience: "3600",
        modules: root.join(modules),
    }))
}

/// Where a kernel's packages come from.
enum Source {
    /// The machine's own package sources, and the kernel's version there.
    Own(String),
    Newer(Newer),
}

impl Source {
    /// Where there is a series; an error that says why it is nowhere.
    fn find(series: &str) -> Result<Self, String> {
        if series != SERIES {
            return Newer::find(series).map(Self::Newer);
        }
        let lacking = || format!("no package source has linux-headers-{SERIES}-cloud-amd64");
        version().map(Self::Own).ok_or_else(lacking)
    }

    fn version(&self) -> &str {
        match self {
            Self::Own(version) => version,
            Self::Newer(newer) => &newer.version,
        }
    }

    /// Unpacks the kernel's packages, and those of programs that run on this machine.
    fn unpack(&self, root: &Path) -> Result<(), String> {
        let version = self.version();
        let mut kernel = vec![
            format!("linux-headers-{version}-cloud-amd64"),
            format!("linux-headers-{version}-common"),
            format!("linux-kbuild-{version}"),
        ];
        let programs = ["bpftool".to_owned(), "busybox-static".to_owned()];
        match self {
            Self::Own(_) => {
                kernel.push(format!("linux-image-{version}-cloud-amd64-unsigned"));
                kernel.extend(programs);
                unpack(&Apt::default(), &kernel, root)
            }
            Self::Newer(newer) => {
                kernel.extend(newer.names());
                unpack(&newer.apt, &kernel, root)?;
                unpack(&Apt::default(), &programs, root)?;
                newer.prepare(root)
            }
        }
    }
}

/// The version that the package sources have now, such as `6.12.117+deb12`.
fn version() -> Option<String> {
    let package = format!("linux-headers-{SERIES}-cloud-amd64");
    let listed = capture(command("apt-cache", "depends").arg(package)).ok()?.stdout;
    String::from_utf8_lossy(&listed).lines().find_map(|line| {
        let depends = line.trim().strip_prefix("Depends: linux-headers-")?;
        depends.strip_suffix("-cloud-amd64").map(str::to_owned)
    })
}

/// Downloads packages and unpacks them into `root`.
pub(crate) fn unpack(apt: &Apt, names: &[String], root: &Path) -> Result<(), String> {
    let downloads = root.join("packages");
    fs::create_dir_all(&downloads).map_err(|e| format!("{}: {e}", downloads.display()))?;
    capture(apt.command("apt-get", "download -q").args(names).current_dir(&downloads))?;
    for entry in fs::read_dir(&downloads).into_iter().flatten().flatten() {
        capture(command("dpkg", "-x").arg(entry.path()).arg(root))?;
    }
    fs::remove_dir_all(&downloads).map_err(|e| format!("{}: {e}", downloads.display()))
}

/// The headers' Makefile names files by their places on a system where they are installed.
fn relocate(makefile: &Path, root: &Path) -> Result<(), String> {
    let named = |e: std::io::Error| format!("{}: {e}", makefile.display());
    let text = fs::read_to_string(makefile).map_err(named)?;
    fs::write(makefile, relocated(&text, root)).map_err(named)
}

/// A Makefile of headers that are below `root`.
fn relocated(makefile: &str, root: &Path) -> String {
    makefile.replace("/usr/src/", &format!("{}/usr/src/", root.display()))
}

/// Variables that lead `rust.sh` to a compiler with the sources of its library: the one that builds this,
/// with rustup's component; or Debian's pair.
fn library_sources() -> Result<Option<Vec<(String, String)>>, String> {
    let sysroot = capture(&mut command("rustc", "--print sysroot"))?.stdout;
    let ours = PathBuf::from(String::from_utf8_lossy(&sysroot).trim()).join("lib/rustlib/src/rust/library");
    if ours.join("core/src/lib.rs").exists()
        || capture(&mut command("rustup", "component add rust-src")).is_ok()
            && ours.join("core/src/lib.rs").exists()
    {
        return Ok(Some(Vec::new()));
    }
    let root = crate::dist::target().join("kernel/rust-web");
    let sources = || {
        let folders = fs::read_dir(root.join("usr/src")).into_iter().flatten().flatten();
        folders.map(|e| e.path().join("library")).find(|library| library.join("core/src/lib.rs").exists())
    };
    if sources().is_none() && unpack(&Apt::default(), &with_libraries(&RUST_PAIR), &root).is_err() {
        return Ok(None);
    }
    let Some(source) = sources() else { return Ok(None) };
    let text = |path: PathBuf| path.display().to_string();
    Ok(Some(vec![
        ("RUSTC".into(), text(root.join("usr/bin/rustc"))),
        ("RUST_LIB_SRC".into(), text(source)),
        ("LD_LIBRARY_PATH".into(), text(root.join("usr/lib/x86_64-linux-gnu"))),
    ]))
}

/// These packages, and the libraries of LLVM and Rust that they depend on, whose names have versions in them.
fn with_libraries(packages: &[&str]) -> Vec<String> {
    let mut all: Vec<String> = packages.iter().map(|&name| name.to_owned()).collect();
    let mut at = 0;
    while let Some(package) = all.get(at) {
        let listed = capture(command("apt-cache", "depends").arg(package)).map(|o| o.stdout);
        let listed = String::from_utf8_lossy(&listed.unwrap_or_default()).into_owned();
        for name in listed.lines().filter_map(|line| line.trim().strip_prefix("Depends: ")) {
            let is_library = name.starts_with("libllvm") || name.starts_with("libstd-rust-web");
            if is_library && !all.iter().any(|there| there == name) {
                all.push(name.to_owned());
            }
        }
        at += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makefiles_of_headers_are_led_to_their_new_places() {
        let root = Path::new("/a/b");
        assert_eq!(relocated("include /usr/src/x/Makefile\n", root), "include /a/b/usr/src/x/Makefile\n");
        let newer = "KBUILD_OUTPUT=/usr/src/x\ninclude /usr/src/y/Makefile\n";
        assert_eq!(relocated(newer, root), "KBUILD_OUTPUT=/a/b/usr/src/x\ninclude /a/b/usr/src/y/Makefile\n");
    }
}
