//! Parsers never panic, and take no quadratic time. Replays the fuzz target's corpus, too.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

#[path = "../fuzz/checks.rs"]
mod checks;

use checks::LANGUAGES;
use proptest::prelude::*;
use proxy_migrate::{Language, Source, migrate};
use proxy_testkit::replay;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

#[test]
fn the_corpus_is_read_or_refused() {
    replay("foreign_config", checks::configuration);
}

/// Pieces of the languages. Many copies of one form a text with deep nesting, long lines, missing
/// ends or invalid syntax.
const PIECES: &[&str] = &[
    "\u{b}",
    "\u{85}",
    "\u{a0}",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    "\"",
    "'",
    "`",
    "\\",
    "#",
    ";",
    ",",
    ":",
    "- ",
    "? ",
    "& ",
    "&a ",
    "*a ",
    "!",
    "!a ",
    "|\n",
    ">\n",
    "%",
    "@",
    "=",
    ".",
    "$",
    "${",
    "${a}",
    "\n",
    "\t",
    " ",
    "\u{e9}",
    "a",
    "a ",
    "a: ",
    "a: b\n",
    "a\n",
    "a;",
    "a {",
    "a {\n",
    "a { }",
    "a = 1\n",
    "a.",
    "[a]\n",
    "[[a]]\n",
    "[a.b]\n",
    "- - ",
    "{a: ",
    "[[",
    "}\n",
    "};",
    "a }",
    "\"a\" ",
    "<<: ",
    "<<: {}\n",
    "---\n",
    "...\n",
    "http {",
    "server {",
    "server { }",
    "server { listen 80; }\n",
    "location / {",
    "if (a) {",
    "map $a $b {",
    "stream {",
    "upstream a { server b:1; }",
    "stream { server { listen 1; proxy_pass a:1; } }\n",
    "include a;",
    "rewrite ^a b;",
    "allow 1.2.3.4;",
    "deny all;",
    "auth_basic off;",
    "a_by_lua_block {",
    "a.test {\n",
    "a.test {\n}\n",
    "handle {\n",
    "handle /a/* {\n}\n",
    "route {\n",
    "import a\n",
    "(a) {\n}\n",
    "@a path /a\n",
    "respond @a 200\n",
    "reverse_proxy a:1\n",
    ":80, ",
    "global\n",
    "defaults\n",
    "frontend a\n",
    "backend a\n",
    "listen a\nbind :1\nserver s a:1\n",
    "bind :80\n",
    "acl a path /a\n",
    "use_backend a if a\n",
    "http-request deny if a\n",
    "server s a:1\n",
    "mode tcp\n",
    "if a || ",
    "{ path /a } ",
    "bind :1,:2,",
    "use_backend b if { req.ssl_sni a }\n",
    "http:\n  routers:\n",
    "    a: { rule: \"Host(`a`)\" }\n",
    "rule: \"",
    "Host(`a`) && ",
    "!(",
    "entryPoints:\n",
    "  a: { address: \":1\" }\n",
    "[http.routers.a]\nrule = \"Host(`a`)\"\n",
    "[[a.b]]\nc = 1\n",
    "a = [",
    "a = {",
];

fn repeated(beginning: &str, piece: &str, bytes: usize) -> Source {
    let mut text = beginning.to_owned();
    text.push_str(&piece.repeat(bytes / piece.len()));
    Source {
        name: "in".to_owned(),
        text,
    }
}

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap())
}

/// Returns the shortest time of several runs, because single ones may be interrupted.
fn time_of(language: Language, source: &Source, runs: usize) -> Duration {
    let run = |_| {
        let before = processor_time();
        drop(migrate(language, source, &|_| None));
        processor_time().saturating_sub(before)
    };
    (0..runs).map(run).min().unwrap()
}

/// Checks that four times the text takes about four times the time. Quadratic growth would be
/// sixteen times.
fn grows_with_its_length(language: Language, beginning: &str, piece: &str) {
    const SHORT_BYTES: usize = 4 << 10;
    let long = time_of(language, &repeated(beginning, piece, SHORT_BYTES * 4), 1);
    // Below this time, quadratic growth is visible only in longer texts.
    if long < Duration::from_millis(25) {
        return;
    }
    let short = time_of(language, &repeated(beginning, piece, SHORT_BYTES), 3);
    let long = time_of(language, &repeated(beginning, piece, SHORT_BYTES * 4), 3);
    assert!(
        long < short * 10,
        "{language:?}: {beginning:?} and many {piece:?}: {short:?}, four times as many {long:?}"
    );
}

fn grow_with_their_length(language: Language, beginnings: &[&str]) {
    for beginning in beginnings {
        for piece in PIECES {
            grows_with_its_length(language, beginning, piece);
        }
    }
}

#[test]
fn texts_of_nginx_take_time_with_their_length() {
    let beginnings = ["", "server { listen 80; ", "stream { ", "\"", "a { ${"];
    grow_with_their_length(Language::Nginx, &beginnings);
}

#[test]
fn texts_of_caddy_take_time_with_their_length() {
    grow_with_their_length(Language::Caddy, &["", "a.test {\n", "(a) {\n", "\""]);
}

#[test]
fn texts_of_haproxy_take_time_with_their_length() {
    let beginnings = [
        "",
        "frontend a\n",
        "listen a\nmode http\nbind :1\nserver s a:1\n",
        "backend a\nacl a path ",
    ];
    grow_with_their_length(Language::Haproxy, &beginnings);
}

#[test]
fn texts_of_traefik_take_time_with_their_length() {
    let beginnings = [
        "",
        "http:\n  routers:\n",
        "a: \"",
        "a: |\n  ",
        "a: &a\n",
        "[a]\nb = ",
    ];
    grow_with_their_length(Language::Traefik, &beginnings);
}

/// Generates sequences of pieces from any language.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => prop::sample::select(PIECES).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_pieces_are_read_or_refused(text in texts()) {
        for language in LANGUAGES {
            checks::check(language, &text);
        }
    }
}
