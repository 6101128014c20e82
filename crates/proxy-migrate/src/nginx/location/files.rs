//! Converts `root`, `alias` and `try_files` to static files or an application.

use crate::nginx::parser::Directive;
use crate::nginx::scope::Scope;
use crate::nginx::value::has_variables;
use crate::nginx::virtual_host::Server;
use crate::nginx::{checks, proxy};
use crate::site::{Route, Service, Site};

/// Configures a route to serve the scope's files; returns false if no folder can be served.
pub(super) fn read(
    site: &mut Site,
    server: &Server<'_>,
    route: &mut Route,
    scope: &Scope<'_>,
    own: &[Directive],
    prefix: Option<&str>,
) -> bool {
    let root = match own.iter().find(|it| it.name == "alias") {
        Some(alias) => {
            let root = root_of_alias(alias, prefix);
            if root.is_none() {
                site.note(
                    &alias.place,
                    &alias.shown(),
                    "write `static-files { root … }`: the whole path is the file's path in it; the route answers 501",
                );
            }
            root
        }
        None => scope.last("root").and_then(|directive| {
            let root = directive.word(0)?;
            if has_variables(root) {
                site.note(
                    &directive.place,
                    &directive.shown(),
                    "a folder has no variables: write a route for each folder; the route answers 501",
                );
                return None;
            }
            Some(root.to_owned())
        }),
    };
    let Some(root) = root else {
        return false;
    };
    let mut fallback = None;
    if let Some(tried) = tried(own) {
        match tried.words.last().map(String::as_str) {
            Some(last) if last.starts_with('/') && !has_variables(last) && !last.contains('?') => {
                fallback = Some(last.trim_start_matches('/').to_owned());
            }
            Some("=404") | None => {}
            Some(name) if name.starts_with('@') => {
                if application(site, server, route, scope, own).is_some() {
                    return true;
                }
                site.note(&tried.place, &tried.shown(), OTHERS);
            }
            _ => site.note(&tried.place, &tried.shown(), OTHERS),
        }
    }
    let index = scope.last("index").and_then(|it| it.word(0));
    route.service = Service::Static {
        root,
        index: index.filter(|it| *it != "index.html").map(str::to_owned),
        fallback,
        precompressed: scope.word("gzip_static") == Some("on"),
    };
    true
}

const OTHERS: &str = "a file or 404 follows here: write a route for the paths of the application";

/// The `try_files` of a block, which locations do not inherit from their server.
fn tried(own: &[Directive]) -> Option<&Directive> {
    own.iter().find(|it| it.name == "try_files")
}

/// Returns true if a `try_files` of the scope, or of a location in it, falls back to the named
/// location.
pub(super) fn is_fallback(scope: &Scope<'_>, name: &str) -> bool {
    let block = scope.innermost();
    let locations = block.iter().filter(|it| it.name == "location");
    let inner = locations.flat_map(Directive::children);
    let mut all = block.iter().chain(inner);
    all.any(|it| it.name == "try_files" && it.words.last().is_some_and(|last| last == name))
}

/// Configures a route for the application of `try_files … @name`; returns the scope of its
/// location.
pub(super) fn application<'d>(
    site: &mut Site,
    server: &Server<'d>,
    route: &mut Route,
    first: &Scope<'_>,
    own: &[Directive],
) -> Option<Scope<'d>> {
    let tried = tried(own)?;
    let name = tried.words.last().filter(|last| last.starts_with('@'))?;
    let mut block = server.scope.innermost().iter();
    let named = block.find(|it| it.name == "location" && it.words == [name.clone()])?;
    let pass = named.children().iter().find(|it| it.name == "proxy_pass")?;
    // The checks of both locations apply; those of the first one and of the locations around it would
    // be lost.
    let mut locations = first.blocks().skip(server.scope.depth()).flatten();
    if locations.any(is_check) {
        return None;
    }
    for size in own.iter().filter(|it| it.name == "client_max_body_size") {
        let advice = "write `max-body-size` in the route's policies";
        site.note(&size.place, &size.shown(), advice);
    }
    let scope = server.scope.within(named.children());
    proxy::pass(site, route, pass, &scope, None);
    site.note(
        &tried.place,
        &tried.shown(),
        "the application gets all of these requests: write a route with `static-files` for the paths of the files before it",
    );
    Some(scope)
}

fn is_check(directive: &Directive) -> bool {
    let is_passive = directive.name == "try_files" || checks::is_passive(directive);
    matches!(&*directive.name, "allow" | "deny" | "limit_req") || !is_passive
}

/// Root folder for an `alias`: `/srv` for location `/static/` and alias `/srv/static/`.
fn root_of_alias(alias: &Directive, path: Option<&str>) -> Option<String> {
    let folder = alias.word(0).filter(|it| !has_variables(it))?;
    let path = path?;
    if folder.ends_with('/') != path.ends_with('/') {
        return None;
    }
    let root = folder.strip_suffix(path)?;
    root.starts_with('/').then(|| root.to_owned())
}
