//! No directive is lost silently: each one changes the result, or is reported with its place. Each
//! directive of the fixtures is removed in turn. If the result stays the same, the directive must
//! describe a default.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use proxy_migrate::{Language, Migrated, Source, SyntaxError, migrate};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Prefixes of directives that have no effect here, at least with these values.
const NGINX: &[&str] = &[
    "access_log off",
    "aio ",
    "auth_request_set ",
    "client_body_buffer_size ",
    "default_type application/octet-stream",
    "gzip off",
    "gzip_buffers ",
    "gzip_disable ",
    "gzip_http_version ",
    "gzip_proxied ",
    "gzip_types ",
    "gzip_vary ",
    "http2 ",
    "http3 on",
    "include ",
    "index index.html",
    "keepalive_requests ",
    "keepalive_timeout 60s",
    "limit_req_zone ",
    "listen 80",
    "listen 0.0.0.0:80",
    "log_format ",
    "log_not_found ",
    "multi_accept ",
    "output_buffers ",
    "pid ",
    "proxy_buffer_size ",
    "proxy_buffering ",
    "proxy_cache off",
    "proxy_cache_background_update ",
    "proxy_cache_key ",
    "proxy_cache_lock ",
    "proxy_cache_valid ",
    "proxy_http_version ",
    "proxy_redirect default",
    "proxy_redirect off",
    "proxy_set_header Connection ",
    "proxy_set_header Host ",
    "proxy_set_header Upgrade ",
    "proxy_set_header X-Forwarded-",
    "proxy_ssl_server_name ",
    "proxy_ssl_verify on",
    "real_ip_recursive ",
    "sendfile ",
    "server_tokens ",
    "ssl_dhparam ",
    "ssl_prefer_server_ciphers ",
    "ssl_protocols TLSv1.2 TLSv1.3",
    "ssl_session_cache ",
    "ssl_session_timeout ",
    "tcp_nodelay ",
    "tcp_nopush ",
    "types_hash_max_size ",
    "use ",
    "user ",
    "worker_connections ",
    "worker_rlimit_nofile ",
    "zone ",
];

/// Blocks that are reported as a whole, so that their statements are not tested separately.
const LISTED_BLOCKS: &[&str] = &[
    "events",
    "geo",
    "if",
    "limit_except",
    "map",
    "split_clients",
    "types",
];

const CADDY: &[&str] = &[
    "buffer_requests",
    "flush_interval",
    "format json",
    "header_up Host {host}",
    "header_up X-Forwarded-",
    "keepalive ",
    "log",
    "order",
    "output file",
    "to ",
];

const HAPROXY: &[&str] = &[
    "chroot ",
    "daemon",
    "group ",
    "log ",
    "option dontlognull",
    "option forwardfor",
    "option http-keep-alive",
    "option http-server-close",
    "option httplog",
    "option redispatch",
    "option tcplog",
    "option tcp-check",
    "http-reuse ",
    "retries 3",
    "id ",
    "description ",
    "ssl-default-",
    "stats ",
    "tcp-request inspect-delay",
    "tune.",
    "user ",
];

const TRAEFIK: &[&str] = &[];

fn migrated(language: Language, text: String) -> Result<Migrated, SyntaxError> {
    let name = match language {
        Language::Traefik => "x.yml",
        Language::Nginx | Language::Caddy | Language::Haproxy => "x",
    };
    let source = Source {
        name: name.to_owned(),
        text,
    };
    migrate(language, &source, &|_| None)
}

/// Replaces a part of the text by spaces, so that line numbers stay the same.
fn without(text: &str, part: &Range<usize>) -> String {
    let (before, rest) = text.split_at(part.start);
    let (removed, after) = rest.split_at(part.len());
    let blank: String = removed
        .chars()
        .map(|c| if c == '\n' { '\n' } else { ' ' })
        .collect();
    format!("{before}{blank}{after}")
}

/// Finds statements of nginx that end with `;`, outside of blocks that are reported as a whole.
fn statements(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut blocks: Vec<String> = Vec::new();
    let mut start = 0;
    let mut quote = None;
    let mut is_comment = false;
    let mut last = ' ';
    for (at, c) in text.char_indices() {
        let before = text.get(start..at).unwrap_or_default();
        match (quote, c) {
            _ if is_comment => {
                is_comment = c != '\n';
                if !is_comment {
                    start = at + 1;
                }
            }
            (Some(open), c) if c == open && last != '\\' => quote = None,
            (None, '"' | '\'') if last.is_whitespace() => quote = Some(c),
            (None, '#') if before.trim().is_empty() => is_comment = true,
            (None, ';') => {
                let is_listed = blocks.iter().any(|it| LISTED_BLOCKS.contains(&it.as_str()));
                if !is_listed && !before.trim().is_empty() {
                    found.push(start..at + 1);
                }
                start = at + 1;
            }
            (None, '{') if last.is_whitespace() => {
                let name = before.split_whitespace().next().unwrap_or_default();
                blocks.push(name.to_owned());
                start = at + 1;
            }
            (None, '}') if before.trim().is_empty() => {
                blocks.pop();
                start = at + 1;
            }
            _ => {}
        }
        last = c;
    }
    found
}

