//! Locations, as routes.

use super::parser::Directive;
use super::prefix::{replaced, shortened};
use super::scope::{self, Scope};
use super::value::has_variables;
use super::virtual_host::Server;
use super::{advice, checks, policies, proxy};
use crate::site::{Path, Policies, Route, Service, Site, escaped};

/// Priority of routes for rewrites: nginx carries them out before it looks for a location.
const REWRITTEN_PRIORITY: u32 = 60;

/// Comparison of paths by a location, in the order in which routes are tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Exact,
    /// Regular expressions are not tried below it.
    PrefixFirst,
    Regex,
    Prefix,
}

/// A location, with the blocks around it.
struct Location<'d> {
    kind: Kind,
    path: Path,
    directive: &'d Directive,
    scope: Scope<'d>,
}

/// The locations of a server, and a route for all other paths.
pub(super) fn read_all<'d>(site: &mut Site, server: &Server<'d>, block: &'d [Directive]) {
    let mut locations: Vec<Location<'_>> = Vec::new();
    collect(site, block, &server.scope, &mut locations);
    let has_regex = locations.iter().any(|it| it.kind == Kind::Regex);
    locations.sort_by_key(|it| it.kind);
    let has_root = locations
        .iter()
        .any(|it| it.path == Path::Prefix("/".to_owned()));
    for location in locations {
        if site.is_full() {
            return;
        }
        one(site, server, location, has_regex);
    }
    if !has_root {
        let service = files(site, &server.scope, &[]);
        let service = service.unwrap_or(Service::Respond {
            status: 404,
            body: None,
        });
        let mut route = server.route(site, "rest", service);
        policies::apply(site, &mut route, &server.scope);
        site.push_route(route);
    }
}

fn collect<'d>(
    site: &mut Site,
    block: &'d [Directive],
    scope: &Scope<'d>,
    locations: &mut Vec<Location<'d>>,
) {
    for directive in block.iter().filter(|it| it.name == "location") {
        let (kind, path) = match (directive.word(0), directive.word(1)) {
            (Some("="), Some(path)) => (Kind::Exact, Path::Exact(path.to_owned())),
            (Some("^~"), Some(path)) => (Kind::PrefixFirst, Path::Prefix(path.to_owned())),
            (Some("~"), Some(regex)) => (Kind::Regex, Path::Regex(regex.to_owned())),
            (Some("~*"), Some(regex)) => (Kind::Regex, Path::Regex(format!("(?i){regex}"))),
            (Some(path), None) if path.starts_with('/') => {
                (Kind::Prefix, Path::Prefix(path.to_owned()))
            }
            _ => {
                site.note(
                    &directive.place,
                    &directive.shown(),
                    "named locations are not offered: write what leads to it in a route",
                );
                continue;
            }
        };
        let scope = scope.within(directive.children());
        locations.push(Location {
            kind,
            path,
            directive,
            scope: scope.clone(),
        });
        collect(site, directive.children(), &scope, locations);
    }
}

fn one(site: &mut Site, server: &Server<'_>, location: Location<'_>, has_regex: bool) {
    let Location {
        kind,
        path,
        directive,
        scope,
    } = location;
    let prefix = match &path {
        Path::Prefix(prefix) => Some(prefix.clone()),
        Path::Exact(_) | Path::Beginning(_) | Path::Regex(_) => None,
    };
    let is_before_regexes = kind == Kind::PrefixFirst && has_regex;
    let path = match &prefix {
        Some(prefix) if is_before_regexes => Path::Regex(format!("^{}", escaped(prefix))),
        _ => path,
    };
    let route = route(site, server, directive, &scope, path);
    let open_end = prefix.filter(|it| it.len() > 1 && !it.ends_with('/') && !is_before_regexes);
    let end = open_end.and_then(|prefix| open_end_of(site, directive, &route, &prefix));
    site.push_route(route);
    if let Some(mut end) = end {
        end.name = site.route_name(&end.name);
        site.push_route(end);
    }
}

