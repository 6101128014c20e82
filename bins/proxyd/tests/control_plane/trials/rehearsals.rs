//! Rehearsals: bundles that are rejected before they serve a client, and failures that were there before.

use super::{forwarding, held_upstream, roll_out, start, until_closed, until_state};
use crate::world::Running;
use proxy_testkit::{Upstream, closed_port, ok};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Two services of one node, each with a live test.
struct Services {
    page: SocketAddr,
    shop: SocketAddr,
    wiki: SocketAddr,
}

impl Services {
    fn config(&self, comment: &str) -> String {
        let Self { page, shop, wiki } = self;
        format!(
            "// {comment}\n\
             listeners {{ listener \"main\" {{ address \"{page}\" }} }}\n\
             routes {{ route \"wiki\" {{ matches {{ path-prefix \"/wiki\" }}; upstream \"wiki\" }}\n\
             route \"shop\" {{ upstream \"shop\" }} }}\n\
             upstreams {{ upstream \"shop\" {{ target \"{shop}\" }}; \
             upstream \"wiki\" {{ target \"{wiki}\" }} }}\n\
             tests {{ test \"the shop answers\" {{ request \"GET\" \"/cart\"; live #true; \
             expect {{ answer-status 200 }} }}\n\
             test \"the wiki answers\" {{ request \"GET\" \"/wiki/a\"; live #true; \
             expect {{ answer-status 200 }} }} }}\n"
        )
    }
}

fn bundle(running: &Running, config: &str) -> String {
    running.world.bundle(&json!({ "proxy.kdl": config }))
}

fn reason(back: &Value) -> &str {
    back["reason"].as_str().unwrap_or_default()
}

/// A server without TLS: a connection that does not begin with a GET is closed.
fn plain_server(text: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer_gets(&stream, text));
        }
    });
    address
}

fn answer_gets(mut stream: &TcpStream, text: &str) {
    let mut lines = BufReader::new(stream).split(b'\n').map_while(Result::ok);
    while lines.next().is_some_and(|line| line.starts_with(b"GET ")) {
        lines.by_ref().find(|line| line == b"\r");
        if stream.write_all(&ok(text)).is_err() {
            return;
        }
    }
}

#[test]
fn a_live_test_that_failed_before_is_reported_and_stops_no_rollout() {
    let running = start();
    let (shop, wiki) = (Upstream::saying("one"), Upstream::saying("wiki"));
    let mut services = Services {
        page: running.page.address,
        shop: shop.address(),
        wiki: wiki.address(),
    };
    let first = bundle(&running, &services.config("first"));
    let rollout = roll_out(&running, &first, 0);
    until_state(&running, &rollout, "completed");
    let address = wiki.address();
    drop(wiki);
    until_closed(address);
    // The same tests, and a comment more.
    let second = services.config("second");
    let rollout = roll_out(&running, &bundle(&running, &second), 0);
    until_state(&running, &rollout, "completed");
    let expected = "live test \"the wiki answers\" fails: the status is 502, not 200; it did before \
                    the bundle as well";
    control_testkit::until("the node reports the failure", || {
        let events = running.world.get(&format!("nodes/{}/events", running.node));
        events.to_string().contains(&expected.replace('"', "\\\""))
    });
    // The failure is of the bundle where it expects something else, or fails otherwise.
    let stricter = second.replace(
        "\"/wiki/a\"; live #true; expect { answer-status 200",
        "\"/wiki/a\"; live #true; expect { answer-status 201",
    );
    assert_ne!(stricter, second);
    let other = second.replace("; upstream \"wiki\" }\n", "; respond 404 }\n");
    assert_ne!(other, second);
    for (config, status) in [(stricter, "502, not 201"), (other, "404, not 200")] {
        let rollout = roll_out(&running, &bundle(&running, &config), 0);
        let back = until_state(&running, &rollout, "rolled_back");
        let expected = format!("live test \"the wiki answers\" fails: the status is {status}");
        assert!(reason(&back).contains(&expected), "{back}");
    }
    // So is that of another service.
    services.shop = closed_port();
    let rollout = roll_out(&running, &bundle(&running, &services.config("third")), 0);
    let back = until_state(&running, &rollout, "rolled_back");
    assert!(
        reason(&back).contains("\"the shop answers\" fails"),
        "{back}"
    );
    assert!(!reason(&back).contains("the wiki"), "{back}");
    assert_eq!(running.page_text(), "one");
}