fn lines(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let is_comment = line.trim_start().starts_with(['#', '}']);
        if !(line.trim().is_empty() || is_comment || line.trim_end().ends_with('{')) {
            found.push(start..start + line.len());
        }
        start += line.len();
    }
    found
}

/// Further directives without an effect, by fixture: in parts that respond with 501 or have no
/// listener, in blocks that are reported as a whole, or with the default value.
const WITHOUT_EFFECT: &[&str] = &[
    "arguments.caddyfile: @shut path /in/{$NAME}/*",
    "auth.caddyfile: ann $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG",
    "auth.caddyfile: copy_headers Remote-User",
    "auth.caddyfile: uri /api/verify?rd=https://auth.example.com/",
    "auth.cfg: acl ok http_auth(admins)",
    "bases.cfg: acl shut path_beg /other",
    "bases.cfg: mode tcp",
    "blue-green.conf: server_name \"\"",
    "cache.cfg: max-age 60",
    "cache.cfg: nameserver one 10.0.0.53:53",
    "cache.cfg: total-max-size 64",
    "canary.conf: proxy_pass http://new$request_uri",
    "company.conf: deny all",
    "company.yml: dashboard: true",
    "company.yml: scheme: https",
    "company.yml: service: pages",
    "company.yml: storage: acme.json",
    "company.yml: users: [\"ann:traefik:a2688e031edb4be6a3797f3882655c05\"]",
    "company.yml: weight: 1",
    "django.conf: client_max_body_size 75M",
    "dot-files.conf: deny all",
    "dot-files.conf: return 404",
    "dot-files.conf: try_files $uri =404",
    "edge.cfg: balance roundrobin",
    "edge.cfg: bind *:5000",
    "env.caddyfile: Host example.com",
    "env.caddyfile: a b",
    "env.caddyfile: lb_policy cookie lb secret",
    "env.caddyfile: span example",
    "files.caddyfile: file_server",
    "files.caddyfile: index home.html",
    "files.caddyfile: precompressed br gzip",
    "files.caddyfile: rewrite * /{err.status_code}.html",
    "gitlab.conf: root /opt/git/errors",
    "hosts.cfg: acl is_json hdr_sub(accept) application/json",
    "hosts.cfg: acl is_static path_beg /static /images",
    "hosts.cfg: acl is_ws hdr(Upgrade) -i websocket",
    "hosts.cfg: acl is_www hdr_beg(host) -i www.",
    "hotlinks.conf: autoindex_exact_size off",
    "hotlinks.conf: secure_link_md5 \"$secure_link_expires$uri secret\"",
    "jenkins.conf: proxy_read_timeout 90",
    "jenkins.conf: proxy_send_timeout 90",
    "jenkins.conf: root /var/lib/jenkins/",
    "mail.cfg: mode tcp",
    "mail.cfg: tcp-request content accept if { req.ssl_hello_type 1 }",
    "mail.cfg: timeout client 1m",
    "mail.cfg: timeout server 1m",
    "maintenance.conf: rewrite ^(.*)$ /maintenance.html break",
    "maintenance.conf: root /srv/shop",
    "matchers.caddyfile: @expr expression {method}.startsWith(\"P\")",
    "matchers.caddyfile: @inner remote_ip 10.0.0.0/8",
    "matchers.caddyfile: @not_inner not remote_ip 10.0.0.0/8",
    "matchers.caddyfile: @post method POST PUT",
    "mediawiki.conf: deny all",
    "middlewares.yml: browserXssFilter: true",
    "middlewares.yml: contentTypeNosniff: true",
    "middlewares.yml: customRequestHeaders: {X-Script-Name: test, X-Gone: \"\"}",
    "middlewares.yml: customResponseHeaders: {Server: \"\"}",
    "middlewares.yml: entryPoints: [websecure]",
    "middlewares.yml: frameDeny: true",
    "middlewares.yml: stsIncludeSubdomains: true",
    "middlewares.yml: stsSeconds: 31536000",
    "mutual-tls.conf: proxy_set_header X-Client-Subject $ssl_client_s_dn",
    "odoo.conf: proxy_read_timeout 720s",
    "odoo.conf: proxy_send_timeout 720s",
    "old-urls.conf: add_header Content-Type text/plain",
    "options.caddyfile: level WARN",
    "options.caddyfile: trusted_proxies static 10.0.0.0/8",
    "paths.caddyfile: reverse_proxy 127.0.0.1:3000",
    "paths.caddyfile: reverse_proxy 127.0.0.1:9090",
    "php.caddyfile: @hidden path */.git/* *.sql",
    "php.caddyfile: encode gzip",
    "protected.conf: allow 10.0.0.0/8",
    "protected.conf: deny all",
    "protected.conf: proxy_pass http://127.0.0.1:4000",
    "rates.cfg: acl bad src -f /etc/haproxy/blocked.lst",
    "real-ip.conf: set_real_ip_from 2400:cb00::/32",
    "registry.conf: auth_basic \"Registry\"",
    "registry.conf: client_max_body_size 0",
    "registry.conf: proxy_read_timeout 900",
    "relays.cfg: bind :9443",
    "relays.cfg: default_backend sites",
    "relays.cfg: mode tcp",
    "relays.cfg: tcp-request content reject",
    "relays.cfg: timeout client 1m",
    "rewrites.caddyfile: max_size 5MB",
    "rewrites.caddyfile: request_header X-App 1",
    "services.caddyfile: admin x",
    "simple.cfg: balance roundrobin",
    "simple.yml: entryPoints: [web]",
    "simple.yml: interval: 10s",
    "simple.yml: path: /health",
    "simple.yml: timeout: 3s",
    "snippets.caddyfile: encode gzip",
    "spa-api.conf: proxy_set_header X-Real-IP $remote_addr",
    "static.yml: accessLog: {filePath: /var/log/access.log, format: json}",
    "static.yml: global: {checkNewVersion: false, sendAnonymousUsage: false}",
    "static.yml: log: {level: INFO}",
    "sticky.cfg: balance roundrobin",
    "sticky.cfg: option httpchk",
    "tcp.yml: routers: {dns: {service: dns, entryPoints: [dns]}}",
    "tcp.yml: services: {dns: {loadBalancer: {servers: [{address: \"10.0.0.3:53\"}]}}}",
    "tls.cfg: http-request set-header X-Forwarded-Proto https if { ssl_fc }",
    "tomcat.conf: proxy_redirect http://127.0.0.1:8080/erp-web/ /erp/",
    "video.conf: mp4_buffer_size 1m",
    "video.conf: mp4_max_buffer_size 5m",
    "video.conf: server_name _",
    "wildcard.caddyfile: dns cloudflare {env.CF_API_TOKEN}",
    "wordpress.conf: allow all",
];

