//! Requests to `HAProxy`.

use crate::{answers, becomes, migrated};
use proxy_migrate::Language;

#[test]
fn sections_of_haproxy_have_the_defaults_that_they_name() {
    let file = |from: &str, rest: &str| {
        format!(
            "defaults plain\nmode http\n\
             defaults guarded from plain\nacl bad path_beg /admin\nhttp-request deny if bad\nhttp-request del-header X-User\n\
             defaults office from guarded\nhttp-request deny unless {{ src 10.0.0.0/8 }}\n\
             defaults\nmode http\n\
             frontend f{from}\nmode http\nbind :8080\nacl bad path_beg /other\ndefault_backend b\n\
             backend b{rest}\nmode http\nserver s a:1\n"
        )
    };
    let [root, admin, other] =
        ["/", "/admin/x", "/other/x"].map(|it| format!("GET http://a.test:8080{it}"));
    let (root, admin, other) = (root.as_str(), admin.as_str(), other.as_str());
    for (from, rest, expected, note) in [
        ("", "", [(root, "a:1"), (admin, "a:1"), (other, "a:1")], ""),
        (
            " from plain",
            "",
            [(root, "a:1"), (admin, "a:1"), (other, "a:1")],
            "",
        ),
        (
            " from guarded",
            "",
            [(root, "a:1"), (admin, "403"), (other, "a:1")],
            "",
        ),
        (
            " from office",
            "",
            [(root, "501"), (admin, "403"), (other, "501")],
            "deny unless",
        ),
        (
            " from gone",
            "",
            [(root, "501"), (admin, "501"), (other, "501")],
            "`from gone`",
        ),
        (
            "",
            " from gone",
            [(root, "501"), (admin, "501"), (other, "501")],
            "`from gone`",
        ),
        (
            "",
            " from guarded",
            [(root, "501"), (admin, "501"), (other, "501")],
            "deny if bad",
        ),
    ] {
        let text = file(from, rest);
        if note.is_empty() {
            let migrated = migrated(Language::Haproxy, &text);
            for (request, answer) in expected {
                answers(&migrated, request, answer);
            }
            let is_removed = migrated.text.contains("remove \"X-User\"");
            assert_eq!(is_removed, from == " from guarded", "{}", migrated.text);
        } else {
            becomes(Language::Haproxy, &text, &expected, note);
        }
    }
}

#[test]
fn a_relay_of_unknown_defaults_has_no_listener() {
    let text = "defaults open\nmode tcp\nfrontend f from gone\nmode tcp\nbind :8080\ndefault_backend b\n\
                frontend g from open\nbind :8081\ndefault_backend b\nbackend b from open\nserver s a:1\n";
    let migrated = migrated(Language::Haproxy, text);
    assert!(!migrated.text.contains(":8080"), "{}", migrated.text);
    assert!(migrated.text.contains(":8081"), "{}", migrated.text);
    assert!(migrated.notes.iter().any(|it| it.directive == "from gone"));
}

fn haproxy(frontend: &str, backend: &str) -> String {
    format!(
        "defaults\nmode http\nfrontend f\nbind :8080\nbind :8443 ssl crt /a.pem\n{frontend}\ndefault_backend b\n\
         backend b\n{backend}\nserver s a:1\n"
    )
}

#[test]
fn redirects_of_a_backend_are_sent_or_close_it() {
    let (plain, tls) = ("http://a.test:8080/x", "https://a.test:8443/x");
    for rule in [
        "redirect scheme https if !{ ssl_fc }",
        "redirect scheme https code 301 unless { ssl_fc }",
        "http-request redirect scheme https code 308 if !{ ssl_fc }",
        "acl secure ssl_fc\nredirect scheme https if !secure",
    ] {
        let migrated = migrated(Language::Haproxy, &haproxy("", rule));
        let status = ["301", "308"]
            .into_iter()
            .find(|it| rule.contains(it))
            .unwrap_or("302");
        answers(&migrated, plain, status);
        answers(&migrated, tls, "a:1");
        assert!(migrated.notes.is_empty(), "{:?}", migrated.notes);
    }
    for rule in [
        "redirect location https://sso.test/ if !{ req.cook(sid) -m found }",
        "redirect scheme https",
        "redirect prefix https://b.test if { hdr(host) a.test }",
    ] {
        let expected = [(plain, "501"), (tls, "501")];
        becomes(Language::Haproxy, &haproxy("", rule), &expected, rule);
    }
}

