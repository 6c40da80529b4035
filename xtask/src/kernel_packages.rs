//! What the tests in a kernel are made of: Debian's packages, unpacked below `target/kernel`.

use crate::shell::{capture, command, exists};
use std::fs;
use std::path::{Path, PathBuf, absolute};

/// The series of kernels that the module is for.
const SERIES: &str = "6.12";

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
    /// Variables for `rust.sh`.
    pub(crate) rust: Vec<(String, String)>,
    /// The folder of what is built for this kernel.
    pub(crate) out: PathBuf,
    /// The guest's memory, as QEMU reads it.
    pub(crate) memory: &'static str,
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
            out: built.join("fairhead"),
            memory: "2G",
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

/// Finds or fetches everything, for the kernel that was built in a folder, or for Debian's.
pub(crate) fn packages_for(kernel: Option<&str>) -> Result<Found, String> {
    match (packages()?, kernel) {
        (Found::All(packages), Some(kernel)) => {
            let built = absolute(kernel).map_err(|e| format!("{kernel}: {e}"))?;
            if !built.join("modules").is_dir() {
                return Err(format!("{kernel}: no kernel that `cargo xtask kernel debug` has built"));
            }
            Ok(Found::All(packages.with_kernel(built)))
        }
        (found, _) => Ok(found),
    }
}

/// Finds or fetches everything.
pub(crate) fn packages() -> Result<Found, String> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Ok(Found::Lacking("the module is built for x86-64".into()));
    }
    const TOOLS: &[&str] =
        &["apt-get", "apt-cache", "dpkg", "make", "cc", "ld", "objcopy", "strip", "xz", "qemu-system-x86_64"];
    let missing: Vec<&str> = TOOLS.iter().copied().filter(|tool| !exists(tool)).collect();
    if !missing.is_empty() {
        return Ok(Found::Lacking(format!("{} not there", missing.join(", "))));
    }
    let Some(version) = version() else {
        return Ok(Found::Lacking(format!("no package source has linux-headers-{SERIES}-cloud-amd64")));
    };
    let root = crate::dist::target().join("kernel").join(&version);
    let names = [
        format!("linux-headers-{version}-cloud-amd64"),
        format!("linux-headers-{version}-common"),
        format!("linux-kbuild-{version}"),
        format!("linux-image-{version}-cloud-amd64-unsigned"),
        "bpftool".into(),
        "busybox-static".into(),
    ];
    let headers = root.join(format!("usr/src/{}", names[0]));
    if !root.join("complete").exists() {
        if let Err(said) = unpack(&names, &root) {
            let said = said.lines().last().unwrap_or_default();
            return Ok(Found::Lacking(format!("packages cannot be had ({said})")));
        }
        relocate(&headers.join("Makefile"), &root)?;
        fs::write(root.join("complete"), "").map_err(|e| format!("{}: {e}", root.display()))?;
    }
    let rust = match library_sources()? {
        Some(rust) => rust,
        None => return Ok(Found::Lacking("the sources of Rust's library cannot be had".into())),
    };
    Ok(Found::All(Packages {
        headers,
        image: root.join(format!("boot/vmlinuz-{version}-cloud-amd64")),
        busybox: root.join("bin/busybox"),
        bpftool: root.join("usr/sbin/bpftool"),
        rust,
        out: crate::dist::target().join("kernel/build"),
        memory: "1G",
        modules: root.join("lib/modules"),
    }))
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
pub(crate) fn unpack(names: &[String], root: &Path) -> Result<(), String> {
    let downloads = root.join("packages");
    fs::create_dir_all(&downloads).map_err(|e| format!("{}: {e}", downloads.display()))?;
    capture(command("apt-get", "download -q").args(names).current_dir(&downloads))?;
    for entry in fs::read_dir(&downloads).into_iter().flatten().flatten() {
        capture(command("dpkg", "-x").arg(entry.path()).arg(root))?;
    }
    fs::remove_dir_all(&downloads).map_err(|e| format!("{}: {e}", downloads.display()))
}

/// The headers' Makefile names one file by its place on a system where it is installed.
fn relocate(makefile: &Path, root: &Path) -> Result<(), String> {
    let named = |e: std::io::Error| format!("{}: {e}", makefile.display());
    let text = fs::read_to_string(makefile).map_err(named)?;
    let moved = text.replace("include /usr/src/", &format!("include {}/usr/src/", root.display()));
    fs::write(makefile, moved).map_err(named)
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
    if sources().is_none() && unpack(&with_libraries(&RUST_PAIR), &root).is_err() {
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
