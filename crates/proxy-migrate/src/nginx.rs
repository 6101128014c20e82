//! Reads `nginx.conf`.

mod advice;
mod checks;
mod error_pages;
mod listen;
mod location;
mod parser;
mod policies;
mod prefix;
mod proxy;
mod scope;
mod server;
mod server_names;
mod stream;
mod upstream;
mod value;
mod virtual_host;

use crate::kdl::Node;
use crate::migrated::SyntaxError;
use crate::site::{MAX_BODY_BYTES, Site};
use crate::source::{Included, Source};
use crate::units;
use parser::Directive;
use scope::Scope;

/// nginx's default for `client_max_body_size`.
const DEFAULT_BODY_BYTES: u64 = 1 << 20;
/// nginx's default size of a header field.
const DEFAULT_HEADER_BYTES: u64 = 8 << 10;

/// Reads a main file, or a file of servers as in `sites-enabled`.
pub(crate) fn read(source: &Source, included: Included<'_>) -> Result<Site, SyntaxError> {
    let directives = parser::parse(source, included)?;
    let mut site = Site::default();
    policies::find_password_files(&mut site, &directives, included);
    let http = directives.iter().filter(|it| it.name == "http");
    let (mut body, mut timeouts) = (DEFAULT_BODY_BYTES, None);
    let mut has_http = false;
    for block in http {
        has_http = true;
        body = body_bytes(block.children()).unwrap_or(body);
        timeouts = Some(block);
        in_http(&mut site, block.children());
    }
    let is_main = |it: &&Directive| !matches!(&*it.name, "http" | "stream");
    let main: Vec<Directive> = directives.iter().filter(is_main).cloned().collect();
    let streams = || directives.iter().filter(|it| it.name == "stream");
    let has_servers = main.iter().any(|it| it.name == "server");
    if has_http || (streams().next().is_some() && !has_servers) {
        process(&mut site, &main);
    } else {
        has_http = true;
        body = body_bytes(&main).unwrap_or(body);
        in_http(&mut site, &main);
    }
    if has_http {
        let context = timeouts.map_or(&main[..], Directive::children);
        limits(&mut site, context, body);
    }
    if let Some(block) = timeouts {
        listen::write_client_timeouts(&mut site, block.children());
    } else {
        listen::write_client_timeouts(&mut site, &main);
    }
    // After the timeouts, which apply to requests only.
    for block in streams() {
        stream::read(&mut site, block.children());
    }
    listen::remove_without_certificates(&mut site);
    let context = timeouts.map_or(&main[..], Directive::children);
    policies::memory(&mut site, context);
    Ok(site)
}

/// Converts limits on bodies and header fields; without directives, nginx's defaults.
fn limits(site: &mut Site, context: &[Directive], body: u64) {
    let (mut value, mut all) = (DEFAULT_HEADER_BYTES, 4 * DEFAULT_HEADER_BYTES);
    let buffers = context
        .iter()
        .rfind(|it| it.name == "large_client_header_buffers");
    if let Some(directive) = buffers {
        let count = directive.word(0).and_then(|word| word.parse::<u64>().ok());
        let bytes = directive.word(1).and_then(units::bytes);
        if let Some((count, bytes)) = count.zip(bytes) {
            let (place, shown) = (&directive.place, directive.shown());
            let total = bytes.saturating_mul(count);
            value = site.within(place, &shown, "max-header-value-bytes", bytes);
            all = site.within(place, &shown, "max-header-size-bytes", total);
        }
    }
    let node = Node::new("limits")
        .child(Node::number(
            "max-body-size-bytes",
            body.min(MAX_BODY_BYTES),
        ))
        .child(Node::number("max-header-value-bytes", value))
        .child(Node::number("max-header-size-bytes", all.max(value)));
    site.settings.push(node);
}

fn body_bytes(block: &[Directive]) -> Option<u64> {
    let mut sizes = block.iter().filter(|it| it.name == "client_max_body_size");
    match units::bytes(sizes.next()?.word(0)?)? {
        0 => Some(MAX_BODY_BYTES),
        bytes => Some(bytes),
    }
}

/// Converts directives of the main context.
fn process(site: &mut Site, block: &[Directive]) {
    for directive in block {
        match (&*directive.name, directive.word(0)) {
            ("worker_processes", Some(number)) => {
                let threads = number.parse().unwrap_or(0);
                let shown = directive.shown();
                let threads = site.number(&directive.place, &shown, "worker-threads", threads);
                site.settings.push(Node::new("system").child(threads));
            }
            ("error_log", Some(path)) => error_log(site, directive, path),
            ("events", _) => {}
            _ => advice::note(site, directive),
        }
    }
}

