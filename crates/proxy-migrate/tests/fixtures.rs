//! Configurations of other servers in the style of published ones, and the results of their
//! migration.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

use proxy_config::parse;
use proxy_migrate::{Language, Migrated, Source, migrate};
use proxy_plan::failed_tests;
use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new("../../fixtures/migrate").join(folder);
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension != "expected")
    });
    files.sort();
    assert!(!files.is_empty());
    files
}

fn migrated(language: Language, path: &Path) -> Migrated {
    let source = Source {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        text: fs::read_to_string(path).unwrap(),
    };
    migrate(language, &source, &|_| None).unwrap_or_else(|error| panic!("{error}"))
}

/// Compares with the `.expected` file next to `path`. `UPDATE_EXPECTED=1` writes that file instead.
fn compare(path: &Path, actual: &str) {
    let expected_file = path.with_extension("expected");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&expected_file, actual).unwrap();
        return;
    }
    let expected = fs::read_to_string(&expected_file).unwrap_or_default();
    assert_eq!(expected, actual, "{}", expected_file.display());
}

/// Checks that the result can be loaded, that its tests pass, and that each route has a test if a
/// request for it can be derived.
fn is_usable(migrated: &Migrated) {
    let loaded = parse(&migrated.text, "out.kdl");
    let loaded = loaded.unwrap_or_else(|report| panic!("{}\n{report}", migrated.text));
    assert!(!loaded.model.tests.is_empty(), "{}", migrated.text);
    let failed = failed_tests(&loaded.model);
    assert!(failed.is_empty(), "{}\n{failed:?}", migrated.text);
}

fn become_as_expected(language: Language, folder: &str) {
    for path in files(folder) {
        let migrated = migrated(language, &path);
        compare(&path, &migrated.text);
        is_usable(&migrated);
    }
}

#[test]
fn files_of_nginx_become_as_expected() {
    for folder in ["nginx", "sites/nginx"] {
        become_as_expected(Language::Nginx, folder);
    }
}

#[test]
fn files_of_caddy_become_as_expected() {
    for folder in ["caddy", "sites/caddy"] {
        become_as_expected(Language::Caddy, folder);
    }
}

#[test]
fn files_of_haproxy_become_as_expected() {
    for folder in ["haproxy", "sites/haproxy"] {
        become_as_expected(Language::Haproxy, folder);
    }
}

#[test]
fn files_of_traefik_become_as_expected() {
    for folder in ["traefik", "sites/traefik"] {
        become_as_expected(Language::Traefik, folder);
    }
}

fn nginx(text: &str) -> Migrated {
    let source = Source {
        name: "nginx.conf".to_owned(),
        text: text.to_owned(),
    };
    migrate(Language::Nginx, &source, &|_| None).unwrap_or_else(|error| panic!("{error}"))
}

fn location(directives: &str) -> Migrated {
    nginx(&format!(
        "server {{ listen 8080; location /a/ {{ {directives} }} }}"
    ))
}

#[test]
fn a_directive_that_is_not_converted_is_listed_with_its_place() {
    let migrated = nginx(
        "server {\n  listen 8080;\n  location / {\n    sub_filter a b;\n    proxy_pass http://a:1;\n  }\n}",
    );
    let left: Vec<String> = migrated.notes.iter().map(ToString::to_string).collect();
    assert_eq!(
        left,
        ["nginx.conf:4: `sub_filter a b`: bodies are not edited; an agent may"]
    );
    assert!(migrated.text.starts_with("// nginx.conf:4: "));
    is_usable(&migrated);
}

#[test]
fn content_that_is_not_converted_is_answered_501() {
    for directives in [
        "fastcgi_pass a:1;",
        "proxy_pass http://$backend;",
        "alias /srv/;",
        "",
    ] {
        let migrated = location(directives);
        assert!(
            migrated.text.contains("respond 501 \"not migrated\""),
            "{}",
            migrated.text
        );
        assert_eq!(
            migrated.notes.len(),
            1,
            "{directives}: {:?}",
            migrated.notes
        );
        is_usable(&migrated);
    }
}

