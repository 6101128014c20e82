//! Chains and keys as operators mix them up.
#![expect(clippy::unwrap_used, reason = "a test may stop")]

use control_auth::{CertificateError, CheckedCertificate};
use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};

const NOW: Timestamp = Timestamp::constant(1_750_000_000, 0);

struct Made {
    pem: String,
    key: KeyPair,
    params: CertificateParams,
}

fn params(hosts: &[&str], is_authority: bool) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.not_before = date_time_ymd(2025, 1, 1);
    params.not_after = date_time_ymd(2026, 1, 1);
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    params
}

fn authority() -> Made {
    let (params, key) = (params(&[], true), KeyPair::generate().unwrap());
    let pem = params.self_signed(&key).unwrap().pem();
    Made { pem, key, params }
}

fn signed(params: CertificateParams, by: &Made) -> Made {
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::from_params(&by.params, &by.key);
    let pem = params.signed_by(&key, &issuer).unwrap().pem();
    Made { pem, key, params }
}

fn check(chain: &[&Made], key: &str) -> Result<CheckedCertificate, CertificateError> {
    let chain: String = chain.iter().map(|made| made.pem.as_str()).collect();
    CheckedCertificate::check(&chain, key, NOW)
}

#[test]
fn a_chain_with_its_key_is_accepted() {
    let root = authority();
    let names = ["A.example.com", "*.b.example.com", "10.0.0.1"];
    let leaf = signed(params(&names, false), &root);
    let checked = check(&[&leaf, &root], &leaf.key.serialize_pem()).unwrap();
    let expected = ["a.example.com", "*.b.example.com", "10.0.0.1"];
    assert_eq!(checked.hosts, expected);
    assert_eq!(
        checked.not_after,
        "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap()
    );
    assert_eq!(checked.fingerprint.len(), 64);
    let alone = check(&[&leaf], &leaf.key.serialize_pem());
    assert_eq!(alone.unwrap().fingerprint, checked.fingerprint);
}

#[test]
fn pem_of_other_editors_is_read_and_no_certificate_is_skipped() {
    let root = authority();
    let leaf = signed(params(&["a.example.com"], false), &root);
    let key = leaf.key.serialize_pem();
    let marked = |pem: &str| format!("\u{feff}{}", pem.replace('\n', " \r\n"));
    let checked = CheckedCertificate::check(&marked(&leaf.pem), &marked(&key), NOW);
    assert!(checked.is_ok(), "{checked:?}");
    for between in ["\u{feff}", " ", "\t"] {
        let chain = format!("{}{between}{}", leaf.pem, root.pem);
        let checked = CheckedCertificate::check(&chain, &key, NOW);
        assert_eq!(
            checked.unwrap_err(),
            CertificateError::NotPem,
            "{between:?}"
        );
    }
    let joined = format!("{}{}", leaf.pem.trim_end(), root.pem);
    let checked = CheckedCertificate::check(&joined, &key, NOW);
    assert_eq!(checked.unwrap_err(), CertificateError::NotPem);
}

#[test]
fn a_chain_and_a_key_that_do_not_match_are_refused() {
    let (root, stranger) = (authority(), authority());
    let leaf = signed(params(&["a.example.com"], false), &root);
    let nameless = signed(params(&[], false), &root);
    let mut old = params(&["a.example.com"], false);
    old.not_after = date_time_ymd(2025, 2, 1);
    let old = signed(old, &root);
    let own = leaf.key.serialize_pem();
    let raw = |chain: &str| CheckedCertificate::check(chain, &own, NOW);
    let garbage = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let cases = [
        (check(&[], &own), CertificateError::NotPem),
        (
            check(&[&leaf, &stranger], &own),
            CertificateError::BrokenChain,
        ),
        (
            check(&[&root, &leaf], &root.key.serialize_pem()),
            CertificateError::Nameless,
        ),
        (
            check(&[&leaf, &root], &root.key.serialize_pem()),
            CertificateError::KeyMismatch,
        ),
        (check(&[&leaf], &leaf.pem), CertificateError::NotAKey),
        (
            check(&[&leaf], &format!("{own}{own}")),
            CertificateError::NotAKey,
        ),
        (
            check(&[&nameless], &nameless.key.serialize_pem()),
            CertificateError::Nameless,
        ),
        (
            check(&[&old], &old.key.serialize_pem()),
            CertificateError::Expired,
        ),
        (
            raw(&format!("{}{own}", leaf.pem)),
            CertificateError::NotOnlyCertificates,
        ),
        (raw(&leaf.pem.repeat(11)), CertificateError::TooLarge),
        (raw(&" ".repeat(1024 * 1024)), CertificateError::TooLarge),
        (raw(garbage), CertificateError::BadCertificate),
    ];
    for (answer, expected) in cases {
        assert_eq!(answer, Err(expected));
    }
}
