//! The page: verdict, tables, pictures, accounts of clients' time, and how the page was made, in one file.
//!
//! The page loads nothing. Its content security policy forbids that, and allows the one script that it
//! contains by its hash. So the job name `</script><b>` is shown as such a name, and if escaping failed,
//! nothing would run all the same.
//!
//! Without the script the page lacks only zooming, pointing at turns, and the links that save a picture.

use crate::pictures::{self, Section};
use crate::runs::Runs;
use crate::svg::{HATCH, Key, Picture, STYLE, escape, file_style};
use crate::table::Table;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The style of the page, apart from the pictures' style.
const PAGE_STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The hash of [`SCRIPT`] for the policy. A test in Chromium fails if it is wrong;
/// `openssl dgst -sha256 -binary page.js | base64` computes it.
const SCRIPT_HASH: &str = include_str!("page.js.sha256");

/// A chapter of text: a heading, and paragraphs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Chapter {
    /// The heading.
    pub title: String,
    /// The paragraphs.
    pub paragraphs: Vec<String>,
    /// Command lines: for each block a heading, and the lines.
    pub lines: Vec<(String, Vec<String>)>,
    /// A table after the text, if there is one.
    pub table: Option<Table>,
}

/// The content of a page.
#[derive(Debug)]
pub struct Page<'a> {
    /// The subject: job and disk.
    pub title: String,
    /// The verdict, whose first sentence is the headline, with its pictures.
    pub verdict: (Vec<String>, Vec<Picture>),
    /// The chapters after the verdict: what to do, why.
    pub chapters: Vec<Chapter>,
    /// The tables that the terminal shows.
    pub tables: Vec<Table>,
    /// A note after the tables, about them or about the pictures that follow.
    pub runs_note: Option<String>,
    /// The runs.
    pub runs: Runs<'a>,
    /// The accounts of clients' time.
    pub why: Vec<Chapter>,
    /// How the page was made: names and values.
    pub made: Vec<(&'static str, String)>,
    /// The figures, as `--output-format json` writes them.
    pub figures: Value,
}

/// Returns JSON that is safe inside a script element.
fn embedded(value: &Value) -> String {
    // Values of maps with text keys and finite numbers can always be written.
    serde_json::to_string(value).unwrap_or_default().replace('<', "\\u003c").replace('>', "\\u003e")
}

/// What every page has around its sections: head, links, how it was made, data and script.
pub(crate) struct Shell<'a> {
    pub(crate) title: &'a str,
    /// The chapters: ids and names.
    pub(crate) links: Vec<(&'static str, &'static str)>,
}

