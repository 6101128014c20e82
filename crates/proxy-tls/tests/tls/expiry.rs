//! Certificate data for metrics and warnings.

use crate::support::{KeyKind, Leaf, now, site};
use proxy_tls::{EXPIRY_WARNING, TlsWarning};
use std::time::Duration;

#[test]
fn every_certificate_has_its_names_and_its_time() {
    let site = site(&[
        Leaf::new(&["A.example", "*.a.example", "192.0.2.1"]),
        Leaf {
            kind: KeyKind::Ed25519,
            ..Leaf::new(&["b.example"])
        },
    ]);

    let known = site.server.certificates();
    assert_eq!(known.len(), 2);
    assert_eq!(known[0].names, ["a.example", "*.a.example", "192.0.2.1"]);
    assert_eq!(known[0].file, site.dir.path("leaf0.crt"));
    assert_eq!(known[1].names, ["b.example"]);
    assert_ne!(known[0].fingerprint, known[1].fingerprint);
}

#[test]
fn seconds_left_count_down_and_below_zero() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let known = &site.server.certificates()[0];

    let hour = Duration::from_hours(1);
    assert_eq!(known.seconds_left(known.not_after - hour), 3600);
    assert_eq!(known.seconds_left(known.not_after), 0);
    assert_eq!(known.seconds_left(known.not_after + hour), -3600);
}

#[test]
fn a_certificate_is_worth_a_warning_in_its_last_14_days() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let known = &site.server.certificates()[0];
    let (file, not_after, not_before) = (known.file.clone(), known.not_after, known.not_before);
    let second = Duration::from_secs(1);

    let at = |moment| site.server.warnings(moment);
    assert_eq!(at(now()), []);
    assert_eq!(at(not_after - EXPIRY_WARNING), []);
    assert_eq!(
        at(not_after - EXPIRY_WARNING + second),
        [TlsWarning::ExpiresSoon {
            file: file.clone(),
            not_after
        }]
    );
    assert_eq!(
        at(not_after + second),
        [TlsWarning::Expired {
            file: file.clone(),
            not_after
        }]
    );
    assert_eq!(
        at(not_before - second),
        [TlsWarning::NotYetValid { file, not_before }]
    );
}

#[test]
fn a_certificate_that_names_no_host_is_worth_a_warning() {
    let site = site(&[Leaf::new(&[])]);
    let file = site.dir.path("leaf0.crt");

    assert_eq!(site.server.warnings(now()), [TlsWarning::Nameless { file }]);
}
