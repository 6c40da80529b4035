#!/bin/sh
# make.sh PLACE: makes a Debian 12 that starts in QEMU, as vmlinuz, initrd and disk.img in the folder PLACE. Needs root, debootstrap, mke2fs and the
# archive; the system has nothing but what starts it: systemd, udev, kmod and a kernel.
#
# When it has started, it unpacks the archive that its second disk is, runs check.sh of it as root, and switches itself off.
set -e
place=$1
root=$place/root
mkdir -p "$place"
trap 'rm -rf "$root"' EXIT
# The lists of packages are not needed any more; a package is installed from its file.
debootstrap --variant=minbase --include=systemd-sysv,udev,kmod,linux-image-cloud-amd64 bookworm "$root"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
cat >"$root/etc/systemd/system/check.service" <<'END'
[Unit]
Description=The check on the second disk
Wants=systemd-udev-settle.service
After=systemd-udev-settle.service local-fs.target

[Service]
Type=oneshot
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
ExecStart=/bin/sh -c 'mkdir /opt/check && tar -xf /dev/vdb -C /opt/check && sh /opt/check/check.sh'
ExecStopPost=/bin/systemctl poweroff -ff
END
ln -s ../check.service "$root/etc/systemd/system/multi-user.target.wants/check.service"
cp "$root"/boot/vmlinuz-* "$place/vmlinuz"
cp "$root"/boot/initrd.img-* "$place/initrd"
rm -rf "$root"/boot/*
mke2fs -q -F -t ext4 -d "$root" "$place/disk.new" 1G
mv "$place/disk.new" "$place/disk.img"