impl Shell<'_> {
    /// Returns the page with these sections.
    pub(crate) fn html(&self, sections: &str, made: &[(&'static str, String)], data: &Value) -> String {
        format!(
            "{}<main id=\"top\">{sections}{}</main><script type=\"text/css\" id=\"file-style\">{}</script>\
             <script type=\"application/json\" id=\"data\">{}</script><script>{SCRIPT}</script></body></html>\n",
            self.head(),
            made_part(made),
            file_style(),
            embedded(data)
        )
    }

    fn head(&self) -> String {
        let title = escape(self.title);
        let links = self.links.iter().map(|(id, name)| format!("<a href=\"#{id}\">{name}</a>"));
        let links: String = links.collect();
        format!(
            "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'; \
             img-src data:; base-uri 'none'; form-action 'none'\">\
             <link rel=\"icon\" href=\"data:,\"><style>{STYLE}</style><style>{PAGE_STYLE}</style></head><body>\
             <svg width=\"0\" height=\"0\" aria-hidden=\"true\" class=\"defs\">{HATCH}</svg>\
             <header><p class=\"brand\">Fairhead report</p><h1>{title}</h1><nav aria-label=\"Chapters\">{links}</nav></header>",
            SCRIPT_HASH.trim()
        )
    }
}

fn made_part(made: &[(&'static str, String)]) -> String {
    let each =
        made.iter().map(|(what, value)| format!("<dt>{}</dt><dd>{}</dd>", escape(what), escape(value)));
    format!(
        "<section id=\"made\"><h2>How this was made</h2><dl>{}</dl><p>The same command gives the same figures, to the last digit. All of them are in \
         this page, as <code>--output-format json</code> writes them.</p><p id=\"save\"></p></section>",
        each.collect::<String>()
    )
}

impl Page<'_> {
    /// Returns the page as HTML.
    #[must_use]
    pub fn html(&self) -> String {
        let mut ids = 0;
        let mut out = String::new();
        self.verdict_part(&mut out, &mut ids);
        self.chapters.iter().for_each(|c| chapter_html(&mut out, "section", "h2", c));
        out.push_str("<section id=\"figures\"><h2>Figures</h2>");
        self.tables.iter().for_each(|t| out.push_str(&t.html()));
        if let Some(note) = &self.runs_note {
            let _ = write!(out, "<p class=\"note\">{}</p>", escape(note));
        }
        out.push_str("</section>");
        for s in pictures::sections(&self.runs) {
            section_html(&mut out, &s, &mut ids);
        }
        if !self.why.is_empty() {
            out.push_str("<section id=\"why\"><h2>Where the time went</h2>");
            self.why.iter().for_each(|c| chapter_html(&mut out, "div", "h3", c));
            out.push_str("</section>");
        }
        let data = json!({ "figures": self.figures, "decisions": pictures::decisions_data(&self.runs) });
        Shell { title: &self.title, links: self.links() }.html(&out, &self.made, &data)
    }

    fn links(&self) -> Vec<(&'static str, &'static str)> {
        let mut links = vec![("verdict", "Verdict"), ("figures", "Figures")];
        let all = [
            ("latency", "Latency"),
            ("throughput", "Throughput"),
            ("disk-time", "Disk time"),
            ("position", "Position"),
            ("idle", "Idling"),
            ("decisions", "Decisions"),
        ];
        links.extend(all.into_iter().filter(|l| pictures::has(&self.runs, l.0)));
        if !self.why.is_empty() {
            links.push(("why", "Why"));
        }
        links.push(("made", "How this was made"));
        links
    }

    fn verdict_part(&self, out: &mut String, ids: &mut usize) {
        let (sentences, shown) = &self.verdict;
        out.push_str("<section id=\"verdict\"><h2>Verdict</h2>");
        for (i, s) in sentences.iter().enumerate() {
            let class = if i == 0 { " class=\"lead\"" } else { "" };
            let _ = write!(out, "<p{class}>{}</p>", escape(s));
        }
        out.push_str("<div class=\"grid\">");
        shown.iter().for_each(|p| figure(out, p, ids));
        out.push_str("</div></section>");
    }
}

fn chapter_html(out: &mut String, element: &str, heading: &str, c: &Chapter) {
    let _ = write!(out, "<{element}><{heading}>{}</{heading}>", escape(&c.title));
    for p in &c.paragraphs {
        let _ = write!(out, "<p>{}</p>", escape(p));
    }
    for (about, lines) in &c.lines {
        if !about.is_empty() {
            let _ = write!(out, "<p class=\"about\">{}</p>", escape(about));
        }
        let lines: String = lines.iter().map(|l| escape(l) + "\n").collect();
        let _ = write!(out, "<pre tabindex=\"0\">{lines}</pre>");
    }
    if let Some(table) = &c.table {
        out.push_str(&table.html());
    }
    let _ = write!(out, "</{element}>");
}

fn section_html(out: &mut String, s: &Section, ids: &mut usize) {
    let _ = write!(
        out,
        "<section id=\"{}\"><h2>{}</h2><p>{}</p>{}",
        s.id,
        escape(s.title),
        escape(&s.about),
        keys_html(&s.keys)
    );
    let wide = s.pictures.iter().all(|p| p.is_wide);
    out.push_str(if wide { "<div class=\"column\">" } else { "<div class=\"grid\">" });
    s.pictures.iter().for_each(|p| figure(out, p, ids));
    out.push_str("</div></section>");
}

pub(crate) fn keys_html(keys: &[Key]) -> String {
    if keys.is_empty() {
        return String::new();
    }
    let mut out = "<ul class=\"key\">".to_owned();
    for k in keys {
        let look = crate::svg::class(k.look);
        let _ = write!(
            out,
            "<li><svg width=\"46\" height=\"18\" aria-hidden=\"true\"><line class=\"l l{look}\" x1=\"18\" x2=\"44\" y1=\"9\" y2=\"9\"/>\
             <svg class=\"b\" x=\"9\" y=\"9\"><circle r=\"8\" class=\"f{look}\"/><text dy=\".35em\">{sign}</text></svg></svg>\
             <span class=\"sr\">{sign}: </span><span>{name}</span></li>",
            sign = escape(&k.sign),
            name = escape(&k.name)
        );
    }
    out.push_str("</ul>");
    out
}

/// The longest description below a picture, in characters: about two lines.
const SEEN_MAX: usize = 130;

pub(crate) fn figure(out: &mut String, p: &Picture, ids: &mut usize) {
    *ids += 1;
    // Longer text is in the table, and in the description.
    let is_seen = p.span.is_some() && p.about.len() <= SEEN_MAX;
    let seen = if is_seen { escape(&p.about) } else { String::new() };
    let _ = write!(
        out,
        "<figure><figcaption>{}</figcaption>{}<p class=\"seen\">{seen}</p>",
        escape(&p.title),
        p.in_page(&format!("p{ids}")),
    );
    out.push_str("<div class=\"foot\">");
    if let Some(table) = &p.table {
        let _ = write!(out, "<details><summary>Numbers</summary>{}</details>", table.html());
    }
    out.push_str("</div></figure>");
}
