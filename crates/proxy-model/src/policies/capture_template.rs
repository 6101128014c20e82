//! Paths with captures of a regex in them: `/v2/$1`, `/users/${id}`.

use super::prefix_replacement::check_path;
use std::fmt;

/// A path with captures of a regex in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CaptureTemplate {
    text: String,
    /// Literal text and groups, in order.
    pub parts: Vec<CapturePart>,
}

/// A part of a [`CaptureTemplate`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CapturePart {
    /// Literal text.
    Text(String),
    /// The text of the group with this number or name.
    Group(String),
}

impl CaptureTemplate {
    /// Parses `text`: `$1` and `${name}` are groups, `$$` is a `$`.
    ///
    /// # Errors
    /// It is not a path, or a `$` is followed by something else.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            literal.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                literal.push('$');
                rest = after;
                continue;
            }
            let (name, after) = group(after)
                .ok_or("`$` is followed by a number, a name in braces, or another `$`")?;
            if !literal.is_empty() {
                parts.push(CapturePart::Text(std::mem::take(&mut literal)));
            }
            parts.push(CapturePart::Group(name.to_owned()));
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(CapturePart::Text(literal));
        }
        let literals = parts.iter().map(|part| match part {
            CapturePart::Text(text) => text.as_str(),
            CapturePart::Group(_) => "x",
        });
        check_path(&literals.collect::<String>())?;
        if !text.starts_with('/') {
            return Err(format!("`{text}` does not begin with `/`"));
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    /// The groups, by number or name.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            CapturePart::Group(name) => Some(&**name),
            CapturePart::Text(_) => None,
        })
    }
}

/// The group at the beginning of `text`, and the text after it.
fn group(text: &str) -> Option<(&str, &str)> {
    if let Some(braced) = text.strip_prefix('{') {
        let (name, after) = braced.split_once('}')?;
        return (!name.is_empty()).then_some((name, after));
    }
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (name, after) = text.split_at(end.unwrap_or(text.len()));
    (!name.is_empty()).then_some((name, after))
}

impl fmt::Display for CaptureTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_numbers_and_names() {
        let template = CaptureTemplate::parse("/v2/$1$$/${id}.html").unwrap();
        assert_eq!(template.groups().collect::<Vec<_>>(), ["1", "id"]);
        assert_eq!(template.to_string(), "/v2/$1$$/${id}.html");
        assert!(matches!(&template.parts[2], CapturePart::Text(text) if text == "$/"));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "", "$1", "v2/$1", "//a/$1", "/a$", "/$a", "/${}", "/${a", "/a?$1", "/a b/$1",
        ] {
            assert!(CaptureTemplate::parse(text).is_err(), "{text}");
        }
    }
}
