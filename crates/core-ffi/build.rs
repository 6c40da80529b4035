//! Names the shared library by the version of its interface, so that a program finds one that fits.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The number is `ABI_VERSION` of src/lib.rs; `cargo xtask dist --c-api` compares the two.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfairhead.so.1");
    }
}