/// A server with a page at each path but `/health`.
fn without_health() -> Upstream {
    Upstream::start(|served| {
        while let Some(request) = served.request() {
            let is_missing = request.target == "/health";
            let answer = if is_missing {
                "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
            } else {
                "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntwo"
            };
            served.send(answer);
        }
    })
}

#[test]
fn targets_in_use_have_to_pass_a_new_health_check_before_the_bundle_serves() {
    let running = start();
    let server = without_health();
    let address = running.page.address;
    let config = |more: &str| {
        let config = forwarding(address, server.address(), "");
        let config = config["proxy.kdl"].as_str().unwrap().to_owned();
        config.replace("upstream \"u\" {", &format!("upstream \"u\" {{ {more}"))
    };
    let check = |path: &str| {
        // Longer than any soak until the target is unhealthy.
        format!(
            "health-check {{ type \"http\" {{ path \"{path}\" }}; interval-secs 60; \
             unhealthy-threshold 5 }}; "
        )
    };
    let complete = |config: &str| {
        let rollout = roll_out(&running, &bundle(&running, config), 0);
        until_state(&running, &rollout, "completed");
    };
    let rejected = |config: &str| {
        let rollout = roll_out(&running, &bundle(&running, config), 0);
        let back = until_state(&running, &rollout, "rolled_back");
        reason(&back).to_owned()
    };
    complete(&config(""));
    let lost = format!(
        "upstream \"u\" loses {}: its health check fails",
        server.address()
    );
    let found = rejected(&config(&check("/health")));
    assert!(found.contains(&lost), "{found}");
    assert!(found.contains("answered with status 404"), "{found}");
    complete(&config(&check("/healthz")));
    let renamed = config(&check("/health")).replace("\"u\"", "\"v\"");
    let found = rejected(&renamed);
    assert!(found.contains(&lost.replace("\"u\"", "\"v\"")), "{found}");
    // A target more that is not up yet gets no request.
    complete(&config(&format!(
        "{}target \"{}\"; ",
        check("/healthz"),
        closed_port()
    )));
    // Another server in place of the healthy one has to be healthy.
    let dead = config(&check("/healthz"))
        .replace(&server.address().to_string(), &closed_port().to_string());
    let found = rejected(&dead);
    assert!(
        found.contains("upstream \"u\" is down: no healthy target among"),
        "{found}"
    );
    assert_eq!(running.page_text(), "two");
}

#[test]
fn targets_in_use_have_to_speak_tls_before_the_bundle_serves() {
    let running = start();
    let server = plain_server("two");
    let plain = forwarding(running.page.address, server, "");
    let plain = plain["proxy.kdl"].as_str().unwrap().to_owned();
    let rollout = roll_out(&running, &bundle(&running, &plain), 0);
    until_state(&running, &rollout, "completed");
    let secure = plain.replace("upstream \"u\" {", "upstream \"u\" { tls; ");
    let rollout = roll_out(&running, &bundle(&running, &secure), 0);
    let back = until_state(&running, &rollout, "rolled_back");
    let expected = format!("upstream \"u\" loses {server}: its connection fails");
    assert!(reason(&back).contains(&expected), "{back}");
    assert_eq!(running.page_text(), "two");
}

