//! Migration of TCP relays.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

use proxy_config::parse;
use proxy_migrate::{Language, Migrated, Source, migrate};
use proxy_plan::failed_tests;

fn migrated(language: Language, text: &str) -> Migrated {
    let source = Source {
        name: "x".to_owned(),
        text: text.to_owned(),
    };
    migrate(language, &source, &|_| None).unwrap_or_else(|error| panic!("{error}"))
}

/// Formats a server with a `map` of names.
fn names(map: &str) -> String {
    format!(
        "stream {{ map $ssl_preread_server_name $to {{ hostnames; {map} }} \
         server {{ listen 8443; ssl_preread on; proxy_pass $to; }} }}"
    )
}

/// Formats a frontend with `lines`, and three backends.
fn frontend(lines: &str) -> String {
    format!(
        "defaults\nmode tcp\nfrontend f\nbind :8443\n{lines}\nbackend a\nserver s 10.0.0.1:1\nbackend b\n\
         server s 10.0.0.2:1\nbackend none\n"
    )
}

const INSPECT: &str =
    "tcp-request inspect-delay 5s\ntcp-request content accept if { req.ssl_hello_type 1 }\n";

/// Returns the upstream that a connection reaches; `None` if it is refused.
fn reached(migrated: &Migrated, url: &str, client: &str) -> Option<String> {
    let settings = migrated.text.split("\ntests {").next().unwrap();
    let names: Vec<&str> = settings
        .lines()
        .filter_map(|line| line.strip_prefix("    upstream \"")?.split('"').next())
        .collect();
    let passes = |expect: &str| {
        let probe = format!(
            "tests {{ test \"probe\" {{ request \"TCP\" \"{url}\"; client-ip \"{client}\"; expect {{ {expect} }} }} }}"
        );
        let loaded = parse(&format!("{settings}\n{probe}"), "out.kdl");
        let loaded = loaded.unwrap_or_else(|report| panic!("{settings}\n{report}"));
        failed_tests(&loaded.model).is_empty()
    };
    let found = names
        .iter()
        .find(|name| passes(&format!("upstream \"{name}\"")));
    if found.is_none() {
        assert!(passes("status 404") || passes("status 403"), "{settings}");
    }
    found.map(|name| (*name).to_owned())
}

