//! For tests: the boxes that the text and the marks of a picture take, from its SVG, at a given width.
//!
//! Letters are taken to be 6.3 pixels wide at 12 pixels and 5.8 at 11, which is what common sans-serif fonts
//! have on average. A test in a real browser measures exactly, if there is one (`cli/tests/it/report.rs`).

/// A box in pixels, from the top left of the drawing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Area {
    pub(crate) text: String,
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Area {
    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    tag.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

/// A length in pixels, of a number or a percentage of `whole`.
fn length(text: Option<&str>, whole: f64) -> f64 {
    let text = text.unwrap_or("0");
    match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().unwrap() / 100.0 * whole,
        None => text.parse().unwrap(),
    }
}

/// Returns the boxes of all texts of a picture whose drawing is this wide.
pub(crate) fn texts(svg: &str, width: f64) -> Vec<Area> {
    let (mut out, mut origins) = (Vec::new(), Vec::new());
    // The first element is the picture itself.
    for (i, piece) in svg.split('<').skip(1).enumerate() {
        let (tag, content) = piece.split_once('>').unwrap_or((piece, ""));
        let class = attribute(tag, "class").unwrap_or("");
        if tag.starts_with("svg") {
            let place = (length(attribute(tag, "x"), width), length(attribute(tag, "y"), 0.0));
            origins.push(if i == 0 { (0.0, 0.0, false) } else { (place.0, place.1, class == "b") });
        } else if tag == "/svg" {
            origins.pop();
        } else if tag.starts_with("text") {
            let (x0, y0, is_badge) = origins.last().copied().unwrap_or_default();
            let x = x0 + length(attribute(tag, "x"), width) + length(attribute(tag, "dx"), 0.0);
            let y = y0 + length(attribute(tag, "y"), 0.0);
            let is = |c: &str| class.split(' ').any(|one| one == c);
            let letter = if is("x") || is("y") { 5.8 } else { 6.3 };
            let wide = letter * f64::from(u32::try_from(content.chars().count()).unwrap());
            let left = match () {
                () if is_badge || (is("x") && !is("e")) => x - wide / 2.0,
                () if is("y") || is("e") || is("v") => x - wide,
                () => x,
            };
            let top = if attribute(tag, "dy").is_some() { y - 6.0 } else { y - 9.0 };
            out.push(Area { text: content.to_owned(), left, right: left + wide, top, bottom: top + 12.0 });
        }
    }
    out
}

/// Returns the pairs of boxes that overlap, in words.
pub(crate) fn overlaps(all: &[Area]) -> Vec<String> {
    let pairs = all.iter().enumerate().flat_map(|(i, a)| all[..i].iter().map(move |b| (a, b)));
    pairs.filter(|(a, b)| a.meets(b)).map(|(a, b)| format!("{a:?} and {b:?}")).collect()
}
