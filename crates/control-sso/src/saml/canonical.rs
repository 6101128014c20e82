//! Exclusive XML Canonicalization 1.0 without comments, of an element in a parsed document.
//!
//! <https://www.w3.org/TR/xml-exc-c14n/>, sections 3 and 4.

use roxmltree::{Attribute, Node, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// Namespace by prefix, as last declared by an ancestor in the output.
type Declared<'a> = BTreeMap<&'a str, &'a str>;

/// Canonical bytes of `apex` without the subtree `omit`. `inclusive` has the prefixes of an
/// `InclusiveNamespaces` element, with `#default` for no prefix.
pub fn canonicalize(apex: Node<'_, '_>, omit: Option<NodeId>, inclusive: &[&str]) -> Vec<u8> {
    let mut writer = Writer {
        out: String::new(),
        omit,
        inclusive,
    };
    writer.element(apex, &Declared::new());
    writer.out.into_bytes()
}

struct Writer<'c> {
    out: String,
    omit: Option<NodeId>,
    inclusive: &'c [&'c str],
}

impl Writer<'_> {
    /// Recursive; the parser has limited the depth.
    fn element<'a>(&mut self, node: Node<'a, '_>, inherited: &Declared<'a>) {
        let name = qualified_name(node);
        self.out.push('<');
        self.out.push_str(name);
        let new = self.new_declarations(node, inherited);
        for (prefix, uri) in &new {
            let colon = if prefix.is_empty() { "" } else { ":" };
            self.attribute(&["xmlns", colon, prefix].concat(), uri);
        }
        let mut attributes: Vec<_> = node.attributes().collect();
        attributes.sort_by_key(|own| (own.namespace().unwrap_or(""), own.name()));
        for attribute in attributes {
            self.attribute(attribute_name(node, &attribute), attribute.value());
        }
        self.out.push('>');
        if new.is_empty() {
            self.children(node, inherited);
        } else {
            let mut declared = inherited.clone();
            declared.extend(new);
            self.children(node, &declared);
        }
        self.out.push_str("</");
        self.out.push_str(name);
        self.out.push('>');
    }

    fn children<'a>(&mut self, node: Node<'a, '_>, declared: &Declared<'a>) {
        for child in node.children() {
            if Some(child.id()) == self.omit {
                continue;
            }
            if child.is_element() {
                self.element(child, declared);
            } else if let Some(text) = child.text().filter(|_| child.is_text()) {
                escape_text(&mut self.out, text);
            }
        }
    }

    fn attribute(&mut self, name: &str, value: &str) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        escape_attribute(&mut self.out, value);
        self.out.push('"');
    }

    /// Namespace declarations to write, sorted by prefix: for prefixes that the element or its
    /// attributes use, and for inclusive prefixes, unless an ancestor in the output declares the
    /// same value.
    fn new_declarations<'a>(&self, node: Node<'a, '_>, inherited: &Declared<'a>) -> Declared<'a> {
        let mut prefixes = BTreeSet::from([prefix_of(qualified_name(node))]);
        for attribute in node.attributes() {
            let prefix = prefix_of(attribute_name(node, &attribute));
            if !prefix.is_empty() {
                prefixes.insert(prefix);
            }
        }
        if !self.inclusive.is_empty() {
            let in_scope = node.namespaces().map(|own| own.name().unwrap_or(""));
            prefixes.extend(in_scope.filter(|prefix| self.is_inclusive(prefix)));
        }
        prefixes.remove("xml");
        let declarations = prefixes
            .into_iter()
            .map(|prefix| (prefix, in_scope(node, prefix)));
        declarations
            .filter(|(prefix, uri)| match inherited.get(prefix) {
                Some(before) => before != uri,
                None => !uri.is_empty(),
            })
            .collect()
    }

    fn is_inclusive(&self, prefix: &str) -> bool {
        let listed = if prefix.is_empty() {
            "#default"
        } else {
            prefix
        };
        self.inclusive.contains(&listed)
    }
}

