//! Challenges other than HTTP-01, external accounts, and types of keys.

use crate::site::{Site, wait_for_certificate, wait_for_failure};
use proxy_testkit::DnsReply;
use proxy_testkit::{EXTERNAL_ACCOUNT, Pebble, Policy};
use rcgen::{KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn a_certificate_is_obtained_by_tls_alpn_01() {
    let pebble = Pebble::start(Policy::USUAL);
    pebble.resolve("a.test");
    let site = Site::new(&pebble);
    let proxyd = site.start(&site.block("\"a.test\"", "challenge \"tls-alpn-01\""));
    wait_for_certificate(&proxyd);
    let answer = site.ask("a.test", &pebble.issued_roots());
    assert_eq!(answer.body.as_deref(), Ok("hello"));
    // A validation does not count as a failed handshake.
    let printed = proxyd.stdout().lines().join("\n");
    assert!(!printed.contains("client_tls_failed"), "{printed}");
}

#[test]
fn a_certificate_is_obtained_by_dns_01() {
    let pebble = Pebble::start(Policy::USUAL);
    let site = Site::new(&pebble);
    let records = site.folder.path().join("records");
    fs::create_dir(&records).unwrap();
    let name = "_acme-challenge.a.test";
    pebble.dns.set(name, DnsReply::TextsIn(records.join(name)));
    let script = format!(
        "#!/bin/sh\nfile={}/$2\nlog={}\necho \"$1 $2\" >> $log\ncase $1 in\npresent) echo \"$3\" >> $file ;;\n\
         cleanup) grep -v -x -e \"$3\" $file > $file.new; mv $file.new $file ;;\nesac\n",
        records.display(),
        site.folder.path().join("calls").display()
    );
    let program = site.folder.path().join("dns-record");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let more = format!(
        "challenge \"dns-01\"; dns-command \"{}\"; dns-command-timeout-secs 20",
        program.display()
    );
    let proxyd = site.start(&site.block("\"*.a.test\" \"a.test\"", &more));
    wait_for_certificate(&proxyd);
    let roots = pebble.issued_roots();
    for host in ["www.a.test", "a.test"] {
        assert_eq!(site.ask(host, &roots).body.as_deref(), Ok("hello"));
    }
    let calls = fs::read_to_string(site.folder.path().join("calls")).unwrap();
    let presents = calls.matches("present _acme-challenge.a.test").count();
    assert_eq!(presents, 2, "{calls}");
}

#[test]
fn a_dns_command_that_hangs_is_killed() {
    let pebble = Pebble::start(Policy::USUAL);
    let site = Site::new(&pebble);
    let program = site.folder.path().join("dns-record");
    fs::write(
        &program,
        "#!/bin/sh\n[ $1 = cleanup ] || exec tail -f /dev/null\n",
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let more = format!(
        "challenge \"dns-01\"; dns-command \"{}\"; dns-command-timeout-secs 1",
        program.display()
    );
    let proxyd = site.start(&site.block("\"a.test\"", &more));
    let failure = wait_for_failure(&proxyd);
    assert_eq!(failure.text("problem"), "dns_command");
    let detail = failure.text("detail");
    assert!(detail.ends_with("was killed after 1 s"), "{detail}");
}

#[test]
fn an_account_is_bound_to_an_external_one() {
    let pebble = Pebble::start(Policy {
        needs_external_account: true,
        ..Policy::USUAL
    });
    pebble.resolve("a.test");
    let site = Site::new(&pebble);
    let proxyd = site.start(&site.block("\"a.test\"", ""));
    let failure = wait_for_failure(&proxyd);
    assert_eq!(failure.text("problem"), "externalAccountRequired");
    assert!(failure.text("advice").contains("eab"), "{failure:?}");

    let (key_id, _) = EXTERNAL_ACCOUNT;
    let key_file = site.folder.path().join("eab.key");
    let bound = format!(
        "eab {{ key-id \"{key_id}\"; key-file \"{}\" }}",
        key_file.display()
    );
    // Changed settings are applied at once, without the delay after a failure.
    let kdl = site.kdl(&site.block("\"a.test\"", &bound));
    assert_eq!(proxyd.reload(&kdl), proxy_testkit::Reload::Applied);
    wait_for_certificate(&proxyd);
    let answer = site.ask("a.test", &pebble.issued_roots());
    assert_eq!(answer.body.as_deref(), Ok("hello"));
}

#[test]
fn a_certificate_has_a_key_of_the_type_that_is_set() {
    let pebble = Pebble::start(Policy::USUAL);
    let types = [
        ("rsa-2048", "rsa.test", &PKCS_RSA_SHA256),
        ("ecdsa-p384", "p384.test", &PKCS_ECDSA_P384_SHA384),
    ];
    for (_, host, _) in types {
        pebble.resolve(host);
    }
    let site = Site::new(&pebble);
    let blocks = types.map(|(key_type, host, _)| {
        site.block(&format!("\"{host}\""), &format!("key-type \"{key_type}\""))
    });
    let proxyd = site.start(&blocks.join("\n"));
    for (_, host, _) in types {
        let _obtained = proxyd.stderr().find(0, |record| {
            record.text("message") == "a certificate was obtained" && record.text("hosts") == host
        });
    }
    for (_, host, _) in types {
        let _served = proxyd.stderr().find(0, |record| {
            record.text("message") == "a new certificate is in use"
                && record.text("file").contains(host)
        });
    }
    let roots = pebble.issued_roots();
    for (_, host, algorithm) in types {
        let answer = site.ask(host, &roots);
        assert_eq!(answer.body.as_deref(), Ok("hello"), "{host}");
        let pem = fs::read_to_string(site.file_of(host)).unwrap();
        let end = "-----END PRIVATE KEY-----\n";
        let key = pem.split_inclusive(end).next().unwrap();
        let key = KeyPair::from_pem(key).unwrap();
        assert!(key.is_compatible(algorithm), "{host}");
    }
}
