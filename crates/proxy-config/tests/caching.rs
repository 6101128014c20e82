//! Faults of caches that do not fit other settings.
#![expect(clippy::panic, reason = "tests may fail loudly")]

use proxy_config::parse;

/// The messages of the faults of a route with `settings`, and of `top` at the top level.
fn faults(settings: &str, top: &str) -> Vec<String> {
    let text = format!(
        "routes {{ route \"r\" {{ {settings} }} }}\n{top}\n\
         upstreams {{ upstream \"u\" {{ target \"127.0.0.1:9000\" }} }}\n\
         agents {{ agent \"waf\" {{ unix-socket \"/run/x.sock\"; failure-mode \"open\" }} }}"
    );
    match parse(&text, "x.kdl") {
        Ok(_) => Vec::new(),
        Err(report) => report
            .faults()
            .iter()
            .map(|fault| fault.message.clone())
            .collect(),
    }
}

#[track_caller]
fn fault(settings: &str, top: &str, expected: &str) {
    match faults(settings, top).as_slice() {
        [only] => assert_eq!(only, expected),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cache_that_fits_is_taken() {
    for settings in [
        "upstream \"u\"; cache",
        "upstream \"u\"; policies { cache { ttl-secs 5; statuses 200 302 } }",
        "upstream \"u\"; cache; buffer-requests #true",
    ] {
        assert_eq!(faults(settings, ""), [""; 0], "{settings}");
    }
    let bounds = "cache { max-bytes \"8MiB\"; max-object-bytes \"1MiB\" }\nlimits { max-memory-bytes \"128MiB\" }";
    assert_eq!(faults("upstream \"u\"; cache", bounds), [""; 0]);
    // Without a route that caches, the bounds have no effect.
    assert_eq!(
        faults("upstream \"u\"", "cache { max-bytes \"1MiB\" }"),
        [""; 0]
    );
}

#[test]
fn a_cache_that_does_not_fit_is_a_fault() {
    let cached = "upstream \"u\"; cache";
    fault(
        "upstream \"u\"; cache; agents \"waf\"",
        "",
        "agents decide about each response, and a stored one is not shown to them",
    );
    fault(
        "upstream \"u\"; cache; buffer-responses #true",
        "",
        "`cache` buffers responses already",
    );
    fault(
        "respond 200 \"x\"; cache",
        "",
        "`cache` requires an `upstream`",
    );
    fault(
        "upstream \"u\"; cache { statuses 200 206 }",
        "",
        "a response with 206 is a part of another one",
    );
    fault(
        "matches { method \"POST\" \"PUT\" }; upstream \"u\"; cache",
        "",
        "`cache` has no effect: the route matches neither GET nor HEAD",
    );
    for name in ["a=b", "a&b", "a;b", "a?b", "a#b", ""] {
        let settings = format!("upstream \"u\"; cache {{ ignore-query \"{name}\" }}");
        let expected = format!("\"{name}\" is not a parameter's name");
        fault(&settings, "", &expected);
    }
    fault(
        cached,
        "cache { max-bytes \"4MiB\" }",
        "a stored body of `max-object-bytes` has no room: at most an eighth of `max-bytes`, 512KiB",
    );
    fault(
        cached,
        "limits { max-memory-bytes \"100MiB\" }",
        "the cache takes 64MiB, more than half of `max-memory-bytes`",
    );
}
