//! What a package has beside the program: manual pages that man reads without a warning, scripts that shells
//! load.

use std::process::{Command, Output, Stdio};

fn fairhead(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).output().expect("the program runs")
}

fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[test]
fn man_reads_every_page_without_a_warning() {
    let place = tempfile::tempdir().unwrap();
    let made = fairhead(&["man", place.path().to_str().unwrap()]);
    assert!(made.status.success(), "{made:?}");
    let pages: Vec<_> = std::fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().path()).collect();
    let named = |name: &str| pages.iter().any(|p| p.file_name().is_some_and(|f| f == name));
    assert!(named("fairhead.1") && named("fairhead-run.1") && named("fairhead-validate.1"), "{pages:?}");
    assert_eq!(fairhead(&["man"]).stdout, std::fs::read(place.path().join("fairhead.1")).unwrap());
    if !exists("groff") {
        return println!("skipped: no groff");
    }
    for page in pages {
        let read = Command::new("groff")
            .args(["-man", "-ww", "-z", "-Tutf8", "-K", "utf8"])
            .arg(&page)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success() && said.is_empty(), "{}: {said}", page.display());
    }
}

#[test]
fn shells_load_their_scripts() {
    // Load the script, then tell what it registered.
    let checks = [
        (
            "bash",
            "source /dev/stdin; complete -p fairhead; COMP_WORDS=(fairhead va); COMP_CWORD=1; _fairhead fairhead va fairhead; echo ${COMPREPLY[@]}",
            "validate",
        ),
        ("fish", "source /dev/stdin; complete -C 'fairhead va'", "validate"),
        (
            "bash",
            "source /dev/stdin; COMP_WORDS=(fairhead run --sched mq-); COMP_CWORD=3; _fairhead fairhead mq- --sched; echo ${COMPREPLY[@]}",
            "mq-deadline",
        ),
        ("fish", "source /dev/stdin; complete -C 'fairhead run --disk nas'", "nas2020"),
        ("fish", "source /dev/stdin; complete -C 'fairhead serve --sched mq'", "mq-deadline"),
        (
            "zsh",
            "autoload -U compinit; compinit -u -D; source /dev/stdin; whence -w _fairhead",
            "_fairhead: function",
        ),
    ];
    for (shell, script, expected) in checks {
        let made = fairhead(&["completions", shell]);
        assert!(made.status.success() && !made.stdout.is_empty(), "{shell}: {made:?}");
        if !exists(shell) {
            println!("skipped: no {shell}");
            continue;
        }
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("script");
        std::fs::write(&file, made.stdout).unwrap();
        let loaded = Command::new(shell)
            .args(["-c", script])
            .stdin(Stdio::from(std::fs::File::open(&file).unwrap()))
            .output()
            .unwrap();
        let (said, wrong) =
            (String::from_utf8_lossy(&loaded.stdout), String::from_utf8_lossy(&loaded.stderr));
        assert!(said.contains(expected) && wrong.is_empty(), "{shell}: {said}{wrong}");
    }
}
