//! `fairhead mount` of folders in which other file systems are mounted, and of those that have the mountpoint
//! inside; as scripts.
//!
//! Each script runs in mount and process name spaces of its own, so nothing of it is left when it ends.

#![allow(clippy::disallowed_methods, reason = "processes are real")]

use crate::may_mount;

use std::path::Path;
use std::process::Command;

/// What scripts share. A script ends with the status 77 where something that it needs is not there.
///
/// - `show SOURCE MOUNTPOINT …` mounts, and waits until that is done.
/// - `end` ends the program by SIGTERM, which may take five seconds.
/// - `same A B` compares what is in two folders: names, kinds, data, links.
/// - `numbers FOLDER` checks that lists of names and attributes agree about inode numbers, and that no two
///   files have one; and prints the number of each.
const PRELUDE: &str = r#"
set -eu
said() { cat said >&2 2>/dev/null || true; }
fail() { echo "$1" >&2; said; exit 1; }
skip() { echo "$1"; exit 77; }
state() { cut -d' ' -f3 /proc/$p/stat 2>/dev/null || true; }
show() {
    "$FAIRHEAD" mount --sched noop --fuse-transport "$WAY" "$@" 2>said & p=$!
    for i in $(seq 400); do
        ! grep -q "Ctrl-C ends it" said || return 0
        case "$(state)" in Z|"") break;; esac
        sleep 0.05
    done
    fail "it does not start"
}
end() {
    kill -TERM $p
    for i in $(seq 50); do
        case "$(state)" in Z|"") wait $p || fail "it ends with the status $?"; return 0;; esac
        sleep 0.1
    done
    fail "it does not end"
}
same() {
    (cd "$1" && find . -printf '%p %y %n %s\n' | sort) >one
    (cd "$2" && find . -printf '%p %y %n %s\n' | sort) >other
    # The size of a folder is the file system's own affair.
    sed -i 's/ d \(.*\) .*/ d/' one other
    diff one other >&2 || fail "$1 and $2 differ in names"
    diff -r "$1" "$2" >&2 || fail "$1 and $2 differ in data"
}
numbers() {
    python3 - "$1" <<'END'
import os, sys
seen = {}
for folder, _, _ in os.walk(sys.argv[1]):
    for entry in os.scandir(folder):
        meta = os.lstat(entry.path)
        assert entry.inode() == meta.st_ino, (entry.path, entry.inode(), meta.st_ino)
        assert entry.is_dir() or meta.st_nlink > 1 or meta.st_ino not in seen, (entry.path, seen[meta.st_ino])
        assert not entry.is_dir() or meta.st_ino not in seen, (entry.path, seen[meta.st_ino])
        seen[meta.st_ino] = entry.path
        print(os.path.relpath(entry.path, sys.argv[1]), meta.st_ino)
END
}
ext4() {
    image="image-$(echo "$1" | tr / -)"
    truncate -s 32M "$image"
    mkfs.ext4 -q -F "$image" || skip "no mkfs.ext4"
    mount -o loop "$image" "$1" || skip "no loop device with ext4"
    rmdir "$1/lost+found"
}
"#;

/// Runs a script in folders on a disk and in memory, over each way from the kernel. What it says is shown
/// with the test's output.
pub(crate) fn run(script: &str) {
    if !may_mount::may_mount() {
        return;
    }
    for folder in [env!("CARGO_TARGET_TMPDIR"), "/dev/shm"] {
        for way in ["dev", "auto"] {
            run_in(Path::new(folder), way, script);
        }
    }
}

