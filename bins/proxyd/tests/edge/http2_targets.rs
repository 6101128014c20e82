//! HTTP/2 requests reach the target of their plan, after any reloads.

use crate::support::{
    END_HEADERS, END_STREAM, GOAWAY, HEADERS, Http2Upstream, SETTINGS, frame, start,
};
use h2::Reason;
use proxy_testkit::{Proxyd, RawClient, Reload, Served, Upstream, get};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;

/// Routes every request to `upstream` over HTTP/2, under its own name; the request contains the
/// expected one.
fn named(name: &str, upstream: &Http2Upstream, more: &str) -> String {
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
        routes {{ route "all" {{
            upstream "{name}"
            request-headers {{ set "X-Target" "{name}" }}
        }} }}
        upstreams {{ upstream "{name}" {{ target "{}"; protocol "h2" }} }}
        system {{ worker-threads 1 }}
        {more}
        "#,
        upstream.address
    )
}

/// Responds with its name to requests for it, and with the mismatch to any other. Those to `/held`
/// are answered once there is a permit.
fn checking(name: &'static str, permits: &Arc<Semaphore>) -> Http2Upstream {
    let permits = Arc::clone(permits);
    Http2Upstream::start(move |request| {
        let permits = Arc::clone(&permits);
        async move {
            if request.head.uri.path() == "/held" {
                permits.acquire().await.unwrap().forget();
            }
            let wanted = request.head.headers.get("x-target");
            let wanted = wanted.map(|name| name.to_str().unwrap().to_owned());
            let message = match wanted {
                Some(wanted) if wanted == name => name.to_owned(),
                wanted => format!("{name} got a request for {wanted:?}"),
            };
            request.reply(message);
        }
    })
}

#[track_caller]
fn apply(proxyd: &Proxyd, kdl: &str) {
    assert_eq!(proxyd.reload(kdl), Reload::Applied);
}

#[track_caller]
fn get_body(client: &mut RawClient) -> String {
    client.ask(get("/", &[])).text()
}

#[test]
fn refused_reloads_do_not_lead_requests_to_another_target_s_http2_connection() {
    let permits = Arc::new(Semaphore::new(0));
    let [old, new, other] = ["old", "new", "other"].map(|name| checking(name, &permits));
    let proxyd = start(&named("old", &old, ""), &[]);
    let mut client = proxyd.connect();
    assert_eq!(get_body(&mut client), "old");

    let taken = format!(
        r#"listeners {{ listener "taken" {{ address "{}" }} }}"#,
        old.address
    );
    for _ in 0..2 {
        let refused = proxyd.reload(&named("other", &other, &taken));
        assert!(matches!(refused, Reload::Refused(_)), "{refused:?}");
        assert_eq!(get_body(&mut client), "old");
    }
    apply(&proxyd, &named("new", &new, ""));

    assert_eq!(get_body(&mut client), "new");
}

#[test]
fn a_call_of_an_old_plan_does_not_keep_its_connection_for_another_target() {
    let permits = Arc::new(Semaphore::new(0));
    let names = ["old", "a", "b", "c"];
    let upstreams = names.map(|name| checking(name, &permits));
    let proxyd = start(&named("old", &upstreams[0], ""), &[]);
    let mut early = proxyd.connect();
    early.send(get("/held", &[]));
    upstreams[0].requests.wait_for(1);

    let mut client = proxyd.connect();
    for (name, upstream) in names.iter().zip(&upstreams).skip(1) {
        apply(&proxyd, &named(name, upstream, ""));
        assert_eq!(get_body(&mut client), *name);
    }
    permits.add_permits(1);

    assert_eq!(early.response().text(), "old");
    for (name, upstream) in names.iter().zip(&upstreams) {
        apply(&proxyd, &named(name, upstream, ""));
        assert_eq!(get_body(&mut client), *name);
    }
}

#[test]
fn a_call_that_is_repeated_under_an_old_plan_reaches_its_own_target() {
    let permits = Arc::new(Semaphore::new(0));
    let names = ["a", "b", "c"];
    let upstreams = names.map(|name| checking(name, &permits));
    let old = refusing_once(&permits);
    let proxyd = start(&named("old", &old, ""), &[]);
    let mut early = proxyd.connect();
    early.send(get("/", &[]));
    old.requests.wait_for(1);

    let mut client = proxyd.connect();
    for (name, upstream) in names.iter().zip(&upstreams) {
        apply(&proxyd, &named(name, upstream, ""));
        assert_eq!(get_body(&mut client), *name);
    }
    permits.add_permits(1);

    let response = early.response();
    assert_eq!((response.status, response.text().as_str()), (200, "old"));
}

/// Refuses the first request once there is a permit, and answers later ones.
fn refusing_once(permits: &Arc<Semaphore>) -> Http2Upstream {
    let permits = Arc::clone(permits);
    let refused = Arc::new(AtomicBool::new(false));
    Http2Upstream::start(move |mut request| {
        let (permits, first) = (Arc::clone(&permits), !refused.swap(true, Ordering::SeqCst));
        async move {
            if first {
                permits.acquire().await.unwrap().forget();
                request.respond.send_reset(Reason::REFUSED_STREAM);
            } else {
                request.reply("old");
            }
        }
    })
}

/// Reads frames until one of this kind on a stream; returns the stream. `None` at the end.
fn stream_of(served: &mut Served, kind: u8) -> Option<u32> {
    loop {
        let header = served.exactly(9).ok()?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        served.exactly(usize::try_from(length).unwrap()).ok()?;
        if header[3] == kind {
            return Some(u32::from_be_bytes(header[5..9].try_into().unwrap()));
        }
    }
}

#[test]
fn a_graceful_end_of_a_connection_is_no_failure_of_its_target() {
    const OK: &[u8] = b"\x88";
    // Each connection serves one request. The next one arrives as it ends in good order.
    let upstream = Upstream::start(|served| {
        drop(served.exactly(24));
        served.send(frame(SETTINGS, 0, 0, &[]));
        let Some(first) = stream_of(served, HEADERS) else {
            return;
        };
        served.send(frame(HEADERS, END_STREAM | END_HEADERS, first, OK));
        if stream_of(served, HEADERS).is_some() {
            let last_and_code = [first.to_be_bytes(), 0_u32.to_be_bytes()].concat();
            served.send(frame(GOAWAY, 0, 0, &last_and_code));
            served.end();
        }
    });
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
        routes {{ route "all" {{ upstream "u"; circuit-breaker {{ failure-threshold 1 }} }} }}
        upstreams {{ upstream "u" {{ target "{}"; target "127.0.0.1:9" {{ backup #true }}
            protocol "h2"; outlier-detection {{ consecutive-failures 1 }} }} }}
        admin {{ address "127.0.0.1:0" }}
        system {{ worker-threads 1 }}
        "#,
        upstream.address()
    );
    let proxyd = start(&kdl, &[]);

    // No part of the request was processed, so any method is sent again.
    let post = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n";
    for _ in 0..6 {
        assert_eq!(proxyd.connect().ask(post).status, 200);
    }

    assert!(
        upstream.connections() >= 3,
        "connections are reused, and end"
    );
    let mut admin = RawClient::connect(proxyd.admin_address());
    let request = "GET /admin/upstreams HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let target = admin.ask(request).json()["upstreams"]["u"]["targets"][0].clone();
    assert_eq!(target["failed_requests"], 0, "{target}");
    assert_eq!(target["healthy"], true, "{target}");
}
