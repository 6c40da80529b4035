//! ADIOS as a library, with the line that an author writes: `cargo build --release -p fairhead-plugin
//! --example adios` makes `target/release/examples/libadios.so`.

use fairhead_outside::adios::Adios;

fairhead_plugin::export!(Adios, "adios-library", "ADIOS, from a library");
