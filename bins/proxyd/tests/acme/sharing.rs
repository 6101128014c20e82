//! Several processes with one certificate storage.

use crate::site::{Site, wait_for_certificate};
use proxy_testkit::{Pebble, Policy};
use proxy_testkit::{Proxyd, Upgrade, free_port};

/// Returns the number of certificates that a process has ordered.
fn orders(proxyd: &Proxyd) -> usize {
    let printed = proxyd.stderr().records();
    let ordered = printed.iter();
    ordered
        .filter(|it| it.text("message") == "a certificate is ordered")
        .count()
}

#[test]
fn two_processes_obtain_one_certificate() {
    let pebble = Pebble::start(Policy::USUAL);
    pebble.resolve("a.test");
    let first = Site::new(&pebble);
    let block = first.block("\"a.test\"", "");
    let one = first.start(&block);
    // The authority can reach only the first process.
    let mut second = Site::new(&pebble);
    second.http_port = free_port();
    second.tls_port = free_port();
    let other = second.start(&block);

    wait_for_certificate(&one);
    let _served = other.stderr().find(0, |record| {
        record.text("message") == "a new certificate is in use"
    });
    let roots = pebble.issued_roots();
    let shown = first.ask("a.test", &roots);
    assert_eq!(shown.body.as_deref(), Ok("hello"));
    assert_eq!(
        shown.certificates,
        second.ask("a.test", &roots).certificates
    );
    assert_eq!(orders(&one), 1);
}

#[test]
fn an_upgrade_keeps_the_certificate() {
    let pebble = Pebble::start(Policy::USUAL);
    pebble.resolve("a.test");
    let site = Site::new(&pebble);
    let mut proxyd = site.start(&site.block("\"a.test\"", ""));
    wait_for_certificate(&proxyd);
    let roots = pebble.issued_roots();
    let before = site.ask("a.test", &roots);

    assert_eq!(proxyd.upgrade(), Upgrade::Done);
    proxyd.wait_for_former();
    let after = site.ask("a.test", &roots);
    assert_eq!(after.body.as_deref(), Ok("hello"));
    assert_eq!(after.certificates, before.certificates);
    assert_eq!(orders(&proxyd), 1);
}