fn error_log(site: &mut Site, directive: &Directive, path: &str) {
    if has_log(site, directive, "error-log") {
        return;
    }
    let mut log = Node::new("error-log");
    let level = match directive.word(1) {
        Some("debug") => "debug",
        Some("info" | "notice") => "info",
        Some("warn") => "warn",
        _ => "error",
    };
    if path.starts_with('/') {
        log = log.child(Node::text("path", path));
    }
    site.settings
        .push(Node::new("observability").child(log.child(Node::text("level", level))));
}

fn in_http(site: &mut Site, block: &[Directive]) {
    let scope = Scope::new(block);
    for directive in block {
        match &*directive.name {
            "upstream" => upstream::read(site, directive),
            "server" | "large_client_header_buffers" | "proxy_cache_path" => {}
            "access_log" => access_log(site, directive, block),
            "error_log" => {
                if let Some(path) = directive.word(0) {
                    error_log(site, directive, path);
                }
            }
            name if scope::is_inherited(name) || listen::is_client_timeout(name) => {}
            _ => advice::note(site, directive),
        }
    }
    let servers: Vec<&Directive> = block.iter().filter(|it| it.name == "server").collect();
    server::read_all(site, &servers, &scope);
}

/// Returns true if a log of this kind exists already; a second one is noted.
fn has_log(site: &mut Site, directive: &Directive, kind: &str) -> bool {
    let has_log = site.settings.iter().any(|node| node.holds(kind));
    if has_log {
        site.note(
            &directive.place,
            &directive.shown(),
            "there is one log of each kind",
        );
    }
    has_log
}

fn access_log(site: &mut Site, directive: &Directive, block: &[Directive]) {
    if has_log(site, directive, "access-log") {
        return;
    }
    let mut log = Node::new("access-log");
    match directive.word(0) {
        Some("off") => log = log.child(Node::new("enabled").word("#false")),
        Some(path) if path.starts_with('/') => {
            let format = match log_format(directive, block) {
                Ok(format) => format,
                Err(reason) => {
                    let advice = format!("{reason}; the log is written as `combined`");
                    site.note(&directive.place, &directive.shown(), &advice);
                    "combined".to_owned()
                }
            };
            log = log
                .child(Node::text("path", path))
                .child(Node::text("format", &format));
        }
        _ => return advice::note(site, directive),
    }
    site.settings.push(Node::new("observability").child(log));
}

/// Variables of `log_format` and their texts in `format`.
const LOG_VARIABLES: [(&str, &str); 17] = [
    ("body_bytes_sent", "{bytes_out}"),
    ("host", "{host}"),
    ("http_host", "{host}"),
    ("http_referer", "{referer}"),
    ("http_user_agent", "{user_agent}"),
    ("remote_addr", "{client_ip}"),
    // As in the Combined Log Format here.
    ("remote_user", "-"),
    ("request", "{method} {path} {protocol}"),
    ("request_id", "{correlation_id}"),
    ("request_method", "{method}"),
    ("request_uri", "{path}"),
    ("server_protocol", "{protocol}"),
    ("status", "{status}"),
    ("time_iso8601", "{timestamp}"),
    ("time_local", "{time_common}"),
    ("upstream_addr", "{target}"),
    ("upstream_cache_status", "{cache}"),
];

/// The format of an access log; the reason if there is none.
fn log_format(directive: &Directive, block: &[Directive]) -> Result<String, String> {
    let name = match directive.word(1) {
        None | Some("combined") => return Ok("combined".to_owned()),
        Some(name) => name,
    };
    let is_own = |other: &&Directive| other.name == "log_format" && other.word(0) == Some(name);
    let Some(format) = block.iter().find(is_own) else {
        return Err("options of a log have no counterpart".to_owned());
    };
    let words = (1..).map_while(|index| format.word(index));
    let text: String = words.filter(|word| !word.starts_with("escape=")).collect();
    let mut parts = text.split('$');
    let mut line = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (braced, part) = match part.strip_prefix('{') {
            Some(part) => (true, part),
            None => (false, part),
        };
        let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let end = part.find(is_end).unwrap_or(part.len());
        let (variable, rest) = part.split_at(end);
        let known = LOG_VARIABLES.iter().find(|(name, _)| *name == variable);
        let (_, field) =
            known.ok_or_else(|| format!("access records have no counterpart of `${variable}`"))?;
        line.push_str(field);
        line.push_str(rest.strip_prefix('}').filter(|_| braced).unwrap_or(rest));
    }
    Ok(line)
}
