//! Requests to nginx.

use crate::{answers, becomes, migrated};
use proxy_migrate::{Language, Source, migrate};

#[test]
fn open_ends_of_protected_prefixes_are_protected() {
    let user = "auth_basic inner; auth_basic_user_file /users;";
    let included = |name: &str| {
        (name == "/users").then(|| {
            vec![Source {
                name: name.to_owned(),
                text: "ann:$2y$05$abc\n".to_owned(),
            }]
        })
    };
    let login = "auth_request /login;";
    for (check, answer) in [(user, "401"), (login, "x:1"), ("limit_req zone=z;", "a:1")] {
        let text = format!(
            "limit_req_zone $remote_addr zone=z:1m rate=1r/s;\n\
             server {{ listen 8080; location = /login {{ internal; proxy_pass http://x:1; }}\n\
             location /admin {{ {check} proxy_pass http://a:1; }}\n\
             location /admin-public {{ proxy_pass http://c:1; }}\n\
             location / {{ proxy_pass http://b:1; }} }}"
        );
        let source = Source {
            name: "x".to_owned(),
            text,
        };
        let migrated = migrate(Language::Nginx, &source, &included);
        let migrated = migrated.unwrap_or_else(|error| panic!("{error}"));
        let migrated_end = migrated.text.contains("path-regex r\"^/admin[^/]\"")
            || migrated.text.contains("^/admin[^/]");
        assert!(migrated_end, "{}", migrated.text);
        if answer == "401" {
            for path in ["/admin", "/adminX", "/admin/x"] {
                answers(&migrated, &format!("http://a.test:8080{path}"), "401");
            }
        } else if answer == "a:1" {
            answers(&migrated, "http://a.test:8080/adminX", "a:1");
        }
        answers(&migrated, "http://a.test:8080/admin-public/x", "c:1");
        answers(&migrated, "http://a.test:8080/x", "b:1");
    }
}

#[test]
fn conditions_of_nginx_before_an_answer_are_not_lost() {
    let root = "http://a.test:8080/x";
    let refusal = "if ($http_x_token = '') { return 403; }";
    for (directives, answer) in [
        (
            format!("location / {{ {refusal} return 200 secret; }}"),
            "501",
        ),
        (
            format!("{refusal} location / {{ return 200 secret; }}"),
            "501",
        ),
        (format!("{refusal} return 200 secret;"), "501"),
        (
            format!("location / {{ {refusal} return 301 https://b.test/; }}"),
            "301",
        ),
        (
            format!("{refusal} location / {{ return 301 https://b.test/; }}"),
            "301",
        ),
        (format!("location / {{ {refusal} return 404; }}"), "404"),
    ] {
        let text = format!("server {{ listen 8080; {directives} }}");
        becomes(
            Language::Nginx,
            &text,
            &[(root, answer)],
            "`if ($http_x_token",
        );
    }
    let text = "server { listen 8080; ssl_verify_client on; return 200 secret; }";
    becomes(Language::Nginx, text, &[(root, "501")], "ssl_verify_client");
    // nginx sends it before it checks passwords.
    let text = "server { listen 8080; auth_basic x; location / { return 200 open; } }";
    answers(&migrated(Language::Nginx, text), root, "200");
    let text = "server { listen 8080; server_name a.test; rewrite ^/in/(.*)$ /out/$1 permanent; return 200 x; }";
    answers(
        &migrated(Language::Nginx, text),
        "http://a.test:8080/in/x",
        "301",
    );
}

#[test]
fn a_default_server_does_not_take_the_requests_of_a_server_with_checks() {
    let root = "http://www.b.test:8080/x";
    let default = "server { listen 8080 default_server; location / { proxy_pass http://a:1; } }";
    for (server, answer) in [
        (
            "server_name ~^www; allow 10.0.0.0/8; deny all; location / { proxy_pass http://b:1; }",
            "501",
        ),
        (
            "server_name www.b.*; location /in { auth_basic x; } location / { proxy_pass http://b:1; }",
            "501",
        ),
        ("server_name ~^www; return 444;", "501"),
        (
            "server_name ~^www; location / { proxy_pass http://b:1; }",
            "a:1",
        ),
        (
            "server_name www.b.test; deny all; location / { proxy_pass http://b:1; }",
            "403",
        ),
    ] {
        let text = format!("{default} server {{ listen 8080; {server} }}");
        let migrated = migrated(Language::Nginx, &text);
        answers(&migrated, root, answer);
        let is_pattern = server.contains('~') || server.contains(".*");
        let mut notes = migrated.notes.iter().map(|it| it.directive.as_str());
        assert_eq!(
            notes.any(|it| it.starts_with("server_name ")),
            is_pattern,
            "{server}"
        );
    }
    // The server is the default server itself.
    let text = "server { listen 8080; server_name ~^www; deny 10.0.0.0/8; location / { proxy_pass http://b:1; } }";
    answers(&migrated(Language::Nginx, text), root, "b:1");
}