/// Returns the fixtures of a language.
fn files(name: &str) -> Vec<PathBuf> {
    let root = Path::new("../../fixtures/migrate");
    let folders = [root.join(name), root.join("sites").join(name)];
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

type Parts = fn(&str) -> Vec<Range<usize>>;

const LANGUAGES: &[(Language, &str, Parts, &[&str])] = &[
    (Language::Nginx, "nginx", statements, NGINX),
    (Language::Caddy, "caddy", lines, CADDY),
    (Language::Haproxy, "haproxy", lines, HAPROXY),
    (Language::Traefik, "traefik", lines, TRAEFIK),
];

#[test]
fn each_directive_changes_the_result_or_is_listed() {
    let mut silent: Vec<String> = Vec::new();
    for (language, name, parts, known) in LANGUAGES {
        for path in files(name) {
            let extension = path.extension().unwrap_or_default();
            if extension == "expected" || extension == "toml" {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let whole = migrated(*language, text.clone());
            let whole = whole.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            for part in parts(&text) {
                let Ok(less) = migrated(*language, without(&text, &part)) else {
                    continue;
                };
                let directive = text.get(part).unwrap_or_default().trim();
                let words = directive.split_whitespace().collect::<Vec<_>>().join(" ");
                let is_known = known.iter().any(|it| format!("{words} ").starts_with(it));
                let shown = words.trim_end_matches(';');
                // If a block has two directives with the same name, the second one may be reported.
                let is_listed = whole.notes.iter().any(|note| note.directive == shown);
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                let place = format!("{file}: {shown}");
                let is_reviewed = WITHOUT_EFFECT.contains(&place.as_str());
                if less == whole && !is_known && !is_listed && !is_reviewed {
                    silent.push(place);
                }
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}