fn run_in(folder: &Path, way: &str, script: &str) {
    let folder = tempfile::tempdir_in(folder).unwrap();
    let out = Command::new("timeout")
        .args(["-s", "KILL", "240", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["sh", "-c", &format!("{PRELUDE}{script}")])
        .env("FAIRHEAD", env!("CARGO_BIN_EXE_fairhead"))
        .env("WAY", way)
        .current_dir(folder.path())
        .output();
    let out = match out {
        Ok(out) => out,
        Err(e) => return println!("skipped: timeout and unshare: {e}"),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if out.status.code() == Some(77) {
        return println!("skipped: {}", text(&out.stdout).lines().last().unwrap_or_default());
    }
    let (said, why) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "over {way}: {}\n{said}\n{why}", out.status);
}

/// Files of two file systems have one inode number each, and hard links. A copy has them apart.
#[test]
fn hard_links_of_two_file_systems_stay_apart() {
    run(r#"
mkdir -p src/a src/b mp; mount -t tmpfs t1 src/a; mount -t tmpfs t2 src/b
for x in a b; do echo "data of $x" >src/$x/f; ln src/$x/f src/$x/g; mkdir src/$x/d; ln src/$x/f src/$x/d/h; done
[ "$(stat -c %i src/a/f)" = "$(stat -c %i src/b/f)" ] || fail "the case is not the one that was meant"
show src mp
[ "$(stat -c %d mp/a/f)" = "$(stat -c %d mp/b/f)" ] || fail "a mount has one device number"
numbers mp >first
cp -a mp copied; same src copied
tar -C mp -cf all.tar .; mkdir unpacked; tar -C unpacked -xf all.tar; same src unpacked
if command -v rsync >/dev/null; then rsync -aH mp/ synced; same src synced; fi
for c in copied unpacked; do
    [ $c/a/f -ef $c/a/d/h ] || fail "$c: a link was lost"
    [ ! $c/a/f -ef $c/b/f ] || fail "$c: two files became one"
done
[ "$(cat copied/*/[fg])" = "data of a
data of a
data of b
data of b" ] || fail "other data"
end
show src mp
numbers mp >second
diff first second >&2 || fail "other numbers after a remount"
end
"#);
}

/// The roots of two ext4 are both inode 2: programs that walk took the inner one for a loop.
#[test]
fn a_file_system_inside_its_like_is_walked_through() {
    run(r#"
mkdir -p src mp; ext4 src; mkdir src/in; ext4 src/in; mkdir src/in/deep; ext4 src/in/deep
for x in src src/in src/in/deep; do echo "data in $x" >$x/file; mkdir -p $x/folder; echo more >$x/folder/f; done
show src mp
find mp >found 2>errors; [ ! -s errors ] || fail "find: $(cat errors)"
[ "$(wc -l <found)" = "$(find src | wc -l)" ] || fail "find misses some"
ls -R mp >listed 2>errors; [ ! -s errors ] || fail "ls: $(cat errors)"
du -s mp >size 2>errors; [ ! -s errors ] || fail "du: $(cat errors)"
[ "$(find mp -xdev | wc -l)" = "$(find src | wc -l)" ] || fail "a mount is one file system"
cp -a mp copied; same src copied
tar -C mp -cf all.tar .; mkdir unpacked; tar -C unpacked -xf all.tar; same src unpacked
numbers mp >/dev/null
end
"#);
}

/// Four file systems in each other, of two kinds, with the same names and numbers.
#[test]
fn a_deep_nest_is_copied() {
    run(r#"
mkdir -p src mp; at=src
for i in 1 2 3 4; do
    mkdir -p $at/x; mount -t tmpfs t $at/x; at=$at/x
    for n in 1 2 3; do echo "$i $n" >$at/$n; ln $at/$n $at/link$n; done
done
show src mp
numbers mp >/dev/null
cp -a mp copied; same src copied
tar -C mp -cf all.tar .; mkdir unpacked; tar -C unpacked -xf all.tar; same src unpacked
# A link from one to another is refused as below.
! ln mp/x/1 mp/x/x/new 2>/dev/null || fail "a link across file systems"
# A file that is moved from one to another is there with its data.
mv mp/x/2 mp/x/x/moved; [ "$(cat src/x/x/moved)" = "1 2" ] || fail "a file is lost"
end
"#);
}

/// Files of an overlay have the numbers of their layers, on several devices.
#[test]
fn an_overlay_is_copied() {
    run(r#"
mkdir -p src/over mp l1 l2 up; mount -t tmpfs t1 l1; mount -t tmpfs t2 l2; mount -t tmpfs t3 up
mkdir up/u up/w
for x in l1 l2; do echo "data of $x" >$x/$x; ln $x/$x $x/link-$x; mkdir $x/dir; echo "$x" >$x/dir/in-$x; done
mount -t overlay o -o lowerdir=l1:l2,upperdir=up/u,workdir=up/w src/over || skip "no overlay"
echo above >src/over/above; echo own >src/own
show src mp
numbers mp >/dev/null
cp -a mp copied; same src copied
[ "$(cat copied/over/l1 copied/over/l2)" = "data of l1
data of l2" ] || fail "other data"
end
show src/over mp
cp -a mp copied2; same src/over copied2
end
"#);
}

/// Subvolumes of btrfs have devices of their own.
#[test]
fn subvolumes_are_copied() {
    run(r#"
command -v mkfs.btrfs >/dev/null || skip "no mkfs.btrfs"
mkdir -p src mp; truncate -s 120M img; mkfs.btrfs -q img; mount -o loop img src || skip "no btrfs"
for x in a b; do btrfs -q subvolume create src/$x; echo "data of $x" >src/$x/f; ln src/$x/f src/$x/g; done
show src mp
numbers mp >/dev/null
cp -a mp copied; same src copied
end
"#);
}

/// A folder that is bound to another place has the files of its file system, with their numbers.
#[test]
fn links_through_bind_mounts_are_known() {
    run(r#"
mkdir -p src/one src/two mp; echo data >src/one/f; ln src/one/f src/one/g
mount --bind src/one src/two
show src mp
[ "$(stat -c %i mp/one/f)" = "$(stat -c %i src/one/f)" ] || fail "the source's own numbers changed"
[ mp/one/f -ef mp/two/g ] || fail "one file has two numbers"
[ "$(ls mp/two)" = "$(ls src/one)" ] || fail "a bind mount is empty"
end
"#);
}

/// The mountpoint is an empty folder as seen through the mount.
#[test]
fn a_mountpoint_inside_the_source_leads_nowhere() {
    run(r#"
mkdir -p src/in/sub; echo x >src/file
show src src/in
[ "$(timeout -s KILL 8 ls src/in)" = "file
in" ] || fail "other names"
[ "$(timeout -s KILL 8 ls src/in/in)" = sub ] || fail "other names inside"
timeout -s KILL 8 ls -lR src/in >/dev/null || fail "ls -R"
echo y >src/in/in/new; [ "$(timeout -s KILL 8 cat src/in/in/new)" = y ] || fail "a file inside"
timeout -s KILL 8 find src/in -type f -exec cat {} + >/dev/null || fail "find"
end
[ "$(cat src/in/new)" = y ] || fail "it was written elsewhere"
"#);
}

/// The whole machine, shown in a folder of its own.
#[test]
fn the_root_is_shown_inside_itself() {
    run(r#"
mkdir mp; here=$(pwd)
show / mp
timeout -s KILL 20 ls -l mp mp/proc mp/dev "mp$here" "mp$here/mp" >/dev/null || fail "ls"
[ -z "$(timeout -s KILL 8 ls "mp$here/mp")" ] || fail "the mountpoint is not empty"
end
"#);
}

/// Two mounts, each with the mountpoint of the other in its source.
#[test]
fn two_mounts_in_each_other_lead_nowhere() {
    run(r#"
mkdir -p a/in b/in; echo a >a/file; echo b >b/file
show a b/in; q=$p
show b a/in
timeout -s KILL 8 ls -R a b >listed || fail "ls -R"
[ "$(timeout -s KILL 8 cat a/in/in/file b/in/file)" = "a
a" ] || fail "other data"
end; p=$q; end
"#);
}

/// A mount shows what was mounted when it began.
#[test]
fn what_is_mounted_later_does_not_show() {
    run(r#"
mkdir -p src/before src/later mp
mount --make-rshared / ; mount -t tmpfs t1 src/before; echo b >src/before/f
show src mp
mount -t tmpfs t2 src/later; echo l >src/later/f; echo below >mp/later/g
[ "$(ls mp/later)" = g ] || fail "a later mount shows"
umount src/before
[ "$(cat mp/before/f)" = b ] || fail "an earlier mount is gone"
umount src/later; [ "$(cat src/later/g)" = below ] || fail "it was written elsewhere"
end
"#);
}

/// A program holds files open; those that end the mount do not wait for it.
#[test]
fn sigterm_ends_it_while_files_are_open() {
    run(r#"
mkdir -p src mp under; mount -t tmpfs t mp; echo under >mp/under; echo x >src/file
show src mp
exec 5<mp/file; (cd mp && exec sleep 60) & sleeper=$!
end
! cat <&5 2>/dev/null || fail "a file of a mount that has ended is read"
kill $sleeper
# What was mounted there before is there again, and only the mount went.
[ "$(cat mp/under)" = under ] || fail "another mount went, too"
"#);
}

/// A process that may not copy mounts gets one line of error.
#[test]
fn without_the_right_to_mount_a_mountpoint_inside_is_refused() {
    run(r#"
command -v setpriv >/dev/null || skip "no setpriv"
mkdir -p src/in
status=0
timeout 20 setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$FAIRHEAD" mount src src/in 2>why || status=$?
[ $status = 2 ] || fail "status $status: $(cat why)"
[ "$(wc -l <why)" = 1 ] && grep -q "src/in: inside the folder that is mounted" why || fail "$(cat why)"
"#);
}

/// A single write that appends, whichever way its file is open.
#[test]
fn rwf_append_appends() {
    run(r#"
mkdir -p src mp
show src mp
python3 - mp <<'END'
import mmap, os, sys
APPEND = 0x10
page = mmap.mmap(-1, 4096); page[:] = b'x' * 4096
for i, flags in enumerate([0, os.O_DIRECT, os.O_APPEND, os.O_DIRECT | os.O_APPEND, os.O_SYNC]):
    for more in [0, os.RWF_DSYNC, os.RWF_HIPRI]:
        path = '%s/%d-%d' % (sys.argv[1], i, more)
        fd = os.open(path, os.O_CREAT | os.O_RDWR | flags)
        for n in [1, 2, 3]:
            assert os.pwritev(fd, [page], 0, APPEND | more) == 4096, path
            assert os.fstat(fd).st_size == 4096 * n, path
END
[ "$(stat -c %s src/0-0)" = 12288 ] || fail "another size below"
end
"#);
}

/// Files that the program makes cannot be in its own mount.
#[test]
fn a_recording_or_socket_in_the_mount_is_refused() {
    run(r#"
mkdir -p src mp
for option in record control; do
    status=0
    timeout 20 "$FAIRHEAD" mount src mp --$option mp/file 2>why || status=$?
    [ $status != 0 ] && [ $status -lt 100 ] || fail "$option: status $status"
    [ "$(wc -l <why)" = 1 ] && grep -q "mp/file: .* cannot be in the mount" why || fail "$option: $(cat why)"
done
! mountpoint -q mp || fail "it is mounted"
"#);
}

/// Exports are opened for what they are for: a file that cannot be written is served beside one that can.
#[test]
fn a_read_only_file_is_served_beside_a_writable_one() {
    run(r#"
mkdir -p fixed; mount -t tmpfs t fixed; truncate -s 4M fixed/ro.img rw.img own.img
mount -o remount,ro fixed
serve() { timeout -s KILL 30 "$FAIRHEAD" serve --sched noop "$@" --run 'test -S "$socket"' >out 2>said || fail "$*"; }
serve --export a=fixed/ro.img,readonly --export b=rw.img --socket s.sock
serve --export b=rw.img --export a=fixed/ro.img,readonly --socket s.sock
serve --export a=rw.img --vhost-user v.sock=fixed/ro.img,readonly --socket s.sock
serve --vhost-user v.sock=fixed/ro.img,readonly --vhost-user w.sock=rw.img
serve --export a=fixed/ro.img,readonly --socket s.sock
if chattr +i own.img 2>/dev/null; then
    trap 'chattr -i own.img' EXIT
    serve --export a=own.img,readonly --export b=rw.img --socket s.sock
    serve --vhost-user v.sock=own.img,readonly --export b=rw.img --socket s.sock
fi
"#);
}

/// A FIFO would keep the program waiting for a writer.
#[test]
fn a_fifo_is_no_image() {
    run(r#"
mkfifo fifo; truncate -s 4M rw.img
for more in "" ",readonly"; do
    status=0
    timeout -s KILL 20 "$FAIRHEAD" serve --export a=rw.img --export f=fifo$more --socket s.sock 2>why || status=$?
    [ $status = 2 ] && grep -q "fifo: not a file or block device" why || fail "status $status: $(cat why)"
done
"#);
}
