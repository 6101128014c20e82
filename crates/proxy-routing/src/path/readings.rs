//! The readings of a path by servers that interpret it differently.

use crate::byte_set::ByteSet;
use crate::path::{
    PATH, PathError, UNRESERVED, ends_dot_segment, escaped_byte, push, without_dot_segments,
};

/// Bytes of a path with one reading in all servers, except the start of a parameter.
const PLAIN: ByteSet = ByteSet::new(
    b"/0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~!$&'()*+,=:@",
);

/// Maximum number of dot segments of a path that are examined one by one.
const MAX_DOT_SEGMENTS: usize = 16;

/// Returns true if every server reads `path` the same, literally: it contains no `//`, `;`, `%`,
/// `\`, dot segment, or byte that is not allowed unescaped. Such a path is canonical. One pass.
#[must_use]
pub fn is_plain_path(path: &str) -> bool {
    let mut rest = path.as_bytes();
    let mut before = 0;
    while let [byte, tail @ ..] = rest {
        let is_plain = match byte {
            b'/' => before != b'/',
            b'.' => before != b'/' || !ends_dot_segment(tail),
            byte => PLAIN.has(*byte),
        };
        if !is_plain {
            return false;
        }
        before = *byte;
        rest = tail;
    }
    path.starts_with('/') || path == "*"
}

/// The readings of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// The path as each server reads it, in canonical form except for dot segments, which some
    /// keep. Without repetitions; may include the canonical path.
    pub paths: Vec<String>,
    /// The reason why no server should get the path, if any: a NUL, a broken escape, dot segments
    /// that leave the root in one of the readings, or more dot segments than are examined.
    pub fault: Option<PathError>,
}

/// The steps in which a kind of server interprets a path.
#[derive(Clone, Copy, Debug)]
struct Reader {
    /// Decodes all escapes once, including separators; else only escapes of unreserved characters.
    decodes: bool,
    parameters: Parameters,
    backslash: Backslash,
}

/// Treatment of `;` and the rest of its segment.
#[derive(Clone, Copy, Debug)]
enum Parameters {
    Kept,
    /// Dropped before escapes are decoded.
    DroppedFirst,
    /// Dropped after escapes are decoded.
    DroppedLast,
    /// Dropped before and after.
    DroppedTwice,
}

/// Treatment of a backslash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backslash {
    /// An ordinary byte.
    Byte,
    /// A slash, which also ends parameters.
    SlashAtFirst,
    /// A slash, which does not end parameters.
    SlashAtLast,
}

const PARAMETERS: [Parameters; 4] = [
    Parameters::Kept,
    Parameters::DroppedFirst,
    Parameters::DroppedLast,
    Parameters::DroppedTwice,
];

const BACKSLASHES: [Backslash; 3] = [
    Backslash::Byte,
    Backslash::SlashAtFirst,
    Backslash::SlashAtLast,
];

impl Readings {
    /// The readings of `raw`, the path as sent: escapes decoded once or not, path parameters
    /// dropped or not, a backslash as a slash or not, slashes merged or not, dot segments removed
    /// or kept or partly removed, in every combination.
    #[must_use]
    pub fn from_path(raw: &str) -> Self {
        let mut readings = Self {
            paths: Vec::new(),
            fault: byte_fault(raw),
        };
        let plainly = spelled(raw, false);
        let decoded = spelled(raw, true);
        let has_escapes = plainly != decoded;
        let has_parameters = decoded.contains(';');
        let has_backslash = decoded.contains('\\');
        let is_shaped = decoded.contains("//") || has_dot_segment(&decoded);
        if !(has_escapes || has_parameters || has_backslash || is_shaped) {
            return readings;
        }
        let mut texts: Vec<String> = Vec::new();
        for reader in readers(has_parameters, has_backslash) {
            let text = reader.read(raw);
            if !texts.contains(&text) {
                readings.add_forms(&text);
                texts.push(text);
            }
        }
        readings.add_steps(&plainly);
        let most_done = Reader {
            decodes: true,
            parameters: Parameters::DroppedTwice,
            backslash: Backslash::SlashAtFirst,
        };
        readings.add_steps(&merged(&most_done.read(raw)));
        readings
    }

    /// Adds the forms of `text` with slashes merged or not, and dot segments removed or not.
    fn add_forms(&mut self, text: &str) {
        if !text.contains("//") && !has_dot_segment(text) {
            return self.add(text);
        }
        let merged_text = merged(text);
        let (removed, left_root) = without_dot_segments(text);
        let (removed_merged, merged_left_root) = without_dot_segments(&merged_text);
        if left_root || merged_left_root {
            self.fault.get_or_insert(PathError::LeavesRoot);
        }
        let merged_last = merged(&removed);
        for form in [
            removed,
            merged_last,
            removed_merged,
            merged_text,
            text.to_owned(),
        ] {
            self.add(&form);
        }
    }

