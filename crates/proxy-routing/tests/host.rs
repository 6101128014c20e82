//! One form for every host.

use proptest::prelude::{any, proptest};
use proxy_routing::{HostFault, normal_host};
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
fn what_is_no_host_is_refused() {
    let long = "a".repeat(256);
    let cases = [
        ("", HostFault::Empty),
        (".", HostFault::Empty),
        (":80", HostFault::Empty),
        (&long, HostFault::TooLong),
        ("a b", HostFault::Character),
        ("a/b", HostFault::Character),
        ("user@host", HostFault::Character),
        ("a%41", HostFault::Character),
        ("bücher.de", HostFault::Character),
        ("a\0", HostFault::Character),
        ("a..b", HostFault::EmptyLabel),
        (".a", HostFault::EmptyLabel),
        ("a..", HostFault::EmptyLabel),
        ("a:b", HostFault::Port),
        ("a:65536", HostFault::Port),
        ("a:+1", HostFault::Port),
        ("a:1:2", HostFault::Port),
        ("::1", HostFault::Port),
        ("[::1", HostFault::Literal),
        ("[::1]x", HostFault::Literal),
        ("[::1%25eth0]", HostFault::Literal),
        ("[v1.a]", HostFault::Literal),
        ("[127.0.0.1]", HostFault::Literal),
        ("[]", HostFault::Literal),
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
