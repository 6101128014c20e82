//! Targets that serve only while no other one can.

use crate::support::Config;
use proxy_testkit::{Upstream, get};

#[test]
fn a_backup_target_serves_only_while_no_other_is_healthy() {
    let (mut first, second) = (Upstream::saying("first"), Upstream::saying("second"));
    let backup = Upstream::saying("backup");
    let targets = format!(
        "target \"{}\"; target \"{}\"; target \"{}\" backup=#true",
        first.address(),
        second.address(),
        backup.address()
    );
    let proxyd = Config::new()
        .route("all", "upstream \"u\"")
        .upstream("u", &targets)
        .start();
    let ask = || proxyd.connect().ask(get("/", &[])).text();

    for _ in 0..10 {
        assert_ne!(ask(), "backup");
    }
    assert!(backup.requests().is_empty());

    // One of the two is left.
    first.stop_accepting();
    first.hang_up();
    for _ in 0..10 {
        assert_eq!(ask(), "second");
    }
    let mut second = second;
    second.stop_accepting();
    second.hang_up();
    for _ in 0..10 {
        assert_eq!(ask(), "backup");
    }
}

#[test]
fn a_retry_uses_a_backup_target_after_all_others() {
    let busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy";
    let (first, second) = (Upstream::answering(busy), Upstream::answering(busy));
    let backup = Upstream::saying("backup");
    let targets = format!(
        "target \"{}\" backup=#true; target \"{}\"; target \"{}\"",
        backup.address(),
        first.address(),
        second.address()
    );
    let proxyd = Config::new()
        .route(
            "all",
            "upstream \"u\"; policies { retry { attempts 2; on \"503\" } }",
        )
        .upstream("u", &targets)
        .start();

    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "backup");
    assert_eq!(first.requests().len(), 1);
    assert_eq!(second.requests().len(), 1);
}

#[test]
fn retries_share_backup_targets_by_their_weights() {
    let busy = Upstream::answering("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    let (light, heavy) = (Upstream::saying("light"), Upstream::saying("heavy"));
    let targets = format!(
        "target \"{}\"; target \"{}\" backup=#true; target \"{}\" {{ backup #true; weight 3 }}; \
         load-balancing \"weighted\"",
        busy.address(),
        light.address(),
        heavy.address()
    );
    let retry = "retry { attempts 1; on \"503\"; budget-percent 100 }";
    let proxyd = Config::new()
        .route("all", &format!("upstream \"u\"; policies {{ {retry} }}"))
        .upstream("u", &targets)
        .start();

    let mut client = proxyd.connect();
    for _ in 0..8 {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }
    assert_eq!(busy.requests().len(), 8);
    assert_eq!((light.requests().len(), heavy.requests().len()), (2, 6));
}

#[test]
fn a_backup_target_serves_while_the_only_other_one_is_ejected() {
    let broken = Upstream::answering(
        "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 6\r\n\r\nbroken",
    );
    let backup = Upstream::saying("backup");
    let targets = format!(
        "target \"{}\"; target \"{}\" backup=#true; outlier-detection {{ consecutive-failures 2 }}",
        broken.address(),
        backup.address()
    );
    let proxyd = Config::new()
        .route("all", "upstream \"u\"")
        .upstream("u", &targets)
        .start();
    let mut client = proxyd.connect();

    for _ in 0..2 {
        assert_eq!(client.ask(get("/", &[])).text(), "broken");
    }
    assert_eq!(client.ask(get("/", &[])).text(), "backup");
}
