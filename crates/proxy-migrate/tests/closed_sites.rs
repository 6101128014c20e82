//! Texts of a Caddyfile's site behind a check that is not converted.

use proxy_migrate::{Language, Source, migrate};

#[test]
fn a_text_guarded_by_a_check_is_not_served_without_it() {
    for (check, is_served) in [
        ("basic_auth /a/* {\nann $2a$14$abc\n}", false),
        ("forward_auth /a/* 127.0.0.1:9091 {\nuri /verify\n}", false),
        ("header X-Site 1", true),
    ] {
        let source = Source {
            name: "Caddyfile".to_owned(),
            text: format!("http://a.test {{\n{check}\nrespond \"secret\"\nrespond /gone 410\n}}\n"),
        };
        let migrated = migrate(Language::Caddy, &source, &|_| None);
        let migrated = migrated.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            migrated.text.contains("secret"),
            is_served,
            "{}",
            migrated.text
        );
        assert!(migrated.text.contains("respond 410"), "{}", migrated.text);
    }
}
