//! Tests that compare every tree with the one that the `kdl` crate reads.

use super::parser::parse;
use super::tree::{Dialect, Entry, Node, Value};
use kdl::{KdlDocument, KdlIdentifier, KdlValue};
use proptest::prelude::*;
use std::fmt::Write;

/// Our tree in a form that the `kdl` crate's tree can be written in as well.
fn ours(nodes: &[Node], out: &mut String) {
    for node in nodes {
        write!(out, "{:?}", node.name.text).unwrap();
        for Entry { name, value, .. } in &node.entries {
            let name = name.as_ref().map(|name| &name.text);
            match value {
                Value::Text(text) => write!(out, " {name:?}={text:?}").unwrap(),
                Value::Integer(number) => write!(out, " {name:?}={number}i").unwrap(),
                Value::Decimal(number) => write!(out, " {name:?}={number}d").unwrap(),
                Value::Flag(flag) => write!(out, " {name:?}={flag}").unwrap(),
                Value::Null => write!(out, " {name:?}=null").unwrap(),
            }
        }
        if let Some(children) = &node.children {
            out.push('{');
            ours(children, out);
            out.push('}');
        }
        out.push(';');
    }
}

fn theirs(document: &KdlDocument, out: &mut String) {
    for node in document.nodes() {
        write!(out, "{:?}", node.name().value()).unwrap();
        for entry in node.entries() {
            let name = entry.name().map(KdlIdentifier::value);
            match entry.value() {
                KdlValue::String(text) => write!(out, " {name:?}={text:?}").unwrap(),
                KdlValue::Integer(number) => write!(out, " {name:?}={number}i").unwrap(),
                KdlValue::Float(number) => write!(out, " {name:?}={number}d").unwrap(),
                KdlValue::Bool(flag) => write!(out, " {name:?}={flag}").unwrap(),
                KdlValue::Null => write!(out, " {name:?}=null").unwrap(),
            }
        }
        if let Some(children) = node.children() {
            out.push('{');
            theirs(children, out);
            out.push('}');
        }
        out.push(';');
    }
}

/// The tree that our parser reads, or its errors.
fn read(text: &str, dialect: Dialect) -> Result<String, String> {
    let parsed = parse(text, dialect);
    if !parsed.faults.is_empty() {
        return Err(format!("{:?}", parsed.faults));
    }
    let mut out = String::new();
    ours(&parsed.nodes, &mut out);
    Ok(out)
}

fn read_by_crate(text: &str, dialect: Dialect) -> Option<String> {
    let document = match dialect {
        Dialect::V1 => KdlDocument::parse_v1(text).ok()?,
        Dialect::V2 => KdlDocument::parse_v2(text).ok()?,
    };
    let mut out = String::new();
    theirs(&document, &mut out);
    Some(out)
}

/// A document and its text in one version, with unusual spacing and comments.
fn document(dialect: Dialect) -> impl Strategy<Value = String> {
    let space = prop_oneof![
        4 => Just(" "),
        1 => Just(" /* a /* b */ \" { */ "),
        1 => Just(" \\\n  "),
        1 => Just("\t"),
    ];
    let end = prop_oneof![
        4 => Just("\n"),
        1 => Just(";"),
        1 => Just(" // } \"\n"),
        1 => Just("\r\n\n"),
    ];
    let word = "[a-z_é+.-][a-z_-]{0,6}".prop_filter("a keyword", move |word| {
        super::string::is_bare(word, dialect)
    });
    let name = prop_oneof![word.clone(), text(dialect)];
    let bare = match dialect {
        Dialect::V1 => Just("1.5".to_owned()).boxed(),
        Dialect::V2 => word.boxed(),
    };
    let value = prop_oneof![bare, text(dialect), number(), keyword(dialect)];
    let entry = prop_oneof![
        3 => value.clone(),
        1 => (name.clone(), value.clone()).prop_map(|(name, value)| format!("{name}={value}")),
        1 => value.clone().prop_map(|value| format!("(u8){value}")),
        1 => value.prop_map(|value| format!("/-{value}")),
    ];
    let entries = prop::collection::vec((space, entry), 0..4);
    let head = (name, entries).prop_map(|(name, entries)| {
        entries
            .iter()
            .fold(name, |text, (space, entry)| text + space + entry)
    });
    let leaf = (head.clone(), end.clone()).prop_map(|(head, end)| head + end);
    leaf.prop_recursive(4, 40, 4, move |inner| {
        let block = prop::collection::vec(inner, 0..4);
        (head.clone(), block, end.clone())
            .prop_map(|(head, nodes, end)| format!("{head} {{\n{}}}{end}", nodes.concat()))
    })
    .prop_map(|node| format!("// first\n{node}/- gone 1\n"))
}

fn text(dialect: Dialect) -> impl Strategy<Value = String> {
    let inside = "[a-z {}/é=;#]{0,8}";
    let raw = move |body: String| match dialect {
        Dialect::V1 => format!("r##\"{body}\\\"##"),
        Dialect::V2 => format!("##\"{body}\\\"##"),
    };
    let several = move |body: String| match dialect {
        Dialect::V1 => format!("\"{body}\n{body}\""),
        Dialect::V2 => format!("\"\"\"\n  {body}\n\n    \\\"{body}\n  \"\"\""),
    };
    prop_oneof![
        inside.prop_map(|body| format!("\"{body}\\n\\u{{e9}}\\\"{body}\"")),
        inside.prop_map(raw),
        inside.prop_map(several),
    ]
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?[0-9][0-9_]{0,6}",
        "-?[0-9]{1,3}\\.[0-9]{1,3}(e[+-]?[0-9])?",
        "0x[0-9a-f]{1,4}",
        "0o[0-7]{1,4}",
        "0b[01]{1,8}",
    ]
}

fn keyword(dialect: Dialect) -> impl Strategy<Value = String> {
    let mark = match dialect {
        Dialect::V1 => "",
        Dialect::V2 => "#",
    };
    prop_oneof![Just("true"), Just("false"), Just("null")]
        .prop_map(move |word| format!("{mark}{word}"))
}

proptest! {
    #[test]
    fn kdl_2_is_read_as_the_crate_reads_it(text in document(Dialect::V2)) {
        let expected = read_by_crate(&text, Dialect::V2);
        prop_assert!(expected.is_some(), "{text}");
        prop_assert_eq!(read(&text, Dialect::V2).ok(), expected);
    }

    #[test]
    fn kdl_1_is_read_as_the_crate_reads_it(text in document(Dialect::V1)) {
        let expected = read_by_crate(&text, Dialect::V1);
        prop_assert!(expected.is_some(), "{text}");
        prop_assert_eq!(read(&text, Dialect::V1).ok(), expected);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z0-9 {}\"\\\\/#=;()\n*-]{0,60}") {
        for dialect in [Dialect::V1, Dialect::V2] {
            for fault in parse(&text, dialect).faults {
                prop_assert!(text.get(fault.span.start()..fault.span.end()).is_some(), "{fault:?}");
            }
            let crates = read_by_crate(&text, dialect);
            if let (Ok(ours), Some(crates)) = (read(&text, dialect), crates) {
                prop_assert_eq!(ours, crates);
            }
        }
    }
}