/// A configuration, with server names of handshakes and the upstreams that their connections reach.
type Case = (Language, String, &'static [(&'static str, &'static str)]);

#[test]
fn a_connection_reaches_the_upstream_of_its_name_or_none() {
    let named = "use_backend a if { req.ssl_sni -i a.test }\n";
    let cases: Vec<Case> = vec![
        (
            Language::Nginx,
            names("a.test 10.0.0.1:1; .b.test 10.0.0.2:1; default 10.0.0.3:1;"),
            &[
                ("a.test", "10.0.0.1-1"),
                ("b.test", "10.0.0.2-1"),
                ("x.b.test", "10.0.0.2-1"),
                ("c.test", "10.0.0.3-1"),
            ],
        ),
        // Names that match an expression belong to no other case.
        (
            Language::Nginx,
            names("a.test 10.0.0.1:1; *.b.test 10.0.0.2:1; ~^old 10.0.0.4:1; default 10.0.0.3:1;"),
            &[
                ("a.test", "10.0.0.1-1"),
                ("x.b.test", "10.0.0.2-1"),
                ("old.test", ""),
            ],
        ),
        // A name without a target must not match the wildcard.
        (
            Language::Nginx,
            names("in.b.test unix:/x; *.b.test 10.0.0.2:1; a.test 10.0.0.1:1;"),
            &[
                ("in.b.test", ""),
                ("x.b.test", ""),
                ("a.test", "10.0.0.1-1"),
            ],
        ),
        (
            Language::Haproxy,
            frontend(&format!("{INSPECT}{named}default_backend b")),
            &[("a.test", "a"), ("c.test", "b")],
        ),
        (
            Language::Haproxy,
            frontend(&format!(
                "{INSPECT}use_backend b if {{ req.ssl_sni -m end .test }}\n{named}"
            )),
            &[("a.test", "b"), ("c.example", "")],
        ),
        // After a rule that is not converted, no rule may receive its connections.
        (
            Language::Haproxy,
            frontend(&format!(
                "{INSPECT}{named}use_backend none if {{ req.ssl_sni -m sub in }}\ndefault_backend b"
            )),
            &[("a.test", "a"), ("in.test", "")],
        ),
    ];
    for (language, text, connections) in cases {
        let migrated = migrated(language, &text);
        for (name, upstream) in connections {
            let found = reached(&migrated, &format!("tls://{name}:8443"), "192.0.2.1");
            assert_eq!(
                found.unwrap_or_default(),
                *upstream,
                "{name}\n{text}\n{}",
                migrated.text
            );
        }
    }
}

/// Rules about clients are converted, or there is no listener.
#[test]
fn clients_that_were_refused_are_refused() {
    let stream = |lines: &str| {
        format!("stream {{ server {{ listen 8443; proxy_pass 10.0.0.1:1; {lines} }} }}")
    };
    for (language, text, inside, outside) in [
        (
            Language::Nginx,
            stream("allow 10.0.0.0/8; deny all;"),
            "10.1.1.1",
            "192.0.2.1",
        ),
        (
            Language::Nginx,
            stream("deny 192.0.2.0/24; allow all;"),
            "10.1.1.1",
            "192.0.2.1",
        ),
        (
            Language::Haproxy,
            frontend("tcp-request connection reject if { src 192.0.2.0/24 }\ndefault_backend a"),
            "10.1.1.1",
            "192.0.2.1",
        ),
        (
            Language::Haproxy,
            frontend(
                "acl in src 10.0.0.0/8\ntcp-request connection reject unless in\ndefault_backend a",
            ),
            "10.1.1.1",
            "192.0.2.1",
        ),
    ] {
        let migrated = migrated(language, &text);
        let at = |client: &str| reached(&migrated, "tcp://127.0.0.1:8443", client).is_some();
        assert!(at(inside), "{text}\n{}", migrated.text);
        assert!(!at(outside), "{text}\n{}", migrated.text);
    }
}

#[test]
fn a_check_that_is_not_converted_leaves_no_listener() {
    let stream = |lines: &str| {
        format!("stream {{ server {{ listen 8443; proxy_pass 10.0.0.1:1; {lines} }} }}")
    };
    for (language, text) in [
        (Language::Nginx, stream("deny all;")),
        (Language::Nginx, stream("js_access check.access;")),
        (Language::Nginx, stream("include checks.conf;")),
        (Language::Nginx, stream("proxy_ssl on;")),
        (Language::Nginx, stream("proxy_protocol on; proxy_protocol_tlv 0x4 a;")),
        (Language::Nginx, stream("return 200;")),
        (
            Language::Nginx,
            "stream { ssl_verify_client on; server { listen 8443 ssl; ssl_certificate a; ssl_certificate_key b; \
             proxy_pass 10.0.0.1:1; } }"
                .to_owned(),
        ),
        (Language::Nginx, "stream { server { listen 53 udp; proxy_pass 10.0.0.1:1; } }".to_owned()),
        (Language::Nginx, "stream { server { listen 1000-2000; proxy_pass 10.0.0.1:1; } }".to_owned()),
        (
            Language::Haproxy,
            frontend("tcp-request content reject if { src_conn_rate gt 10 }\ndefault_backend a"),
        ),
        (
            Language::Haproxy,
            frontend("tcp-request connection accept if { src 10.0.0.0/8 }\ntcp-request connection reject\ndefault_backend a"),
        ),
        (
            Language::Haproxy,
            frontend("tcp-request connection reject if { src -f blocked.txt }\ndefault_backend a"),
        ),
        (
            Language::Haproxy,
            frontend("tcp-request connection reject if !{ src 10.0.0.0/8 }\ntcp-request connection reject if !{ src 10.1.0.0/16 }\ndefault_backend a"),
        ),
        (
            Language::Haproxy,
            "defaults\nmode tcp\nlisten l\nbind :8443\nserver s a:1 send-proxy-v2-ssl\n".to_owned(),
        ),
        (
            Language::Haproxy,
            "defaults\nmode tcp\nlisten l\nbind :8443\nserver s a:1 send-proxy-v2 proxy-v2-options crc32c\n".to_owned(),
        ),
        // One of two servers would receive an unexpected header.
        (
            Language::Haproxy,
            "defaults\nmode tcp\nlisten l\nbind :8443\nserver s a:1 send-proxy\nserver t b:1\n".to_owned(),
        ),
        (
            Language::Haproxy,
            "defaults\nmode tcp\nlisten l\nbind :8443\ndefault-server send-proxy\nserver s a:1\n".to_owned(),
        ),
        (
            Language::Haproxy,
            "defaults\nmode tcp\nlisten l\nbind :8443\nserver s a:1 ssl verify none\n".to_owned(),
        ),
        (
            Language::Haproxy,
            "frontend f\nbind :8443\ndefault_backend b\nbackend b\ntcp-request content reject if { src 10.0.0.1 }\nserver s a:1\n".to_owned(),
        ),
    ] {
        let migrated = migrated(language, &text);
        assert!(!migrated.text.contains("listener \""), "{text}\n{}", migrated.text);
        let is_told = migrated.notes.iter().any(|left| left.place.line > 0);
        assert!(is_told, "{text}\n{}", migrated.text);
    }
}

/// Returns the names of upstreams with a `PROXY` header, and its version or an empty text.
fn headers(migrated: &Migrated) -> Vec<(String, String)> {
    let loaded = parse(&migrated.text, "out.kdl");
    let loaded = loaded.unwrap_or_else(|report| panic!("{}\n{report}", migrated.text));
    assert!(failed_tests(&loaded.model).is_empty(), "{}", migrated.text);
    let blocks = migrated.text.split("\n    upstream \"").skip(1);
    let found = blocks.map(|block| {
        let name = block.split('"').next().unwrap_or_default().to_owned();
        let block = block.split("\n    }").next().unwrap_or_default();
        let version = block.split("send-proxy \"").nth(1).unwrap_or_default();
        (
            name,
            version.split('"').next().unwrap_or_default().to_owned(),
        )
    });
    found.collect()
}

#[test]
fn a_proxy_header_for_targets_is_converted() {
    let owned = |found: &[(&str, &str)]| -> Vec<(String, String)> {
        let found = found.iter();
        found
            .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
            .collect()
    };
    let nginx = "stream { upstream a { server 10.0.0.1:1; } \
                 server { listen 8441; proxy_protocol on; proxy_pass a; } \
                 server { listen 8442; proxy_pass a; } \
                 server { listen 8443; proxy_protocol on; proxy_pass 10.0.0.1:1; } \
                 server { listen 8444; proxy_protocol off; proxy_pass 10.0.0.1:1; } }";
    let outer = "stream { proxy_protocol on; server { listen 8441; proxy_pass 10.0.0.1:1; } \
                 server { listen 8442; proxy_protocol off; proxy_pass 10.0.0.1:1; } }";
    let haproxy = |header: &str| {
        format!(
            "defaults\nmode tcp\nlisten l\nbind :8443\nserver s 10.0.0.1:1 {header} check\nserver t 10.0.0.2:1 {header}\n"
        )
    };
    for (language, text, expected) in [
        (
            Language::Nginx,
            nginx.to_owned(),
            owned(&[("a", "v1"), ("a-2", "")]),
        ),
        (
            Language::Nginx,
            outer.to_owned(),
            owned(&[("10.0.0.1-1", "v1"), ("10.0.0.1-1-2", "")]),
        ),
        (
            Language::Haproxy,
            haproxy("send-proxy"),
            owned(&[("l", "v1")]),
        ),
        (
            Language::Haproxy,
            haproxy("send-proxy-v2"),
            owned(&[("l", "v2")]),
        ),
        (Language::Haproxy, haproxy(""), owned(&[("l", "")])),
    ] {
        let migrated = migrated(language, &text);
        assert_eq!(migrated.notes, [], "{text}");
        assert_eq!(headers(&migrated), expected, "{}", migrated.text);
    }
}

#[test]
fn upstreams_of_requests_and_of_connections_are_not_mixed_up() {
    let text = "http { upstream app { server 10.0.0.1:1; } server { listen 8080; location / { proxy_pass http://app; } } }\n\
                stream { upstream app { server 10.0.0.2:1; } server { listen 8443; proxy_pass app; } }";
    let migrated = migrated(Language::Nginx, text);
    let found = reached(&migrated, "tcp://127.0.0.1:8443", "10.0.0.9");
    assert_eq!(found.as_deref(), Some("app-2"), "{}", migrated.text);
    let loaded = parse(&migrated.text, "out.kdl").unwrap_or_else(|report| panic!("{report}"));
    let failed = failed_tests(&loaded.model);
    assert!(failed.is_empty(), "{}\n{failed:?}", migrated.text);
}
