//! Failures of issuance: diagnostics for operators, and uninterrupted service for clients.

use crate::site::{Site, wait_for_certificate, wait_for_failure};
use proxy_testkit::{DnsReply, Pebble, Policy, Reload, Upgrade, http};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn an_unreachable_host_is_reported_with_advice() {
    let pebble = Pebble::start(Policy::USUAL);
    let site = Site::new(&pebble);
    let proxyd = site.start(&site.block("\"unknown.test\"", ""));
    let failure = wait_for_failure(&proxyd);
    // Pebble has no specific problem type for names that do not resolve.
    let problem = failure.text("problem");
    assert!(
        ["dns", "connection", "malformed", "unauthorized"].contains(&problem),
        "{problem}"
    );
    assert!(
        failure.text("detail").contains("unknown.test"),
        "{failure:?}"
    );
    assert!(!failure.text("advice").is_empty());
    assert_eq!(failure.text("stored_until"), "none");

    // Without a certificate, handshakes fail, but the process is ready for everything else.
    let refused = site.ask("unknown.test", &pebble.server_roots()).body;
    assert!(refused.unwrap_err().contains("alert"));
    let admin = proxyd.admin_address().port();
    let (status, ready) = http(admin, "/ready");
    assert_eq!(status, 200);
    assert!(
        ready.contains("unknown.test has no certificate yet"),
        "{ready}"
    );
    let (_, metrics) = http(admin, "/metrics");
    let failures = metrics
        .lines()
        .find(|line| line.starts_with("proxy_acme_consecutive_failures{") && line.ends_with(" 1"));
    assert!(failures.is_some(), "{metrics}");
}

#[test]
fn a_failing_authority_leaves_the_old_certificate() {
    let mut pebble = Pebble::start(Policy {
        validity_secs: 30,
        ..Policy::USUAL
    });
    pebble.resolve("a.test");
    let site = Site::new(&pebble);
    let block = site.block("\"a.test\"", "");
    let mut proxyd = site.start(&block);
    wait_for_certificate(&proxyd);
    let roots = pebble.issued_roots();
    let first = site.ask("a.test", &roots).certificates;
    pebble.stop();
    proxyd.terminate();
    assert!(proxyd.wait().success());

    // Another type of key needs a new certificate, which the authority refuses.
    let proxyd = site.start(&site.block("\"a.test\"", "key-type \"ecdsa-p384\""));
    let failure = wait_for_failure(&proxyd);
    assert_eq!(failure.text("problem"), "unreachable");
    assert_eq!(site.ask("a.test", &roots).certificates, first);
}

#[test]
fn an_account_with_another_key_is_reported() {
    let pebble = Pebble::start(Policy::USUAL);
    pebble.resolve("a.test");
    let [site, other] = [(); 2].map(|()| {
        let site = Site::new(&pebble);
        let mut proxyd = site.start(&site.block("\"a.test\"", ""));
        wait_for_certificate(&proxyd);
        proxyd.terminate();
        proxyd.wait();
        site
    });
    let key = |site: &Site| {
        let account = fs::read_to_string(site.file("account.json")).unwrap();
        let key = account.split("\"key_pkcs8\":\"").nth(1).unwrap();
        key.split('"').next().unwrap().to_owned()
    };
    let account = fs::read_to_string(site.file("account.json")).unwrap();
    let mixed = account.replace(&key(&site), &key(&other));
    fs::write(site.file("account.json"), mixed).unwrap();
    fs::remove_file(site.file(".pem")).unwrap();

    let proxyd = site.start(&site.block("\"a.test\"", ""));
    let failure = wait_for_failure(&proxyd);
    assert_eq!(failure.text("problem"), "malformed", "{failure:?}");
    let advice = failure.text("advice");
    assert!(advice.contains("account.json"), "{advice}");
}

#[test]
fn an_authority_with_an_unknown_root_is_not_asked() {
    let [pebble, other] = [(); 2].map(|()| Pebble::start(Policy::USUAL));
    pebble.resolve("a.test");
    let site = Site::new(&pebble);
    let block = site.block("\"a.test\"", "");
    let roots = |pebble: &Pebble| pebble.server_roots().display().to_string();
    let proxyd = site.start(&block.replace(&roots(&pebble), &roots(&other)));
    // Reported with the setting `directory-ca-file`.
    let failure = wait_for_failure(&proxyd);
    assert_eq!(failure.text("problem"), "unreachable", "{failure:?}");
}

#[test]
fn a_certificate_that_could_not_be_stored_is_not_ordered_again() {
    let pebble = Pebble::start(Policy::USUAL);
    let site = Site::new(&pebble);
    let record = site.folder.path().join("record");
    fs::write(&record, "").unwrap();
    let name = "_acme-challenge.a.test";
    pebble.dns.set(name, DnsReply::TextsIn(record.clone()));
    // During the order, the folder of certificates becomes unusable, as on a full disk.
    let program = site.folder.path().join("dns-record");
    let script = format!(
        "#!/bin/sh\n[ $1 = cleanup ] && exit\necho \"$3\" > {}\n\
         cd {}/*/ && rmdir certificates && echo full > certificates\n",
        record.display(),
        site.storage().display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let more = format!(
        "challenge \"dns-01\"; dns-command \"{}\"",
        program.display()
    );
    let block = site.block("\"a.test\"", &more);
    let proxyd = site.start(&block);
    let failure = wait_for_failure(&proxyd);
    assert_eq!(failure.text("problem"), "storage", "{failure:?}");

    fs::remove_file(site.file("certificates")).unwrap();
    // Changed settings retry at once.
    let block = block.replace("ops@example.com", "other@example.com");
    assert_eq!(proxyd.reload(&site.kdl(&block)), Reload::Applied);
    wait_for_certificate(&proxyd);
    let answer = site.ask("a.test", &pebble.issued_roots());
    assert_eq!(answer.body.as_deref(), Ok("hello"));
    let printed = proxyd.stderr().lines().join("\n");
    let orders = printed.matches("\"a certificate is ordered\"").count();
    assert_eq!(orders, 1, "{printed}");
}

#[test]
fn a_truncated_certificate_is_set_aside_and_replaced() {
    let pebble = Pebble::start(Policy::USUAL);
    pebble.resolve("a.test");
    let site = Site::new(&pebble);
    let block = site.block("\"a.test\"", "");
    let mut proxyd = site.start(&block);
    wait_for_certificate(&proxyd);
    let file = site.file(".pem");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    // A process that serves keeps the certificate in memory.
    let reloaded = proxyd.reload(&site.kdl(&block));
    assert!(matches!(reloaded, Reload::Refused(_)), "{reloaded:?}");
    let upgraded = proxyd.upgrade();
    assert!(matches!(upgraded, Upgrade::Failed(_)), "{upgraded:?}");
    let answer = site.ask("a.test", &pebble.issued_roots());
    assert_eq!(answer.body.as_deref(), Ok("hello"));
    proxyd.terminate();
    assert!(proxyd.wait().success());

    let proxyd = site.start(&block);
    let _set_aside = proxyd.stderr().find(0, |record| {
        record.text("message")
            == "a stored certificate is damaged; it was renamed, and another one is ordered"
    });
    wait_for_certificate(&proxyd);
    let answer = site.ask("a.test", &pebble.issued_roots());
    assert_eq!(answer.body.as_deref(), Ok("hello"));
    let aside = fs::read(site.file(".bad")).unwrap();
    assert_eq!(aside, &whole[..whole.len() / 2]);
}
