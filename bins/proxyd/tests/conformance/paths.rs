//! Ambiguous paths, by either protocol, under either policy.

use crate::frames::{Frames, HEADERS, WHOLE, frame};
use crate::hpack::{request_head, status};
use proxy_testkit::{Proxyd, RawClient, Upstream, get};
use std::net::SocketAddr;

const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");

/// Targets, and whether a strict listener accepts them.
const TARGETS: [(&str, bool); 26] = [
    ("/", true),
    ("/a/../b", true),
    ("/a/./b", true),
    ("//a", true),
    ("/a//b", true),
    ("/%61", true),
    ("/a%20b", true),
    ("/a%3Fb", true),
    ("/a;b=%2F?c=%2F..%5C", true),
    ("/a?b=%2F..%5C%00%zz", true),
    ("/a?b/../../c", true),
    ("/%0d%0ax:%20y", true),
    ("/..", false),
    ("/../a", false),
    ("/a/../../b", false),
    ("/%2e%2e/a", false),
    ("/.%2E/a", false),
    ("/a%2Fb", true),
    ("/a%2fb", true),
    ("/a%5Cb", true),
    ("/..%2Fb", false),
    ("/a/..;/..;/b", false),
    ("/a%00b", false),
    ("/%", false),
    ("/%4", false),
    ("/%zz", false),
];

#[test]
fn a_policy_for_paths_holds_by_either_protocol() {
    let upstream = Upstream::saying("ok");
    let address = upstream.address();
    let proxyd = Proxyd::start(
        BINARY,
        &format!(
            r#"
            listeners {{
                listener "strict" {{ address "127.0.0.1:0"; h2c #true; path-policy "strict" }}
                listener "forward" {{ address "127.0.0.1:0"; h2c #true; path-policy "forward" }}
            }}
            routes {{ route "all" {{ upstream "u" }} }}
            upstreams {{ upstream "u" {{ target "{address}" }} }}
            system {{ worker-threads 1 }}
            "#
        ),
    );
    let [strict, forward] = proxyd.addresses() else {
        panic!("two listeners were asked for");
    };
    let mut expected = Vec::new();
    for (target, taken) in TARGETS {
        for (listener, taken) in [(*strict, taken), (*forward, true)] {
            let wanted = if taken { 200 } else { 400 };
            let statuses = [by_http1(listener, target), by_http2(listener, target)];
            assert_eq!(statuses, [wanted; 2], "{target} on {listener}");
            expected.extend(taken.then_some([target; 2]).into_iter().flatten());
        }
    }
    let seen = upstream.requests();
    let seen: Vec<_> = seen.iter().map(|request| request.target.as_str()).collect();
    assert_eq!(seen, expected);
}

fn by_http1(listener: SocketAddr, target: &str) -> u16 {
    RawClient::connect(listener).ask(get(target, &[])).status
}

fn by_http2(listener: SocketAddr, target: &str) -> u16 {
    let mut client = Frames::begin(listener, &[]);
    client.send(&frame(
        HEADERS,
        WHOLE,
        1,
        &request_head("GET", "http", "a.test", target),
    ));
    status(&client.next_of(HEADERS).payload)
}
