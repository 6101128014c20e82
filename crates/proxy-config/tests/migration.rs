//! A migration replaces deprecated settings and keeps every other byte.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proptest::prelude::*;
use proxy_config::migrate;

/// Lines of an upstream that a migration must leave alone.
const ODD_LINES: &[&str] = &[
    "",
    "  \t",
    "// timeout-secs 1",
    "  /* a block\n   // comment */",
    "    target \"127.0.0.1:1\" weight=0x1_0 // why",
    "\ttarget   #\"127.0.0.1:2\"# /* here */ ; load-balancing \"ip_hash\"",
    "    /- timeout-secs 4",
    "    /-\n    timeout-ms 4 { a 1 }",
    "    keep-alive {  } // behind a block",
    "    one {};two { } ;  three /- 4 5 /- { }",
    "    tls { name \"\"\"\n        a \\s\n        \"\"\" \\\n  // carried on\n }",
    "    (size)\"odd name\" (u8) 7 key = #null /* last */",
    "    note \"timeout-secs 9\" timeout=\"timeouts { }\"\r",
    "    caf\u{e9} \u{2014} \"\u{1f980}\"",
];

/// A value as written, with the remainder of its line.
const VALUES: &[&str] = &[
    " 30",
    "   0x1E",
    " 1_0 // half a minute",
    " (u8)7",
    " 5 /* five */",
    "\t\"30s\"",
];

fn migrated(text: &str) -> (String, Vec<String>) {
    let migrated = migrate(text, "main.kdl").map_err(|report| report.to_string());
    let migrated = migrated.unwrap();
    (migrated.text, migrated.notes)
}

fn odd_lines() -> impl Strategy<Value = String> {
    let line = prop::sample::select(ODD_LINES);
    let lines = prop::collection::vec(line, 0..6);
    lines.prop_map(|lines| lines.iter().flat_map(|line| [*line, "\n"]).collect())
}

/// A value and the comment after it.
fn value() -> impl Strategy<Value = (&'static str, &'static str)> {
    let value = prop::sample::select(VALUES);
    value.prop_map(|value| value.split_at(value.find(" /").unwrap_or(value.len())))
}

fn site(upstream: &str, before: &str, inside: &str) -> String {
    format!("{before}upstreams {{ // all\n  upstream {upstream} {{\n{inside}  }}\n}}\n{before}")
}

proptest! {
    #[test]
    fn a_text_without_deprecated_settings_is_unchanged(
        (before, inside) in (odd_lines(), odd_lines()),
    ) {
        let text = site("\"a\"", &before, &inside);
        prop_assert_eq!(migrated(&text), (text.clone(), Vec::new()));
    }

    #[test]
    fn a_deprecated_setting_is_replaced_in_its_place(
        (before, one, other) in (odd_lines(), odd_lines(), odd_lines()),
        (value, comment) in value(),
    ) {
        let old = format!("{one}    timeout-secs{value}{comment}\n{other}");
        let new = format!("{one}    timeouts {{ request-secs{value} }}{comment}\n{other}");
        let (text, notes) = migrated(&site("\"a\"", &before, &old));
        prop_assert_eq!(text, site("\"a\"", &before, &new));
        let line = site("\"a\"", &before, &one).matches('\n').count() - before.matches('\n').count() - 1;
        let note = format!("line {line}: `timeout-secs` became `timeouts {{ request-secs }}`");
        prop_assert_eq!(notes, [note]);
    }

    #[test]
    fn a_deprecated_setting_moves_into_the_block_that_is_there(
        (before, one, other) in (odd_lines(), odd_lines(), odd_lines()),
        (value, comment) in value(),
        is_first in any::<bool>(),
    ) {
        let deprecated = format!("    timeout-ms{value}{comment}\n");
        let block = |setting: &str| format!("    timeouts {{ // why\n{setting}      connect-secs 1\n    }}\n");
        let old = block("");
        let new = block(&format!("      request-ms{value}\n"));
        let left = if comment.is_empty() { String::new() } else { format!("    {}\n", comment.trim_start()) };
        let (old, new) = if is_first {
            (format!("{deprecated}{one}{old}{other}"), format!("{left}{one}{new}{other}"))
        } else {
            (format!("{old}{one}{deprecated}{other}"), format!("{new}{one}{left}{other}"))
        };
        let (text, notes) = migrated(&site("\"a\"", &before, &old));
        prop_assert_eq!(text, site("\"a\"", &before, &new));
        prop_assert_eq!(notes.len(), 1);
    }

    #[test]
    fn a_deprecated_property_becomes_the_first_setting(
        (before, inside) in (odd_lines(), odd_lines()),
        (value, _) in value(),
    ) {
        let value = value.trim_start();
        let old = format!("\"a\" /* one */  timeout-secs={value} /* two */");
        let new = format!("    timeouts {{ request-secs {value} }}\n");
        let inside = format!("    target \"127.0.0.1:1\"\n{inside}");
        let (text, notes) = migrated(&site(&old, &before, &inside));
        prop_assert_eq!(text, site("\"a\" /* one */ /* two */", &before, &(new + &inside)));
        prop_assert_eq!(notes.len(), 1);
    }
}

