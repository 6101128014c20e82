//! A target that cannot be reached, in metrics and the admin interface.
#![expect(clippy::disallowed_methods, reason = "a test waits until a deadline")]

use crate::support::{Config, METRICS, admin, metric, target};
use proxy_testkit::{EVENT_TIMEOUT, Record, Upstream, closed_port, get};
use std::fs;
use std::time::Instant;

#[test]
fn a_target_that_cannot_be_connected_to_is_reported_everywhere() {
    let alive = Upstream::saying("alive");
    let dead = closed_port();
    let targets = format!("target \"{dead}\"; {}", target(&alive));
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .route("metrics", &format!("priority 100; {METRICS}"))
        .upstream("u", &targets)
        .top(r#"observability { error-log { path "error.log" } }; admin { address "127.0.0.1:0" }"#)
        .start();
    let mut client = proxyd.connect();
    for _ in 0..10 {
        assert_eq!(client.ask(get("/", &[])).text(), "alive");
    }

    let message = "a target cannot be connected to; it is left out while another one serves";
    let is_it = move |record: &Record| record.text("message") == message;
    let event = proxyd.stderr().find(0, is_it);
    assert_eq!(event.text("upstream"), "u");
    assert_eq!(event.text("target"), dead.to_string());
    assert!(event.text("error").contains("refused"), "{event:?}");
    let end = Instant::now() + EVENT_TIMEOUT;
    let log = proxyd.folder().join("error.log");
    while !fs::read_to_string(&log)
        .unwrap_or_default()
        .contains(message)
    {
        assert!(Instant::now() < end, "nothing in the error log");
    }
    let shown = &admin(&proxyd, "/admin/upstreams")["upstreams"]["u"]["targets"][0];
    assert_eq!(shown["healthy"], false);
    assert_eq!(shown["failed_requests"], 1);
    assert_eq!(shown["causes"][0], "connect");
    let last_error = shown["last_error"].as_str().unwrap();
    assert!(last_error.starts_with("connect: ") && last_error.contains("refused"));
    let healthy = format!("proxy_upstream_target_healthy{{upstream=\"u\",target=\"{dead}\"}} ");
    assert!(metric(&mut client, &healthy) < 0.5);
}
