//! "Did you mean …?" for whatever users type.

use fairhead_device::nearest_word;

/// The word of `known` nearest to `word`, upper and lower case alike, if one is near enough to be what was
/// meant.
///
/// ```
/// use fairhead_sim::job::nearest;
/// assert_eq!(nearest("iodpeth", ["iodepth", "ioengine"]), Some("iodepth"));
/// assert_eq!(nearest("CQF", ["noop", "cfq"]), Some("cfq"));
/// assert_eq!(nearest("colour", ["iodepth", "ioengine"]), None);
/// assert_eq!(nearest("", ["a"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.is_empty() {
        return None;
    }
    // Words of very different lengths are never near, and most are: this saves comparing them letter by
    // letter.
    let most = (word.len() / 3).max(1);
    nearest_word(&word.to_lowercase(), known.into_iter().filter(|k| k.len().abs_diff(word.len()) <= most))
}
