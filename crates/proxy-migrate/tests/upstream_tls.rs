//! Migration of TLS to the targets of nginx's upstreams.
#![expect(clippy::panic, reason = "tests may fail loudly")]

use proxy_config::parse;
use proxy_migrate::{Language, Migrated, Source, migrate};

/// Migrates a server with these locations and an upstream `app`.
fn migrated(locations: &str) -> Migrated {
    let source = Source {
        name: "nginx.conf".to_owned(),
        text: format!(
            "events {{}} http {{ upstream app {{ server 10.0.0.1:443; keepalive 7; }} \
             server {{ listen 8080; server_name a.test; {locations} }} }}"
        ),
    };
    let migrated =
        migrate(Language::Nginx, &source, &|_| None).unwrap_or_else(|error| panic!("{error}"));
    if let Err(report) = parse(&migrated.text, "out.kdl") {
        panic!("{}\n{report}", migrated.text);
    }
    migrated
}

/// Returns the lines of the result that contain an upstream or its TLS.
fn lines(migrated: &Migrated) -> Vec<&str> {
    let lines = migrated.text.lines().map(str::trim);
    let lines = lines.take_while(|line| *line != "tests {");
    let lines = lines.filter(|line| {
        let names = ["upstream ", "tls", "ca-file", "sni", "max-idle"];
        names.iter().any(|name| line.starts_with(name))
    });
    lines.collect()
}

#[test]
fn locations_with_different_tls_have_an_upstream_each() {
    let verified = "proxy_ssl_verify on; proxy_ssl_trusted_certificate";
    let migrated = migrated(&format!(
        "location /v/ {{ proxy_pass https://app; {verified} /v.pem; proxy_ssl_name v.test; }} \
         location /w/ {{ proxy_pass https://app; {verified} /w.pem; proxy_ssl_name w.test; }} \
         location /x/ {{ proxy_pass http://app; }} \
         location /y/ {{ proxy_pass https://app; {verified} /w.pem; proxy_ssl_name w.test; }}"
    ));

    let lines = lines(&migrated);
    let routes = ["app", "app-2", "app-3", "app-2"].map(|name| format!("upstream \"{name}\""));
    assert_eq!(lines.get(..4), Some(&routes.each_ref().map(|it| &**it)[..]));
    let pool = "max-idle 7";
    assert_eq!(
        lines.get(4..),
        Some(
            &[
                "upstream \"app\" {",
                pool,
                "tls {",
                "sni \"v.test\"",
                "ca-file \"/v.pem\"",
                "upstream \"app-2\" {",
                pool,
                "tls {",
                "sni \"w.test\"",
                "ca-file \"/w.pem\"",
                "upstream \"app-3\" {",
                pool,
            ][..]
        )
    );
}

#[test]
fn an_address_with_and_without_tls_is_two_upstreams() {
    let migrated = migrated(
        "location /a/ { proxy_pass http://10.0.0.2:443; } \
         location /b/ { proxy_pass https://10.0.0.2:443; } \
         location /c/ { proxy_pass https://10.0.0.2; }",
    );

    let upstreams = lines(&migrated);
    let count = |wanted: &str| upstreams.iter().filter(|line| **line == wanted).count();
    assert_eq!(count("tls { }"), 1, "{upstreams:?}");
    let notes = migrated.notes.iter();
    let notes = notes.filter(|left| left.advice.starts_with("the certificate is verified"));
    assert_eq!(notes.count(), 1);
}
