//! Development tasks.
//!
//! ```text
//! cargo xtask test [--all]          what must hold before a change lands (CI runs exactly this); --all: steps whose inputs are as they were, too
//! cargo xtask test --quick [CRATE…] what a change can break, while working: of these crates, or of those that changed
//! cargo xtask test --nightly [STEP] everything, for hours; or one step of it
//! cargo xtask step NAME             one step of a lane
//! cargo xtask lanes                 what the steps of the last run took → a table in Markdown
//! cargo xtask record                the results of the last run → docs/testing.md
//! cargo xtask ci                    as test
//! cargo xtask bench [--check | --instructions]   instructions per request and requests per second → bench/RESULTS.md; or only the limits; or without the seconds, for a busy machine
//! cargo xtask fuzz [--minutes N] [TARGET…]   fuzzing, 10 minutes per target unless told otherwise
//! cargo xtask docs [tunables|pages|defaults|hero|grid|arena|revived|--check]  what is measured in docs/schedulers, docs/nvme.md and docs/arena.md, and pictures of other pages; or only whether a part of it is as it would be made
//! cargo xtask docs --book            the documents as a book, by mdBook → target/book
//! cargo xtask page [--check]        the lab as one HTML page → target/page; or also whether it works, in Node.js and Chromium
//! cargo xtask figures [--check]     figures in README and docs against what the commands give: written anew; or only whether they are the same
//! cargo xtask api [--check]         crates/core/public-api.txt: what core offers to other crates; or only whether it is so
//! cargo xtask ffi                   the C library: stack frames, floats, 128-bit division; and whether it installs
//! cargo xtask crates                the crates as packages: each is compiled from its own
//! cargo xtask python                the Python package: built, and tested as people get it
//! cargo xtask dist                  what a package has: the program, manual pages, completions → target/dist
//! cargo xtask dist --deb | --static the package for Debian and Ubuntu; the program without libraries
//! cargo xtask dist --c-api [PREFIX] the C library, its header and pkg-config's file → target/dist/c-api
//! cargo xtask dist --wheel          the Python package as a wheel → target/dist
//! cargo xtask mutants [COUNT [SEED]] [--rules] [--within PATH] [--again FILE]   how many of COUNT drawn small changes of the code the tests notice (300, seed 1); or of BFQ's rules, by their own unit tests (20, seed 1); or of some files; or of those that survived before
//! cargo xtask kernel guest           modelled disks in a guest in virtual time: data, the same twice, the lab's figures
//! cargo xtask kernel guest FOLDER    a guest with the files of a folder, for bench/guest.sh
//! cargo xtask kernel compare LAB.csv GUEST.csv   the lab beside a guest, client by client, from the rows of bench/guest.sh
//! cargo xtask kernel package        the module for Linux as a package for DKMS → target/kernel/package
//! cargo xtask kernel debug          a kernel that looks for faults (lockdep, KASAN, kmemleak), and both of the following on it → target/kernel/debug
//! cargo xtask kernel stress --hours N | --rounds N [--shift N] [--kernel SERIES|FOLDER]   the module under stress, for hours of a virtual machine's clock or for rounds; an instruction takes 2 to the power of the shift ns (0)
//! cargo xtask kernel test [--kernel SERIES|FOLDER]   the module for Linux: builds it, and tries it in a virtual machine; with Linux 6.12, another one that kernel/compat.h covers, such as 7.3, or a kernel that was built in a folder
//! cargo xtask tidy [PART|--lower]   lines whose words or width break the rules of plain English; or notes lower counts
//! ```
//!
//! No dependencies: a bare clone builds this in a second or two, before anything else can go wrong.

mod api;
mod arena;
mod bench;
mod book;
mod c_api;
mod callgrind;
mod crate_packages;
mod deb;
mod defaults;
mod dist;
mod docs;
mod ffi;
mod figures;
mod fuzz;
mod grid;
mod guest_table;
mod hero;
mod json;
mod kernel;
mod kernel_debug;
mod kernel_guest;
mod kernel_newer;
mod kernel_package;
mod kernel_packages;
mod lanes;
mod links;
mod mutants;
mod outcome;
mod page;
mod python;
mod revived;
mod shell;
mod svg;
mod tidy;