/// Namespace bound to `prefix`; empty if there is none.
fn in_scope<'a>(node: Node<'a, '_>, prefix: &str) -> &'a str {
    node.namespaces()
        .find(|own| own.name().unwrap_or("") == prefix)
        .map_or("", |own| own.uri())
}

/// Name with its prefix, as written. The tree only keeps namespaces, so the name is read from the
/// source text.
fn qualified_name<'a>(node: Node<'a, '_>) -> &'a str {
    let source = node.document().input_text();
    let start = source.get(node.range().start + 1..).unwrap_or_default();
    let end = start.find([' ', '\t', '\r', '\n', '/', '>']);
    start.get(..end.unwrap_or(0)).unwrap_or_default()
}

fn attribute_name<'a>(node: Node<'a, '_>, attribute: &Attribute<'a, '_>) -> &'a str {
    let source = node.document().input_text();
    source.get(attribute.range_qname()).unwrap_or_default()
}

fn prefix_of(name: &str) -> &str {
    name.split_once(':').map_or("", |(prefix, _)| prefix)
}

fn escape_text(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#xD;"),
            other => out.push(other),
        }
    }
}

fn escape_attribute(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '"' => out.push_str("&quot;"),
            '\t' => out.push_str("&#x9;"),
            '\n' => out.push_str("&#xA;"),
            '\r' => out.push_str("&#xD;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roxmltree::Document;

    fn canonical(xml: &str, inclusive: &[&str]) -> String {
        let document = Document::parse(xml).unwrap();
        let mut all = document.descendants();
        let apex = all.find(|node| node.has_tag_name("apex"));
        let apex = apex.unwrap_or(document.root_element());
        String::from_utf8(canonicalize(apex, None, inclusive)).unwrap()
    }

    #[test]
    fn only_used_namespaces_are_declared_where_they_are_used_first() {
        // Examples of the recommendation's section 2.2, and cases of redeclaration.
        let cases = [
            (
                "<a xmlns:n='u:n' xmlns:m='u:m'><apex><n:b x='1'/></apex></a>",
                "<apex><n:b xmlns:n=\"u:n\" x=\"1\"></n:b></apex>",
            ),
            (
                "<n:a xmlns:n='u:n'><n:b xmlns:n='u:n'><n:c xmlns:n='u:2'/></n:b></n:a>",
                "<n:a xmlns:n=\"u:n\"><n:b><n:c xmlns:n=\"u:2\"></n:c></n:b></n:a>",
            ),
            (
                "<a xmlns='u:d'><b xmlns=''><c/></b></a>",
                "<a xmlns=\"u:d\"><b xmlns=\"\"><c></c></b></a>",
            ),
            (
                "<a z='1' xmlns:n='u:n' n:y='2' b='3' xml:lang='en'/>",
                "<a xmlns:n=\"u:n\" b=\"3\" z=\"1\" xml:lang=\"en\" n:y=\"2\"></a>",
            ),
            (
                "<a b='&#9;&#10;&quot;&lt;&gt;'>&#13;&lt;&gt;\"</a>",
                "<a b=\"&#x9;&#xA;&quot;&lt;>\">&#xD;&lt;&gt;\"</a>",
            ),
        ];
        for (xml, expected) in cases {
            assert_eq!(canonical(xml, &[]), expected, "{xml}");
        }
    }

    #[test]
    fn inclusive_prefixes_are_declared_where_they_are_in_scope() {
        let xml = "<a xmlns:n='u:n' xmlns:m='u:m' xmlns:f='u:f'><n:apex xmlns:n='u:n'/></a>";
        let document = Document::parse(xml).unwrap();
        let apex = document.root_element().first_child().unwrap();
        let text = canonicalize(apex, None, &["m", "absent"]);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, "<n:apex xmlns:m=\"u:m\" xmlns:n=\"u:n\"></n:apex>");
    }
}
