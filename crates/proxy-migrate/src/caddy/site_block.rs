//! Blocks of sites, as routes.

use super::address::{self, Addresses};
use super::matcher::{self, Conditions};
use super::parser::Directive;
use super::proxy;
use super::value::edit;
use crate::kdl::Node;
use crate::site::{Path, Policies, Rewrite, Route, Service, Site};
use crate::units;

/// The settings that hold at a place of a site.
#[derive(Clone, Default)]
pub(super) struct Context {
    conditions: Conditions,
    policies: Policies,
    root: Option<String>,
    fallback: Option<String>,
    /// A check of users was not carried over, so nothing is served.
    is_closed: bool,
}

pub(super) fn read(site: &mut Site, block: &Directive) {
    let addresses = address::read(site, block);
    in_block(site, &addresses, &block.block, &Context::default());
}

fn in_block(site: &mut Site, addresses: &Addresses, block: &[Directive], outer: &Context) {
    let mut context = outer.clone();
    for directive in block {
        setting(site, &mut context, directive);
    }
    for directive in block {
        content(site, addresses, block, &context, directive);
    }
}

/// Directives that change what a request gets.
fn setting(site: &mut Site, context: &mut Context, directive: &Directive) {
    let arguments = directive.arguments();
    let first = directive.word(1);
    let rest = if matcher::is_matcher(first) && directive.name() != "rewrite" {
        arguments.get(1..).unwrap_or_default()
    } else {
        arguments
    };
    let is_for_all = first == "*" || !matcher::is_matcher(first);
    match directive.name() {
        "root" if is_for_all => context.root = rest.first().cloned(),
        // `root /srv` without a matcher.
        "root" if arguments.len() == 1 => context.root = Some(first.to_owned()),
        "try_files" => {
            let last = directive.words.last().filter(|word| word.starts_with('/'));
            context.fallback = last.map(|word| word.trim_start_matches('/').to_owned());
        }
        "encode" if is_for_all => {
            let codings = rest.iter().map(String::as_str);
            let known = codings.filter(|it| matches!(*it, "gzip" | "zstd" | "br"));
            let codings = Node::new("codings").args(known).with_arguments();
            context
                .policies
                .settings
                .push(Node::new("compression").children(codings));
        }
        "header" if is_for_all => headers(site, context, directive, rest),
        "request_body" => {
            let limit = directive.block.iter().find(|it| it.name() == "max_size");
            if let Some(bytes) = limit.and_then(|it| units::bytes(it.word(1))) {
                context
                    .policies
                    .settings
                    .push(Node::number("max-body-size", bytes));
            }
        }
        "rewrite" if first == "*" && !directive.word(2).contains(['{', '?']) => {
            context.policies.rewrite = Some(Rewrite::Path(directive.word(2).to_owned()));
        }
        "uri" if first == "strip_prefix" => {
            context.policies.rewrite = Some(Rewrite::Strip(directive.word(2).to_owned()));
        }
        "tls" if directive.words.len() == 3 => {}
        "log" => {}
        name if is_content(name) || name.starts_with('@') => {}
        name => {
            context.is_closed |= is_check(name);
            site.left(&directive.place, &directive.shown(), advice(name));
        }
    }
}

fn is_content(name: &str) -> bool {
    matches!(
        name,
        "file_server"
            | "handle"
            | "handle_path"
            | "redir"
            | "respond"
            | "reverse_proxy"
            | "route"
            | "php_fastcgi"
            | "abort"
            | "error"
    )
}

fn is_check(name: &str) -> bool {
    matches!(
        name,
        "basic_auth" | "basicauth" | "forward_auth" | "authorize" | "authenticate"
    )
}

fn advice(name: &str) -> &'static str {
    match name {
        "tls" => {
            "certificates are files here: write `tls { cert-file …; key-file … }` in the listener"
        }
        "basic_auth" | "basicauth" | "forward_auth" => {
            "its routes answer 501 until the check is written: `basic-auth`, or an agent"
        }
        "header" | "encode" | "root" => "write it in the policies of the routes for the matcher",
        "rewrite" | "uri" => "write `rewrite` in the route's policies",
        "handle_errors" => "the proxy's own errors are JSON or HTML by `service-type`",
        "templates" | "push" | "vars" | "map" => "it is not offered",
        "import" => "write what it stands for",
        "bind" => "write the address in the listener",
        _ => "not carried over; see docs/learn/coming-from/caddy.md",
    }
}

fn headers(site: &mut Site, context: &mut Context, directive: &Directive, rest: &[String]) {
    let mut lines: Vec<Vec<String>> = Vec::new();
    if !rest.is_empty() {
        lines.push(rest.to_vec());
    }
    lines.extend(directive.block.iter().map(|line| line.words.clone()));
    for line in lines {
        let (Some(field), value) = (line.first(), line.get(1)) else {
            continue;
        };
        match edit(field, value.map(String::as_str)) {
            Some(node) => context.policies.response_headers.push(node),
            None => site.left(
                &directive.place,
                &line.join(" "),
                "write `response-headers { set … }`: see docs/operate/headers.md for values",
            ),
        }
    }
}

