//! `cargo xtask docs --book`: the documents as one book, by mdBook.
//!
//! `docs/SUMMARY.md` is the table of contents. The chapters lie in several folders and link to files beside
//! them (examples, pictures). All of these are copied to `target/book/src` in the same places, and mdBook
//! builds the book from there, so links lead where they lead in the repository. Without mdBook only the copy
//! is made. The first chapter has the lab in it: the page of `cargo xtask page`.

use crate::links::{self, clean};
use crate::page;
use crate::shell::{capture, command, exists, root};
use std::fs;
use std::path::{Path, PathBuf};

/// The table of contents.
const SUMMARY: &str = "docs/SUMMARY.md";

const SETTINGS: &str = "\
[book]
title = \"Fairhead\"
language = \"en\"
src = \"src\"

[build]
# Without `index`, README.md is not index.html: the first chapter is.
use-default-preprocessors = false

[preprocessor.links]

[output.html]
no-section-label = true
fold = { enable = true, level = 0 }
";

/// Makes the book; answers where it is.
pub(crate) fn make() -> Result<String, String> {
    let (root, book) = (root(), root().join("target/book"));
    if book.exists() {
        fs::remove_dir_all(&book).map_err(|e| format!("{}: {e}", book.display()))?;
    }
    let chapters = chapters(&root)?;
    faults(&root, &chapters)?;
    for chapter in &chapters {
        copy(&root, &book, chapter)?;
        for linked in inside(&root, chapter)?.into_iter().filter(|path| root.join(path).is_file()) {
            copy(&root, &book, &linked)?;
        }
    }
    write(&book.join("book.toml"), SETTINGS)?;
    // The first chapter shows the page, and is both `index.html` and a page in `docs`.
    page::make()?;
    for place in ["src/lab.html", "src/docs/lab.html"] {
        let from = root.join(page::FOLDER).join(page::PAGE);
        fs::copy(from, book.join(place)).map_err(|e| format!("{place}: {e}"))?;
    }
    write(&book.join("src/SUMMARY.md"), &contents(&root)?)?;
    if !exists("mdbook") {
        return Ok(
            "target/book is ready for mdBook, which is not installed: `mdbook build target/book`".to_owned()
        );
    }
    capture(&mut command("mdbook", "build target/book"))?;
    Ok("target/book/book/index.html".to_owned())
}

/// The table of contents, with links from the root of the repository.
fn contents(root: &Path) -> Result<String, String> {
    let mut text = read(&root.join(SUMMARY))?;
    for link in links::targets(&text) {
        let path = clean(&Path::new("docs").join(&link)).display().to_string();
        text = text.replace(&format!("]({link})"), &format!("]({path})"));
    }
    Ok(text)
}

/// The documents that are chapters, from the root of the repository.
fn chapters(root: &Path) -> Result<Vec<PathBuf>, String> {
    inside(root, Path::new(SUMMARY))
}

/// The files that a document links to, from the root of the repository.
fn inside(root: &Path, document: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = document.parent().unwrap_or(Path::new(""));
    let links = links::targets(&read(&root.join(document))?);
    let paths = links.iter().filter_map(|link| link.split('#').next()).filter(|path| !path.is_empty());
    let paths = paths.filter(|path| !links::is_outside(path));
    Ok(paths.map(|path| clean(&folder.join(path))).collect())
}

/// Fails if a page of the docs is no chapter, or a chapter links to a document that is none.
fn faults(root: &Path, chapters: &[PathBuf]) -> Result<(), String> {
    let is_document = |path: &Path| path.extension().is_some_and(|e| e == "md");
    let mut faults = Vec::new();
    let mut pages = Vec::new();
    links::walk(&root.join("docs"), &mut pages)?;
    let pages = pages.iter().map(|page| page.strip_prefix(root).unwrap_or(page));
    let pages = pages.filter(|page| is_document(page) && *page != Path::new(SUMMARY));
    for page in pages.filter(|page| !chapters.iter().any(|c| c == page)) {
        faults.push(format!("{}: is not in {SUMMARY}", page.display()));
    }
    for chapter in chapters {
        let linked = inside(root, chapter)?.into_iter().filter(|path| is_document(path));
        for path in linked.filter(|path| !chapters.contains(path)) {
            faults.push(format!("{}: {} is not in {SUMMARY}", chapter.display(), path.display()));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

fn copy(root: &Path, book: &Path, path: &Path) -> Result<(), String> {
    let to = book.join("src").join(path);
    let folder = to.parent().unwrap_or(book);
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    fs::copy(root.join(path), &to).map(|_| ()).map_err(|e| format!("{}: {e}", path.display()))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_a_chapter_and_links_to_chapters() {
        let chapters = chapters(&root()).expect("a table of contents");
        assert!(chapters.len() > 40, "only {} chapters", chapters.len());
        if let Err(why) = faults(&root(), &chapters) {
            panic!("{why}");
        }
    }

    #[test]
    fn the_contents_name_files_from_the_root() {
        let text = contents(&root()).expect("a table of contents");
        assert!(text.contains("](docs/reference/bfq.md)") && text.contains("](README.md)"), "{text}");
    }

    #[test]
    fn a_page_that_is_left_out_is_a_fault() {
        let all = chapters(&root()).expect("a table of contents");
        let without: Vec<PathBuf> = all.into_iter().filter(|c| c != Path::new("docs/why.md")).collect();
        let why = faults(&root(), &without).expect_err("a page is left out");
        assert!(why.contains("docs/why.md: is not in"), "{why}");
    }
}
