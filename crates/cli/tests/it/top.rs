//! The screen of `fairhead top` in a real terminal: tmux has one, and tells what is on it.

use crate::process;
use crate::process::Process;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long something may take to appear on the screen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A tmux server with one shell, and a folder.
struct Tmux {
    place: TempDir,
}

impl Tmux {
    /// None without tmux.
    fn start() -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            println!("skipped: there is no tmux");
            return None;
        }
        let tmux = Self { place: tempfile::tempdir().unwrap() };
        let size = ["new-session", "-d", "-x", "100", "-y", "20", "env PS1='at-the-shell> ' sh"];
        tmux.say(&size);
        tmux.wait("the shell", |screen| screen.contains("at-the-shell>"));
        Some(tmux)
    }

    fn say(&self, args: &[&str]) -> String {
        let out = Command::new("tmux")
            .arg("-S")
            .arg(self.place.path().join("tmux"))
            .args(["-f", "/dev/null"])
            .args(args)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .current_dir(self.place.path())
            .output()
            .unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.say(&[&["send-keys"], keys].concat());
    }

    fn screen(&self) -> String {
        self.say(&["capture-pane", "-p"])
    }

    /// Waits until the screen is as it should be; returns it.
    fn wait(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        #[allow(clippy::disallowed_methods, reason = "a terminal is waited for")]
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "no {what} on the screen:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts top on a cleared screen, and waits for its first interval.
    fn top(&self) {
        self.keys(&["clear; $f top c --interval 50ms", "Enter"]);
        self.wait("interval", |s| s.contains("by share  2 groups") && s.contains("h Help"));
        assert_eq!(self.say(&["display", "-p", "#{alternate_on}"]), "1\n");
    }

    /// Asserts that the terminal is the shell's again, with echo, whole lines and a cursor.
    fn is_restored(&self) {
        self.wait("shell", |s| s.contains("at-the-shell>") && !s.contains("h Help"));
        assert_eq!(self.say(&["display", "-p", "#{alternate_on} #{cursor_flag}"]), "0 1\n");
        self.keys(&["stty -a > tty; echo do\"\"ne", "Enter"]);
        self.wait("echo", |s| s.lines().any(|l| l == "done"));
        let tty = std::fs::read_to_string(self.place.path().join("tty")).unwrap();
        for flag in [" echo ", " icanon ", " isig "] {
            assert!(tty.replace('\n', " ").contains(flag), "{flag}: {tty}");
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ =
            Command::new("tmux").arg("-S").arg(self.place.path().join("tmux")).arg("kill-server").output();
    }
}

/// A disk with two groups, and its control socket `c`.
fn serve(at: &Path) -> Process {
    std::fs::File::create(at.join("disk.img")).unwrap().set_len(4 << 20).unwrap();
    let mut command = process::fairhead();
    command.args(["serve", "--export", "vm1=disk.img,weight=300", "--export", "vm2=disk.img,readonly"]);
    command.args(["--socket", "s", "--control", "c"]).current_dir(at).stdout(Stdio::null());
    let (server, _, said) = process::start(&mut command);
    // So that the server can write more.
    std::thread::spawn(move || std::io::copy(&mut { said }, &mut std::io::sink()));
    server
}

/// The rows of the table: the names of the groups from top to bottom.
fn groups(screen: &str) -> Vec<&str> {
    let names = screen.lines().filter_map(|l| l.split_whitespace().next());
    names.filter(|n| n.starts_with("vm")).collect()
}

#[test]
fn keys_change_the_order_and_the_terminal_is_restored() {
    let Some(tmux) = Tmux::start() else { return };
    let mut server = serve(tmux.place.path());
    tmux.keys(&[&format!("f={}", env!("CARGO_BIN_EXE_fairhead")), "Enter"]);

    tmux.top();
    tmux.keys(&["n"]);
    let screen = tmux.wait("order", |s| s.contains("by name"));
    assert_eq!(groups(&screen), ["vm1", "vm2"]);
    tmux.keys(&["r"]);
    let screen = tmux.wait("reversed order", |s| s.contains("by name, reversed"));
    assert_eq!(groups(&screen), ["vm2", "vm1"]);
    tmux.keys(&["F4", "m", "1", "Enter"]);
    let screen = tmux.wait("filter", |s| s.contains("1 of 2 groups, filter: m1") && s.contains("h Help"));
    assert_eq!(groups(&screen), ["vm1"]);
    tmux.keys(&["F1"]);
    tmux.wait("help", |s| s.contains("order by bandwidth") && s.contains("any key: back"));
    tmux.keys(&["x"]);
    tmux.wait("table", |s| s.contains("h Help"));
    tmux.say(&["resize-window", "-x", "40", "-y", "10"]);
    tmux.wait("small picture", |s| s.lines().nth(9).is_some_and(|l| l.starts_with("h Help")));
    tmux.say(&["resize-window", "-x", "100", "-y", "20"]);
    tmux.keys(&["q"]);
    tmux.is_restored();

    for quit in ["F10", "C-c"] {
        tmux.top();
        tmux.keys(&[quit]);
        tmux.is_restored();
    }

    // A signal: the shell runs top as a child, which the script finds by its own number.
    tmux.keys(&["clear; sh -c 'echo $$ > pid; exec \"$0\" top c --interval 50ms' $f", "Enter"]);
    tmux.wait("interval", |s| s.contains("by share  2 groups"));
    let pid = std::fs::read_to_string(tmux.place.path().join("pid")).unwrap();
    assert!(Command::new("kill").arg(pid.trim()).status().unwrap().success());
    tmux.is_restored();
    assert!(tmux.screen().contains("fairhead: interrupted"), "{}", tmux.screen());

    tmux.top();
    server.kill();
    tmux.is_restored();
    let screen = tmux.screen();
    let said: Vec<&str> = screen.lines().filter(|l| l.starts_with("fairhead: ")).collect();
    assert_eq!(said, ["fairhead: c: the server has closed the connection"], "{screen}");
}