fn content(
    site: &mut Site,
    addresses: &Addresses,
    block: &[Directive],
    context: &Context,
    directive: &Directive,
) {
    let name = directive.name();
    if !is_content(name) {
        return;
    }
    let first = directive.word(1);
    let has_matcher = matcher::is_matcher(first) && !(name == "redir" && directive.words.len() < 3);
    let mut inner = context.clone();
    if has_matcher {
        let Some(mut conditions) = matcher::conditions(first, block) else {
            site.left(
                &directive.place,
                &directive.shown(),
                "write a route with the conditions of the matcher",
            );
            return;
        };
        if conditions.paths.is_empty() {
            conditions.paths.clone_from(&context.conditions.paths);
        }
        inner.conditions = conditions;
    }
    let words = if has_matcher {
        directive.words.get(2..)
    } else {
        directive.words.get(1..)
    };
    let words = words.unwrap_or_default();
    match name {
        "handle" | "route" => return in_block(site, addresses, &directive.block, &inner),
        "handle_path" => {
            if let Some(Path::Prefix(prefix)) = inner.conditions.paths.first() {
                let prefix = prefix.trim_end_matches('/').to_owned();
                inner.policies.rewrite = Some(Rewrite::Strip(prefix));
            }
            return in_block(site, addresses, &directive.block, &inner);
        }
        _ => {}
    }
    let Some(service) = service(site, &mut inner, directive, name, words) else {
        return;
    };
    push(site, addresses, inner, service);
}

fn service(
    site: &mut Site,
    inner: &mut Context,
    directive: &Directive,
    name: &str,
    words: &[String],
) -> Option<Service> {
    Some(match name {
        "reverse_proxy" => {
            let upstream = proxy::read(site, directive, words, &mut inner.policies)?;
            Service::Upstream(upstream)
        }
        "file_server" => {
            if words.iter().any(|word| word == "browse") {
                site.left(
                    &directive.place,
                    &directive.shown(),
                    "folders are never listed",
                );
            }
            let Some(root) = inner.root.clone() else {
                site.left(&directive.place, &directive.shown(), "write `root` for it");
                return None;
            };
            if inner.policies.rewrite.take().is_some() {
                site.left(
                    &directive.place,
                    &directive.shown(),
                    "the whole path is the file's path in the folder: no prefix is removed",
                );
            }
            Service::Static {
                root,
                index: None,
                fallback: inner.fallback.clone(),
                precompressed: directive
                    .block
                    .iter()
                    .any(|it| it.name() == "precompressed"),
            }
        }
        "redir" => redirect(site, directive, words)?,
        "respond" => {
            let status = words.iter().find_map(|word| word.parse::<u16>().ok());
            let body = words.iter().find(|word| word.parse::<u16>().is_err());
            Service::Respond {
                status: status.unwrap_or(200),
                body: body.cloned(),
            }
        }
        _ => {
            site.left(
                &directive.place,
                &directive.shown(),
                "put a server that speaks HTTP before it; the route answers 501",
            );
            Service::not_migrated()
        }
    })
}

fn redirect(site: &mut Site, directive: &Directive, words: &[String]) -> Option<Service> {
    let target = words.first().map(String::as_str).unwrap_or_default();
    let status = match words.get(1).map(String::as_str) {
        Some("permanent" | "301") => 301,
        Some("308") => 308,
        Some("307") => 307,
        Some("303") => 303,
        _ => 302,
    };
    let keeps = target.strip_suffix("{uri}");
    let bare = keeps.unwrap_or(target);
    let to = match (bare, keeps.is_some()) {
        ("https://{host}", true) => Some("https".to_owned()),
        ("http://{host}", true) => Some("http".to_owned()),
        (bare, _) if bare.contains('{') => None,
        (bare, true) => (bare.matches('/').count() == 2).then(|| bare.to_owned()),
        (bare, false) if bare.contains("://") && bare.matches('/').count() == 2 => {
            Some(format!("{bare}/"))
        }
        (bare, false) => Some(bare.to_owned()),
    };
    if to.is_none() {
        site.left(
            &directive.place,
            &directive.shown(),
            "write `redirect` with a URL, or with `replace-prefix`",
        );
    }
    Some(Service::Redirect {
        to: Some(to?),
        status,
        replace_prefix: None,
    })
}

fn push(site: &mut Site, addresses: &Addresses, context: Context, service: Service) {
    let part = match context.conditions.paths.first() {
        Some(Path::Exact(text) | Path::Prefix(text) | Path::Regex(text)) => text.clone(),
        None => String::new(),
    };
    let host = addresses.hosts.first().map_or("site", String::as_str);
    let name = site.route_name(&format!("{} {part}", host.replace('*', "any")));
    let is_answer = matches!(service, Service::Redirect { .. } | Service::Respond { .. });
    let service = if context.is_closed && !is_answer {
        Service::not_migrated()
    } else {
        service
    };
    let mut route = Route::new(name, service);
    route.listeners.clone_from(&addresses.listeners);
    route.hosts.clone_from(&addresses.hosts);
    route.policies = context.policies;
    if !matches!(route.service, Service::Upstream(_)) {
        route.policies.request_headers.clear();
        route.policies.rewrite = None;
    }
    if matches!(
        route.service,
        Service::Redirect { .. } | Service::Respond { .. }
    ) {
        route.policies.settings.clear();
    }
    context.conditions.write(&mut route);
    site.routes.push(route);
}
