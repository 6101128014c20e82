//! Data of certificates for metrics, warnings and renewals.

use crate::support::{KeyKind, Leaf, now, site};
use proxy_tls::{ChainInfo, EXPIRY_WARNING, TlsWarning};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
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

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(organization: &str, name: &str, last_year: i32) -> Authority {
    let mut params = CertificateParams::default();
    let names = &mut params.distinguished_name;
    names.push(DnType::OrganizationName, organization);
    names.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_after = date_time_ymd(last_year, 1, 1);
    Authority::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Creates a chain: a leaf that is valid for two years, and further certificates.
fn chain(name: &str, first_year: i32, issuer: &Authority, rest: &[&Authority]) -> ChainInfo {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(first_year, 1, 1);
    params.not_after = date_time_ymd(first_year + 2, 1, 1);
    let key = KeyPair::generate().unwrap();
    let leaf = params.signed_by(&key, issuer).unwrap().pem();
    let rest = rest.iter().map(|one| one.pem());
    parse(&std::iter::once(leaf).chain(rest).collect::<String>())
}

fn self_signed(name: &str, first_year: i32) -> ChainInfo {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(first_year, 1, 1);
    params.not_after = date_time_ymd(first_year + 2, 1, 1);
    let key = KeyPair::generate().unwrap();
    parse(&params.self_signed(&key).unwrap().pem())
}

fn parse(pem: &str) -> ChainInfo {
    ChainInfo::parse(pem.as_bytes()).unwrap()
}

#[test]
fn a_renewal_has_a_chain_to_the_same_authority() {
    let [first, second] = ["R1", "R2"].map(|name| authority("Trust", name, 2040));
    let staging = authority("(STAGING) Trust", "R1", 2040);
    let brief = authority("Trust", "R3", 2029);
    let old = chain("a.test", 2028, &first, &[&first]);
    let renewed = |new: &ChainInfo| new.renews(&old);

    assert!(renewed(&chain("a.test", 2029, &first, &[&first])));
    // Authorities issue from several certificates.
    assert!(renewed(&chain("a.test", 2029, &second, &[&second])));
    assert!(renewed(&chain("a.test", 2029, &first, &[&first, &second])));

    let harmful = [
        ("another host", chain("b.test", 2029, &first, &[&first])),
        ("no issuer", chain("a.test", 2029, &first, &[])),
        ("a wrong issuer", chain("a.test", 2029, &first, &[&second])),
        (
            "an authority for tests",
            chain("a.test", 2029, &staging, &[&staging]),
        ),
        ("no authority", self_signed("a.test", 2029)),
        (
            "an issuer that expires",
            chain("a.test", 2029, &brief, &[&brief]),
        ),
        ("the one before", chain("a.test", 2027, &first, &[&first])),
        ("a gap", chain("a.test", 2031, &first, &[&first])),
    ];
    for (name, new) in harmful {
        assert!(!renewed(&new), "{name}: {new:?}");
    }
}

#[test]
fn a_self_signed_certificate_is_renewed_by_any_authority() {
    let authority = authority("Trust", "R1", 2040);
    let old = self_signed("a.test", 2028);
    assert!(self_signed("a.test", 2029).renews(&old));
    assert!(chain("a.test", 2029, &authority, &[&authority]).renews(&old));
    assert!(!self_signed("b.test", 2029).renews(&old));
}