#[test]
fn the_path_of_a_proxied_location_is_replaced() {
    for (target, written) in [
        ("http://a:1", None),
        ("http://a:1/a/", None),
        ("http://a:1/", Some("strip-prefix \"/a\"")),
        ("http://a:1/b/", Some("replace-prefix \"/a\" \"/b\"")),
    ] {
        let migrated = location(&format!("proxy_pass {target};"));
        match written {
            Some(written) => assert!(migrated.text.contains(written), "{}", migrated.text),
            None => assert!(!migrated.text.contains("rewrite"), "{}", migrated.text),
        }
        is_usable(&migrated);
    }
}

#[test]
fn an_upstream_gets_the_host_that_nginx_sends() {
    for (directive, written) in [
        ("", Some("set \"Host\" \"a:1\"")),
        (
            "proxy_set_header Host $proxy_host;",
            Some("set \"Host\" \"a:1\""),
        ),
        (
            "proxy_set_header Host b.test;",
            Some("set \"Host\" \"b.test\""),
        ),
        ("proxy_set_header Host $host;", None),
        ("proxy_set_header Host $http_host;", None),
    ] {
        let migrated = location(&format!("proxy_pass http://a:1; {directive}"));
        match written {
            Some(written) => assert!(migrated.text.contains(written), "{}", migrated.text),
            None => assert!(!migrated.text.contains("\"Host\""), "{}", migrated.text),
        }
        is_usable(&migrated);
    }
}

#[test]
fn a_body_limit_that_is_written_nowhere_is_that_of_nginx() {
    let text = |size: &str| nginx(&format!("{size} server {{ listen 8080; return 404; }}")).text;
    assert!(text("").contains("max-body-size-bytes 1048576"));
    assert!(text("client_max_body_size 0;").contains("max-body-size-bytes 1099511627776"));
}

#[test]
fn networks_are_lists() {
    for (directives, written) in [
        ("allow 10.0.0.0/8; deny all;", "allow \"10.0.0.0/8\""),
        ("deny 10.0.0.7; allow all;", "deny \"10.0.0.7\""),
        (
            "deny 10.0.0.7; allow 10.0.0.0/8; deny all;",
            "allow \"10.0.0.0/8\"\n                deny \"10.0.0.7\"",
        ),
        ("deny all;", "respond 403"),
    ] {
        let migrated = location(&format!("proxy_pass http://a:1; {directives}"));
        let lines = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            lines(&migrated.text).contains(&lines(written)),
            "{}",
            migrated.text
        );
        is_usable(&migrated);
    }
}

#[test]
fn pages_of_errors_are_files_below_their_root() {
    let server = |directives: &str| {
        nginx(&format!(
            "server {{ listen 8080; root /srv/www; {directives} location / {{ proxy_pass http://a:1; }} }}"
        ))
    };
    let migrated = server(
        "error_page 404 /404.html; error_page 500 502 /50x.html; \
         location = /50x.html { root /usr/share/nginx/html; internal; }",
    );
    for written in [
        "page 404 {\n                    file \"/srv/www/404.html\"",
        "page 500 {\n                    file \"/usr/share/nginx/html/50x.html\"",
        "page 502 {\n                    file \"/usr/share/nginx/html/50x.html\"",
    ] {
        assert!(migrated.text.contains(written), "{}", migrated.text);
    }
    is_usable(&migrated);
    for directive in [
        "error_page 404 = @fallback;",
        "error_page 404 =200 /empty.html;",
        "error_page 404 https://example.com/;",
        "error_page 404 /$host.html;",
        "error_page 404 /app; location = /app { proxy_pass http://a:1; }",
    ] {
        let migrated = server(directive);
        let left = migrated.notes.iter().map(ToString::to_string);
        let left: Vec<String> = left.filter(|it| it.contains("error-pages")).collect();
        assert_eq!(left.len(), 1, "{directive}: {:?}", migrated.notes);
        assert!(
            !migrated.text.contains("    error-pages"),
            "{}",
            migrated.text
        );
    }
}

