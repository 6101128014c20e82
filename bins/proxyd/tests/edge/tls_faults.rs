//! Unusable certificates are errors of the configuration, reported before serving begins.

use crate::support::{Authority, BINARY, Identity, ocsp_response, over_tls, start, to};
use proxy_testkit::{Reload, Upstream};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::tempdir;

/// The output of `proxyd --test`, and whether it succeeded.
fn check_with_files(kdl: &str, identities: &[(&str, &Identity)]) -> (bool, String) {
    let folder = tempdir().unwrap();
    for (name, identity) in identities {
        identity.write(folder.path(), name);
    }
    check_in_folder(folder.path(), kdl)
}

/// Like [`check_with_files`], for files in `folder`.
fn check_in_folder(folder: &Path, kdl: &str) -> (bool, String) {
    let config = folder.join("proxyd.kdl");
    fs::write(&config, kdl).unwrap();
    let output = Command::new(BINARY)
        .arg("--test")
        .arg("--config")
        .arg(&config)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    (output.status.success(), printed)
}

#[test]
fn a_key_of_another_certificate_is_reported_at_its_place() {
    let authority = Authority::new("root");
    let mut site = authority.issue(&["a.test"]);
    site.key = authority.issue(&["a.test"]).key;
    let upstream = Upstream::saying("hello");

    let (is_valid, printed) = check_with_files(&to(&upstream, &over_tls("")), &[("site", &site)]);
    assert!(!is_valid);
    assert!(printed.contains("bad-certificate"), "{printed}");
    assert!(printed.contains("key-file \"site.key\""), "{printed}");
}

#[test]
fn a_certificate_about_to_expire_is_a_warning() {
    let authority = Authority::new("root");
    let site = authority.issue_until(&["a.test"], 2001);
    let upstream = Upstream::saying("hello");

    let (is_valid, printed) = check_with_files(&to(&upstream, &over_tls("")), &[("site", &site)]);
    assert!(is_valid, "{printed}");
    assert!(printed.contains("certificate-expires"), "{printed}");
}

#[test]
fn an_ocsp_response_about_another_certificate_is_a_fault_at_its_place() {
    let folder = tempdir().unwrap();
    let site = Authority::new("root").issue_numbered(&["a.test"], 42);
    site.write(folder.path(), "site");
    let file = folder.path().join("site.ocsp");
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &over_tls(r#"ocsp-file "site.ocsp""#));

    for (serial, is_good) in [(42, true), (43, false)] {
        fs::write(&file, ocsp_response(serial, 2090)).unwrap();
        let (is_valid, printed) = check_in_folder(folder.path(), &kdl);
        assert_eq!(is_valid, is_good, "{printed}");
        assert_eq!(
            printed.contains("ocsp-file \"site.ocsp\""),
            !is_good,
            "{printed}"
        );
    }
}

#[test]
fn a_stale_ocsp_response_is_a_warning() {
    let folder = tempdir().unwrap();
    let site = Authority::new("root").issue_numbered(&["a.test"], 42);
    site.write(folder.path(), "site");
    fs::write(folder.path().join("site.ocsp"), ocsp_response(42, 2001)).unwrap();
    let upstream = Upstream::saying("hello");

    let kdl = to(&upstream, &over_tls(r#"ocsp-file "site.ocsp""#));
    let (is_valid, printed) = check_in_folder(folder.path(), &kdl);
    assert!(is_valid, "{printed}");
    assert!(printed.contains("doubtful-certificate"), "{printed}");
}

#[test]
fn a_reload_to_a_bad_certificate_changes_nothing() {
    let authority = Authority::new("root");
    let site = authority.issue(&["a.test"]);
    let mut broken = authority.issue(&["a.test"]);
    broken.key.clone_from(&site.key);
    let upstream = Upstream::saying("hello");
    let kdl = to(&upstream, &over_tls(""));
    let proxyd = start(&kdl, &[("site", &site), ("broken", &broken)]);

    let outcome = proxyd.reload(&kdl.replace("site.", "broken."));
    let Reload::Refused(faults) = outcome else {
        panic!("a certificate without its key was taken");
    };
    assert!(faults.contains("bad-certificate"), "{faults}");
}
