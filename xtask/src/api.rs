//! What `fairhead-core` offers to other crates, as a listing in the repository that CI compares.
//!
//! ```text
//! cargo doc ─► target/api/doc/fairhead_core/**/*.html ─► one line for each public item ─► crates/core/public-api.txt
//! ```
//!
//! rustdoc's pages are read, not its JSON, which a stable toolchain does not write. An item is a type,
//! trait, function, constant or macro, or what an `impl` block without a trait has. Fields, variants and
//! the methods of traits are in the declaration of their item. Re-exports and the traits of a type have
//! lines, too, and are not counted.
//!
//! How a declaration is printed can change with rustdoc, whose version is in the listing. With another
//! version only the names are compared.

use crate::outcome::Outcome;
use crate::shell::{capture, cargo, command, root};
use std::fs;
use std::path::Path;

/// The listing.
const LISTING: &str = "crates/core/public-api.txt";

/// The most public items that core may have.
const ITEMS_MAX: usize = 260;

/// The kinds of items that have a page of their own, as the names of pages begin.
const KINDS: [&str; 9] = ["constant", "enum", "fn", "macro", "static", "struct", "trait", "type", "union"];

/// What was found in rustdoc's pages.
struct Api {
    /// Sorted. A name, two spaces, and the declaration.
    lines: Vec<String>,
    items: usize,
}

impl Api {
    /// The listing as a file.
    fn text(&self, version: &str) -> String {
        let items = self.items;
        let mut text = format!(
            "# What fairhead-core offers to other crates: {items} items. `cargo xtask api` writes this file.\n# {version}\n"
        );
        self.lines.iter().for_each(|line| text.extend([line, "\n"]));
        text
    }
}

/// Writes the listing anew.
pub(crate) fn write() -> Result<Outcome, String> {
    let api = current()?;
    fs::write(root().join(LISTING), api.text(&rustdoc()?)).map_err(|e| format!("{LISTING}: {e}"))?;
    Ok(Outcome::Passed(format!("{LISTING}: {} items", api.items)))
}

/// Compares the listing with what core offers, and the number of items with the most that it may have.
pub(crate) fn check() -> Result<Outcome, String> {
    let api = current()?;
    let listed = fs::read_to_string(root().join(LISTING)).map_err(|e| format!("{LISTING}: {e}"))?;
    compare(&listed, &api.text(&rustdoc()?))?;
    if api.items > ITEMS_MAX {
        return Err(format!("core has {} public items; at most {ITEMS_MAX} are allowed", api.items));
    }
    Ok(Outcome::Passed(format!("{} items", api.items)))
}

/// Compares two listings: all of them, or the names if rustdoc's versions differ.
fn compare(listed: &str, made: &str) -> Result<(), String> {
    let version = |text: &str| text.lines().nth(1).unwrap_or_default().to_owned();
    let is_same_version = version(listed) == version(made);
    let wanted = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let name = |line: &str| line.split("  ").next().unwrap_or_default().to_owned();
        lines.map(|line| if is_same_version { line.to_owned() } else { name(line) }).collect()
    };
    let (listed, made) = (wanted(listed), wanted(made));
    let without = |a: &[String], b: &[String], sign: char| -> Vec<String> {
        a.iter().filter(|line| !b.contains(line)).map(|line| format!("{sign} {line}")).collect()
    };
    let faults = [without(&listed, &made, '-'), without(&made, &listed, '+')].concat();
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("{LISTING} is not what core offers (`cargo xtask api` renews it):\n{}", faults.join("\n")))
}

