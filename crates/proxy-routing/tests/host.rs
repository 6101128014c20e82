//! Normalization of hosts.

use proptest::prelude::{any, proptest};
use proxy_routing::{HostError, normal_host};
use proxy_testkit::replay;
use std::borrow::Cow;

#[path = "../fuzz/checks.rs"]
mod checks;

#[test]
fn hosts_are_brought_into_one_form() {
    let cases = [
        ("example.com", "example.com", None),
        ("Example.COM:8443", "example.com", Some(8443)),
        ("example.com.", "example.com", None),
        ("example.com.:80", "example.com", Some(80)),
        ("example.com:", "example.com", None),
        ("example.com:0080", "example.com", Some(80)),
        ("a_b~c!", "a_b~c!", None),
        ("127.0.0.1:1", "127.0.0.1", Some(1)),
        ("[::1]", "[::1]", None),
        ("[::1]:443", "[::1]", Some(443)),
        ("[0:0:0:0:0:0:0:1]", "[::1]", None),
        ("[2001:DB8::A]", "[2001:db8::a]", None),
    ];
    for (text, name, port) in cases {
        let host = normal_host(text).unwrap();
        assert_eq!((&*host.name, host.port), (name, port), "{text}");
    }
}

#[test]
fn an_invalid_host_is_refused() {
    let long = "a".repeat(256);
    let cases = [
        ("", HostError::Empty),
        (".", HostError::Empty),
        (":80", HostError::Empty),
        (&long, HostError::TooLong),
        ("a b", HostError::Character),
        ("a/b", HostError::Character),
        ("user@host", HostError::Character),
        ("a%41", HostError::Character),
        ("bücher.de", HostError::Character),
        ("a\0", HostError::Character),
        ("a..b", HostError::EmptyLabel),
        (".a", HostError::EmptyLabel),
        ("a..", HostError::EmptyLabel),
        ("a:b", HostError::Port),
        ("a:65536", HostError::Port),
        ("a:+1", HostError::Port),
        ("a:1:2", HostError::Port),
        ("::1", HostError::Port),
        ("[::1", HostError::Literal),
        ("[::1]x", HostError::Literal),
        ("[::1%25eth0]", HostError::Literal),
        ("[v1.a]", HostError::Literal),
        ("[127.0.0.1]", HostError::Literal),
        ("[]", HostError::Literal),
    ];
    for (text, fault) in cases {
        assert_eq!(normal_host(text), Err(fault), "{text}");
    }
}

#[test]
fn a_host_in_its_form_is_borrowed() {
    for text in ["example.com", "example.com:80", "[::1]:80", "example.com."] {
        assert!(
            matches!(normal_host(text).unwrap().name, Cow::Borrowed(_)),
            "{text}"
        );
    }
}

#[test]
fn the_corpus_holds() {
    replay("host", |bytes| {
        checks::host(&String::from_utf8_lossy(bytes));
    });
}

proptest! {
    #[test]
    fn any_text_has_one_form(text in any::<String>()) {
        checks::host(&text);
    }

    #[test]
    fn any_host_has_one_form(text in "\\[?[0-9a-fA-F:.]{0,20}\\]?[A-Za-z.-]{0,10}(:[0-9]{0,6})?") {
        checks::host(&text);
    }
}