#[test]
fn rules_of_defaults_have_the_access_lists_of_defaults_in_backends() {
    for own in ["", "acl secure path_beg /in\n"] {
        let text = format!(
            "defaults plain\nmode http\n\
             defaults secure from plain\nacl secure ssl_fc\nhttp-request redirect scheme https if !secure\n\
             frontend f from plain\nbind :8080\nbind :8443 ssl crt /a.pem\ndefault_backend b\n\
             backend b from secure\n{own}server s a:1\n"
        );
        let migrated = migrated(Language::Haproxy, &text);
        answers(&migrated, "http://a.test:8080/x", "302");
        answers(&migrated, "https://a.test:8443/x", "a:1");
        assert!(migrated.notes.is_empty(), "{:?}", migrated.notes);
    }
}

#[test]
fn fields_that_haproxy_removes_or_edits_do_not_pass() {
    let (plain, kept) = ("http://a.test:8080/x", "remove \"X-User\"");
    for rule in [
        "http-request del-header X-User -m beg",
        "http-request del-header X-User -m reg",
        "http-request del-header X-User if { path_beg /in }",
        "http-request replace-header X-User (.*)admin(.*) \\1\\2",
        "http-request replace-value X-User admin guest if { path_beg /in }",
    ] {
        becomes(
            Language::Haproxy,
            &haproxy(rule, ""),
            &[(plain, "501")],
            rule,
        );
        becomes(
            Language::Haproxy,
            &haproxy("", rule),
            &[(plain, "501")],
            rule,
        );
    }
    for rule in [
        "http-request del-header X-User",
        "http-request del-header X-User -m str",
        "http-request set-header X-User admin\nhttp-request set-header X-User guest if { path_beg /in }",
    ] {
        let migrated = migrated(Language::Haproxy, &haproxy(rule, ""));
        answers(&migrated, plain, "a:1");
        assert!(migrated.text.contains(kept), "{}", migrated.text);
        assert!(
            !migrated.text.contains("set \"X-User\""),
            "{}",
            migrated.text
        );
    }
}

#[test]
fn rules_of_haproxy_hold_for_what_follows_them() {
    let (root, text) = ("http://a.test:8080/x", "http://a.test:8080/text");
    for (rules, expected, note) in [
        // Requests of a rule that is not converted would reach the next backend.
        (
            "use_backend b if { path_beg /in }\nuse_backend sorry if !{ src 10.0.0.0/8 }",
            [(root, "501"), ("http://a.test:8080/in", "a:1")],
            "use_backend sorry",
        ),
        // The text may be what the check protects.
        (
            "http-request tarpit if { path_beg /admin }\nhttp-request return status 200 string secret if { path /text }",
            [(root, "501"), (text, "501")],
            "tarpit",
        ),
        (
            "http-request deny if { src 127.0.0.0/8 }\nhttp-request return status 200 string secret if { path /text }",
            [(root, "403"), (text, "403")],
            "",
        ),
        (
            "http-request set-src req.hdr(X-Real-IP)\nhttp-request deny if { src 192.0.2.0/24 }",
            [(root, "501"), (text, "501")],
            "set-src",
        ),
        (
            "http-request deny status 404 if { path /text }",
            [(root, "a:1"), (text, "404")],
            "",
        ),
        (
            "http-request return status 200 file /srv/x if { path /text }",
            [(root, "501"), (text, "501")],
            "return status 200 file",
        ),
    ] {
        let text = format!("{}backend sorry\nserver s c:1\n", haproxy(rules, ""));
        if note.is_empty() {
            let migrated = migrated(Language::Haproxy, &text);
            for (request, answer) in expected {
                answers(&migrated, request, answer);
            }
        } else {
            becomes(Language::Haproxy, &text, &expected, note);
        }
    }
}

#[test]
fn a_bind_of_one_interface_does_not_listen_on_all() {
    let text = "defaults\nmode http\nfrontend f\nbind :8080 interface lo\nbind :8081\ndefault_backend b\n\
                backend b\nserver s a:1\n";
    let migrated = migrated(Language::Haproxy, text);
    assert!(!migrated.text.contains("0.0.0.0:8080"), "{}", migrated.text);
    assert!(
        migrated
            .notes
            .iter()
            .any(|it| it.directive.contains("interface lo"))
    );
}

#[test]
fn the_field_of_forwardfor_is_not_the_clients_own() {
    let rule = "option forwardfor header X-My-Client";
    let written = "set \"X-My-Client\" \"{client_ip}\"";
    for text in [haproxy(rule, ""), haproxy("", rule), haproxy(rule, rule)] {
        let migrated = migrated(Language::Haproxy, &text);
        assert_eq!(
            migrated.text.matches(written).count(),
            1,
            "{}",
            migrated.text
        );
    }
}

#[test]
fn client_certificates_without_an_authority_close_the_frontend() {
    let text = "defaults\nmode http\nfrontend f\nbind :8443 ssl crt /a.pem verify required ca-verify-file /ca.pem\n\
                default_backend b\nbackend b\nserver s a:1\n";
    let expected = [("https://a.test:8443/x", "501")];
    becomes(Language::Haproxy, text, &expected, "verify required");
}