#[test]
fn the_body_of_an_error_file_is_a_page() {
    let source = Source {
        name: "haproxy.cfg".to_owned(),
        text: "defaults\n  mode http\n  errorfile 503 /etc/haproxy/503.http\n  errorfile 504 /gone.http\n\
               frontend f\n  bind :8080\n  default_backend b\n\
               backend b\n  server s1 10.0.0.1:80 send-proxy-v2\n  server s2 10.0.0.2:80 backup send-proxy-v2\n"
            .to_owned(),
    };
    let response = "HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/html\r\n\r\n\
                    <style>p { a: b }</style>\n<p>\"soon\"</p>\n";
    let included = |name: &str| {
        (name == "/etc/haproxy/503.http").then(|| {
            vec![Source {
                name: name.to_owned(),
                text: response.to_owned(),
            }]
        })
    };
    let migrated = migrate(Language::Haproxy, &source, &included).unwrap();

    assert!(migrated.text.contains("page 503 {"), "{}", migrated.text);
    for written in ["backup #true", "send-proxy \"v2\""] {
        assert!(migrated.text.contains(written), "{}", migrated.text);
    }
    let left: Vec<String> = migrated.notes.iter().map(ToString::to_string).collect();
    assert!(
        left.iter().any(|it| it.contains("errorfile 504")),
        "{left:?}"
    );
    is_usable(&migrated);
    let loaded = parse(&migrated.text, "out.kdl").unwrap();
    let page = &loaded.model.routes[0].policies.error_pages[0];
    assert_eq!(
        page.html.as_ref().unwrap().value,
        "<style>p { a: b }</style>\n<p>\"soon\"</p>"
    );
}

#[test]
fn included_files_replace_their_include() {
    let main = Source {
        name: "nginx.conf".to_owned(),
        text: "http {\n  include sites/*.conf;\n}".to_owned(),
    };
    let included = |pattern: &str| {
        assert_eq!(pattern, "sites/*.conf");
        let text = "server {\n listen 8080;\n location / { proxy_pass http://a:1; ssi on; }\n}";
        Some(vec![Source {
            name: "sites/a.conf".to_owned(),
            text: text.to_owned(),
        }])
    };
    let migrated = migrate(Language::Nginx, &main, &included).unwrap();
    assert_eq!(
        migrated.notes.first().unwrap().place.to_string(),
        "sites/a.conf:3"
    );
    is_usable(&migrated);
}

#[test]
fn snippets_that_multiply_are_refused() {
    let header = "\theader X y\n".repeat(1_000);
    let [a, b] =
        [("a", 300), ("b", 10)].map(|(name, times)| format!("\timport {name}\n").repeat(times));
    let source = Source {
        name: "Caddyfile".to_owned(),
        text: format!("(a) {{\n{header}}}\n(b) {{\n{a}}}\nexample.com {{\n{b}}}\n"),
    };
    let refused = migrate(Language::Caddy, &source, &|_| None).unwrap_err();
    assert!(refused.to_string().contains("200 000 lines"), "{refused}");
}

#[test]
fn an_include_of_itself_ends() {
    let source = Source {
        name: "nginx.conf".to_owned(),
        text: "include nginx.conf;\ninclude nginx.conf;".to_owned(),
    };
    let included = |_: &str| Some(vec![source.clone()]);
    assert!(migrate(Language::Nginx, &source, &included).is_err());
}