/// A prefix of whole segments takes `/api` and `/api/…`, and nginx's takes `/apix` too: a route for these
/// if the location refuses requests; else it is listed.
fn open_end_of(
    site: &mut Site,
    directive: &Directive,
    route: &Route,
    prefix: &str,
) -> Option<Route> {
    let refuses = matches!(route.service, Service::Respond { status: 400.., .. })
        || !(route.policies.allow.is_empty() && route.policies.deny.is_empty());
    if !refuses {
        site.note(
            &directive.place,
            &directive.shown(),
            "it takes whole segments here: `/api` and `/api/…`, not `/apix`",
        );
        return None;
    }
    let mut end = route.clone();
    end.paths = vec![Path::Regex(format!("^{}[^/]", escaped(prefix)))];
    Some(end)
}

fn route(
    site: &mut Site,
    server: &Server<'_>,
    directive: &Directive,
    scope: &Scope<'_>,
    path: Path,
) -> Route {
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
                | "internal"
        );
        if is_read || scope::is_inherited(name) || !checks::is_passive(child) {
            continue;
        }
        match name {
            "access_log" | "error_log" => site.note(
                &child.place,
                &child.shown(),
                "there is one access log and one error log for all routes",
            ),
            _ => advice::note(site, child),
        }
    }
    let find = |name: &str| block.iter().find(|it| it.name == name);
    let (Path::Exact(part) | Path::Prefix(part) | Path::Beginning(part) | Path::Regex(part)) =
        &path;
    let mut route = server.route(site, part, Service::not_migrated());
    route.paths.push(path);
    if find("internal").is_some() {
        route.service = Service::Respond {
            status: 404,
            body: None,
        };
        return route;
    }
    if let Some(directive) = find("return") {
        route.service = answer(site, directive);
    } else if let Some(pass) = find("proxy_pass") {
        proxy::pass(site, &mut route, pass, scope);
    } else if !block.iter().any(|it| it.name.ends_with("_pass")) {
        let service = files(site, scope, block);
        let has_alias = find("alias").is_some();
        let is_denied = scope
            .rules_of_access()
            .first()
            .is_some_and(|it| it.name == "deny" && it.word(0) == Some("all"));
        if service.is_none() && !has_alias && !is_denied {
            site.note(
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
    route
}

/// The files of a scope; `None` if it names no folder.
fn files(site: &mut Site, scope: &Scope<'_>, own: &[Directive]) -> Option<Service> {
    if let Some(alias) = own.iter().find(|it| it.name == "alias") {
        site.note(
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
            _ => site.note(
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
                    site.note(
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
    let (_, after) = bare.split_once("//").unwrap_or(("", bare));
    let has_path = after.contains('/');
    match (keeps_path, has_path) {
        (true, true) if !after.starts_with('/') => None,
        (false, false) => Some(format!("{bare}/")),
        _ => Some(bare.to_owned()),
    }
}

/// A route for `if ($host = name) { return … }`; another condition is listed.
pub(super) fn host_condition(site: &mut Site, server: &Server<'_>, directive: &Directive) {
    let answers = directive.children().iter().find(|it| it.name == "return");
    match (checks::condition_host(directive), answers) {
        (Some(host), Some(answers)) => {
            let service = answer(site, answers);
            let mut route = server.route(site, host, service);
            route.hosts = vec![host.to_owned()];
            site.push_route(route);
        }
        _ if checks::is_passive(directive) => advice::note(site, directive),
        _ => advice::note_check(site, directive),
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
        unwritten_rewrite(site, server, directive);
        return false;
    };
    let service = Service::Redirect {
        to: Some(to),
        status,
        replace_prefix: None,
    };
    let route = server.route(site, "", service);
    site.push_route(route);
    true
}

/// A route for the paths of a rewrite that is not carried over.
fn unwritten_rewrite(site: &mut Site, server: &Server<'_>, directive: &Directive) {
    advice::note_check(site, directive);
    if let Some(regex) = directive.word(0) {
        let mut route = server.route(site, "rewritten", Service::not_migrated());
        route.priority = Some(REWRITTEN_PRIORITY);
        route.paths.push(Path::Regex(regex.to_owned()));
        site.push_route(route);
    }
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
        return close(site, route, directive);
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
        _ => close(site, route, directive),
    }
}

fn close(site: &mut Site, route: &mut Route, directive: &Directive) {
    advice::note_check(site, directive);
    route.service = Service::not_migrated();
    route.policies = Policies::default();
}
