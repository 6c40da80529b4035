use fairhead_sim::reproduce::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let layouts = a.get(3).and_then(|s| s.parse().ok()).unwrap_or(1);
    let o = Options { layouts, only: a.get(2).filter(|s| *s != "all").cloned(), ..Default::default() };
    let t = std::time::SystemTime::UNIX_EPOCH;
    let _ = t;
    let r = reproduce(&a[1], &o, &|_, _| {}).unwrap().unwrap();
    for f in &r.figures {
        println!("{:22} {:16} pub {:10.1} ours {:10.1} ±{:8.1} {:+7.1}% {:?}", f.row, f.metric, f.published, f.ours, f.spread, f.error()*100.0, f.holds());
    }
    for c in &r.checks { println!("{} {} => {}", if c.holds {"ok  "} else {"MISS"}, c.what, c.got); }
}
