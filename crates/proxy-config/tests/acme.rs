//! Certificates by ACME are configured explicitly, or not at all.

use proxy_config::{DiagnosticCode, parse};

/// A listener with this `acme` block, and further listeners that answer every kind of challenge.
fn with(block: &str) -> String {
    format!(
        r#"
        listeners {{
            listener "web" {{ address "0.0.0.0:80" }}
            listener "secure" {{
                address "0.0.0.0:443"
                protocol "https"
                tls {{ acme {{ {block} }} }}
            }}
        }}
        "#
    )
}

const WHOLE: &[&str] = &[
    "hosts \"a.test\"",
    "directory \"https://ca.test/directory\"",
    "email \"ops@example.com\"",
    "terms-agreed #true",
];

fn codes(text: &str) -> Vec<DiagnosticCode> {
    let Err(report) = parse(text, "x.kdl") else {
        return Vec::new();
    };
    report.faults().iter().map(|fault| fault.code).collect()
}

#[test]
fn acme_without_agreement_to_the_terms_is_refused() {
    let whole = with(&WHOLE.join("\n"));
    let loaded = parse(&whole, "x.kdl").unwrap();
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    let without = whole.replace("terms-agreed #true", "");
    assert_eq!(codes(&without), [DiagnosticCode::MissingSetting]);
    let against = whole.replace("terms-agreed #true", "terms-agreed #false");
    assert_eq!(codes(&against), [DiagnosticCode::Conflict]);
}

#[test]
fn acme_needs_hosts_an_authority_and_an_address() {
    for missing in WHOLE {
        let lines = WHOLE.iter().filter(|line| line != &missing);
        let text = with(&lines.copied().collect::<Vec<_>>().join("\n"));
        assert_eq!(codes(&text), [DiagnosticCode::MissingSetting], "{missing}");
    }
}

#[test]
fn a_challenge_that_no_listener_answers_is_refused() {
    let web = "listener \"web\" { address \"0.0.0.0:80\" }";
    let whole = with(&WHOLE.join("\n"));
    assert_eq!(codes(&whole.replace(web, "")), [DiagnosticCode::Conflict]);
    let by_alpn = with(&[WHOLE, &["challenge \"tls-alpn-01\""]].concat().join("\n"));
    assert_eq!(codes(&by_alpn.replace(web, "")), []);
    let wildcard = whole.replace("\"a.test\"", "\"*.a.test\"");
    assert_eq!(codes(&wildcard), [DiagnosticCode::Conflict]);
}

#[test]
fn a_directory_has_a_host_and_a_port_and_a_bad_one_hides_no_other_setting() {
    let with_directory = |directory: &str| {
        let whole = with(&[WHOLE, &["storage \"/var/lib/acme\""]].concat().join("\n"));
        whole.replace("https://ca.test/directory", directory)
    };
    for good in [
        "https://ca.test:8443/d",
        "https://[2001:db8::1]/d",
        "https://[2001:db8::1]:1/d",
    ] {
        assert_eq!(codes(&with_directory(good)), [], "{good}");
    }
    for bad in [
        "https://ca.test:0/",
        "https://ca.test:99999/",
        "https://ca.test:/",
        "https://:443/",
        "http://ca.test/",
    ] {
        assert_eq!(
            codes(&with_directory(bad)),
            [DiagnosticCode::BadValue],
            "{bad}"
        );
    }
}
