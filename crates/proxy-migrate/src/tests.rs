//! Complexity of migrations: twice as many parts take twice as many steps.

use crate::{Language, Source, migrate, work};
use std::fmt::Write as _;

/// Maximum number of steps per part of a large file. Parts are locations, rules or routers.
const MAX_STEPS_OF_A_PART: u64 = 300;

/// Name of a kind of file, its language, and a generator of its text with a number of parts.
type LargeFile = (&'static str, Language, fn(usize) -> String);

fn steps(language: Language, text: String) -> u64 {
    let source = Source {
        name: "x.yml".to_owned(),
        text,
    };
    let (steps, result) = work::steps_of(|| migrate(language, &source, &|_| None));
    let migrated = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(migrated.text.contains("route"), "{}", migrated.text);
    steps
}

fn locations(count: usize) -> String {
    let mut text =
        "http {\n limit_req_zone $remote_addr zone=a:1m rate=9r/s;\n server {\n listen 8080;\n"
            .to_owned();
    for number in 0..count {
        _ = writeln!(
            text,
            "location /{number}/ {{ proxy_pass http://10.0.0.1:{number}; limit_req zone=a; }}"
        );
    }
    text + "}\n}\n"
}

fn servers(count: usize) -> String {
    let mut text = "ssl_certificate a.pem; ssl_certificate_key a.key;\n".to_owned();
    for number in 0..count {
        _ = writeln!(
            text,
            "upstream u{number} {{ server a:1; }} server {{ listen 443 ssl; server_name a{number}.test; \
             location / {{ proxy_pass http://u{number}; }} }}"
        );
    }
    text
}

fn stream(count: usize) -> String {
    let mut text = "stream { map $ssl_preread_server_name $to {\n".to_owned();
    for number in 0..count {
        _ = writeln!(text, "a{number}.test 10.0.0.1:{number};");
    }
    text + "}\n server { listen 443; ssl_preread on; proxy_pass $to; }\n}\n"
}

fn rules(mode: &str, count: usize) -> String {
    let mut text = format!("defaults\nmode {mode}\nfrontend f\nbind :8080\n");
    let (test, tail) = if mode == "tcp" {
        ("req.ssl_sni", "")
    } else {
        ("path_beg", "/")
    };
    for number in 0..count {
        _ = writeln!(
            text,
            "acl a{number} {test} {tail}a{number}.test{tail}\nuse_backend b{number} if a{number}"
        );
    }
    for number in 0..count {
        _ = writeln!(text, "backend b{number}\nserver s a:1");
    }
    text
}

fn caddyfile(count: usize) -> String {
    let mut text = "a.test:8080 {\n".to_owned();
    for number in 0..count {
        _ = writeln!(
            text,
            "@m{number} path /{number}/*\nhandle @m{number} {{\nreverse_proxy a:{number}\n}}"
        );
    }
    text + "}\n"
}

fn routers(count: usize) -> String {
    let mut text = "http:\n  routers:\n".to_owned();
    for number in 0..count {
        _ = writeln!(
            text,
            "    r{number}: {{ rule: \"Host(`a{number}.test`)\", service: s{number}, entryPoints: [web] }}"
        );
    }
    text.push_str("  services:\n");
    for number in 0..count {
        _ = writeln!(
            text,
            "    s{number}: {{ loadBalancer: {{ servers: [{{ url: \"http://a:{number}\" }}] }} }}"
        );
    }
    text
}

#[test]
fn twice_the_parts_take_twice_the_steps() {
    let files: Vec<LargeFile> = vec![
        ("locations", Language::Nginx, locations),
        ("servers", Language::Nginx, servers),
        ("stream", Language::Nginx, stream),
        ("rules", Language::Haproxy, |count| rules("http", count)),
        ("relayed rules", Language::Haproxy, |count| {
            rules("tcp", count)
        }),
        ("caddyfile", Language::Caddy, caddyfile),
        ("routers", Language::Traefik, routers),
    ];
    for (name, language, file) in files {
        let (few, many) = (steps(language, file(200)), steps(language, file(400)));
        assert!(many <= few * 2 + few / 5, "{name}: {few} and {many}");
        assert!(many <= 400 * MAX_STEPS_OF_A_PART, "{name}: {many}");
    }
}

#[test]
fn conditions_that_multiply_are_refused() {
    let mut names = String::new();
    for number in 0..2_000 {
        _ = write!(names, " a{number}.test");
    }
    let mut text = format!(
        "server {{ listen 8080 default_server; }}\nserver {{ listen 8080; server_name{names};\n"
    );
    for number in 0..2_000 {
        _ = writeln!(text, "location /{number}/ {{ return 404; }}");
    }
    let source = Source {
        name: "x".to_owned(),
        text: text + "}\n",
    };
    let refused = migrate(Language::Nginx, &source, &|_| None).map(|_| ());
    let refused = refused.map_err(|error| error.to_string());
    assert!(refused.is_err_and(|error| error.contains("1 000 000 conditions")));
}
