//! Requests to Traefik.

use crate::{answers, becomes, migrated};
use proxy_migrate::{Language, Source, migrate};

#[test]
fn lists_of_trusted_peers_of_traefik_are_not_mixed() {
    let file = |point: &str, middlewares: &str| {
        format!(
            "entryPoints:\n  web:\n    address: :8080\n{point}http:\n  middlewares:\n    m: {{ipAllowList: {{sourceRange: [127.0.0.0/8]}}}}\n    \
             c: {{chain: {{middlewares: [m]}}}}\n  services:\n    app: {{loadBalancer: {{servers: [{{url: \"http://a:1\"}}]}}}}\n  \
             routers:\n    r: {{rule: PathPrefix(`/`), service: app, middlewares: [{middlewares}]}}\n"
        )
    };
    let lists = |fields: &str, headers: &str| {
        format!(
            "    forwardedHeaders: {{trustedIPs: [{fields}]}}\n    proxyProtocol: {{trustedIPs: [{headers}]}}\n"
        )
    };
    let differ = lists("192.0.2.0/24", "10.0.0.1");
    let root = "http://a.test:8080/x";
    for (point, middlewares, answer) in [
        (differ.as_str(), "m", "501"),
        (differ.as_str(), "c", "501"),
        (differ.as_str(), "", "a:1"),
        (
            "    proxyProtocol: {trustedIPs: [10.0.0.0/8]}\n",
            "m",
            "501",
        ),
    ] {
        becomes(
            Language::Traefik,
            &file(point, middlewares),
            &[(root, answer)],
            "trustedIPs",
        );
    }
    let same = file(&lists("10.0.0.1, 10.0.0.2", "10.0.0.2, 10.0.0.1"), "m");
    answers(&migrated(Language::Traefik, &same), root, "a:1");
    let relay = "entryPoints:\n  db:\n    address: :5432\n    forwardedHeaders: {trustedIPs: [192.0.2.0/24]}\n    \
                 proxyProtocol: {trustedIPs: [10.0.0.1]}\ntcp:\n  services:\n    db: {loadBalancer: {servers: [{address: \"a:1\"}]}}\n  \
                 routers:\n    r: {rule: HostSNI(`*`), service: db}\n";
    let relay = migrated(Language::Traefik, relay);
    assert!(
        relay.text.contains("trusted-proxies \"10.0.0.1\""),
        "{}",
        relay.text
    );
    assert!(!relay.text.contains("192.0.2.0"), "{}", relay.text);
}

#[test]
fn parts_of_traefik_with_the_same_name_in_two_files_are_dropped() {
    let main = Source {
        name: "traefik.yml".to_owned(),
        text: "entryPoints: {web: {address: \":8080\"}}\nproviders: {file: {directory: d}}\n"
            .to_owned(),
    };
    let file = |name: &str, text: &str| Source {
        name: name.to_owned(),
        text: text.to_owned(),
    };
    let included = |pattern: &str| {
        let first = "http:\n  middlewares: {m: {basicAuth: {users: [\"a:$2y$05$abc\"]}}}\n  services: {app: {loadBalancer: {servers: [{url: \"http://a:1\"}]}}}\n  \
                     routers: {r: {rule: PathPrefix(`/`), service: app, middlewares: [m]}, s: {rule: Path(`/s`), service: app}}\n";
        let second = "http:\n  middlewares: {m: {compress: {}}}\n  routers: {s: {rule: Path(`/s`), service: app}}\n";
        (pattern == "d/*.yml").then(|| vec![file("d/a.yml", first), file("d/b.yml", second)])
    };
    let migrated = migrate(Language::Traefik, &main, &included);
    let migrated = migrated.unwrap_or_else(|error| panic!("{error}"));
    answers(&migrated, "http://a.test:8080/x", "501");
    answers(&migrated, "http://a.test:8080/s", "501");
    assert!(
        migrated.notes.iter().any(|it| it.directive == "s"),
        "{:?}",
        migrated.notes
    );
}

#[test]
fn a_text_with_commas_is_a_list() {
    let text = "entryPoints: {web: {address: \":8080\"}}\nhttp:\n  middlewares:\n    \
                m: {ipAllowList: {sourceRange: \"10.0.0.0/8, 192.0.2.0/24\"}}\n  services:\n    \
                app: {loadBalancer: {servers: [{url: \"http://a:1\"}]}}\n  routers:\n    \
                r: {rule: PathPrefix(`/`), service: app, middlewares: \"m\"}\n";
    let migrated = migrated(Language::Traefik, text);
    let written = "allow \"10.0.0.0/8\" \"192.0.2.0/24\"";
    assert!(migrated.text.contains(written), "{}", migrated.text);
}
