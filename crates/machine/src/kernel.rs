//! The kernel's version, and what follows from it for disks.
//!
//! | since | what changed |
//! |---|---|
//! | 4.11 | schedulers for blk-mq: `mq-deadline`; `bfq` and `kyber` with 4.12 |
//! | 5.0 | the old queue is gone, with `noop`, `deadline`, `cfq` and the effect of `elevator=` |
//! | 5.14 | `mq-deadline` knows I/O priorities |
//! | 5.15 | a loop device has no scheduler by default |
//! | 6.2 | `wbt_lat_usec` is 0 where bfq switches wbt off |
//! | 6.10 | the block layer keeps the order of writes to a zone, under any scheduler |
//!
//! A distribution may take a change into an older kernel. Where a disk's own files tell, they are asked
//! instead: a disk that offers `noop` has the old queue.
//
//= linux Documentation/admin-guide/kernel-parameters.txt, Documentation/block/

use crate::tree::Tree;

/// The running kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Kernel {
    /// The first two numbers of the release; `None` if it is unknown.
    version: Option<(u32, u32)>,
    /// The default scheduler that the kernel was built with, where `/boot` has its configuration.
    built_in_default: Option<String>,
    /// The kernel's modules, where `/lib/modules` has their list. What is built in, a disk offers.
    modules: String,
    /// The schedulers that the kernel was built without, or whose modules may not be loaded.
    without: Vec<&'static str>,
}

impl Kernel {
    /// Reads what is known of the kernel of that release.
    pub(crate) fn read(tree: &Tree, release: &str) -> Self {
        let file = |path: String| tree.text_if_readable(&path).unwrap_or_default();
        // A release with a slash would lead elsewhere.
        let release = if release.contains('/') { "" } else { release };
        let config = file(format!("boot/config-{release}"));
        let folder = format!("modules/{release}");
        // Where /lib is /usr/lib, both are one file.
        let modules = ["lib", "usr/lib"].map(|lib| file(format!("{lib}/{folder}/modules.dep")));
        let is_out = |s: &(&str, &str)| is_left_out(&config, s) || is_blocked(tree, s.0);
        Self {
            version: version(release),
            built_in_default: built_in_default(&config),
            modules: modules.into_iter().find(|m| !m.is_empty()).unwrap_or_default(),
            without: SCHEDULERS.into_iter().filter(is_out).map(|s| s.0).collect(),
        }
    }

    /// Whether the kernel is older than this version. Of an unknown one it is not said.
    #[must_use]
    pub fn is_before(&self, major: u32, minor: u32) -> bool {
        self.version.is_some_and(|v| v < (major, minor))
    }

    /// The default that the kernel was built with, if that is known.
    #[must_use]
    pub fn built_in_default(&self) -> Option<&str> {
        self.built_in_default.as_deref()
    }

    /// Whether it is known that the kernel cannot load the scheduler of blk-mq: it was built without it, its
    /// modules are listed and none is it, or `install` in modprobe's files keeps it out.
    #[must_use]
    pub fn lacks(&self, scheduler: &str) -> bool {
        let is_published = SCHEDULERS.iter().any(|s| s.0 == scheduler);
        // A list that is longer than what is read may have it later on.
        let is_whole = !self.modules.is_empty() && self.modules.len() < LIST_MAX;
        let is_listed = || !is_whole || self.has_module_for(scheduler);
        self.without.contains(&scheduler) || (is_published && !is_listed())
    }

    /// Whether a module of the kernel is the scheduler of this name, loaded or not.
    #[must_use]
    pub fn has_module_for(&self, scheduler: &str) -> bool {
        let names = [format!("{scheduler}.ko"), format!("{scheduler}-iosched.ko")];
        let files =
            self.modules.split([' ', '\n']).filter_map(|f| f.trim_end_matches(':').rsplit('/').next());
        files.into_iter().any(|file| names.iter().any(|n| file.starts_with(n.as_str())))
    }
}

/// From this number of bytes on, a list of modules may be cut off.
const LIST_MAX: usize = crate::tree::SIZE_MAX as usize - 1024;

/// The schedulers of blk-mq, with the words of the kernel's configuration.
const SCHEDULERS: [(&str, &str); 3] =
    [("bfq", "IOSCHED_BFQ"), ("kyber", "MQ_IOSCHED_KYBER"), ("mq-deadline", "MQ_IOSCHED_DEADLINE")];

/// Whether the configuration says that the scheduler was left out.
fn is_left_out(config: &str, (_, word): &(&str, &str)) -> bool {
    config.lines().any(|l| l == format!("# CONFIG_{word} is not set"))
}

/// Whether a file of modprobe puts a command in the place of the scheduler's module.
fn is_blocked(tree: &Tree, scheduler: &str) -> bool {
    let folders = ["etc/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d"];
    let files = folders.iter().flat_map(|folder| {
        tree.names(folder).into_iter().filter(|n| n.ends_with(".conf")).map(move |n| format!("{folder}/{n}"))
    });
    let blocks = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words[..], ["install", name, command, ..] if name == scheduler
            && ["/true", "/false"].iter().any(|end| command.ends_with(end)))
    };
    files.filter_map(|f| tree.text_if_readable(&f)).any(|text| text.lines().any(blocks))
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse::<u32>().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// `CONFIG_DEFAULT_IOSCHED="cfq"` of kernels before 5.0, `CONFIG_MQ_IOSCHED_DEFAULT_ADIOS=y` of patched ones.
fn built_in_default(config: &str) -> Option<String> {
    config.lines().find_map(|line| {
        if let Some(name) = line.strip_prefix("CONFIG_DEFAULT_IOSCHED=") {
            return Some(name.trim_matches('"').to_owned());
        }
        let name = line.strip_prefix("CONFIG_MQ_IOSCHED_DEFAULT_")?.strip_suffix("=y")?;
        Some(name.to_ascii_lowercase().replace('_', "-"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        let kernel = |release: &str| Kernel { version: version(release), ..Kernel::default() };
        assert!(kernel("3.10.0-1160.el7.x86_64").is_before(5, 0));
        assert!(!kernel("6.10.3").is_before(6, 2) && kernel("6.9.12-1-arch").is_before(6, 10));
        assert!(!kernel("").is_before(9, 0) && !kernel("abc").is_before(9, 0));
    }

    #[test]
    fn the_default_that_a_kernel_was_built_with() {
        let config = "# CONFIG_X is not set\nCONFIG_DEFAULT_IOSCHED=\"cfq\"\n";
        assert_eq!(built_in_default(config).as_deref(), Some("cfq"));
        assert_eq!(built_in_default("CONFIG_MQ_IOSCHED_DEFAULT_ADIOS=y").as_deref(), Some("adios"));
        assert_eq!(built_in_default(""), None);
    }

    #[test]
    fn modules_by_the_names_of_their_files() {
        let modules =
            "kernel/block/bfq.ko.zst:\nkernel/block/adios.ko: a/b.ko\nkernel/block/kyber-iosched.ko\n";
        let kernel = Kernel { modules: modules.to_owned(), ..Kernel::default() };
        assert!(["bfq", "adios", "kyber"].iter().all(|s| kernel.has_module_for(s)));
        assert!(!kernel.has_module_for("cfq") && !kernel.has_module_for("b/"));
    }
}
