//! A small cell of the arena, as people, CSV and JSON have it: `golden/arena.*`, which `FAIRHEAD_BLESS=1`
//! writes anew. A commit that does so says what moved, and why.

use fairhead_core::sched::any::preset;
use fairhead_device::DeviceParams;
use fairhead_lab::output::arena as output;
use fairhead_sim::Host;
use fairhead_sim::arena::{Arena, Cell};
use fairhead_sim::job::parse;
use fairhead_sim::sweep::{Part, Setting, Tuned};
use serde_json::Value;
use std::path::Path;

/// A job of each kind.
const LOAD: &str = "[global]\nruntime=500ms\ntime_based\nsize=64m\n\
    [film]\nrw=read\nbs=64k\nrate=2m\n\
    [log]\nrw=write\nbs=4k\nfsync=1\nthinktime=5ms\n\
    [copy]\nrw=read\nbs=256k\ndirect=1\n\
    [shell]\nstartdelay=100ms\n#!fh_workload=startup:bash\n";

fn arena() -> Arena {
    let setting = |name: &str| Setting {
        name: name.to_owned(),
        disk: DeviceParams::preset(name).unwrap(),
        host: Host::for_disk(name),
    };
    let tuned = |scheduler: &'static str| Tuned {
        scheduler,
        set: String::new(),
        config: (preset(scheduler).unwrap().config)(),
    };
    Arena {
        loads: vec![parse(LOAD, "small").unwrap()],
        settings: ["nas2020", "nvme"].map(setting).to_vec(),
        tuned: ["noop", "bfq"].map(tuned).to_vec(),
        seed: 1,
        seeds: 2,
    }
}

fn cells(arena: &Arena) -> Vec<Option<Cell>> {
    arena.run(Part::WHOLE, 2, &(), &|_| {}).unwrap()
}

#[test]
fn a_small_arena_is_as_it_was() {
    let arena = arena();
    let cells = cells(&arena);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (ending, text) in [
        ("txt", output::human(&arena, &cells, false)),
        ("csv", output::csv(&arena, &cells)),
        (
            "json",
            output::json(&arena, &cells).replace(concat!('"', env!("CARGO_PKG_VERSION"), '"'), "\"VERSION\""),
        ),
    ] {
        let path = folder.join(format!("arena.{ending}"));
        if std::env::var_os("FAIRHEAD_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, known, "FAIRHEAD_BLESS=1 writes {}", path.display());
    }
}

/// The figures of all formats are those of the cells: satisfactions whose ratio is the regret, a load that is
/// as satisfied as its jobs.
#[test]
fn all_formats_say_what_the_cells_are() {
    let arena = arena();
    let cells = cells(&arena);
    let json: Value = serde_json::from_str(&output::json(&arena, &cells)).unwrap();
    let number = |v: &Value| v.as_f64().unwrap_or_else(|| panic!("{v}"));
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-4, "{a} is not {b}");
    for cell in json["cells"].as_array().unwrap() {
        let of = |what: &str| -> Vec<f64> {
            cell["schedulers"].as_array().unwrap().iter().map(|s| number(&s[what])).collect()
        };
        let (satisfied, regrets) = (of("satisfaction"), of("regret"));
        let best = satisfied.iter().copied().fold(0.0, f64::max);
        satisfied.iter().zip(&regrets).for_each(|(u, r)| near(best / u, *r));
        for s in cell["schedulers"].as_array().unwrap() {
            let jobs = s["jobs"].as_array().unwrap();
            let product: f64 = jobs.iter().map(|j| number(&j["satisfaction"])).product();
            near(product.powf(0.25), number(&s["satisfaction"]));
        }
        let kinds: Vec<&str> =
            cell["jobs"].as_array().unwrap().iter().map(|j| j["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["paced", "waiting", "bulk", "start"]);
    }
    let worst: Vec<f64> =
        json["schedulers"].as_array().unwrap().iter().map(|s| number(&s["worst_regret"])).collect();
    let csv = output::csv(&arena, &cells);
    for (scheduler, worst) in ["none", "bfq"].iter().zip(worst) {
        let rows = csv.lines().filter(|l| l.split(',').nth(2) == Some(scheduler));
        let regret = rows.map(|l| l.split(',').nth(5).unwrap().parse::<f64>().unwrap()).fold(0.0, f64::max);
        near(regret, worst);
    }
    assert_eq!(csv.lines().count(), 1 + 2 * 2 * 4);
}

/// 480 cells, of which none is far from the others: what people see fits a terminal all the same.
#[test]
fn the_text_for_people_fits_a_terminal() {
    let mut arena = arena();
    let cell = cells(&arena)[0].clone();
    let loads: Vec<_> = fairhead_lab::arena::loads().map(|w| parse(w.text, w.name).unwrap()).collect();
    arena.loads = loads;
    arena.settings = fairhead_lab::arena::DISKS
        .map(|name| Setting {
            name: name.to_owned(),
            disk: DeviceParams::preset(name).unwrap(),
            host: Host::for_disk(name),
        })
        .to_vec();
    let text = output::human(&arena, &vec![cell; arena.count()], false);
    assert!(text.lines().count() <= 23, "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    let none = output::human(&arena, &vec![None; arena.count()], false);
    assert!(none.ends_with("No cell is done.\n"), "{none}");
    assert!(
        output::page(&arena, &vec![None; arena.count()], "x")
            .html()
            .contains("480 of 480 cells are not done")
    );
}
