//! The same site with five services in the languages of nginx, Caddy and Traefik. The results make
//! the same decisions, except for the differences below, which notes report.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

use proxy_config::parse;
use proxy_migrate::{Language, Migrated, Source, migrate};
use proxy_plan::failed_tests;
use std::fs;

/// Requests, and the decision of all results.
const DECISIONS: &[(&str, &str, &str)] = &[
    (
        "the port without TLS redirects",
        "\"GET\" \"http://shop.example.com/a?b=c\"",
        "redirect \"https://shop.example.com/a?b=c\"",
    ),
    (
        "one name",
        "\"GET\" \"https://www.shop.example.com/a?b=c\"",
        "status 301; redirect \"https://shop.example.com/a?b=c\"",
    ),
    (
        "shop",
        "\"GET\" \"https://shop.example.com/cart\"",
        "targets \"10.0.0.11:3000\" \"10.0.0.12:3000\"; response-header \"X-Frame-Options\" \"DENY\"",
    ),
    (
        "API",
        "\"POST\" \"https://shop.example.com/api/users?page=2\"",
        "targets \"10.0.0.21:4000\"; upstream-path \"/users?page=2\"",
    ),
    (
        "chat",
        "\"GET\" \"https://chat.example.com/socket\"",
        "targets \"10.0.0.31:5000\"",
    ),
    (
        "dashboards",
        "\"GET\" \"https://tools.example.com/grafana/d/1\"",
        "targets \"10.0.0.51:3000\"; upstream-path \"/d/1\"",
    ),
    (
        "other paths of the tools",
        "\"GET\" \"https://tools.example.com/x\"",
        "status 404",
    ),
];

/// Decisions about the wiki, which only one network may use.
const WIKI: &[(Language, &str, &str)] = &[
    (Language::Nginx, "10.1.1.1", "targets \"10.0.0.41:8080\""),
    (Language::Nginx, "192.0.2.1", "status 403"),
    (Language::Traefik, "10.1.1.1", "targets \"10.0.0.41:8080\""),
    (Language::Traefik, "192.0.2.1", "status 403"),
    (Language::Caddy, "10.1.1.1", "targets \"10.0.0.41:8080\""),
    (Language::Caddy, "192.0.2.1", "status 403"),
];

/// Notes of each result: the start of the directive and of the advice.
const NOTES: &[(Language, &[&str])] = &[
    (Language::Nginx, &[]),
    (Language::Caddy, &[]),
    (Language::Traefik, &[]),
];

fn migrated(language: Language) -> Migrated {
    let name = match language {
        Language::Nginx => "nginx.conf",
        Language::Caddy => "Caddyfile",
        Language::Traefik => "traefik.yml",
        Language::Haproxy => panic!("there is none"),
    };
    let source = Source {
        name: name.to_owned(),
        text: fs::read_to_string(format!("../../fixtures/migrate/five-services/{name}")).unwrap(),
    };
    migrate(language, &source, &|_| None).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn one_site_is_the_same_from_three_servers() {
    for (language, expected) in NOTES {
        let migrated = migrated(*language);
        let loaded = parse(&migrated.text, "out.kdl");
        let loaded = loaded.unwrap_or_else(|report| panic!("{}\n{report}", migrated.text));
        assert!(failed_tests(&loaded.model).is_empty(), "{}", migrated.text);

        let mut tests: Vec<String> = Vec::new();
        for (title, request, expected) in DECISIONS {
            tests.push(format!(
                "test \"{title}\" {{ request {request}; expect {{ {expected} }} }}"
            ));
        }
        for (_, client, expected) in WIKI.iter().filter(|(it, _, _)| it == language) {
            tests.push(format!(
                "test \"wiki of {client}\" {{ request \"GET\" \"https://wiki.example.com/\"; client-ip \"{client}\"; expect {{ {expected} }} }}"
            ));
        }
        let settings = migrated.text.split("\ntests {").next().unwrap();
        let text = format!("{settings}\ntests {{\n{}\n}}\n", tests.join("\n"));
        let loaded = parse(&text, "out.kdl").unwrap_or_else(|report| panic!("{text}\n{report}"));
        let failed = failed_tests(&loaded.model);
        assert!(failed.is_empty(), "{language:?}\n{settings}\n{failed:?}");

        let notes = migrated.notes.iter().map(ToString::to_string);
        let notes: Vec<String> = notes.collect();
        assert_eq!(notes.len(), expected.len(), "{language:?} {notes:?}");
        for (note, expected) in notes.iter().zip(*expected) {
            assert!(note.contains(expected), "{note}");
        }
    }
}
