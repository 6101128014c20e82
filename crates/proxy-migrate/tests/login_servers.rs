//! Migration of nginx's `auth_request` to an agent.
#![expect(clippy::panic, reason = "tests may fail loudly")]

use proxy_config::parse;
use proxy_migrate::{Language, Source, migrate};
use proxy_plan::failed_tests;

fn nginx(directives: &str, login: &str) -> String {
    let source = Source {
        name: "nginx.conf".to_owned(),
        text: format!(
            "server {{\nlisten 8080;\nserver_name a.test;\nlocation / {{\n{directives}\nproxy_pass http://10.0.0.1:1;\n}}\n\
             location = /login {{\ninternal;\n{login}\n}}\n}}\n"
        ),
    };
    let migrated = migrate(Language::Nginx, &source, &|_| None);
    let migrated = migrated.unwrap_or_else(|error| panic!("{error}"));
    let loaded = parse(&migrated.text, "out.kdl");
    let loaded = loaded.unwrap_or_else(|report| panic!("{}\n{report}", migrated.text));
    let failed = failed_tests(&loaded.model);
    assert!(failed.is_empty(), "{}\n{failed:?}", migrated.text);
    migrated.text
}

const FIELDS: &str =
    "auth_request_set $user $upstream_http_remote_user;\nproxy_set_header Remote-User $user;";

#[test]
fn a_login_server_decides_about_requests_and_names_the_user() {
    let text = nginx(
        &format!("auth_request /login;\n{FIELDS}"),
        "proxy_pass http://10.0.0.2:9091/api/authz/auth-request;",
    );
    for written in [
        "agent \"login-1\" {",
        "request-path \"/api/authz/auth-request\"",
        "copy-headers \"Remote-User\"",
        "agents \"login-1\"",
        "failure-mode \"closed\"",
    ] {
        assert!(text.contains(written), "{written}\n{text}");
    }
    assert!(!text.contains("remove \"Remote-User\""), "{text}");
    assert!(!text.contains("respond 501"), "{text}");
}

#[test]
fn a_path_and_a_host_that_are_not_written_are_nginxs() {
    let text = nginx(
        "auth_request /login;",
        "proxy_pass https://login.example.com;",
    );
    for written in [
        "request-path \"/login\"",
        "request-host \"login.example.com\"",
    ] {
        assert!(text.contains(written), "{written}\n{text}");
    }
}

#[test]
fn a_field_of_another_name_is_removed() {
    let text = nginx(
        "auth_request /login;\nauth_request_set $user $upstream_http_remote_user;\nproxy_set_header X-User $user;",
        "proxy_pass http://10.0.0.2:9091;",
    );
    assert!(text.contains("remove \"X-User\""), "{text}");
}

#[test]
fn a_route_with_a_login_server_has_no_cache() {
    let text = nginx(
        "auth_request /login;\nproxy_cache pages;\nproxy_cache_valid 200 1m;",
        "proxy_pass http://10.0.0.2:9091;",
    );
    assert!(text.contains("agents \"login-1\""), "{text}");
    assert!(text.contains("has no cache"), "{text}");
}

#[test]
fn content_behind_a_login_server_that_is_not_found_is_answered_501() {
    for (directives, login) in [
        ("auth_request /other;", "proxy_pass http://10.0.0.2:9091;"),
        ("auth_request /login;", "proxy_pass http://$login;"),
        (
            "auth_request /login;",
            "proxy_pass http://unix:/run/login.sock;",
        ),
        ("auth_request /login;", "return 204;"),
        (
            "auth_request /login;",
            "proxy_pass http://10.0.0.2:9091/verify?x=y;",
        ),
    ] {
        let text = nginx(&format!("{directives}\n{FIELDS}"), login);
        assert!(text.contains("respond 501"), "{directives} {login}\n{text}");
        assert!(!text.contains("agents \""), "{text}");
    }
}

#[test]
fn a_location_without_the_check_has_no_agent() {
    let text = nginx("auth_request off;", "proxy_pass http://10.0.0.2:9091;");
    assert!(!text.contains("agent \""), "{text}");
}
