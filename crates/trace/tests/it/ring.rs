//! Pages of a real kernel (6.18, x86-64) beside the text that this kernel made of them: a loop device under
//! bfq, read and written by fio and dd through a partition. Recorded with `trace_clock` `mono`; `trace.txt`
//! was read before the pages.

#![cfg(all(target_endian = "little", target_pointer_width = "64"))]

use fairhead_trace::Action;
use fairhead_trace::ring::{BlockEvent, Decoder, EVENTS, EventFormat, Layout, Lost, Page};

const HEADER: &str = include_str!("../golden/ring/header_page.txt");
const FORMATS: &str = include_str!("../golden/ring/formats.txt");
const PAGES: &[u8] = include_bytes!("../golden/ring/cpu0.page");
const TEXT: &str = include_str!("../golden/ring/trace.txt");

fn layout() -> Layout {
    Layout::parse(HEADER).unwrap()
}

fn decoder() -> Decoder {
    let texts = FORMATS.split("name: ").skip(1);
    let formats: Vec<_> = texts.map(|t| EventFormat::parse(&format!("name: {t}")).unwrap()).collect();
    assert_eq!(formats.len(), EVENTS.len());
    Decoder::new(&formats).unwrap()
}

fn events() -> Vec<BlockEvent> {
    let (layout, decoder) = (layout(), decoder());
    let mut events = Vec::new();
    for bytes in PAGES.chunks(layout.page_bytes()) {
        let page = Page::new(bytes, &layout).unwrap();
        assert_eq!(page.lost(), Lost::None);
        events.extend(page.filter_map(|raw| decoder.decode(&raw.unwrap()).unwrap()));
    }
    events
}

/// The event in the words of the kernel's text: seconds, name, device, sectors, and priority if it has one.
fn words(e: &BlockEvent) -> String {
    let name = EVENTS.iter().find(|(_, action)| *action == e.action).unwrap().0;
    let us = (e.at_ns + 500) / 1000;
    let prio = e.prio.map_or(String::new(), |p| format!(" level {}", p.level));
    let (major, minor) = e.device;
    let (seconds, us) = (us / 1_000_000, us % 1_000_000);
    format!("{seconds}.{us:06} {} {name} {major},{minor} {} + {}{prio}", e.pid, e.sector, e.sectors)
}

#[test]
fn pages_are_what_the_kernel_prints() {
    let printed: Vec<String> = TEXT
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let pid = words[0].rsplit_once('-')?.1;
            let plus = words.iter().position(|w| *w == "+")?;
            let prio = words.get(plus + 2).and_then(|w| w.split_once(",0,"));
            let prio = prio.filter(|(class, _)| *class != "none").map(|(_, n)| format!(" level {n}"));
            let (time, name) = (words[3].trim_end_matches(':'), words[4].trim_end_matches(':'));
            let (device, letters, sector, count) = (words[5], words[6], words[plus - 1], words[plus + 1]);
            // Without sectors only a flush is a request. It has the sector 2^64 - 1 or 0, which is no place.
            if count == "0" && !letters.starts_with('F') {
                return None;
            }
            let sector = if count == "0" { "0" } else { sector };
            Some(format!("{time} {pid} {name} {device} {sector} + {count}{}", prio.unwrap_or_default()))
        })
        .collect();
    let read: Vec<String> = events().iter().map(words).collect();
    assert!(read.len() > 90, "{} events", read.len());
    assert_eq!(read, printed);
    assert_eq!(TEXT.lines().count() - read.len(), 1, "the end of a flush that was a write's");
}

#[test]
fn names_and_priorities_are_there() {
    let events = events();
    let fio = events.iter().filter(|e| e.action == Action::Queue && e.comm.text() == "fio").count();
    assert_eq!(fio, 6);
    let issued = events.iter().filter(|e| e.action == Action::Issue && e.prio.is_some_and(|p| p.level == 2));
    assert_eq!(issued.count(), 6);
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    let (layout, decoder) = (layout(), decoder());
    let read = |bytes: &[u8]| {
        let Ok(page) = Page::new(bytes, &layout) else { return 0 };
        page.map(|raw| raw.and_then(|raw| decoder.decode(&raw))).take_while(Result::is_ok).count()
    };
    let page = &PAGES[..4096];
    let whole = read(page);
    for length in 0..page.len() {
        assert!(read(&page[..length]) <= whole, "{length} bytes");
    }
    for bit in 0..page.len() * 8 {
        let mut damaged = page.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        // At the least an event is a word.
        assert!(read(&damaged) <= 1024);
    }
}

#[test]
fn a_page_says_what_was_lost_before_it() {
    let mut page = PAGES[..4096].to_vec();
    // The flags "missed" and "the number is stored", and the number behind the events.
    page[11] |= 0xc0;
    let length = usize::from(u16::from_le_bytes([page[8], page[9]]));
    page.truncate(16 + length);
    page.extend(25u64.to_le_bytes());
    let page = Page::new(&page, &layout()).unwrap();
    assert_eq!(page.lost(), Lost::Known(25));
    assert!(page.count() > 10);
}
