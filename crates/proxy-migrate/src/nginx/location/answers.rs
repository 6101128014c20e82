//! Converts `return` and `rewrite` to redirects and responses.

use crate::nginx::advice;
use crate::nginx::checks;
use crate::nginx::parser::Directive;
use crate::nginx::prefix::{replaced, shortened};
use crate::nginx::scope::Scope;
use crate::nginx::value::has_variables;
use crate::nginx::virtual_host::Server;
use crate::site::path_regex::{self, Converted};
use crate::site::{Path, Policies, Route, Service, Site};

/// Priority of routes for rewrites of a server with names: nginx executes them before it searches a
/// location.
const REWRITTEN_PRIORITY: u32 = 60;

/// Converts a `return`.
pub(in crate::nginx) fn answer(
    site: &mut Site,
    directive: &Directive,
    scope: &Scope<'_>,
) -> Service {
    let first = directive.word(0).unwrap_or_default();
    let status = first.parse::<u16>().ok();
    let (status, target) = match (status, directive.word(1)) {
        (Some(status @ (301 | 302 | 303 | 307 | 308)), Some(target)) if !target.is_empty() => {
            (status, target)
        }
        (Some(status @ (200..=299 | 400..=599)), body) => {
            return respond(site, directive, scope, status, body);
        }
        (None, None) if first.starts_with("http") => (302, first),
        _ => {
            site.note(
                &directive.place,
                &directive.shown(),
                "write `redirect` or `respond` with a status of 200 to 599 in a route; the route answers 501",
            );
            return Service::not_migrated();
        }
    };
    let Some(to) = redirect_target(target) else {
        site.note(
            &directive.place,
            &directive.shown(),
            "write `redirect` with a URL, or with `replace-prefix`; the route answers 501",
        );
        return Service::not_migrated();
    };
    Service::Redirect {
        to: Some(to),
        status,
        replace_prefix: None,
    }
}

fn respond(
    site: &mut Site,
    directive: &Directive,
    scope: &Scope<'_>,
    status: u16,
    body: Option<&str>,
) -> Service {
    if body.is_some_and(has_variables) {
        site.note(
            &directive.place,
            &directive.shown(),
            "the text of `respond` has no variables: it is sent as it is written",
        );
    }
    if status == 444 {
        site.note(
            &directive.place,
            &directive.shown(),
            "connections are not closed without a response: it is 403 here",
        );
        return Service::refusal(403);
    }
    // `add_header Content-Type` is a common way to set the type of a text.
    let field = scope.all("add_header").iter().find(|it| {
        let name = it.word(0).unwrap_or_default();
        name.eq_ignore_ascii_case("content-type")
    });
    let media_type = field.and_then(|it| it.word(1));
    let media_type = media_type.or_else(|| scope.word("default_type"));
    let media_type = media_type.filter(|it| *it != "text/plain" && !has_variables(it));
    let body = body.filter(|it| !it.is_empty());
    Service::Respond {
        status,
        body: body.map(str::to_owned),
        content_type: media_type.filter(|_| body.is_some()).map(str::to_owned),
    }
}

/// Target of a redirect, without parts that are the request's own. Only a target that includes the
/// query preserves it.
fn redirect_target(target: &str) -> Option<String> {
    let bare = target.strip_suffix("$request_uri");
    let bare = bare.or_else(|| target.strip_suffix("$uri$is_args$args"));
    let keeps_path = bare.is_some();
    let bare = bare.unwrap_or(target);
    for host in ["$host", "$server_name", "$http_host"] {
        for scheme in ["https", "http"] {
            if bare == format!("{scheme}://{host}") && keeps_path {
                return Some(scheme.to_owned());
            }
        }
    }
    let bare = bare.strip_prefix("$scheme:").unwrap_or(bare);
    let (bare, keeps_query) = match bare.strip_suffix("$is_args$args") {
        Some(path) => (path, true),
        None => (bare, false),
    };
    if has_variables(bare) || bare.contains(char::is_whitespace) {
        return None;
    }
    let (_, after) = bare.split_once("//").unwrap_or(("", bare));
    let has_path = after.contains('/');
    if keeps_path {
        return (!has_path || after.starts_with('/')).then(|| bare.to_owned());
    }
    let slash = if has_path { "" } else { "/" };
    let end = if keeps_query || bare.contains('?') {
        ""
    } else {
        "?"
    };
    Some(format!("{bare}{slash}{end}"))
}

/// Adds a route for `if ($host = name) { return … }`; notes other conditions.
pub(in crate::nginx) fn host_condition(
    site: &mut Site,
    server: &Server<'_>,
    directive: &Directive,
) {
    let answers = directive.children().iter().find(|it| it.name == "return");
    match (checks::condition_host(directive), answers) {
        (Some(host), Some(answers)) => {
            let service = answer(site, answers, &server.scope);
            let mut route = server.route(site, host, service);
            route.hosts = vec![host.to_owned()];
            // Routes of the same host with a path would come before it.
            let mut block = server.scope.innermost().iter();
            let has_paths = block.any(|it| it.name == "location");
            if has_paths && server.hosts.iter().any(|it| it == host) {
                route.priority = Some(REWRITTEN_PRIORITY);
            }
            site.push_route(route);
        }
        _ if checks::redirect_of_plain(directive).is_some() => {}
        _ if checks::is_passive(directive) => advice::note(site, directive),
        _ => advice::note_check(site, directive),
    }
}

