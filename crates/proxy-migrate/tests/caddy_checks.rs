//! Directives of Caddyfiles that let requests in or refuse them, and certificates that Caddy obtains by itself.
#![expect(clippy::panic, reason = "tests may fail loudly")]

use proxy_config::parse;
use proxy_migrate::{Language, Migrated, Source, migrate};
use proxy_plan::failed_tests;

const USER: &str = "ann $2y$04$co9osgv9qGuwPD/XdNUES.f2whZRS2F1aiA/sEoPTBqLenVJfvbqS";

fn caddy(text: &str) -> Migrated {
    let source = Source {
        name: "Caddyfile".to_owned(),
        text: text.to_owned(),
    };
    let migrated = migrate(Language::Caddy, &source, &|_| None);
    let migrated = migrated.unwrap_or_else(|error| panic!("{error}"));
    let loaded = parse(&migrated.text, "out.kdl");
    let loaded = loaded.unwrap_or_else(|report| panic!("{}\n{report}", migrated.text));
    let failed = failed_tests(&loaded.model);
    assert!(failed.is_empty(), "{}\n{failed:?}", migrated.text);
    migrated
}

fn site(directives: &str) -> Migrated {
    caddy(&format!("http://a.test {{\n{directives}\n}}\n"))
}

#[track_caller]
fn becomes(directives: &str, written: &[&str]) {
    let migrated = site(directives);
    for part in written {
        assert!(migrated.text.contains(part), "{part}\n{}", migrated.text);
    }
    assert!(!migrated.text.contains("respond 501"), "{}", migrated.text);
    assert!(migrated.notes.is_empty(), "{:?}", migrated.notes);
}

#[track_caller]
fn is_closed(directives: &str) {
    let migrated = site(directives);
    let mut lines = migrated.text.lines().map(str::trim);
    let is_open = lines.any(|line| line.starts_with("upstream \"") && !line.ends_with('{'));
    assert!(!is_open, "{}", migrated.text);
    assert!(migrated.text.contains("respond 501"), "{}", migrated.text);
    assert!(!migrated.notes.is_empty());
}

#[test]
fn passwords_hold_for_the_whole_block() {
    let user = format!("basicauth {{\n{USER}\n}}");
    becomes(
        &format!("{user}\nreverse_proxy a:1"),
        &[
            "realm \"restricted\"",
            "forward-credentials #true",
            "status 401",
        ],
    );
    let text = format!("{user}\nrespond \"secret\"");
    becomes(&text, &["basic-auth {", "respond 200 \"secret\""]);
    let realm = format!("basic_auth bcrypt Tools {{\n{USER}\n}}\nreverse_proxy a:1");
    becomes(&realm, &["realm \"Tools\""]);
    for closed in [
        format!("basicauth /admin/* {{\n{USER}\n}}\nreverse_proxy a:1"),
        format!("basicauth scrypt {{\n{USER}\n}}\nreverse_proxy a:1"),
        "basicauth {\nann JDJhJDE0\n}\nreverse_proxy a:1".to_owned(),
        "basicauth {\n}\nreverse_proxy a:1".to_owned(),
        format!("route {{\n{user}\nreverse_proxy a:1\n}}"),
        format!("{user}\nhandle {{\n{user}\nreverse_proxy a:1\n}}"),
    ] {
        is_closed(&closed);
    }
}

#[test]
fn networks_apply_to_directives_after_their_refusal() {
    let outside = "@outside not remote_ip 10.0.0.0/8 192.0.2.1";
    for refusal in [
        "respond @outside 403",
        "error @outside 403",
        "abort @outside",
    ] {
        becomes(
            &format!("{outside}\n{refusal}\nreverse_proxy a:1"),
            &["allow \"10.0.0.0/8\" \"192.0.2.1\""],
        );
    }
    becomes(
        "@bad remote_ip 192.0.2.0/24\nrespond @bad 403\nreverse_proxy a:1",
        &["deny \"192.0.2.0/24\""],
    );
    becomes(
        "@outside {\nnot client_ip private_ranges\n}\nhandle /x/* {\nrespond @outside 403\nreverse_proxy b:1\n}\nhandle {\nreverse_proxy a:1\n}",
        &["allow \"192.168.0.0/16\""],
    );
    for closed in [
        // The directive after it does not answer all requests.
        "@outside not remote_ip 10.0.0.0/8\nhandle {\nrespond @outside 403\nreverse_proxy /x/* a:1\n}",
        "@outside not remote_ip 10.0.0.0/8\n@other not remote_ip 192.0.2.0/24\nrespond @outside 403\nrespond @other 403\nreverse_proxy a:1",
        "@outside not remote_ip forwarded\nrespond @outside 403\nreverse_proxy a:1",
        "@outside {\nnot remote_ip 10.0.0.0/8\npath /x/*\n}\nrespond @outside 403\nreverse_proxy a:1",
        "@outside not remote_ip 10.0.0.0/8\nrespond @outside 404\nreverse_proxy a:1",
    ] {
        is_closed(closed);
    }
}

