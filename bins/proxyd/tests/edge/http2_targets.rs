//! HTTP/2 requests reach the target of their plan, after any reloads.

use crate::support::{Http2Upstream, start};
use h2::Reason;
use proxy_testkit::{Proxyd, RawClient, Reload, get};
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
