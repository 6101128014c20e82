//! Requests to Caddy.

use crate::{answers, becomes, migrated};
use proxy_migrate::Language;

#[test]
fn arguments_of_snippets_are_in_their_lines() {
    let site = "http://a.test {\nimport shut /admin/* /private\nreverse_proxy a:1\n}\n";
    for (paths, is_second) in [
        ("{args[0]} {args[1]}", true),
        ("{args.0} {args.1}", true),
        ("{args[:]}", true),
        ("{args[0:2]}", true),
        ("{args[0]}", false),
    ] {
        let inner = format!("(inner) {{\n@shut path {paths}\nrespond @shut 403\n}}\n");
        let direct = inner.replace("(inner)", "(shut)");
        let nested = format!("(shut) {{\nimport inner {{args[0]}} {{args[1]}}\n}}\n{inner}");
        for snippets in [direct, nested] {
            let migrated = migrated(Language::Caddy, &format!("{snippets}{site}"));
            answers(&migrated, "http://a.test/admin/x", "403");
            let answer = if is_second { "403" } else { "a:1" };
            answers(&migrated, "http://a.test/private", answer);
            answers(&migrated, "http://a.test/x", "a:1");
        }
    }
}

#[test]
fn matchers_with_placeholders_close_their_block() {
    let request = "http://a.test/x";
    for matcher in [
        "path {$SHUT}",
        "path /in/{args[0]}",
        "path_regexp ^{$SHUT}",
        "host {$HOST}",
        "method {$METHOD}",
        "header X-Token {$TOKEN}",
        "query token={$TOKEN}",
    ] {
        let text =
            format!("http://a.test {{\n@m {matcher}\nrespond @m 403\nreverse_proxy a:1\n}}\n");
        becomes(
            Language::Caddy,
            &text,
            &[(request, "501")],
            "respond @m 403",
        );
    }
    for directive in [
        "respond /{$SHUT} 403\nreverse_proxy a:1",
        "handle {$PUBLIC}/* {\nreverse_proxy a:1\n}\nhandle {\nrespond 403\n}",
    ] {
        let text = format!("http://a.test {{\n{directive}\n}}\n");
        let migrated = migrated(Language::Caddy, &text);
        assert!(
            !migrated.text.contains("upstream \"a-1\"\n"),
            "{}",
            migrated.text
        );
        assert!(!migrated.notes.is_empty());
    }
    let digits =
        "http://a.test {\n@m path_regexp ^/[0-9]{2}$\nrespond @m 403\nreverse_proxy a:1\n}\n";
    answers(
        &migrated(Language::Caddy, digits),
        "http://a.test/12",
        "403",
    );
}

#[test]
fn checks_of_caddy_are_not_widened() {
    let options = |option: &str| format!("{{\nservers {{\n{option}\n}}\n}}\n");
    let site =
        |directives: &str| format!("http://a.test {{\n{directives}\nreverse_proxy a:1\n}}\n");
    let list = |kind: &str| site(&format!("@out not {kind} 127.0.0.0/8\nrespond @out 403"));
    let proxies = options("trusted_proxies static 10.0.0.0/8");
    let headers = options("listener_wrappers {\nproxy_protocol\n}");
    for (text, answer, note) in [
        (
            format!("{proxies}{}", list("client_ip")),
            "501",
            "respond @out",
        ),
        (format!("{proxies}{}", list("remote_ip")), "a:1", "servers"),
        (
            format!("{headers}{}", list("remote_ip")),
            "501",
            "respond @out",
        ),
        (
            "http://a.test {\nreverse_proxy a:1 {\nheader_up -Remote-*\n}\n}\n".to_owned(),
            "501",
            "header_up -Remote-*",
        ),
        (
            "http://a.test {\nreverse_proxy a:1 {\nheader_up Cookie admin guest\n}\n}\n".to_owned(),
            "501",
            "header_up Cookie admin guest",
        ),
        (
            "http://a.test {\nreverse_proxy a:1 {\nrewrite /public{uri}\n}\n}\n".to_owned(),
            "501",
            "rewrite /public",
        ),
        (
            site("request_header Cookie admin guest"),
            "501",
            "request_header",
        ),
        (
            site("request_body /up/* {\nmax_size 1MB\n}"),
            "501",
            "request_body",
        ),
        (
            "http://a.test {\nrespond {\nbody secret\n}\n}\n".to_owned(),
            "501",
            "respond",
        ),
        (
            format!("import sites/*\n{}", site("")),
            "a:1",
            "import sites/*",
        ),
    ] {
        becomes(Language::Caddy, &text, &[("http://a.test/x", answer)], note);
    }
}

#[test]
fn every_handle_path_removes_its_path_or_is_closed() {
    for (path, written) in [
        ("/api/*", "strip-prefix \"/api\""),
        ("/api*", "path-from-regex \"/$1\""),
        ("/api", "respond 501"),
    ] {
        let text = format!("http://a.test {{\nhandle_path {path} {{\nreverse_proxy a:1\n}}\n}}\n");
        let migrated = migrated(Language::Caddy, &text);
        assert!(migrated.text.contains(written), "{path}\n{}", migrated.text);
    }
}