fn rustdoc() -> Result<String, String> {
    let output = capture(&mut command("rustdoc", "--version"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What core offers now.
fn current() -> Result<Api, String> {
    let target = root().join("target/api");
    let pages = target.join("doc/fairhead_core");
    // Pages of items that are gone would be read, too.
    if pages.exists() {
        fs::remove_dir_all(&pages).map_err(|e| format!("{}: {e}", pages.display()))?;
        // cargo runs rustdoc only if a source or its output changed, and does not look into the folder.
        let _ = fs::remove_dir_all(target.join("debug/.fingerprint"));
    }
    let mut doc = cargo("doc --quiet --locked --package fairhead-core --lib --no-deps --target-dir");
    capture(doc.arg(&target).env_remove("RUSTDOCFLAGS"))?;
    let mut api = Api { lines: Vec::new(), items: 0 };
    folder(&pages, "fairhead_core", &mut api)?;
    if api.items == 0 {
        return Err(format!("{}: no items; has rustdoc changed its pages?", pages.display()));
    }
    api.lines.sort();
    Ok(api)
}

/// Reads the pages of a module and of those in it.
fn folder(path: &Path, module: &str, api: &mut Api) -> Result<(), String> {
    let entries = fs::read_dir(path).map_err(|e| format!("{}: {e}", path.display()))?;
    for entry in entries {
        let entry = entry.map_err(|e| e.to_string())?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if path.is_dir() {
            folder(&path, &format!("{module}::{name}"), api)?;
            continue;
        }
        let Some(name) = name.strip_suffix(".html") else { continue };
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        match name.split_once('.') {
            _ if name == "index" => reexports(&text, module, api),
            Some((kind, item)) if KINDS.contains(&kind) => page(&text, &format!("{module}::{item}"), api),
            _ => {}
        }
    }
    Ok(())
}

/// The re-exports of a module's page.
fn reexports(page: &str, module: &str, api: &mut Api) {
    for part in page.split("<dt id=\"reexport.").skip(1) {
        let declaration = plain(part.split("<code>").nth(1).unwrap_or_default().split("</code>").next());
        let name = part.split('"').next().unwrap_or_default();
        api.lines.push(format!("{module}::{name}  {declaration}"));
    }
}

/// The page of an item. Pages that only lead to another one have no declaration.
fn page(text: &str, name: &str, api: &mut Api) {
    let Some(declaration) = text.split("<pre class=\"rust item-decl\"><code>").nth(1) else { return };
    api.items += 1;
    api.lines.push(format!("{name}  {}", plain(declaration.split("</code></pre>").next())));
    let section = |id: &str| {
        let start = text.find(&format!("<div id=\"{id}\">"))?;
        let rest = &text[start..];
        // The next part of the page.
        Some(&rest[..rest.find("<h2 id=\"").unwrap_or(rest.len())])
    };
    for part in section("implementations-list").unwrap_or_default().split("<section id=\"").skip(1) {
        let id = part.split('"').next().unwrap_or_default();
        let Some((kind, member)) = id.split_once('.') else { continue };
        if matches!(kind, "method" | "associatedconstant" | "associatedtype") {
            let declaration = part.split("<h4 class=\"code-header\">").nth(1).unwrap_or_default();
            api.items += 1;
            api.lines.push(format!("{name}::{member}  {}", plain(declaration.split("</h4>").next())));
        }
    }
    let headings = section("trait-implementations-list").unwrap_or_default();
    let headings = headings.split("<h3 class=\"code-header\">").skip(1);
    let mut traits: Vec<String> = headings.map(|part| plain(part.split("</h3>").next())).collect();
    traits.sort();
    if !traits.is_empty() {
        api.lines.push(format!("{name}  {}", traits.join("; ")));
    }
}

/// The text of a part of a page: without tags, and without what only opens a folded part.
fn plain(html: Option<&str>) -> String {
    let html = html.unwrap_or_default();
    let mut unfolded = String::new();
    for (i, part) in html.split("<summary").enumerate() {
        unfolded += if i == 0 { part } else { part.split_once("</summary>").map_or("", |(_, rest)| rest) };
    }
    let mut text = String::new();
    for (i, part) in unfolded.split('<').enumerate() {
        text += if i == 0 { part } else { part.split_once('>').map_or("", |(_, rest)| rest) };
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&#39;", "'").replace("&quot;", "\"");
    let text = text.replace("&nbsp;", " ").replace('\u{a0}', " ").replace("&amp;", "&");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<pre class=\"rust item-decl\"><code>pub struct Tag(pub <a href=\"x\">u16</a>);</code></pre>\
        <div id=\"implementations-list\"><section id=\"impl-Tag\" class=\"impl\"><h3 class=\"code-header\">impl Tag</h3></section>\
        <section id=\"method.next\" class=\"method\"><h4 class=\"code-header\">pub fn <a>next</a>(&amp;self) -&gt; Self</h4></section></div>\
        <h2 id=\"trait-implementations\"></h2><div id=\"trait-implementations-list\">\
        <h3 class=\"code-header\">impl Debug for Tag</h3><section id=\"method.fmt\"><h4 class=\"code-header\">fn fmt()</h4></section>\
        <h3 class=\"code-header\">impl Copy for Tag</h3></div><h2 id=\"blanket\"></h2><h3 class=\"code-header\">impl Any</h3>";

    #[test]
    fn a_page_has_an_item_its_members_and_its_traits() {
        let mut api = Api { lines: Vec::new(), items: 0 };
        page(PAGE, "core::Tag", &mut api);
        page("Redirecting to <a href=\"struct.Tag.html\">", "core::units::Tag", &mut api);
        assert_eq!(
            api.lines,
            [
                "core::Tag  pub struct Tag(pub u16);",
                "core::Tag::next  pub fn next(&self) -> Self",
                "core::Tag  impl Copy for Tag; impl Debug for Tag",
            ]
        );
        assert_eq!(api.items, 2, "traits are not counted");
    }

    #[test]
    fn folded_fields_are_read_without_the_words_that_unfold_them() {
        let html = "pub struct A {<details><summary class=\"hideme\"><span>Show 2 fields</span></summary>\n pub b: u8,</details>}";
        assert_eq!(plain(Some(html)), "pub struct A { pub b: u8,}");
    }

    #[test]
    fn reexports_have_lines() {
        let mut api = Api { lines: Vec::new(), items: 0 };
        let html = "<dt id=\"reexport.Act\"><code>pub use elevator::<a href=\"\">Act</a>;</code></dt>";
        reexports(html, "core", &mut api);
        assert_eq!((api.lines, api.items), (vec!["core::Act  pub use elevator::Act;".to_owned()], 0));
    }

    #[test]
    fn with_the_version_of_the_listing_declarations_are_compared_else_names() {
        let listed = "# head\n# rustdoc 1\na  fn a()\nb  fn b()\n";
        assert_eq!(compare(listed, listed), Ok(()));
        let changed = listed.replace("fn a()", "fn a(u8)");
        let said = compare(listed, &changed).unwrap_err();
        assert!(said.contains("- a  fn a()") && said.contains("+ a  fn a(u8)"), "{said}");
        assert_eq!(compare(listed, &changed.replace("rustdoc 1", "rustdoc 2")), Ok(()));
        let gone = compare(listed, "# head\n# rustdoc 2\na  fn a()\n").unwrap_err();
        assert!(gone.contains("- b") && !gone.contains("- a"), "{gone}");
    }
}
