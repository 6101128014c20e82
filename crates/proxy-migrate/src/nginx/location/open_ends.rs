//! nginx's prefix `/api` also takes `/apix`, while the proxy's takes whole segments.

use crate::nginx::parser::Directive;
use crate::site::{Path, Policies, Route, Service, Site, escaped};
use crate::work;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::mem;

/// Prefixes of a server that end within a segment.
#[derive(Default)]
pub(super) struct OpenEnds<'d> {
    /// Those of locations that refuse nothing.
    open: Vec<Open<'d>>,
    /// Those of locations that may refuse requests.
    guarded: HashSet<String>,
}

struct Open<'d> {
    directive: &'d Directive,
    prefix: String,
}

impl<'d> OpenEnds<'d> {
    /// Records the prefix of a location's route.
    pub(super) fn record(&mut self, directive: &'d Directive, route: &Route) {
        let [Path::Prefix(prefix)] = route.paths.as_slice() else {
            return;
        };
        let prefix = prefix.clone();
        if prefix.len() < 2 || prefix.ends_with('/') {
            return;
        }
        if refuses(route) {
            self.guarded.insert(prefix);
        } else {
            self.open.push(Open { directive, prefix });
        }
    }

    /// Adds a route for the open end of each location that may refuse requests, to the server's routes
    /// from a position on. A longer prefix in an open end becomes an expression before it, since
    /// expressions are tried before prefixes. Notes the other open ends.
    pub(super) fn write(self, site: &mut Site, first: usize) {
        let Self { open, guarded } = self;
        let is_inside = |prefix: &str| {
            !guarded.is_empty()
                && prefix.char_indices().any(|(at, c)| {
                    work::step();
                    c != '/' && prefix.get(..at).is_some_and(|it| guarded.contains(it))
                })
        };
        for Open { directive, prefix } in open {
            if !is_inside(&prefix) {
                site.note(
                    &directive.place,
                    &directive.shown(),
                    "it takes whole segments here: `/api` and `/api/…`, not `/apix`",
                );
            }
        }
        if guarded.is_empty() {
            return;
        }
        first_expressions(site.routes.get_mut(first..).unwrap_or_default(), is_inside);
        for at in first..site.routes.len() {
            let route = site.routes.get(at);
            let Some([Path::Prefix(prefix)]) = route.map(|it| it.paths.as_slice()) else {
                continue;
            };
            if site.is_full() || !guarded.contains(prefix) {
                continue;
            }
            let paths = vec![Path::Regex(format!("^{}[^/]", escaped(prefix)))];
            let end = route.cloned().map(|route| Route { paths, ..route });
            if let Some(mut end) = end {
                end.name = site.route_name(&end.name);
                site.push_route(end);
            }
        }
    }
}

/// Makes prefixes expressions, the longest first, in the places that they have.
fn first_expressions(routes: &mut [Route], is_inside: impl Fn(&str) -> bool) {
    let mut places: Vec<&mut Route> = Vec::new();
    let mut inside: Vec<Route> = Vec::new();
    for route in routes {
        if matches!(route.paths.as_slice(), [Path::Prefix(prefix)] if is_inside(prefix)) {
            let empty = Route::new(String::new(), Service::not_migrated());
            inside.push(mem::replace(route, empty));
            places.push(route);
        }
    }
    let length = |route: &Route| match route.paths.as_slice() {
        [Path::Prefix(prefix)] => prefix.len(),
        _ => 0,
    };
    inside.sort_by_key(|route| Reverse(length(route)));
    for (place, mut route) in places.into_iter().zip(inside) {
        for path in &mut route.paths {
            if let Path::Prefix(prefix) = path {
                *path = Path::Regex(format!("^(?:{})", escaped(prefix)));
            }
        }
        *place = route;
    }
}

/// Returns true if a route may refuse requests: by its response, networks, a password, a login
/// server or a rate.
fn refuses(route: &Route) -> bool {
    let Policies {
        allow,
        deny,
        settings,
        ..
    } = &route.policies;
    let mut settings = settings.iter();
    matches!(route.service, Service::Respond { status: 400.., .. })
        || !(allow.is_empty() && deny.is_empty() && route.agents.is_empty())
        || settings.any(|it| it.is("basic-auth") || it.is("rate-limit"))
}
