//! Certificates that cannot be used are faults of the configuration, told before anything is served.

use crate::support::{Authority, BINARY, Identity, over_tls, start, to};
use proxy_testkit::{Reload, Upstream};
use std::fs;
use std::process::Command;
use tempfile::tempdir;

/// What `proxyd --test` says, and whether it is content.
fn tested(kdl: &str, identities: &[(&str, &Identity)]) -> (bool, String) {
    let folder = tempdir().unwrap();
    for (name, identity) in identities {
        identity.write(folder.path(), name);
    }
    let config = folder.path().join("proxyd.kdl");
    fs::write(&config, kdl).unwrap();
    let output = Command::new(BINARY)
        .arg("--test")
        .arg("--config")
        .arg(&config)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.success(), said)
}

#[test]
fn a_key_of_another_certificate_is_a_fault_at_its_place() {
    let authority = Authority::new("root");
    let mut site = authority.issue(&["a.test"]);
    site.key = authority.issue(&["a.test"]).key;
    let upstream = Upstream::saying("hello");

    let (content, said) = tested(&to(&upstream, &over_tls("")), &[("site", &site)]);
    assert!(!content);
    assert!(said.contains("bad-certificate"), "{said}");
    assert!(said.contains("key-file \"site.key\""), "{said}");
}

#[test]
fn a_certificate_about_to_expire_is_a_warning() {
    let authority = Authority::new("root");
    let site = authority.issue_until(&["a.test"], 2001);
    let upstream = Upstream::saying("hello");

    let (content, said) = tested(&to(&upstream, &over_tls("")), &[("site", &site)]);
    assert!(content, "{said}");
    assert!(said.contains("certificate-expires"), "{said}");
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