#[test]
fn a_text_that_is_not_of_nginx_is_refused_with_its_place() {
    for (text, expected) in [
        (
            "server {\n",
            "x.conf:2: the file ends within a directive or a block",
        ),
        ("a;\n}\n", "x.conf:2: `}` closes nothing here"),
        ("a \"b", "x.conf:1: a quoted text has no end"),
        (
            "a b",
            "x.conf:1: the file ends within a directive or a block",
        ),
        ("{ }", "x.conf:1: a block needs a name"),
    ] {
        let source = Source {
            name: "x.conf".to_owned(),
            text: text.to_owned(),
        };
        let error = migrate(Language::Nginx, &source, &|_| None).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn damaged_files_are_read_or_refused() {
    for (language, folder, step) in [
        (Language::Nginx, "nginx", 1),
        (Language::Caddy, "caddy", 1),
        (Language::Haproxy, "haproxy", 1),
        (Language::Traefik, "traefik", 41),
        (Language::Nginx, "sites/nginx", 149),
        (Language::Caddy, "sites/caddy", 149),
        (Language::Haproxy, "sites/haproxy", 149),
        (Language::Traefik, "sites/traefik", 149),
    ] {
        for path in files(folder) {
            let text = fs::read_to_string(&path).unwrap();
            for (at, _) in text.char_indices().step_by(step) {
                let (before, after) = text.split_at(at);
                let without = after.chars().skip(1).collect::<String>();
                for text in [before.to_owned(), format!("{before}{without}")] {
                    let source = Source {
                        name: "x".to_owned(),
                        text,
                    };
                    drop(migrate(language, &source, &|_| None));
                }
            }
        }
    }
}

#[test]
fn content_behind_a_check_that_is_not_converted_is_not_served() {
    let nginx = "server { listen 8080; auth_basic \"x\"; location / { proxy_pass http://a:1; } }";
    let caddy = ":8080 {\n basic_auth {\n a b\n }\n reverse_proxy a:1\n}\n";
    let haproxy = "defaults\n mode http\nfrontend f\n bind :8080\n http-request deny unless { src 10.0.0.1 }\n \
                   default_backend b\nbackend b\n server s a:1\n";
    let backend = "defaults\n mode http\nfrontend f\n bind :8080\n default_backend b\nbackend b\n \
                   http-request deny if { path /x }\n server s a:1\n";
    for (language, text) in [
        (Language::Nginx, nginx),
        (Language::Caddy, caddy),
        (Language::Haproxy, haproxy),
        (Language::Haproxy, backend),
    ] {
        let source = Source {
            name: "x".to_owned(),
            text: text.to_owned(),
        };
        let migrated = migrate(language, &source, &|_| None).unwrap();
        assert!(migrated.text.contains("respond 501"), "{}", migrated.text);
        assert!(
            !migrated.text.contains("upstream \"b\"\n        policies"),
            "{}",
            migrated.text
        );
        assert!(!migrated.notes.is_empty());
        is_usable(&migrated);
    }
}

#[test]
fn a_port_of_all_addresses_of_ipv6_is_bound() {
    let text = "defaults\nmode http\nfrontend f\nbind :::8080\ndefault_backend b\nbackend b\nserver s a:1\n";
    let source = Source {
        name: "x".to_owned(),
        text: text.to_owned(),
    };
    let migrated = migrate(Language::Haproxy, &source, &|_| None).unwrap();
    assert!(migrated.text.contains("\"[::]:8080\""), "{}", migrated.text);
    is_usable(&migrated);
}

/// Requests that the other server refuses, or checks in a way that is not converted, with the
/// status after the migration.
const GUARDED: &[(Language, &str, &str, u16)] = &[
    (
        Language::Nginx,
        "location /in/ { auth_basic x; proxy_pass http://a:1; location /in/api/ { proxy_pass http://a:1; } }",
        "GET /in/api/x",
        501,
    ),
    (
        Language::Nginx,
        "location /in/ { deny all; location ~ \\.json$ { proxy_pass http://a:1; } } location / { proxy_pass http://a:1; }",
        "GET /in/a.json",
        403,
    ),
    (
        Language::Nginx,
        "location / { deny all; allow 10.0.0.0/8; proxy_pass http://a:1; }",
        "GET /x",
        403,
    ),
    (
        Language::Nginx,
        "location / { include snippets/sign-in.conf; proxy_pass http://a:1; }",
        "GET /x",
        501,
    ),
    (
        Language::Nginx,
        "location /kept/ { internal; proxy_pass http://a:1; } location / { proxy_pass http://a:1; }",
        "GET /kept/x",
        404,
    ),
    (
        Language::Nginx,
        "location / { limit_except GET { deny all; } proxy_pass http://a:1; }",
        "POST /x",
        501,
    ),
    (
        Language::Nginx,
        "if ($http_x_token = '') { return 403; } location / { proxy_pass http://a:1; }",
        "GET /x",
        501,
    ),
    (
        Language::Nginx,
        "rewrite ^/private/ /denied last; location / { proxy_pass http://a:1; }",
        "GET /private/x",
        501,
    ),
    (
        Language::Nginx,
        "location /private { auth_pam x; proxy_pass http://a:1; } location / { proxy_pass http://a:1; }",
        "GET /private-old/x",
        501,
    ),
    (
        Language::Nginx,
        "location / { access_by_lua_block { check() } proxy_pass http://a:1; }",
        "GET /x",
        501,
    ),
    (
        Language::Haproxy,
        "acl shut path_beg /private\nacl shut hdr(host) evil.test\nhttp-request deny if shut",
        "GET /private/x",
        403,
    ),
    (
        Language::Haproxy,
        "http-request deny if { path_beg -i /admin }",
        "GET /ADMIN/x",
        403,
    ),
    (
        Language::Haproxy,
        "http-request tarpit if { path_beg /admin }",
        "GET /x",
        501,
    ),
    (
        Language::Haproxy,
        "tcp-request connection reject if !{ src 10.0.0.0/8 }",
        "GET /x",
        501,
    ),
    (
        Language::Haproxy,
        "http-request redirect location https://sso/ if !{ cook(sid) -m found }",
        "GET /x",
        501,
    ),
    (
        Language::Haproxy,
        "redirect scheme https unless { ssl_fc }",
        "GET /x",
        302,
    ),
    (
        Language::Haproxy,
        "http-request replace-path ^/v1/(.*) /\\1\nhttp-request deny if { path_beg /admin }",
        "GET /v1/admin",
        501,
    ),
    (
        Language::Haproxy,
        "http-request replace-path ^/v1/(.*) /\\1\nhttp-request replace-path ^/a/(.*) /b/\\1",
        "GET /v1/a/x",
        501,
    ),
    (
        Language::Caddy,
        "uri strip_prefix /app\nhandle {\nrespond /admin/* 403\nreverse_proxy a:1\n}",
        "GET /app/admin/x",
        501,
    ),
    (
        Language::Caddy,
        "rewrite * /app{uri}\nhandle {\nrespond /app/admin/* 403\nreverse_proxy a:1\n}",
        "GET /admin/x",
        501,
    ),
    (
        Language::Caddy,
        "@outside not remote_ip 10.0.0.0/8\nabort @outside\nreverse_proxy a:1",
        "GET /x",
        403,
    ),
    (
        Language::Caddy,
        "@outside not remote_ip 10.0.0.0/8\nhandle /admin/* {\nabort @outside\nreverse_proxy a:1\n}\nhandle {\nreverse_proxy b:1\n}",
        "GET /ADMIN/x",
        403,
    ),
    (
        Language::Caddy,
        "handle /admin/* {\nbasic_auth {\nann $2y$04$co9osgv9qGuwPD/XdNUES.f2whZRS2F1aiA/sEoPTBqLenVJfvbqS\n}\nreverse_proxy a:1\n}\nhandle /admin/public/* {\nrespond 204\n}\nreverse_proxy b:1",
        "GET /Admin/x",
        401,
    ),
    (
        Language::Caddy,
        "handle /admin/* {\nbasic_auth {\nann $2y$04$co9osgv9qGuwPD/XdNUES.f2whZRS2F1aiA/sEoPTBqLenVJfvbqS\n}\nreverse_proxy a:1\n}\nhandle /admin/public/* {\nrespond 204\n}\nreverse_proxy b:1",
        "GET /admin/public/x",
        204,
    ),
    (
        Language::Caddy,
        "@in header X-In yes\nhandle @in {\nhandle /admin/* {\nreverse_proxy a:1\n}\n}\nhandle {\nrespond 403\n}",
        "GET /admin/x",
        403,
    ),
    (
        Language::Caddy,
        "root * /srv\nfile_server\nphp_fastcgi unix//run/php.sock",
        "GET /wp-config.php",
        501,
    ),
    (
        Language::Caddy,
        "reverse_proxy a:1\nrespond /admin/* 403",
        "GET /ADMIN/x",
        403,
    ),
    (
        Language::Caddy,
        "root * /srv\nfile_server {\nhide .git\n}",
        "GET /.git/config",
        501,
    ),
    (
        Language::Caddy,
        "route /in/* {\nbasic_auth {\na b\n}\n}\nreverse_proxy a:1",
        "GET /in/x",
        501,
    ),
    (
        Language::Caddy,
        "import checks.caddy\nreverse_proxy a:1",
        "GET /x",
        501,
    ),
    (
        Language::Traefik,
        "  middlewares:\n    m: {plugin: {x: {}}}\n  routers:\n    r: {rule: PathPrefix(`/`), service: app, middlewares: [m]}\n",
        "GET /x",
        501,
    ),
    (
        Language::Traefik,
        "  middlewares:\n    m: {unheardOf: {}}\n    c: {chain: {middlewares: [m]}}\n  routers:\n    r: {rule: PathPrefix(`/`), service: app, middlewares: [c@file]}\n",
        "GET /x",
        501,
    ),
    (
        Language::Traefik,
        "  routers:\n    r: {rule: PathPrefix(`/`), service: app, middlewares: [gone@docker]}\n",
        "GET /x",
        501,
    ),
    (
        Language::Traefik,
        "  middlewares:\n    m: {ipAllowList: {sourceRange: [10.0.0.0/8]}}\n  routers:\n    r: {rule: PathPrefix(`/`), service: app, middlewares: [m]}\n",
        "GET /x",
        403,
    ),
    (
        Language::Traefik,
        "  middlewares:\n    m: {basicAuth: {users: [\"a:$apr1$x$y\"]}}\n  routers:\n    r: {rule: PathPrefix(`/`), service: app, middlewares: [m]}\n",
        "GET /x",
        501,
    ),
    (
        Language::Traefik,
        "  middlewares:\n    m: {passTLSClientCert: {pem: true}}\n  routers:\n    r: {rule: PathPrefix(`/`), service: app, middlewares: [m]}\n",
        "GET /x",
        501,
    ),
    // `PathPrefix` compares characters, not path segments.
    (
        Language::Traefik,
        "  middlewares:\n    m: {digestAuth: {}}\n  routers:\n    a: {rule: PathPrefix(`/admin`), service: app, middlewares: [m]}\n    r: {rule: PathPrefix(`/`), service: app}\n",
        "GET /admins",
        501,
    ),
    // A condition that cannot be converted closes all paths of the rule.
    (
        Language::Traefik,
        "  routers:\n    a: {rule: PathPrefix(`/in`) && ClientIP(`10.0.0.0/8`), service: app}\n    r: {rule: PathPrefix(`/`), service: app}\n",
        "GET /in/x",
        501,
    ),
    (
        Language::Traefik,
        "  routers:\n    a: {rule: Path(`/b`) && Method(`POST`), service: gone}\n    r: {rule: PathPrefix(`/`) && !PathPrefix(`/b`), service: app}\n",
        "GET /b",
        404,
    ),
    (
        Language::Traefik,
        "  routers:\n    a: {rule: Path(`/b`) && Method(`POST`), service: gone}\n    r: {rule: PathPrefix(`/`) && !PathPrefix(`/b`), service: app}\n",
        "POST /b",
        501,
    ),
    // Requests that a router excludes, while a later router excludes different ones.
    (
        Language::Traefik,
        "  routers:\n    a: {rule: Path(`/b`) && !Method(`GET`), service: app}\n    r: {rule: PathPrefix(`/`) && !PathPrefix(`/b`), service: app}\n",
        "GET /x",
        501,
    ),
    (
        Language::Traefik,
        "  routers:\n    a: {rule: \"Host(`a.test\", service: app}\n    r: {rule: PathPrefix(`/`), service: app, priority: 1}\n",
        "GET /x",
        501,
    ),
    (
        Language::Traefik,
        "  middlewares:\n    m: {forwardAuth: {address: \"http://a:1/verify?rd=x\"}}\n  routers:\n    r: {rule: PathPrefix(`/`), service: app, middlewares: [m]}\n",
        "GET /x",
        501,
    ),
];

/// Formats a dynamic configuration with these routers and middlewares, one entry point and one
/// service.
fn traefik(parts: &str) -> String {
    format!(
        "entryPoints:\n  web:\n    address: :8080\nhttp:\n  services:\n    app:\n      loadBalancer:\n        \
         servers:\n          - url: http://a:1\n{parts}"
    )
}

#[test]
fn hosts_with_client_certificates_of_their_own_are_closed() {
    for (router, point) in [
        ("{options: inner}", ""),
        ("{}", "{tls: {options: inner}}"),
        ("{options: gone}", ""),
    ] {
        let text = format!(
            "entryPoints:\n  secure:\n    address: :8443\n    http: {point}\nhttp:\n  services:\n    app:\n      \
             loadBalancer:\n        servers: [{{url: \"http://a:1\"}}]\n  routers:\n    r: {{rule: Host(`a.test`), service: app, tls: {router}}}\n\
             tls:\n  options:\n    inner:\n      clientAuth: {{caFiles: [ca.pem], clientAuthType: RequireAndVerifyClientCert}}\n"
        );
        let source = Source {
            name: "x.yml".to_owned(),
            text: text.clone(),
        };
        let migrated = migrate(Language::Traefik, &source, &|_| None).unwrap();
        assert!(
            migrated.text.contains("respond 501"),
            "{text}\n{}",
            migrated.text
        );
        assert!(
            !migrated.text.contains("upstream \"app\"\n"),
            "{}",
            migrated.text
        );
    }
}

#[test]
fn a_static_configuration_reads_the_files_that_it_names() {
    let main = Source {
        name: "traefik.yml".to_owned(),
        text: "entryPoints: {web: {address: \":8080\"}}\nproviders: {file: {directory: dynamic}, docker: {}}\n".to_owned(),
    };
    let included = |pattern: &str| {
        let text = "[http.routers.a]\nrule = \"Host(`a.test`)\"\nservice = \"a\"\nmiddlewares = [\"m\"]\n\
                    [[http.services.a.loadBalancer.servers]]\nurl = \"http://a:1\"\n[http.middlewares.m.digestAuth]\nrealm = \"x\"\n";
        (pattern == "dynamic/*.toml").then(|| {
            vec![Source {
                name: "dynamic/a.toml".to_owned(),
                text: text.to_owned(),
            }]
        })
    };
    let migrated = migrate(Language::Traefik, &main, &included).unwrap();
    let places: Vec<String> = migrated
        .notes
        .iter()
        .map(|it| it.place.to_string())
        .collect();
    assert!(
        places.contains(&"dynamic/a.toml:7".to_owned()),
        "{:?}",
        migrated.notes
    );
    assert!(
        migrated.text.contains("host \"a.test\""),
        "{}",
        migrated.text
    );
    is_usable(&migrated);
}

#[test]
fn a_request_that_was_refused_or_checked_reaches_no_content() {
    for (language, text, request, status) in GUARDED {
        let text = match language {
            Language::Nginx => format!("server {{ listen 8080; {text} }}"),
            Language::Haproxy => format!(
                "defaults\nmode http\nfrontend f\nbind :8080\n{text}\ndefault_backend b\nbackend b\nserver s a:1\n"
            ),
            Language::Caddy => format!("http://a.test:8080 {{\n{text}\n}}\n"),
            Language::Traefik => traefik(text),
        };
        let source = Source {
            name: "x".to_owned(),
            text: text.clone(),
        };
        let migrated = migrate(*language, &source, &|_| None).unwrap();
        let (method, path) = request.split_once(' ').unwrap();
        let probe = format!(
            "tests {{ test \"probe\" {{ request \"{method}\" \"http://a.test:8080{path}\"; expect {{ status {status} }} }} }}"
        );
        let settings = migrated.text.split("\ntests {").next().unwrap();
        let loaded = parse(&format!("{settings}\n{probe}"), "out.kdl");
        let loaded = loaded.unwrap_or_else(|report| panic!("{text}\n{settings}\n{report}"));
        let failed = failed_tests(&loaded.model);
        assert!(failed.is_empty(), "{text}\n{settings}\n{failed:?}");
    }
}

/// Migrates an nginx server with HTTP/3 on port 443 and further directives.
fn quic_server(listen: &str, directives: &str) -> Migrated {
    nginx(&format!(
        "server {{ listen 443 quic reuseport; {listen} server_name a.test; ssl_certificate a.crt; \
         ssl_certificate_key a.key; {directives} location / {{ proxy_pass http://a:1; }} }}"
    ))
}

#[test]
fn http3_of_nginx_is_written_where_a_listener_can_have_it() {
    for (listen, directives, is_written) in [
        ("listen 443 ssl;", "", true),
        ("listen 443 ssl;", "http3 on; quic_retry on;", true),
        ("listen 443 ssl;", "http3 off;", false),
        ("listen 443 ssl;", "ssl_protocols TLSv1.2;", false),
        ("listen 443 ssl proxy_protocol;", "", false),
        ("listen 8443 ssl;", "", false),
    ] {
        let migrated = quic_server(listen, directives);
        let mut lines = migrated.text.lines().map(str::trim);
        assert_eq!(
            lines.any(|line| line == "http3 #true"),
            is_written,
            "{listen} {directives}\n{}",
            migrated.text
        );
        is_usable(&migrated);
    }
}

#[test]
fn the_advertisement_of_http3_is_left_to_the_reader() {
    let migrated = quic_server("listen 443 ssl;", "");
    let notes: Vec<String> = migrated.notes.iter().map(ToString::to_string).collect();
    let [note] = &notes[..] else {
        panic!("{notes:?}");
    };
    assert!(note.contains("`listen 443 quic reuseport`"), "{note}");
    assert!(note.contains("alt-svc-max-age-secs"), "{note}");
}