#[cfg(test)]
mod arch;
#[cfg(test)]
mod circles;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask test [--all | --quick [CRATE…] | --nightly [STEP]] | ci | step NAME | lanes | record | bench [--check | --instructions] | fuzz [--minutes N] [TARGET…] | docs [tunables | pages | defaults | hero | grid | arena | revived | --check | --book] | page [--check] | figures [--check] | api [--check] | ffi | crates | python | debian | dist [--deb | --static | --c-api [PREFIX] | --wheel] | mutants [COUNT [SEED]] [--rules] [--within PATH] [--again FILE] | kernel test [--kernel SERIES|FOLDER] | kernel guest [FOLDER] | kernel compare LAB.csv GUEST.csv [--list PERCENT] [--check] | kernel package | kernel debug | kernel stress --hours N | --rounds N [--shift N] [--kernel SERIES|FOLDER] | tidy [PART | --lower]";

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().skip(1).collect();
    if let Some(code) = lanes::as_wrapper(&args) {
        return code;
    }
    let args: Vec<String> = args.into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["test", rest @ ..] => return lanes::run(rest),
        ["ci"] => return lanes::run(&[]),
        ["step", name] => return lanes::step(name),
        ["lanes"] => lanes::print(),
        ["record"] => lanes::record(),
        ["bench"] => bench::report(bench::Part::All),
        ["bench", "--instructions"] => bench::report(bench::Part::Instructions),
        ["bench", "--check"] => bench::check().map(|outcome| println!("{outcome}")),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["docs"] => docs::run(docs::Part::All).map(|outcome| println!("{outcome}")),
        ["docs", "tunables"] => docs::run(docs::Part::Tunables).map(|outcome| println!("{outcome}")),
        ["docs", "pages"] => docs::run(docs::Part::Pages).map(|outcome| println!("{outcome}")),
        ["docs", "defaults"] => docs::run(docs::Part::Defaults).map(|outcome| println!("{outcome}")),
        ["docs", "hero"] => docs::run(docs::Part::Hero).map(|outcome| println!("{outcome}")),
        ["docs", "grid"] => docs::run(docs::Part::Grid).map(|outcome| println!("{outcome}")),
        ["docs", "arena"] => docs::run(docs::Part::Arena).map(|outcome| println!("{outcome}")),
        ["docs", "revived"] => docs::run(docs::Part::Revived).map(|outcome| println!("{outcome}")),
        ["docs", "--book"] => book::make().map(|outcome| println!("{outcome}")),
        ["docs", "--check"] => docs::run(docs::Part::Check).map(|outcome| println!("{outcome}")),
        ["page"] => page::make().map(|made| println!("{made}")),
        ["page", "--check"] => page::check().map(|outcome| println!("{outcome}")),
        ["figures"] => figures::run(false).map(|outcome| println!("{outcome}")),
        ["figures", "--check"] => figures::run(true).map(|outcome| println!("{outcome}")),
        ["api"] => api::write().map(|outcome| println!("{outcome}")),
        ["api", "--check"] => api::check().map(|outcome| println!("{outcome}")),
        ["ffi"] => ffi::check().and_then(|outcome| {
            println!("{outcome}");
            c_api::check().map(|outcome| println!("{outcome}"))
        }),
        ["crates"] => crate_packages::check().map(|outcome| println!("{outcome}")),
        ["python"] => python::check().map(|outcome| println!("{outcome}")),
        ["debian"] => lanes::package_in_debian().and_then(outcome::verdict),
        ["dist", rest @ ..] => dist::run(rest),
        ["kernel", "guest"] => kernel_guest::test().map(|outcome| println!("{outcome}")),
        ["kernel", "compare", rest @ ..] => guest_table::run(rest),
        ["kernel", "guest", folder] => kernel_guest::run(folder.as_ref()).map(|lacking| {
            if let Some(why) = lacking {
                println!("skipped: {why}");
            }
        }),
        ["kernel", "package"] => kernel_package::build().map(|file| println!("{}", file.display())),
        ["kernel", "debug"] => kernel_debug::run().and_then(outcome::verdict),
        ["kernel", "stress", rest @ ..] => kernel_guest::stress(rest).and_then(outcome::verdict),
        ["kernel", "test"] => kernel::test(kernel_packages::SERIES).and_then(outcome::verdict),
        ["kernel", "test", "--kernel", kernel] => kernel::test(kernel).and_then(outcome::verdict),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["tidy"] => tidy::list(None),
        ["tidy", "--lower"] => tidy::lower(),
        ["tidy", part] => tidy::list(Some(part)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