#[test]
fn the_neighbours_of_a_deprecated_setting_decide_its_layout() {
    for (old, new) in [
        ("timeout-secs 1", "timeouts { request-secs 1 }"),
        ("timeout-secs 1 /- 2", "timeouts { request-secs 1 /- 2 }"),
        ("timeout-secs 1;", "timeouts { request-secs 1 };"),
        ("timeouts {};timeout-ms 1", "timeouts { request-ms 1 };"),
        (
            "timeouts {}; timeout-ms 1; a 1",
            "timeouts { request-ms 1 }; a 1",
        ),
        (
            "timeouts { /- b 1\n }\ntimeout-ms 1\n",
            "timeouts { request-ms 1; /- b 1\n }\n",
        ),
        (
            "timeouts {a 1}\r\ntimeout-ms 1\r\n",
            "timeouts { request-ms 1;a 1}\r\n",
        ),
        (
            "timeouts {\r\n  a 1\r\n}; timeout-ms 1",
            "timeouts {\r\n  request-ms 1\r\n  a 1\r\n};",
        ),
        (
            "a 1; timeout-ms 1 // b\ntimeouts { c 1 }",
            "a 1; // b\ntimeouts { request-ms 1; c 1 }",
        ),
        (
            "timeout-ms 1; timeout-secs 2",
            "timeouts { request-ms 1 }; timeout-secs 2",
        ),
    ] {
        let site = |inside: &str| format!("upstreams {{ upstream \"a\" {{ {inside} }} }}");
        assert_eq!(
            migrated(&site(old)).0.replace("  }", " }"),
            site(new),
            "{old}"
        );
    }
}

#[test]
fn a_deprecated_property_opens_a_block_where_there_is_none() {
    let (text, _) = migrated("upstreams {\n  upstream \"a\" timeout-ms=9 b=1 // c\n}\n");
    assert_eq!(
        text,
        "upstreams {\n  upstream \"a\" b=1 { timeouts { request-ms 9 } } // c\n}\n"
    );
}

/// The `kdl` crate's tree does not hold comments in a node's type annotation.
#[test]
fn an_unsupported_text_is_not_rewritten_and_has_a_remedy() {
    let text = "upstreams {\n  upstream \"a\" { timeout-ms 9 }\n}\n( /* b */ c)d\n";
    let (unchanged, notes) = migrated(text);
    assert_eq!(unchanged, text);
    assert_eq!(
        notes,
        ["line 2: `timeout-ms` is left; write `timeouts { request-ms }` instead"]
    );
}

#[test]
fn lines_are_those_of_the_given_text_though_texts_are_joined() {
    let text =
        "a \"one\ntwo\"; b \"three\n\nfour\"\nupstreams { upstream \"a\" { timeout-ms 9 }; }\n";
    let (text, notes) = migrated(text);
    assert!(
        text.starts_with("a \"one\\ntwo\"; b \"three\\n\\nfour\"\nupstreams"),
        "{text}"
    );
    assert_eq!(
        notes,
        [
            "line 1: KDL 1 became KDL 2",
            "line 5: `timeout-ms` became `timeouts { request-ms }`"
        ]
    );
}

#[test]
fn a_file_of_another_server_is_named_with_the_command_for_it() {
    let text = "events {}\nhttp { server { listen 80; location / { root /srv; } } }\n";

    let report = migrate(text, "nginx.conf").unwrap_err().to_string();

    assert!(
        report.contains("this is a configuration of nginx"),
        "{report}"
    );
    assert!(
        report.contains("proxyd config migrate --from nginx"),
        "{report}"
    );
}
