//! The C library starts the program; Rust's std is not there to do it.
fn main() {
    println!("cargo::rustc-link-arg=-lc");
}