#[test]
fn a_login_server_is_an_agent_for_the_whole_block() {
    let login = "forward_auth 127.0.0.1:9091 {\nuri /api/authz/forward-auth\ncopy_headers Remote-User Remote-Groups\n}";
    becomes(
        &format!("{login}\nreverse_proxy a:1"),
        &[
            "protocol \"forward-auth\"",
            "request-path \"/api/authz/forward-auth\"",
            "copy-headers \"Remote-User\" \"Remote-Groups\"",
            "agents \"login-1\"",
        ],
    );
    for closed in [
        "forward_auth 127.0.0.1:9091 {\nuri /verify?rd=x\n}\nreverse_proxy a:1",
        "forward_auth 127.0.0.1:9091 {\nuri /verify\ncopy_headers A>B\n}\nreverse_proxy a:1",
        "forward_auth 127.0.0.1:9091 {\nuri /verify\nheader_up X y\n}\nreverse_proxy a:1",
        "forward_auth /admin/* 127.0.0.1:9091 {\nuri /verify\n}\nreverse_proxy a:1",
    ] {
        is_closed(closed);
    }
}

#[test]
fn certificates_are_obtained_with_the_address_of_the_options() {
    let text = |options: &str, site: &str| {
        caddy(&format!(
            "{{\n{options}\n}}\na.test, b.test {{\n{site}\nreverse_proxy a:1\n}}\n*.c.test {{\nreverse_proxy a:1\n}}\n"
        ))
    };
    let migrated = text("email ops@example.com", "");
    assert_eq!(
        migrated.text.matches("acme {").count(),
        2,
        "{}",
        migrated.text
    );
    assert!(
        migrated.text.contains("redirect \"https\""),
        "{}",
        migrated.text
    );
    for (options, site) in [
        ("admin off", ""),
        ("email ops@example.com\nacme_dns x", ""),
        ("email ops@example.com\nacme_ca http://10.0.0.1/dir", ""),
        ("email {$MAIL}", ""),
        ("email ops@example.com", "tls internal"),
    ] {
        let migrated = text(options, site);
        assert!(!migrated.text.contains("acme {"), "{}", migrated.text);
        let notes = migrated.notes.iter().map(ToString::to_string);
        assert!(
            notes.into_iter().any(|it| it.contains("a.test")),
            "{options}"
        );
    }
}

#[test]
fn a_prefix_of_a_redirect_or_a_rewrite_is_replaced() {
    becomes(
        "handle_path /v1/* {\nredir * /v2{uri} 301\n}\nhandle {\nreverse_proxy a:1\n}",
        &["replace-prefix \"/v1\" \"/v2\""],
    );
    becomes(
        "handle_path /old/* {\nredir https://b.test{uri} 308\n}\nhandle {\nreverse_proxy a:1\n}",
        &[
            "redirect \"https://b.test\"",
            "replace-prefix \"/old\" \"/\"",
        ],
    );
    becomes(
        "rewrite * /inner{uri}\nreverse_proxy a:1",
        &["replace-prefix \"/\" \"/inner\""],
    );
    becomes(
        "handle_path /v1/* {\nrewrite * /legacy{uri}\nreverse_proxy a:1\n}\nhandle {\nreverse_proxy b:1\n}",
        &["replace-prefix \"/v1\" \"/legacy\""],
    );
    is_closed("rewrite * /inner{uri}\nreverse_proxy /inner/* b:1");
}

#[test]
fn a_path_that_ends_within_a_segment_is_removed_from_every_request() {
    for (rewrite, sent) in [
        ("", ["/", "/x", "/beta/x"]),
        (
            "rewrite * /legacy{uri}\n",
            ["/legacy/", "/legacy/x", "/legacy/beta/x"],
        ),
    ] {
        let migrated = site(&format!(
            "handle_path /v1* {{\n{rewrite}reverse_proxy a:1\n}}\nhandle {{\nreverse_proxy b:1\n}}"
        ));
        let settings = migrated.text.split("\ntests {").next().unwrap_or_default();
        for (path, sent) in ["/v1", "/v1/x", "/v1beta/x"].into_iter().zip(sent) {
            let text = format!(
                "{settings}\ntests {{ test \"sent\" {{ request \"GET\" \"http://a.test{path}\"; \
                 expect {{ targets \"a:1\"; upstream-path \"{sent}\" }} }} }}"
            );
            let loaded = parse(&text, "out.kdl");
            let loaded = loaded.unwrap_or_else(|report| panic!("{text}\n{report}"));
            let failed = failed_tests(&loaded.model);
            assert!(failed.is_empty(), "{text}\n{failed:?}");
        }
    }
    // `replace-prefix` of a redirect would leave `/v1beta` as it is.
    is_closed("handle_path /v1* {\nredir * /v2{uri} 301\n}\nhandle {\nrespond 404\n}");
}

#[test]
fn matchers_of_other_things_than_paths_keep_caddys_order() {
    let migrated = site(
        "@writes method POST\n@number path_regexp ^/items/[0-9]+$\nhandle @writes {\nreverse_proxy a:1\n}\n\
         handle @number {\nreverse_proxy b:1\n}\nhandle {\nreverse_proxy c:1\n}",
    );
    let text = format!(
        "{}\ntests {{ test \"order\" {{ request \"POST\" \"http://a.test/items/7\"; expect {{ targets \"a:1\" }} }} }}",
        migrated.text.split("\ntests {").next().unwrap()
    );
    let loaded = parse(&text, "out.kdl").unwrap_or_else(|report| panic!("{text}\n{report}"));
    let failed = failed_tests(&loaded.model);
    assert!(failed.is_empty(), "{text}\n{failed:?}");
}

#[test]
fn sizes_have_decimal_prefixes() {
    let limit = |size: &str| {
        site(&format!(
            "request_body {{\nmax_size {size}\n}}\nreverse_proxy a:1"
        ))
        .text
    };
    assert!(limit("10MB").contains("max-body-size 10000000"));
    assert!(limit("10MiB").contains("max-body-size 10485760"));
}
