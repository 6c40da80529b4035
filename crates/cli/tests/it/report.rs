//! `--report` and `--pictures` from the outside: the same figures as in JSON, names that stay names, the same
//! bytes again, and a page that a real browser opens without a complaint, without a request and without
//! anything that sticks out.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Names that would be elements, attributes or ends of scripts if escaping were forgotten; and a long one.
const HOSTILE: &str = "[</script><b>bold</b>]\nrw=randread\nsize=16m\nruntime=1s\ntime_based\nthinktime=1ms\n\
    [\" onload=\"alert(1)]\nrw=read\nbs=64k\nsize=64m\nruntime=1s\ntime_based\n\
    [ünïcode <!-- &lt]\nrw=randwrite\nsize=16m\nruntime=1s\ntime_based\nfsync=8\n\
    [a name that is so long that nobody would want to read it on a telephone or in a table, and then some]\n\
    rw=read\nbs=64k\nsize=64m\nnumjobs=2\nruntime=1s\ntime_based\n";

fn fairhead(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fairhead")).args(args).current_dir(folder).output().unwrap()
}

fn succeeds(folder: &Path, args: &[&str]) -> String {
    let out = fairhead(folder, args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn page(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// What the page has for programs.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").expect("the data");
    serde_json::from_str(rest.split_once("</script>").expect("their end").0).unwrap()
}

/// A cell's text, and its exact value.
type Cell = (String, Option<u64>);

/// The table of this title: headings, and rows.
fn table(page: &str, title: &str) -> (Vec<String>, Vec<Vec<Cell>>) {
    let start =
        page.find(&format!("<caption>{title}</caption>")).unwrap_or_else(|| panic!("no table {title}"));
    let table = &page[start..start + page[start..].find("</table>").unwrap()];
    let texts = |row: &str| -> Vec<Cell> {
        let cells = row.split("<t").filter(|c| c.starts_with("d") || c.starts_with("h"));
        cells
            .map(|c| {
                let value = c.split_once("data-value=\"").map(|v| v.1.split('"').next().unwrap());
                let inner = &c[c.find('>').unwrap() + 1..];
                let text: String = inner.split('<').map(|p| p.rsplit('>').next().unwrap()).collect();
                (text, value.map(|v| v.parse().unwrap()))
            })
            .collect()
    };
    let (head, body) = table.split_once("</thead>").unwrap();
    let head = texts(&head[head.find("<tr>").unwrap() + 4..]).into_iter().map(|c| c.0).collect();
    (head, body.split("<tr>").skip(1).map(texts).collect())
}

#[test]
fn the_figures_of_a_page_are_those_of_the_json() {
    let folder = TempDir::new().unwrap();
    let args = ["run", "readers-and-writers", "--runtime", "1s", "--sched", "deadline,cfq"];
    let json =
        succeeds(folder.path(), &[&args[..], &["--report", "r.html", "--output-format", "json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    let page = page(folder.path(), "r.html");
    assert_eq!(data(&page)["figures"], json);

    let (head, rows) = table(&page, "Job by job");
    let column = |name: &str| head.iter().position(|h| h == name).unwrap_or_else(|| panic!("no {name}"));
    let jobs = json["runs"][0]["jobs"].as_array().unwrap().len();
    assert_eq!(rows.len(), 2 * jobs);
    for (i, row) in rows.iter().enumerate() {
        let job = &json["runs"][i % 2]["jobs"][i / 2];
        let value = |name: &str| row[column(name)].1;
        assert_eq!(value("read MiB/s").unwrap_or(0), job["read"]["bw_bytes"].as_u64().unwrap());
        assert_eq!(value("write MiB/s").unwrap_or(0), job["write"]["bw_bytes"].as_u64().unwrap());
        assert_eq!(value("took"), job["elapsed_ns"].as_u64());
        let slowest = ["read", "write"].map(|d| job[d]["lat_ns"]["max"].as_u64().unwrap());
        assert_eq!(value("max"), slowest.into_iter().max());
    }
    // Behind the pictures, too: jobs that only read have one distribution.
    let name = json["runs"][0]["jobs"][0]["jobname"].as_str().unwrap();
    let (head, rows) = table(&page, &format!("Latency of {name} (4 clients)"));
    let column = |name: &str| head.iter().position(|h| h == name).unwrap();
    for (k, row) in rows.iter().enumerate() {
        let latency = &json["runs"][k]["jobs"][0]["read"]["lat_ns"];
        assert_eq!(row[column("calls")].1, latency["N"].as_u64());
        assert_eq!(row[column("max")].1, latency["max"].as_u64());
        for (shown, told) in [("p50", "50.000000"), ("p90", "90.000000"), ("p99", "99.000000")] {
            assert_eq!(row[column(shown)].1, latency["percentile"][told].as_u64(), "{shown} of run {k}");
        }
    }
}

#[test]
fn what_is_recorded_adds_up_to_what_the_disk_did() {
    let folder = TempDir::new().unwrap();
    // Nothing is in flight when it ends.
    let job = "[stream]\nrw=read\nbs=64k\nsize=48m\nnumjobs=3\n[random]\nrw=randrw\ndirect=1\nsize=32m\nnumber_ios=100\n";
    std::fs::write(folder.path().join("j.fio"), job).unwrap();
    let args = ["run", "j.fio", "--sched", "cfq"];
    succeeds(folder.path(), &[&args[..], &["--report", "r.html", "-o", "x"]].concat());
    let page = page(folder.path(), "r.html");
    let json = &data(&page)["figures"]["runs"][0];
    let disk = &json["disk"];
    let number = |v: &Value| v.as_u64().unwrap();
    let (_, rows) = table(&page, "Throughput under cfq");
    let bytes: u64 = rows.iter().map(|r| r[2].1.unwrap()).sum();
    assert_eq!(bytes, number(&disk["read_bytes"]) + number(&disk["written_bytes"]));
    let (_, rows) = table(&page, "The disk&#39;s time under cfq");
    let times: Vec<u64> = rows.iter().map(|r| r[1].1.unwrap()).collect();
    assert_eq!(times.iter().sum::<u64>(), number(&json["elapsed_ns"]));
    assert_eq!(times[times.len() - 2], number(&disk["idled_on_purpose_ns"]));
}

#[test]
fn names_in_a_page_are_names_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let file = "<i>&\"'.fio";
    std::fs::write(folder.path().join(file), HOSTILE).unwrap();
    let why = "</script><b>bold</b>";
    let args = [
        "run",
        file,
        "--sched",
        "noop,cfq",
        "--why",
        why,
        "--report",
        "r.html",
        "--pictures",
        "p",
        "-o",
        "x",
    ];
    succeeds(folder.path(), &args);
    let page = page(folder.path(), "r.html");
    for bad in ["<b>bold", "<i>", "onload=\"alert", "<!--"] {
        assert!(!page.contains(bad), "{bad} got through");
    }
    assert_eq!(page.matches("</script>").count(), 3, "the script and its two data, and no more ends of them");
    assert!(page.contains("Where the time of &lt;/script&gt;&lt;b&gt;bold&lt;/b&gt; went"));
    let pictures: Vec<_> =
        std::fs::read_dir(folder.path().join("p")).unwrap().map(|e| e.unwrap().path()).collect();
    // Four latencies, three pictures of each scheduler, decisions, and what is common to all.
    assert!(pictures.len() >= 4 + 2 * 4, "{pictures:?}");
    for picture in pictures {
        let text = std::fs::read_to_string(&picture).unwrap();
        let name = picture.file_name().unwrap().to_str().unwrap();
        assert!(
            name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-+.".contains(&b)),
            "{name}"
        );
        assert!(
            text.starts_with("<svg xmlns=") && !text.contains("<b>bold") && !text.contains("onload=\"alert"),
            "{name}"
        );
        assert_eq!(text.matches("<svg ").count(), text.matches("</svg>").count(), "{name}");
    }
}

#[test]
fn the_same_command_gives_the_same_bytes() {
    let made = |threads: &str| {
        let folder = TempDir::new().unwrap();
        let args = ["run", "tenants", "--runtime", "1s", "--sched", "cfq,bfq", "--threads", threads];
        succeeds(folder.path(), &[&args[..], &["--report", "r.html", "--pictures", "p", "-o", "x"]].concat());
        let mut files: Vec<_> = std::fs::read_dir(folder.path().join("p"))
            .unwrap()
            .map(|e| e.unwrap().path())
            .map(|p| (p.file_name().unwrap().to_owned(), std::fs::read_to_string(&p).unwrap()))
            .collect();
        files.sort();
        (page(folder.path(), "r.html"), files)
    };
    let (first, again) = (made("1"), made("1"));
    assert!(first == again, "the same command gave another page");
    let other = made("2");
    assert!(first.1 == other.1, "the number of threads shows");
    assert_eq!(first.0, other.0.replace("--threads 2", "--threads 1"));
}

#[test]
fn a_page_of_advice_has_its_verdict_and_its_figures() {
    let folder = TempDir::new().unwrap();
    let args = ["advise", "tenants", "--disk", "sata_ssd", "--runtime", "1s", "--rounds", "1"];
    let json =
        succeeds(folder.path(), &[&args[..], &["--report", "r.html", "--output-format", "json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    let page = page(folder.path(), "r.html");
    assert_eq!(data(&page)["figures"], json);
    let headline = page.split_once("class=\"lead\">").unwrap().1.split_once("</p>").unwrap().0;
    let answer = json["answer"][0].as_str().unwrap();
    assert_eq!(headline, answer);
    let payer = json["jobs"].as_array().unwrap().iter().find(|j| j["pays"] == true);
    if let Some(payer) = payer {
        let who = payer["job"].as_str().unwrap();
        assert!(
            page.contains(&format!("pays: {who} (")) || page.contains(&format!("would pay: {who} (")),
            "{who}"
        );
    }
    for picture in ["satisfied", "decisions-mq-deadline"] {
        assert!(page.contains(&format!("data-name=\"{picture}\"")), "no {picture}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_told_in_one_line() {
    let folder = TempDir::new().unwrap();
    for flag in ["--report", "--pictures"] {
        std::fs::write(folder.path().join("file"), "").unwrap();
        let out = fairhead(
            folder.path(),
            &["run", "tenants", "--runtime", "1s", "--sched", "noop", flag, "file/x"],
        );
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!((out.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains("file/x"), "{said}");
    }
}

/// What the browser itself asks for when it starts, whatever it opens; nothing of it leaves the machine here.
const BROWSERS_OWN: [&str; 3] = ["clients2.google.com", "update.googleapis.com", "accounts.google.com"];

/// What a browser said of a page, what it asked the network for, and what the page was in the end.
struct Seen {
    console: Vec<String>,
    requests: Vec<String>,
    dom: String,
}

/// Opens a page in Chromium, as wide as this.
fn open(folder: &Path, file: &str, width: u32) -> Seen {
    let path = folder.join(file);
    let log = folder.join("net.json");
    let out = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args(["--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND"])
        .args(["--enable-logging=stderr", "--v=0", "--virtual-time-budget=3000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--log-net-log={}", log.display()))
        .arg(format!("--window-size={width},900"))
        .arg(format!("file://{}", path.display()))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let log = std::fs::read_to_string(log).unwrap();
    let urls = log.split("\"url\":\"").skip(1).map(|u| u.split('"').next().unwrap());
    let is_own = |u: &str| BROWSERS_OWN.iter().any(|h| u.split('/').nth(2) == Some(*h));
    Seen {
        console: said.lines().filter(|l| l.contains("CONSOLE")).map(str::to_owned).collect(),
        requests: urls.filter(|u| !is_own(u) && !u.starts_with("file:")).map(str::to_owned).collect(),
        dom: String::from_utf8(out.stdout).unwrap(),
    }
}

/// A script that a copy of the page gets instead of its policy: tells what sticks out of the window, and how
/// small letters are.
const MEASURE: &str = "<script>const out=[...document.querySelectorAll('svg.p text,h1,h2,p,figcaption,li,nav a')].filter(e=>{\
    const b=e.getBoundingClientRect();return b.width&&(b.left<-0.5||b.right>innerWidth+0.5)}).map(e=>e.textContent.slice(0,60));\
    const cross=(a,b)=>a.left<b.right-1&&b.left<a.right-1&&a.top<b.bottom-1&&b.top<a.bottom-1,over=[];\
    for(const p of document.querySelectorAll('svg.p')){const box=s=>[...p.querySelectorAll(s)].map(e=>[e,e.getBoundingClientRect()]),\
    t=box('text'),m=p.dataset.name.startsWith('factor-')?box('.u,.w,.one,.o,.g'):[];\
    t.forEach(([a,x],i)=>t.slice(0,i).concat(m).forEach(([b,y])=>{if(cross(x,y))over.push(p.dataset.name+': '+a.textContent+' and '+(b.textContent||b.outerHTML))}))}\
    const cut=[...document.querySelectorAll('table,pre')].filter(e=>{const b=e.closest('.scroll,pre'),s=getComputedStyle(b);\
    return e.offsetWidth>1&&(b.getBoundingClientRect().right>innerWidth||e.scrollWidth>b.clientWidth&&s.overflowX!='auto')}).length;\
    const small=Math.min(...[...document.querySelectorAll('svg.p text')].map(e=>parseFloat(getComputedStyle(e).fontSize)*\
    (e.getScreenCTM?Math.abs(e.getScreenCTM().a):1)));\
    parent.postMessage(JSON.stringify({wide:document.documentElement.scrollWidth,window:innerWidth,out,small,over,cut}),'*')</script></body>";

/// Another script for a copy: zooms in twice with a key, points into the first lane, and prints the window of
/// time, the axis, and the text that is shown.
const ZOOM: &str = "<script>{const s=document.querySelector('[data-name^=decisions-]'),key=k=>s.dispatchEvent(new KeyboardEvent('keydown',{key:k}));\
    const box=s.getBoundingClientRect(),before=s.querySelector('svg.d').getAttribute('viewBox');key('+');key('+');\
    const all=[...document.querySelectorAll('svg[data-span] svg.d')].map(d=>d.getAttribute('viewBox').split(' ').map(Number));\
    let told='';for(let x=1;x<box.width&&!told.includes('request');x+=2){s.dispatchEvent(new PointerEvent('pointermove',\
    {clientX:box.left+x,clientY:box.top+5}));told=s.closest('figure').querySelector('.seen').textContent}\
    const window=document.querySelector('.zoom output').textContent,axis=s.querySelector('.bx text').textContent;key('0');\
    parent.postMessage(JSON.stringify({moved:all.every(v=>v[0]>0),window,axis,told,\
    back:before===s.querySelector('svg.d').getAttribute('viewBox')}),'*')}</script></body>";

/// What such a script of a copy of the page tells, in a frame as wide as this: a window cannot be as narrow
/// as a telephone.
fn told(folder: &Path, page: &str, script: &str, width: u64) -> Value {
    let (before, rest) = page.split_once("<meta http-equiv").unwrap();
    let copy = format!("{before}{}", &rest[rest.find('>').unwrap() + 1..]).replace("</body>", script);
    std::fs::write(folder.join("copy.html"), copy).unwrap();
    let frame = format!(
        "<!DOCTYPE html><body><iframe src=\"copy.html\" width={width} height=900 style=\"border:0\"></iframe><pre></pre>\
         <script>onmessage=e=>document.querySelector('pre').textContent=e.data</script>"
    );
    std::fs::write(folder.join("frame.html"), frame).unwrap();
    let dom = open(folder, "frame.html", 1400).dom;
    let said = dom.split_once("<pre>").unwrap().1.split_once("</pre>").unwrap().0;
    serde_json::from_str(&said.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).unwrap()
}

fn has_chromium() -> bool {
    let is_there = Command::new("chromium").arg("--version").output().is_ok();
    if !is_there {
        println!("skipped: no chromium");
    }
    is_there
}

/// Checks that a page complains of nothing, asks for nothing from elsewhere, and fits both widths.
/// Returns what its script made of it.
fn is_fine_in_a_browser(folder: &Path, file: &str) -> String {
    let seen = open(folder, file, 1280);
    assert_eq!((&seen.console, &seen.requests), (&Vec::new(), &Vec::new()), "{file}");
    assert!(seen.dom.contains("save as SVG"), "{file}: no script ran");
    let page = page(folder, file);
    assert!(page.len() < 3 << 20, "{file}: {} bytes", page.len());
    for width in [400_u64, 1280] {
        let measured = told(folder, &page, MEASURE, width);
        assert_eq!(measured["window"], width, "{file}: {measured}");
        assert!(measured["wide"].as_u64() <= Some(width), "{file}: {measured}");
        for what in ["out", "over"] {
            let boxes = measured[what].as_array().map(Vec::len);
            assert_eq!(boxes, Some(0), "{what}, {file} at {width}: {measured}");
        }
        assert_eq!(measured["cut"], 0, "{file} at {width}: {measured}");
        assert!(measured["small"].as_f64() >= Some(10.0), "{file} at {width}: {measured}");
    }
    seen.dom
}

#[test]
fn the_test_sees_complaints_and_requests_at_all() {
    if !has_chromium() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let control = "<!DOCTYPE html><body><script>console.error('wrong')</script><img src=\"http://example.invalid/x.png\">";
    std::fs::write(folder.path().join("control.html"), control).unwrap();
    let seen = open(folder.path(), "control.html", 800);
    assert_eq!(
        (seen.console.len(), seen.requests.first().map(String::as_str)),
        (1, Some("http://example.invalid/x.png"))
    );
}

/// Has this command write a report, and looks at it as a reader does, who zooms in.
fn a_browser_has_nothing_to_complain_about_in(args: &str) {
    if !has_chromium() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("hostile.fio"), HOSTILE).unwrap();
    let file = "report.html";
    let command: Vec<&str> = args.split_whitespace().collect();
    succeeds(folder, &[&command[..], &["--report", file, "-o", "x"]].concat());
    let dom = is_fine_in_a_browser(folder, file);
    assert!(dom.contains("class=\"zoom\""), "{args}");
    let zoomed = told(folder, &page(folder, file), ZOOM, 1280);
    assert_eq!(
        (&zoomed["moved"], &zoomed["back"]),
        (&Value::Bool(true), &Value::Bool(true)),
        "{args}: {zoomed}"
    );
    assert!(zoomed["window"].as_str().unwrap().contains(" to "), "{args}: {zoomed}");
    assert!(
        zoomed["axis"] != "0" && zoomed["told"].as_str().unwrap().contains(" request"),
        "{args}: {zoomed}"
    );
}

#[test]
fn a_browser_has_nothing_to_complain_about_in_a_report() {
    a_browser_has_nothing_to_complain_about_in("run app-start --sched noop,deadline,as,cfq-ts1,cfq,bfq");
}

#[test]
fn a_browser_has_nothing_to_complain_about_in_hostile_names() {
    a_browser_has_nothing_to_complain_about_in("run hostile.fio --sched noop,cfq --why </script><b>bold</b>");
}

#[test]
fn a_browser_has_nothing_to_complain_about_in_many_schedulers() {
    a_browser_has_nothing_to_complain_about_in(
        "run tenants --disk sata_ssd --runtime 1s --sched \
         none,deadline-2.6.9,deadline,as,cfq-ts1,cfq,bfq-v0,bfq,mq-deadline,kyber",
    );
}

#[test]
fn a_browser_has_nothing_to_complain_about_in_groups() {
    a_browser_has_nothing_to_complain_about_in("run cgroups --runtime 2s --sched bfq,deadline+groups");
}

#[test]
fn a_browser_has_nothing_to_complain_about_in_advice() {
    a_browser_has_nothing_to_complain_about_in("advise tenants --disk sata_ssd --runtime 1s --rounds 1");
}

#[test]
fn a_browser_has_nothing_to_complain_about_in_a_sweeps_page() {
    if !has_chromium() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let args = "sweep tenants --runtime 500ms --sched cfq,bfq,kyber,none --set cfq.slice_idle=0,2ms,8ms \
                --set bfq.slice_idle=0,2ms,8ms --set bfq.low_latency=0,1 --report grid.html -o x";
    succeeds(folder.path(), &args.split_whitespace().collect::<Vec<_>>());
    is_fine_in_a_browser(folder.path(), "grid.html");
}