#[test]
fn conditions_on_hosts_and_schemes_of_nginx_come_first() {
    let text = "server { listen 8080; server_name c.test; return 404; }\n\
                server { listen 8080; server_name a.test b.test; if ($host = a.test) { return 403; }\n\
                location / { proxy_pass http://a:1; } location /x { proxy_pass http://b:1; } }";
    let migrated_hosts = migrated(Language::Nginx, text);
    for (url, answer) in [
        ("http://a.test:8080/", "403"),
        ("http://a.test:8080/x", "403"),
        ("http://b.test:8080/x", "b:1"),
    ] {
        answers(&migrated_hosts, url, answer);
    }
    let tls = "listen 8443 ssl; ssl_certificate /a.pem; ssl_certificate_key /a.key;";
    let redirect = "if ($scheme = http) { return 301 https://$host$request_uri; }";
    let (plain, secure) = ("http://a.test:8080/in/x", "https://a.test:8443/in/x");
    for directives in [
        format!("{redirect} location / {{ proxy_pass http://a:1; }}"),
        format!(
            "{} location /in/ {{ proxy_pass http://a:1; }}",
            redirect.replace("= http", "!= \"https\"")
        ),
        format!("location /in/ {{ {redirect} proxy_pass http://a:1; }}"),
    ] {
        let text = format!("server {{ listen 8080; {tls} server_name a.test; {directives} }}");
        let migrated = migrated(Language::Nginx, &text);
        answers(&migrated, plain, "301");
        answers(&migrated, secure, "a:1");
        assert!(migrated.notes.is_empty(), "{:?}", migrated.notes);
    }
}

#[test]
fn networks_of_nginx_are_compared_with_the_address_of_the_client() {
    let root = "http://a.test:8080/x";
    for (field, answer) in [("X-Real-IP", "501"), ("X-Forwarded-For", "403")] {
        let text = format!(
            "server {{ listen 8080; set_real_ip_from 127.0.0.1; real_ip_header {field};\n\
             allow 10.0.0.0/8; deny all; location / {{ proxy_pass http://a:1; }} }}"
        );
        answers(&migrated(Language::Nginx, &text), root, answer);
    }
    for directive in [
        "proxy_pass_request_headers off;",
        "more_clear_input_headers X-User;",
        "ssl_reject_handshake on;",
    ] {
        let text = format!(
            "server {{ listen 8080; {directive} location / {{ proxy_pass http://a:1; }} }}"
        );
        becomes(
            Language::Nginx,
            &text,
            &[(root, "501")],
            directive.trim_end_matches(';'),
        );
    }
}

#[test]
fn the_first_server_with_a_name_takes_its_requests() {
    let first = "server_name a.test; location / { deny all; proxy_pass http://a:1; }";
    let second = "server_name a.test b.test; location / { proxy_pass http://b:1; } location /x { proxy_pass http://b:1; }";
    for default in ["", "default_server"] {
        let text = format!(
            "server {{ listen 8080; server_name c.test; return 404; }}\n\
             server {{ listen 8080 {default}; {first} }} server {{ listen 8080; {second} }}"
        );
        let expected = [
            ("http://a.test:8080/x", "403"),
            ("http://b.test:8080/x", "b:1"),
        ];
        becomes(
            Language::Nginx,
            &text,
            &expected,
            "server_name a.test b.test",
        );
    }
}

#[test]
fn a_name_of_another_server_on_one_listener_keeps_its_checks_on_the_others() {
    let (first, others) = ("http://a.test:8080/x", "http://a.test:8081/x");
    let text = "server { listen 8080; server_name a.test; location / { proxy_pass http://a:1; } }\n\
                server { listen 8081 default_server; location / { proxy_pass http://c:1; } }\n\
                server { listen 8080; listen 8081; server_name a.test b.test; deny all;\n\
                location / { proxy_pass http://b:1; } }";
    let expected = [
        (first, "a:1"),
        (others, "403"),
        ("http://b.test:8080/x", "403"),
        ("http://b.test:8081/x", "403"),
        ("http://c.test:8081/x", "c:1"),
    ];
    let note = "server_name a.test b.test";
    becomes(Language::Nginx, text, &expected, note);
    // A server without another name on the first listener.
    let text = text.replace(" b.test", "");
    becomes(
        Language::Nginx,
        &text,
        &[(first, "a:1"), (others, "403")],
        "server_name a.test",
    );
}

#[test]
fn checks_around_a_location_hold_for_its_application() {
    let app = "location @app { proxy_pass http://a:1; }";
    for (check, answer) in [
        ("deny all;", "403"),
        ("auth_basic x;", "501"),
        ("access_by_lua_block { check() }", "501"),
    ] {
        let text = format!(
            "server {{ listen 8080; root /srv; {app}\n\
             location /in/ {{ {check} location /in/a/ {{ try_files $uri @app; }} }}\n\
             location /out/ {{ try_files $uri @app; }} }}"
        );
        let expected = [
            ("http://a.test:8080/in/a/x", answer),
            ("http://a.test:8080/out/x", "a:1"),
        ];
        becomes(Language::Nginx, &text, &expected, "try_files");
    }
}
