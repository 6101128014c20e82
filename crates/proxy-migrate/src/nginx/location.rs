//! Locations, as routes.

use super::parser::Directive;
use super::prefix::{replaced, shortened};
use super::scope::{self, Scope};
use super::value::has_variables;
use super::virtual_host::Server;
use super::{advice, policies, proxy};
use crate::site::{Path, Policies, Route, Service, Site};

/// Comparison of paths by a location, in the order in which routes are tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Exact,
    /// Regular expressions are not tried below it.
    PrefixFirst,
    Regex,
    Prefix,
}

/// The locations of a server, and a route for all other paths.
pub(super) fn read_all(site: &mut Site, server: &Server<'_>, block: &[Directive]) {
    let mut locations: Vec<(Kind, Path, &Directive)> = Vec::new();
    collect(site, block, &mut locations);
    let has_regex = locations.iter().any(|(kind, ..)| *kind == Kind::Regex);
    locations.sort_by_key(|(kind, ..)| *kind);
    let is_root = |path: &Path| *path == Path::Prefix("/".to_owned());
    let has_root = locations.iter().any(|(_, path, _)| is_root(path));
    for (kind, path, directive) in locations {
        let path = match &path {
            Path::Prefix(prefix) if kind == Kind::PrefixFirst && has_regex => {
                Path::Regex(format!("^{}", escaped(prefix)))
            }
            Path::Exact(_) | Path::Prefix(_) | Path::Regex(_) => path,
        };
        let scope = server.scope.within(directive.children());
        one(site, server, directive, &scope, Some(path));
    }
    if !has_root {
        let service = files(site, &server.scope, &[]);
        let service = service.unwrap_or(Service::Respond {
            status: 404,
            body: None,
        });
        let mut route = server.route(site, "rest", service);
        policies::apply(site, &mut route, &server.scope);
        site.routes.push(route);
    }
}

fn collect<'d>(
    site: &mut Site,
    block: &'d [Directive],
    locations: &mut Vec<(Kind, Path, &'d Directive)>,
) {
    for directive in block.iter().filter(|it| it.name == "location") {
        let found = match (directive.word(0), directive.word(1)) {
            (Some("="), Some(path)) => (Kind::Exact, Path::Exact(path.to_owned())),
            (Some("^~"), Some(path)) => (Kind::PrefixFirst, Path::Prefix(path.to_owned())),
            (Some("~"), Some(regex)) => (Kind::Regex, Path::Regex(regex.to_owned())),
            (Some("~*"), Some(regex)) => (Kind::Regex, Path::Regex(format!("(?i){regex}"))),
            (Some(path), None) if path.starts_with('/') => {
                (Kind::Prefix, Path::Prefix(path.to_owned()))
            }
            _ => {
                site.left(
                    &directive.place,
                    &directive.shown(),
                    "named locations are not offered: write what leads to it in a route",
                );
                continue;
            }
        };
        if let Path::Prefix(prefix) = &found.1
            && prefix.len() > 1
            && !prefix.ends_with('/')
        {
            site.left(
                &directive.place,
                &directive.shown(),
                "it takes whole segments here: `/api` and `/api/…`, not `/apix`",
            );
        }
        locations.push((found.0, found.1, directive));
        collect(site, directive.children(), locations);
    }
}

fn one(
    site: &mut Site,
    server: &Server<'_>,
    directive: &Directive,
    scope: &Scope<'_>,
    path: Option<Path>,
) {
    let block = directive.children();
    for child in block {
        let name = &*child.name;
        let is_read = matches!(
            name,
            "location"
                | "return"
                | "proxy_pass"
                | "try_files"
                | "alias"
                | "root"
                | "index"
                | "rewrite"
        );
        if is_read || scope::is_inherited(name) {
            continue;
        }
        match name {
            "access_log" | "error_log" => site.left(
                &child.place,
                &child.shown(),
                "there is one access log and one error log for all routes",
            ),
            _ => advice::note(site, child),
        }
    }
    let find = |name: &str| block.iter().find(|it| it.name == name);
    let part = match &path {
        Some(Path::Exact(text) | Path::Prefix(text) | Path::Regex(text)) => text.clone(),
        None => String::new(),
    };
    let mut route = server.route(site, &part, Service::not_migrated());
    route.paths.extend(path);
    if let Some(directive) = find("return") {
        route.service = answer(site, directive);
    } else if let Some(pass) = find("proxy_pass") {
        proxy::pass(site, &mut route, pass, scope);
    } else if !block.iter().any(|it| it.name.ends_with("_pass")) {
        let service = files(site, scope, block);
        let has_alias = find("alias").is_some();
        if service.is_none() && !has_alias {
            site.left(
                &directive.place,
                &directive.shown(),
                "it names no `root` and no `proxy_pass`; the route answers 501",
            );
        }
        route.service = service.unwrap_or_else(Service::not_migrated);
    }
    for rewrite in block.iter().filter(|it| it.name == "rewrite") {
        rewrite_in(site, &mut route, rewrite);
    }
    policies::apply(site, &mut route, scope);
    site.routes.push(route);
}

/// The files of a scope; `None` if it names no folder.
fn files(site: &mut Site, scope: &Scope<'_>, own: &[Directive]) -> Option<Service> {
    if let Some(alias) = own.iter().find(|it| it.name == "alias") {
        site.left(
            &alias.place,
            &alias.shown(),
            "write `static-files { root … }`: the whole path is the file's path in it; the route answers 501",
        );
        return None;
    }
    let root = scope.word("root")?;
    let mut fallback = None;
    let tried = own.iter().find(|it| it.name == "try_files");
    let tried = tried.or_else(|| scope.last("try_files"));
    if let Some(tried) = tried {
        match tried.words.last().map(String::as_str) {
            Some(last) if last.starts_with('/') && !has_variables(last) && !last.contains('?') => {
                fallback = Some(last.trim_start_matches('/').to_owned());
            }
            Some("=404") | None => {}
            _ => site.left(
                &tried.place,
                &tried.shown(),
                "a file or 404 follows here: write a route for the paths of the application",
            ),
        }
    }
    let index = scope.last("index").and_then(|it| it.word(0));
    Some(Service::Static {
        root: root.to_owned(),
        index: index.filter(|it| *it != "index.html").map(str::to_owned),
        fallback,
        precompressed: scope.word("gzip_static") == Some("on"),
    })
}

