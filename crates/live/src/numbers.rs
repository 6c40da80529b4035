//! Tables of a protocol's numbers: what is in one has a name, and tests go through all of it.

/// Defines a module of numbers, and its table `ALL` with the name of each.
macro_rules! table {
    ($(#[$doc:meta])* $visible:vis mod $module:ident: $number:ty {
        $($(#[$about:meta])* $name:ident = $value:expr,)*
    }) => {
        $(#[$doc])*
        $visible mod $module {
            $($(#[$about])* pub(crate) const $name: $number = $value;)*
            /// Each number with its name. A new line is in it by itself.
            pub(crate) const ALL: &[(&str, $number)] = &[$((stringify!($name), $name)),*];
        }
    };
}

pub(crate) use table;