/// Converts a server's `rewrite`; returns true if it redirects all requests, as in `rewrite ^(.*)$
/// https://example.com$1 permanent`.
pub(in crate::nginx) fn rewrite_all(
    site: &mut Site,
    server: &Server<'_>,
    directive: &Directive,
) -> bool {
    let status = status(directive);
    let target = directive.word(1).unwrap_or_default();
    let to = match directive.word(0) {
        Some("^(.*)$" | "^(.*)" | "(.*)") => target.strip_suffix("$1"),
        Some("^/(.*)$" | "^/(.*)") => target.strip_suffix("/$1"),
        Some("^" | ".*" | "^.*$" | "^.*") => target
            .strip_suffix("$request_uri?")
            .or_else(|| target.strip_suffix("$request_uri")),
        _ => None,
    };
    let to = to.and_then(|to| redirect_target(&format!("{to}$request_uri")));
    let is_url = target.starts_with("http") || target.starts_with("$scheme:");
    if let Some((to, status)) = to.zip(status.or(Some(302))).filter(|_| is_url) {
        let service = Service::Redirect {
            to: Some(to),
            status,
            replace_prefix: None,
        };
        let route = server.route(site, "", service);
        site.push_route(route);
        return true;
    }
    rewrite_some(site, server, directive);
    false
}

/// Status of a rewrite that redirects; `None` for other rewrites.
fn status(directive: &Directive) -> Option<u16> {
    match directive.word(2) {
        Some("permanent") => Some(301),
        Some("redirect") => Some(302),
        _ => None,
    }
}

/// Converts a redirect of a path or a prefix; routes for other rewrites answer 501.
fn rewrite_some(site: &mut Site, server: &Server<'_>, directive: &Directive) {
    let regex = directive.word(0).unwrap_or_default();
    let target = directive.word(1).unwrap_or_default();
    let is_path = target.starts_with('/') && !has_variables(target.trim_end_matches("$1"));
    let status = status(directive).filter(|_| is_path);
    let exact = regex.strip_prefix('^').and_then(|it| it.strip_suffix('$'));
    let exact = exact
        .map(|it| it.replace("\\.", "."))
        .filter(|it| is_plain(it));
    let redirect = match (status, exact, prefixes(regex, target)) {
        (Some(status), Some(path), _) if !has_variables(target) => Some((
            Path::Exact(path),
            Service::Redirect {
                to: Some(target.to_owned()),
                status,
                replace_prefix: None,
            },
        )),
        (Some(status), _, Some((from, to))) => Some((
            Path::Prefix(format!("{}/", from.trim_end_matches('/'))),
            Service::Redirect {
                to: None,
                status,
                replace_prefix: Some((from, to)),
            },
        )),
        _ => None,
    };
    let is_carried_over = redirect.is_some();
    let (path, service) = redirect.unwrap_or_else(|| {
        let (Converted::Same(regex) | Converted::Wider(regex)) =
            path_regex::converted(regex, false);
        (Path::Regex(regex), Service::not_migrated())
    });
    if !is_carried_over {
        advice::note_check(site, directive);
    }
    let mut route = server.route(site, "rewritten", service);
    // Priority outranks the host: routes without a host would get the requests of other servers.
    if server.hosts.is_empty() {
        route.paths.push(match path {
            Path::Prefix(text) => Path::Beginning(text),
            path @ (Path::Exact(_) | Path::Beginning(_) | Path::Regex(_)) => path,
        });
    } else {
        route.priority = Some(REWRITTEN_PRIORITY);
        route.paths.push(path);
    }
    site.push_route(route);
}

/// Returns true if an expression is a literal path.
fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
    text.starts_with('/') && text.chars().all(is_plain)
}

/// Prefix and replacement of `^/old/(.*)$ /new/$1`.
fn prefixes(regex: &str, target: &str) -> Option<(String, String)> {
    let prefix = regex.strip_prefix('^')?;
    let from = prefix
        .strip_suffix("(.*)$")
        .or(prefix.strip_suffix("(.*)"))?;
    let to = target.strip_suffix("$1")?;
    let is_prefix = is_plain(from) && !from.contains('.') && from.ends_with('/');
    let is_path = to.starts_with('/') && to.ends_with('/') && !has_variables(to);
    (is_prefix && is_path).then(|| (shortened(from), shortened(to)))
}

/// Converts `rewrite ^/old/(.*)$ /new/$1 flag` in a location.
pub(super) fn rewrite_in(site: &mut Site, route: &mut Route, directive: &Directive) {
    let found = prefixes(
        directive.word(0).unwrap_or_default(),
        directive.word(1).unwrap_or_default(),
    );
    let Some((from, to)) = found else {
        return close(site, route, directive);
    };
    match (status(directive), &route.service) {
        (Some(status), _) => {
            route.policies = Policies::default();
            route.service = Service::Redirect {
                to: None,
                status,
                replace_prefix: Some((from, to)),
            };
        }
        // `last` searches another location.
        (None, Service::Upstream(_)) if from != "/" && directive.word(2) != Some("last") => {
            route.policies.rewrite = Some(replaced(from, to));
        }
        _ => close(site, route, directive),
    }
}

fn close(site: &mut Site, route: &mut Route, directive: &Directive) {
    advice::note_check(site, directive);
    route.service = Service::not_migrated();
    route.policies = Policies::default();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_keeps_the_query_if_its_target_does() {
        for (target, expected) in [
            ("/a", Some("/a?")),
            ("/a?b", Some("/a?b")),
            ("/a$is_args$args", Some("/a")),
            ("https://a.test", Some("https://a.test/?")),
            ("https://a.test/b", Some("https://a.test/b?")),
            ("https://a.test$request_uri", Some("https://a.test")),
            ("https://$host$request_uri", Some("https")),
            ("$scheme://a.test$request_uri", Some("//a.test")),
            ("https://a.test/b$request_uri", None),
            ("/$1", None),
        ] {
            assert_eq!(redirect_target(target).as_deref(), expected, "{target}");
        }
    }
}