/// The answer of a `return`.
pub(super) fn answer(site: &mut Site, directive: &Directive) -> Service {
    let first = directive.word(0).unwrap_or_default();
    let status = first.parse::<u16>().ok();
    let (status, target) = match (status, directive.word(1)) {
        (Some(status @ (301 | 302 | 303 | 307 | 308)), Some(target)) => (status, target),
        (Some(status), body) if !(300..400).contains(&status) && status >= 200 => {
            let body = match body {
                Some(body) if has_variables(body) => {
                    site.left(
                        &directive.place,
                        &directive.shown(),
                        "the text of `respond` has no variables: it is sent as it is written",
                    );
                    Some(body.to_owned())
                }
                body => body.map(str::to_owned),
            };
            // A status without an answer closes the connection.
            let status = if status == 444 { 403 } else { status };
            return Service::Respond { status, body };
        }
        (None, None) if first.starts_with("http") => (302, first),
        _ => {
            advice::note(site, directive);
            return Service::not_migrated();
        }
    };
    let Some(to) = redirect_target(target) else {
        site.left(
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

/// The target of a redirect: parts that are the request's are left out.
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
    if has_variables(bare) {
        return None;
    }
    let (_, behind) = bare.split_once("//").unwrap_or(("", bare));
    let has_path = behind.contains('/');
    match (keeps_path, has_path) {
        (true, true) if !behind.starts_with('/') => None,
        (false, false) => Some(format!("{bare}/")),
        _ => Some(bare.to_owned()),
    }
}

/// `if ($host = name) { return … }`, as certbot writes it.
pub(super) fn host_condition(site: &mut Site, server: &Server<'_>, directive: &Directive) {
    let words: Vec<&str> = directive.words.iter().map(String::as_str).collect();
    let condition = words.join(" ");
    let condition = condition
        .trim_start_matches('(')
        .trim_end_matches(')')
        .trim();
    let host = condition.strip_prefix("$host =").map(str::trim);
    let answers = directive.children().iter().find(|it| it.name == "return");
    match (host, answers) {
        (Some(host), Some(directive)) if !has_variables(host) => {
            let service = answer(site, directive);
            let mut route = server.route(site, host, service);
            route.hosts = vec![host.to_owned()];
            site.routes.push(route);
        }
        _ => advice::note(site, directive),
    }
}

/// `rewrite ^(.*)$ https://example.com$1 permanent` of a whole server; `false` for another one.
pub(super) fn rewrite_all(site: &mut Site, server: &Server<'_>, directive: &Directive) -> bool {
    let status = match directive.word(2) {
        Some("permanent") => 301,
        Some("redirect") | None => 302,
        _ => 0,
    };
    let target = directive.word(1).unwrap_or_default();
    let to = match directive.word(0) {
        Some("^(.*)$" | "^(.*)" | "(.*)") => target.strip_suffix("$1"),
        Some("^/(.*)$" | "^/(.*)") => target.strip_suffix("/$1"),
        Some("^") => target.strip_suffix("$request_uri"),
        _ => None,
    };
    let to = to.and_then(|to| redirect_target(&format!("{to}$request_uri")));
    let Some(to) = to.filter(|_| status > 0 && target.starts_with("http")) else {
        advice::note(site, directive);
        return false;
    };
    let service = Service::Redirect {
        to: Some(to),
        status,
        replace_prefix: None,
    };
    let route = server.route(site, "", service);
    site.routes.push(route);
    true
}

/// `rewrite ^/old/(.*)$ /new/$1 flag` of a location.
fn rewrite_in(site: &mut Site, route: &mut Route, directive: &Directive) {
    let from = directive.word(0).and_then(|regex| {
        let prefix = regex.strip_prefix('^')?;
        let prefix = prefix
            .strip_suffix("(.*)$")
            .or(prefix.strip_suffix("(.*)"))?;
        let is_plain = !prefix.contains(['(', '[', '.', '*', '+', '?', '\\', '|', '$']);
        (is_plain && prefix.ends_with('/')).then(|| prefix.to_owned())
    });
    let to = directive.word(1).and_then(|to| to.strip_suffix("$1"));
    let Some((from, to)) = from
        .zip(to)
        .filter(|(_, to)| to.starts_with('/') && to.ends_with('/'))
    else {
        advice::note(site, directive);
        return;
    };
    let status = match directive.word(2) {
        Some("permanent") => Some(301),
        Some("redirect") => Some(302),
        _ => None,
    };
    let (from, to) = (shortened(&from), shortened(to));
    match (status, &route.service) {
        (Some(status), _) => {
            route.policies = Policies::default();
            route.service = Service::Redirect {
                to: None,
                status,
                replace_prefix: Some((from, to)),
            };
        }
        (None, Service::Upstream(_)) if from != "/" => {
            route.policies.rewrite = Some(replaced(from, to));
        }
        _ => advice::note(site, directive),
    }
}

/// A text as a regular expression of itself.
fn escaped(text: &str) -> String {
    let mut regex = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && !matches!(c, '/' | '-' | '_') {
            regex.push('\\');
        }
        regex.push(c);
    }
    regex
}
