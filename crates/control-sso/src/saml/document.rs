//! XML parsing for SAML: limited in size, and without document types, comments and processing
//! instructions.

use super::error::SamlError;
use roxmltree::{Document, Node, ParsingOptions};
use std::borrow::Cow;
use std::collections::HashSet;

pub(super) const PROTOCOL: &str = "urn:oasis:names:tc:SAML:2.0:protocol";
pub(super) const ASSERTION: &str = "urn:oasis:names:tc:SAML:2.0:assertion";
pub(super) const METADATA: &str = "urn:oasis:names:tc:SAML:2.0:metadata";
pub(super) const DSIG: &str = "http://www.w3.org/2000/09/xmldsig#";
pub(super) const EXC_C14N: &str = "http://www.w3.org/2001/10/xml-exc-c14n#";

const MAX_BYTES: usize = 512 * 1024;
const MAX_DEPTH: usize = 32;
const MAX_NODES: u32 = 20_000;
/// Maximum number of attributes per element: the parser's work grows with their square, and with
/// the namespaces in scope.
const MAX_ATTRIBUTES: usize = 16;
const MAX_NAME_BYTES: usize = 256;

/// Handling of comments and processing instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MiscMarkup {
    Refused,
    Skipped,
}

/// Normalizes line ends by XML 1.0, section 2.11, because roxmltree 0.21 keeps a carriage return
/// before `<` and `&`.
///
/// # Errors
///
/// [`SamlError::TooLarge`] above 512 KiB; [`SamlError::Xml`] if the bytes are not UTF-8.
pub fn normal_line_ends(xml: &[u8]) -> Result<Cow<'_, str>, SamlError> {
    if MAX_BYTES < xml.len() {
        return Err(SamlError::TooLarge);
    }
    let text = std::str::from_utf8(xml).map_err(|_| SamlError::Xml)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.contains('\r') {
        return Ok(Cow::Borrowed(text));
    }
    Ok(Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")))
}

/// Parses a message within the limits, and checks that IDs are unique.
pub(super) fn parse(text: &str) -> Result<Document<'_>, SamlError> {
    let document = parse_bounded(text, MiscMarkup::Refused)?;
    let mut ids = HashSet::new();
    for node in document.root().descendants() {
        if node.is_comment() || node.is_pi() {
            return Err(SamlError::Xml);
        }
        for attribute in node.attributes() {
            if MAX_NAME_BYTES < attribute.range_qname().len() {
                return Err(SamlError::TooLarge);
            }
            let is_id = attribute.name().eq_ignore_ascii_case("id");
            if is_id && !ids.insert(attribute.value()) {
                return Err(SamlError::DuplicateId);
            }
        }
    }
    Ok(document)
}

/// Parses published metadata: comments are permitted, because nothing in it is signed.
pub(super) fn parse_metadata(text: &str) -> Result<Document<'_>, SamlError> {
    parse_bounded(text, MiscMarkup::Skipped)
}

fn parse_bounded(text: &str, misc: MiscMarkup) -> Result<Document<'_>, SamlError> {
    check_shape(text, misc)?;
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).map_err(|error| {
        if matches!(error, roxmltree::Error::NodesLimitReached) {
            return SamlError::TooLarge;
        }
        SamlError::Xml
    })
}

/// Limits depth and attributes before the parser allocates for them, and refuses markup other than
/// elements.
fn check_shape(text: &str, misc: MiscMarkup) -> Result<(), SamlError> {
    let mut rest = without_declaration(text)?;
    let mut depth = 0_usize;
    while let Some((_, markup)) = rest.split_once('<') {
        rest = match markup.as_bytes().first() {
            Some(b'/') => {
                depth = depth.checked_sub(1).ok_or(SamlError::Xml)?;
                markup
            }
            Some(b'!' | b'?') => {
                let end = misc_end(markup, misc).ok_or(SamlError::Xml)?;
                markup.get(end..).unwrap_or_default()
            }
            _ => {
                let tag = start_tag(markup)?;
                depth += usize::from(!tag.is_empty_element);
                if MAX_DEPTH < depth {
                    return Err(SamlError::TooLarge);
                }
                tag.rest
            }
        };
    }
    Ok(())
}

fn without_declaration(text: &str) -> Result<&str, SamlError> {
    if !text.starts_with("<?xml ") {
        return Ok(text);
    }
    let (_, rest) = text.split_once("?>").ok_or(SamlError::Xml)?;
    Ok(rest)
}

/// Length of a comment or processing instruction in bytes; `None` if they are refused.
fn misc_end(markup: &str, misc: MiscMarkup) -> Option<usize> {
    if misc == MiscMarkup::Refused {
        return None;
    }
    let end = if markup.starts_with("!--") {
        "-->"
    } else if markup.starts_with('?') {
        "?>"
    } else {
        return None;
    };
    Some(markup.find(end)? + end.len())
}

struct StartTag<'a> {
    is_empty_element: bool,
    rest: &'a str,
}

