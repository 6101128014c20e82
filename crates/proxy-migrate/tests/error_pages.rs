//! Migration of error pages in Caddyfiles.
#![expect(clippy::panic, reason = "tests may fail loudly")]

use proxy_config::parse;
use proxy_migrate::{Language, Migrated, Source, migrate};
use proxy_plan::failed_tests;

/// Migrates a site that forwards requests, with these directives.
fn migrated(directives: &str) -> Migrated {
    let source = Source {
        name: "Caddyfile".to_owned(),
        text: format!(
            "http://a.test:8080 {{\nroot * /srv\nreverse_proxy 10.0.0.1:1\n{directives}\n}}\n"
        ),
    };
    migrate(Language::Caddy, &source, &|_| None).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the lines with error pages in the result.
fn pages(migrated: &Migrated) -> Vec<&str> {
    let lines = migrated.text.lines().map(str::trim);
    let settings = ["page ", "file ", "html "];
    lines
        .filter(|line| settings.iter().any(|name| line.starts_with(name)))
        .collect()
}

const TITLE: &str = "<!DOCTYPE html><title>{status} {status_text}</title>";

#[test]
fn texts_and_files_for_errors_become_pages() {
    let escaped = format!("html \"{TITLE}<p>{{status}}: a &lt; b &amp; c</p>\"");
    for (directives, expected) in [
        (
            "handle_errors 404 {\nrespond \"<h1>{err.status_code}</h1>\"\n}",
            vec!["page 404 {", "html \"<h1>{status}</h1>\""],
        ),
        (
            "handle_errors {\nrespond * \"{http.error.status_code}: a < b & c\" {err.status_code}\n}",
            vec!["page \"4xx\" {", &escaped, "page \"5xx\" {", &escaped],
        ),
        (
            "handle_errors 404 5xx {\nrewrite * /errors/page.html\nfile_server\n}",
            vec![
                "page 404 {",
                "file \"/srv/errors/page.html\"",
                "page \"5xx\" {",
                "file \"/srv/errors/page.html\"",
            ],
        ),
        (
            "handle_errors 404 410 {\nroot * /var/pages\nrewrite /{err.status_code}.html\nfile_server\n}",
            vec![
                "page 404 {",
                "file \"/var/pages/404.html\"",
                "page 410 {",
                "file \"/var/pages/410.html\"",
            ],
        ),
        // Pages for specific statuses come first, wherever they are in the file.
        (
            "handle_errors {\nrespond \"<p>other\"\n}\nhandle_errors 404 {\nrespond \"<p>nothing\"\n}",
            vec![
                "page 404 {",
                "html \"<p>nothing\"",
                "page \"4xx\" {",
                "html \"<p>other\"",
                "page \"5xx\" {",
                "html \"<p>other\"",
            ],
        ),
    ] {
        let migrated = migrated(directives);
        assert_eq!(pages(&migrated), expected, "{}", migrated.text);
        assert!(migrated.notes.is_empty(), "{:?}", migrated.notes);
        if !directives.contains("file_server") {
            let loaded = parse(&migrated.text, "out.kdl");
            let loaded = loaded.unwrap_or_else(|report| panic!("{}\n{report}", migrated.text));
            assert_eq!(failed_tests(&loaded.model), [], "{}", migrated.text);
        }
    }
}

#[test]
fn an_answer_without_a_text_has_the_pages_too() {
    let migrated = migrated("error /gone 410\nhandle_errors {\nrespond \"<p>gone\"\n}");
    let loaded = parse(&migrated.text, "out.kdl");
    let loaded = loaded.unwrap_or_else(|report| panic!("{}\n{report}", migrated.text));
    assert_eq!(failed_tests(&loaded.model), [], "{}", migrated.text);
    assert_eq!(
        migrated.text.matches("error-pages").count(),
        2,
        "{}",
        migrated.text
    );
}

/// A page is not a check: requests are forwarded, and errors have the proxy's own body.
#[test]
fn other_forms_are_listed_and_refuse_nothing() {
    for directives in [
        "handle_errors {\nrespond \"gone\" 200\n}",
        "handle_errors {\nrespond 404\n}",
        "handle_errors {\nrespond \"{http.request.uri}\"\n}",
        "handle_errors {\nrespond \"{$PAGE}\"\n}",
        "handle_errors {\nrespond \"{status}\"\n}",
        "handle_errors {\nrewrite * /{err.status_code}.html\nfile_server\n}",
        "handle_errors {\nrewrite * /{uri}.html\nfile_server\n}",
        "handle_errors {\nrewrite * /a.html\nfile_server\ntemplates\n}",
        "handle_errors {\nreverse_proxy 10.0.0.2:1\n}",
        "handle_errors {\n@404 expression `{err.status_code} == 404`\nrespond @404 \"x\"\n}",
        "handle_errors 200 {\nrespond \"x\"\n}",
        // No error remains for the second block.
        "handle_errors 4xx {\nrespond \"x\"\n}\nhandle_errors 404 {\nrespond \"y\"\n}",
    ] {
        let migrated = migrated(directives);
        let has_pages = directives.contains("4xx");
        assert_eq!(
            migrated.text.contains("error-pages {\n"),
            has_pages,
            "{}",
            migrated.text
        );
        let [left] = migrated.notes.as_slice() else {
            panic!("{directives}: {:?}", migrated.notes);
        };
        assert!(3 < left.place.line, "{left}");
        assert!(!migrated.text.contains("not migrated"), "{}", migrated.text);
        let loaded = parse(&migrated.text, "out.kdl");
        let loaded = loaded.unwrap_or_else(|report| panic!("{}\n{report}", migrated.text));
        assert_eq!(failed_tests(&loaded.model), [], "{}", migrated.text);
    }
}