    /// Adds the intermediate results of removing the dot segments of `text` one after the other,
    /// because some servers remove them only once.
    fn add_steps(&mut self, text: &str) {
        let mut text = text.to_owned();
        for _ in 0..MAX_DOT_SEGMENTS {
            let Some(shorter) = without_first_dot_segment(&text) else {
                return;
            };
            self.add(&shorter);
            text = shorter;
        }
        if has_dot_segment(&text) {
            self.fault.get_or_insert(PathError::DotSegments);
        }
    }

    fn add(&mut self, form: &str) {
        let path = form.replace('\\', "%5C");
        if !self.paths.contains(&path) {
            self.paths.push(path);
        }
    }
}

impl Reader {
    /// The path in this reading; a backslash that is an ordinary byte is kept raw.
    fn read(self, raw: &str) -> String {
        let at_first = self.backslash == Backslash::SlashAtFirst;
        let slashed = |text: String| {
            if at_first {
                text.replace('\\', "/")
            } else {
                text
            }
        };
        let mut text = slashed(raw.to_owned());
        let (first, last) = match self.parameters {
            Parameters::Kept => (false, false),
            Parameters::DroppedFirst => (true, false),
            Parameters::DroppedLast => (false, true),
            Parameters::DroppedTwice => (true, true),
        };
        if first {
            text = without_parameters(&text);
        }
        text = slashed(spelled(&text, self.decodes));
        if last {
            text = without_parameters(&text);
        }
        if self.backslash == Backslash::SlashAtLast {
            text = text.replace('\\', "/");
        }
        text
    }
}

/// Readers that differ for a path with parameters or backslashes.
fn readers(has_parameters: bool, has_backslash: bool) -> impl Iterator<Item = Reader> {
    let parameters = PARAMETERS
        .into_iter()
        .take(if has_parameters { 4 } else { 1 });
    let both = parameters.flat_map(move |parameters| {
        let backslashes = BACKSLASHES
            .into_iter()
            .take(if has_backslash { 3 } else { 1 });
        backslashes.map(move |backslash| (parameters, backslash))
    });
    both.flat_map(|(parameters, backslash)| {
        [false, true].map(|decodes| Reader {
            decodes,
            parameters,
            backslash,
        })
    })
}

/// A NUL or a broken escape, raw or escaped, at any position.
fn byte_fault(raw: &str) -> Option<PathError> {
    let mut rest = raw.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte == 0 {
            return Some(PathError::Nul);
        }
        if *byte != b'%' {
            continue;
        }
        let escaped = match tail {
            [high, low, after @ ..] => escaped_byte(*high, *low).map(|byte| (byte, after)),
            _ => None,
        };
        match escaped {
            None => return Some(PathError::BadEscape),
            Some((0, _)) => return Some(PathError::Nul),
            Some((_, after)) => rest = after,
        }
    }
    None
}

/// `raw` with escapes of unreserved characters decoded, or all escapes of path characters and
/// backslashes; every other byte is escaped, a raw backslash is kept.
fn spelled(raw: &str, decodes: bool) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        let escaped = match (byte, tail) {
            (b'%', [high, low, after @ ..]) => escaped_byte(*high, *low).map(|byte| (byte, after)),
            _ => None,
        };
        let Some((byte, after)) = escaped else {
            push(&mut text, *byte, is_raw(*byte));
            continue;
        };
        rest = after;
        push(
            &mut text,
            byte,
            UNRESERVED.has(byte) || decodes && is_raw(byte),
        );
    }
    text
}

fn is_raw(byte: u8) -> bool {
    PATH.has(byte) || byte == b'\\'
}

fn without_parameters(text: &str) -> String {
    let segments = text.split('/').map(|segment| {
        let name = segment.split_once(';').map(|(name, _)| name);
        name.unwrap_or(segment)
    });
    segments.collect::<Vec<_>>().join("/")
}

fn merged(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("//") {
        out.push_str(before);
        out.push('/');
        rest = after.trim_start_matches('/');
    }
    out.push_str(rest);
    out
}

fn has_dot_segment(text: &str) -> bool {
    text.split('/').any(is_dot_segment)
}

fn is_dot_segment(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

fn without_first_dot_segment(text: &str) -> Option<String> {
    let segments: Vec<&str> = text.split('/').collect();
    let at = segments
        .iter()
        .position(|segment| is_dot_segment(segment))?;
    let (before, rest) = segments.split_at_checked(at)?;
    let (dots, after) = rest.split_first()?;
    // The first segment is the empty one before the first slash.
    let kept = match (*dots, before) {
        ("..", [root, parents @ .., _]) => [&[*root], parents].concat(),
        _ => before.to_vec(),
    };
    let after = if after.is_empty() { &[""] } else { after };
    Some([&kept, after].concat().join("/"))
}