/// Parses a tag up to the `>` outside of quotes. Each pair of quotes counts as an attribute or a
/// namespace declaration.
fn start_tag(markup: &str) -> Result<StartTag<'_>, SamlError> {
    let mut quote = None;
    let mut attributes = 0;
    for (place, byte) in markup.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) => quote = Some(open).filter(|open| *open != byte),
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                attributes += 1;
                if MAX_ATTRIBUTES < attributes {
                    return Err(SamlError::TooLarge);
                }
            }
            (None, b'>') => {
                let tag = markup.get(..place).unwrap_or_default();
                return Ok(StartTag {
                    is_empty_element: tag.ends_with('/'),
                    rest: markup.get(place + 1..).unwrap_or_default(),
                });
            }
            (None, _) => {}
        }
    }
    Err(SamlError::Xml)
}

/// Child elements of a node; `None` if there is text other than white space between them.
pub(super) fn only_elements<'a, 'i>(node: Node<'a, 'i>) -> Option<Vec<Node<'a, 'i>>> {
    let is_blank = |child: Node<'_, '_>| {
        let text = child.text().unwrap_or_default();
        child.is_element() || text.bytes().all(|byte| byte.is_ascii_whitespace())
    };
    let elements = node.children().filter(Node::is_element).collect();
    node.children().all(is_blank).then_some(elements)
}

/// Child elements with a namespace and name.
pub(super) fn children<'a, 'i>(node: Node<'a, 'i>, space: &str, name: &str) -> Vec<Node<'a, 'i>> {
    let all = node.children();
    all.filter(|child| child.has_tag_name((space, name)))
        .collect()
}

/// The only child element with a namespace and name; `None` without one, or for several.
pub(super) fn only<'a, 'i>(node: Node<'a, 'i>, space: &str, name: &str) -> Option<Node<'a, 'i>> {
    match children(node, space, name).as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

/// White space in XML; other Unicode white space is part of a name.
const XML_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Text of an element without child elements; `None` if it is empty.
pub(super) fn text(node: Node<'_, '_>) -> Option<String> {
    if node.children().any(|child| child.is_element()) {
        return None;
    }
    let text: String = node.children().filter_map(|child| child.text()).collect();
    (!text.is_empty()).then_some(text)
}

/// Text without leading and trailing XML white space; `None` if it is empty.
pub(super) fn value(node: Node<'_, '_>) -> Option<String> {
    let text = text(node)?;
    let text = text.trim_matches(XML_SPACE);
    (!text.is_empty()).then(|| text.to_owned())
}

/// Value of an attribute without a namespace.
pub(super) fn attribute<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.attributes()
        .find(|own| own.namespace().is_none() && own.name() == name)
        .map(|own| own.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_beyond_elements_is_refused() {
        let cases = [
            "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>",
            "<a><!-- remark --></a>",
            "<a><?target data?></a>",
            "<a><![CDATA[text]]></a>",
            "<a></a><a/>",
            "<a></b>",
            "</a>",
            "<a b='1' b='2'/>",
            "<a b='<'/>",
            "<p:a/>",
            "<a>&unknown;</a>",
            "<a",
            "",
        ];
        for text in cases {
            assert_eq!(parse(text).err(), Some(SamlError::Xml), "{text}");
        }
    }

    #[test]
    fn size_depth_and_attributes_are_bounded() {
        let large = vec![b' '; MAX_BYTES + 1];
        assert_eq!(normal_line_ends(&large), Err(SamlError::TooLarge));
        let deep = "<a>".repeat(MAX_DEPTH + 1) + &"</a>".repeat(MAX_DEPTH + 1);
        let wide = format!("<a {}/>", "b='' ".repeat(MAX_ATTRIBUTES + 1));
        let many = format!("<a>{}</a>", "<b/>".repeat(20_001));
        for text in [deep, wide, many] {
            assert_eq!(parse(&text).err(), Some(SamlError::TooLarge));
        }
        let deepest = "<a>".repeat(MAX_DEPTH) + &"</a>".repeat(MAX_DEPTH);
        assert!(parse(&deepest).is_ok());
    }

    #[test]
    fn equal_ids_are_refused_in_any_spelling() {
        for text in [
            "<a ID='1'><b ID='1'/></a>",
            "<a ID='1'><b Id='1'/></a>",
            "<a ID='1'><b xml:id='1'/></a>",
        ] {
            assert_eq!(parse(text).err(), Some(SamlError::DuplicateId), "{text}");
        }
        assert!(parse("<a ID='1'><b ID='2'/></a>").is_ok());
    }

    #[test]
    fn a_quote_in_text_and_a_bracket_in_a_value_are_not_markup() {
        assert!(parse("<a b='>' c='\"'>it's \" > </a>").is_ok());
    }

    #[test]
    fn line_ends_and_a_byte_order_mark_are_normalised() {
        let text = normal_line_ends("\u{feff}<a>\r\n\r</a>".as_bytes());
        assert_eq!(text.unwrap(), "<a>\n\n</a>");
    }
}
