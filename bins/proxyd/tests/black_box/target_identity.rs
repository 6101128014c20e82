//! Requests reach the target in their own plan, after any number of reloads.

use crate::support::{Config, target};
use proxy_testkit::{Gate, Proxyd, RawClient, Reload, Upstream, get, ok};

/// Creates a configuration that routes all requests to `upstream`, with its expected name in the
/// field `X-Target`.
fn named(name: &str, upstream: &Upstream) -> Config {
    let route = format!(r#"upstream "{name}"; request-headers {{ set "X-Target" "{name}" }}"#);
    Config::new()
        .route("all", &route)
        .upstream(name, &target(upstream))
}

/// Starts an upstream that responds with its name if it is the expected one, else with both names.
fn checking(name: &'static str) -> Upstream {
    Upstream::start(move |served| {
        while let Some(request) = served.request() {
            served.send(ok(server_name_sent_to(
                name,
                request.fields.get("x-target"),
            )));
        }
    })
}

fn server_name_sent_to(name: &str, wanted: Option<&str>) -> String {
    match wanted {
        Some(wanted) if wanted == name => name.to_owned(),
        wanted => format!("{name} got a request for {wanted:?}"),
    }
}

#[track_caller]
fn apply(proxyd: &Proxyd, config: &Config) {
    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);
}

/// Reloads a configuration that fails, because one of its addresses is in use.
#[track_caller]
fn refuse(proxyd: &Proxyd, config: Config, taken: &Upstream) {
    let address = taken.address();
    let listener = format!("listeners {{ listener \"taken\" {{ address \"{address}\" }} }}");
    let Reload::Refused(faults) = proxyd.reload(&config.top(&listener).kdl()) else {
        panic!("an address in use was put in force");
    };
    assert!(faults.contains("in use"), "{faults}");
}

/// Requests `/`; returns the body of the response.
#[track_caller]
fn target_name(client: &mut RawClient) -> String {
    client.ask(get("/", &[])).text()
}

#[test]
fn refused_reloads_do_not_lead_requests_to_the_connections_of_another_target() {
    let (old, new, other) = (checking("old"), checking("new"), checking("other"));
    let proxyd = named("old", &old).start();
    let mut client = proxyd.connect();
    assert_eq!(target_name(&mut client), "old");

    for _ in 0..2 {
        refuse(&proxyd, named("other", &other), &old);
        assert_eq!(target_name(&mut client), "old");
    }
    apply(&proxyd, &named("new", &new));

    assert_eq!(target_name(&mut client), "new");
    assert_eq!(old.requests().len(), 3);
    assert_eq!(other.connections(), 0);
}

#[test]
fn a_refused_reload_leaves_the_connections_of_targets_alone() {
    let (old, new) = (checking("old"), checking("new"));
    let proxyd = named("old", &old).start();
    let mut client = proxyd.connect();
    assert_eq!(target_name(&mut client), "old");

    for _ in 0..5 {
        refuse(&proxyd, named("new", &new), &old);
        assert_eq!(target_name(&mut client), "old");
    }
    apply(&proxyd, &named("old", &old));

    assert_eq!(target_name(&mut client), "old");
    assert_eq!(old.connections(), 1, "the kept connection is used on");
}

#[test]
fn a_response_older_than_three_reloads_does_not_give_its_connection_to_another_target() {
    let gate = Gate::new();
    let wait = gate.clone();
    let old = Upstream::start(move |served| {
        served.request();
        served.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
        wait.wait();
        served.send("later");
        while let Some(request) = served.request() {
            served.send(ok(server_name_sent_to(
                "old",
                request.fields.get("x-target"),
            )));
        }
    });
    let others = ["a", "b", "c"].map(|name| (name, checking(name)));
    let proxyd = named("old", &old).start();
    let mut early = proxyd.connect();
    early.send(get("/", &[]));
    let mut response = early.head();

    for (name, upstream) in &others {
        apply(&proxyd, &named(name, upstream));
    }
    gate.open();
    early.body(&mut response);
    assert_eq!(response.text(), "firstlater");

    // The first connection to the last target is opened only now.
    assert_eq!(target_name(&mut early), "c");
    for (name, upstream) in &others {
        apply(&proxyd, &named(name, upstream));
        assert_eq!(target_name(&mut early), *name);
    }
    assert_eq!(old.requests().len(), 1);
}

#[test]
fn a_retry_under_an_old_plan_does_not_use_the_connections_of_a_new_target() {
    let gate = Gate::new();
    let wait = gate.clone();
    let old = Upstream::start(move |served| {
        while let Some(request) = served.request() {
            if served.number() == 0 && request.target == "/again" {
                // The pooled connection closes without a response, so the request is sent again.
                wait.wait();
                return;
            }
            served.send(ok(server_name_sent_to(
                "old",
                request.fields.get("x-target"),
            )));
        }
    });
    let others = ["a", "b", "c"].map(|name| (name, checking(name)));
    let proxyd = named("old", &old).start();
    let mut early = proxyd.connect();
    assert_eq!(target_name(&mut early), "old");
    early.send(get("/again", &[]));
    old.wait_for_requests(2);

    let mut client = proxyd.connect();
    for (name, upstream) in &others {
        apply(&proxyd, &named(name, upstream));
        assert_eq!(target_name(&mut client), *name);
    }
    gate.open();

    assert_eq!(early.response().text(), "old");
    assert_eq!(old.connections(), 2, "a connection of its own");
}

#[test]
fn a_recovered_target_is_called_again() {
    let (one, two) = (checking("one"), checking("two"));
    let proxyd = named("one", &one).start();
    let mut client = proxyd.connect();

    for _ in 0..4 {
        for (name, upstream) in [("one", &one), ("two", &two)] {
            apply(&proxyd, &named(name, upstream));
            assert_eq!(target_name(&mut client), name);
        }
    }
}
