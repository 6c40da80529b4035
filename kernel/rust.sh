#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# rust.sh KDIR OUT: builds Fairhead's schedulers as one object for a module of the kernel in KDIR.
#
# Plain rustc compiles, one after the other: the language's own core and alloc, from the sources of the very
# version of rustc; an empty compiler_builtins; crates/core; crates/core-ffi without std. No cargo, no network.
# The code must look as the kernel's own: the flags follow from what the kernel was configured with.
# The kernel has memcpy() and its kin. It has no functions for floats and 128-bit division: code that needs
# one does not link.
#
# Environment: RUSTC (default: rustc), RUST_LIB_SRC (default: the sources in rustc's sysroot: `rustup component
# add rust-src`, or a distribution's rust-src), SIMDISK (not empty: build the disk models, too).
set -euo pipefail
KDIR=$1 OUT=$2
HERE=$(cd "$(dirname "$0")" && pwd)
CRATES=${CRATES:-$HERE/../crates}
RUSTC=${RUSTC:-rustc}
RUST_LIB_SRC=${RUST_LIB_SRC:-$($RUSTC --print sysroot)/lib/rustlib/src/rust/library}
[ -f "$RUST_LIB_SRC/core/src/lib.rs" ] ||
	{ echo "rust.sh: no $RUST_LIB_SRC/core/src/lib.rs; set RUST_LIB_SRC to the library folder of $($RUSTC --version)" >&2; exit 2; }
# The flags of a kernel are not stable ones, though this is a stable compiler.
export RUSTC_BOOTSTRAP=1

config=$KDIR/include/config/auto.conf
has() { grep -q "^CONFIG_$1=y" "$config"; }
value() { sed -n "s/^CONFIG_$1=//p" "$config"; }

# No SSE, no red zone, no unwinding: so is the target. The kernel's addresses are in the top 2 GiB.
flags=(--target x86_64-unknown-none -Crelocation-model=static -Ccode-model=kernel -Cno-redzone=y
	-Cpanic=abort -Zplt=yes -Zfunction-sections=no)
# Returns and indirect branches go through the kernel's thunks, which it patches for the processor's bugs.
if has MITIGATION_RETHUNK || has RETHUNK; then flags+=(-Zfunction-return=thunk-extern); fi
if has MITIGATION_RETPOLINE || has RETPOLINE; then
	flags+=(-Zretpoline-external-thunk=yes -Zindirect-branch-cs-prefix=yes)
fi
if has MITIGATION_SLS || has SLS; then flags+=(-Ctarget-feature=+harden-sls-ret,+harden-sls-ijmp); fi
if has X86_KERNEL_IBT; then flags+=(-Zcf-protection=branch -Cjump-tables=n); fi
if has CALL_PADDING; then
	bytes=$(value FUNCTION_PADDING_BYTES)
	flags+=("-Zpatchable-function-entry=$bytes,$bytes")
fi
if has UNWINDER_FRAME_POINTER; then flags+=(-Cforce-frame-pointers=y); fi

VERSION=$(sed -n 's/^version = "\(.*\)"/\1/p' "$CRATES/../Cargo.toml" | head -1)
export CARGO_PKG_VERSION=${VERSION:-0}

mkdir -p "$OUT"
common=("${flags[@]}" -Copt-level=2 -Ccodegen-units=1 -Cembed-bitcode=y -Cdebug-assertions=n
	-Csymbol-mangling-version=v0 -Cstrip=debuginfo --sysroot=/dev/null -L "$OUT" --out-dir "$OUT" -Awarnings)
library=(--crate-type rlib --cap-lints allow -Zforce-unstable-if-unmarked)
# The compiler says once for each crate that it does not know the features against straight-line speculation.
# Messages of panics name files by their places in the repository.
common+=(--remap-path-prefix "$CRATES/=" --remap-path-prefix "$RUST_LIB_SRC/=library/")
compile() {
	"$RUSTC" "${common[@]}" "$@" 2> "$OUT/said" || { cat "$OUT/said" >&2; exit 1; }
}
compile "${library[@]}" --edition=2024 --crate-name core --cfg no_fp_fmt_parse "$RUST_LIB_SRC/core/src/lib.rs"
compile "${library[@]}" --edition=2021 --crate-name compiler_builtins "$HERE/compiler_builtins.rs"
compile "${library[@]}" --edition=2024 --crate-name alloc "$RUST_LIB_SRC/alloc/src/lib.rs"
compile --crate-type rlib --edition=2024 --crate-name fairhead_core "$CRATES/core/src/lib.rs"
compile --crate-type staticlib -Clto=fat --edition=2024 --crate-name fairhead \
	--extern "fairhead_core=$OUT/libfairhead_core.rlib" "$CRATES/core-ffi/src/lib.rs"
ld -r --whole-archive -o "$OUT/fairhead_core.in.o" "$OUT/libfairhead.a"
# Only the interface is global: other modules and the kernel have no part in the rest.
objcopy -R .llvmbc -R .llvmcmd -R .note.gnu.property -w --keep-global-symbol='fh_*' \
	"$OUT/fairhead_core.in.o" "$OUT/fairhead_core.o"
# The models of disks, for simdisk.ko, where SIMDISK asks for it.
if [ -n "${SIMDISK:-}" ]; then
	compile --crate-type rlib --edition=2024 --crate-name fairhead_device \
		--extern "fairhead_core=$OUT/libfairhead_core.rlib" "$CRATES/device/src/lib.rs"
	compile --crate-type staticlib -Clto=fat --edition=2024 --crate-name simdisk \
		--extern "fairhead_core=$OUT/libfairhead_core.rlib" \
		--extern "fairhead_device=$OUT/libfairhead_device.rlib" "$HERE/simdisk/model.rs"
	ld -r --whole-archive -o "$OUT/simdisk_model.in.o" "$OUT/libsimdisk.a"
	objcopy -R .llvmbc -R .llvmcmd -R .note.gnu.property -w --keep-global-symbol='sdm_*' \
		"$OUT/simdisk_model.in.o" "$OUT/simdisk_model.o"
	rm -f "$OUT/libsimdisk.a" "$OUT/simdisk_model.in.o"
fi
rm -f "$OUT"/lib*.rlib "$OUT/libfairhead.a" "$OUT/fairhead_core.in.o" "$OUT/said"