#[test]
fn a_new_target_that_never_answers_or_does_not_exist_serves_no_client() {
    let running = start();
    let good = Upstream::saying("two");
    let address = running.page.address;
    let config = |targets: &str| {
        format!(
            "listeners {{ listener \"main\" {{ address \"{address}\" }} }}\n\
             routes {{ route \"shop\" {{ upstream \"u\" }} }}\n\
             upstreams {{ upstream \"u\" {{ {targets} }} }}\n"
        )
    };
    let target = |address: SocketAddr| format!("target \"{address}\"; ");
    let rolled_out = |targets: &str, state: &str| {
        let rollout = roll_out(&running, &bundle(&running, &config(targets)), 0);
        until_state(&running, &rollout, state)
    };
    let kept = target(good.address());
    rolled_out(&kept, "completed");
    let (hanging, release) = held_upstream();
    let back = rolled_out(
        &format!("{kept}{}", target(hanging.address())),
        "rolled_back",
    );
    let silent = format!(
        "upstream \"u\" gets no answer from {} to `OPTIONS *`",
        hanging.address()
    );
    assert!(reason(&back).contains(&silent), "{back}");
    drop(release);
    // Any answer will do, and one of a server that is to be started later.
    let refusing = Upstream::start(|served| {
        while served.request().is_some() {
            served.send("HTTP/1.1 501 Not Implemented\r\ncontent-length: 0\r\n\r\n");
        }
    });
    rolled_out(
        &format!("{kept}{}", target(refusing.address())),
        "completed",
    );
    rolled_out(&format!("{kept}{}", target(closed_port())), "completed");
    let missing = "target \"shop.invalid:80\"; ";
    let back = rolled_out(&format!("{kept}{missing}"), "rolled_back");
    let expected = "upstream \"u\" has the new target shop.invalid:80, and there is no such name";
    assert!(reason(&back).contains(expected), "{back}");
    let check = "health-check { type \"http\" { path \"/\" } }; ";
    rolled_out(&format!("{check}{kept}"), "completed");
    rolled_out(&format!("{check}{kept}{missing}"), "completed");
    assert_eq!(running.page_text(), "two");
}

/// A server that answers its health check, and no other request.
fn broken_and_healthy() -> Upstream {
    Upstream::start(|served| {
        while let Some(request) = served.request() {
            let answer = if request.target == "/healthz" {
                ok("healthy")
            } else {
                b"HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n".to_vec()
            };
            served.send(answer);
        }
    })
}

#[test]
fn a_new_target_that_passes_its_health_check_alone_serves_no_client() {
    let running = start();
    let (good, broken) = (Upstream::saying("two"), broken_and_healthy());
    let tests = "test \"the shop answers\" { request \"GET\" \"/cart\"; live #true; \
                 expect { answer-contains \"two\" } }";
    let config = |more: &str| {
        let config = forwarding(running.page.address, good.address(), tests);
        let config = config["proxy.kdl"].as_str().unwrap().to_owned();
        // After the target that serves already.
        let target = format!("target \"{}\"", good.address());
        assert!(config.contains(&target), "{config}");
        config.replace(&target, &format!("{target}; {more}"))
    };
    let check = "health-check { type \"http\" { path \"/healthz\" } }; ";
    let target = |address: SocketAddr| format!("target \"{address}\"; ");
    let rolled_out = |config: &str, state: &str| {
        let rollout = roll_out(&running, &bundle(&running, config), 0);
        until_state(&running, &rollout, state)
    };
    rolled_out(&config(""), "completed");
    // The check is new as well, and then is in force already.
    let with_broken = config(&format!("{}{check}", target(broken.address())));
    let expected = "live test \"the shop answers\" fails";
    for _ in 0..2 {
        let back = rolled_out(&with_broken, "rolled_back");
        assert!(reason(&back).contains(expected), "{back}");
        rolled_out(&config(check), "completed");
    }
    // A target that is still starting is no fault.
    let starting = config(&format!("{}{check}", target(closed_port())));
    rolled_out(&starting, "completed");
    assert_eq!(running.page_text(), "two");
}
