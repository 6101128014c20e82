//! Paths of routes that are unreachable under `path-policy "strict"`.

use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::diagnostics::Diagnostics;
use proxy_model::{Model, PathPolicy, Route, Service};
use proxy_routing::{PathPattern, Readings};

pub(super) fn find(model: &Model, faults: &mut Diagnostics) {
    for (index, route) in model.routes.iter().enumerate() {
        let is_default = |listener: &proxy_model::Listener| {
            let default = listener.default_route;
            default.is_some_and(|default| default.position() == index)
        };
        // A default route is reached by every path that no other route has.
        if !model.listeners.iter().any(is_default) && is_strict(model, route) {
            warn_of(route, faults);
        }
    }
}

/// Returns true if every listener refuses paths for this route that can be read in two ways.
fn is_strict(model: &Model, route: &Route) -> bool {
    if let Service::Static(_) = route.service {
        return true;
    }
    if let Some(policy) = &route.policies.path_policy {
        return **policy == PathPolicy::Strict;
    }
    let mut listeners = model.listeners.iter();
    listeners.all(|listener| *listener.path_policy == PathPolicy::Strict)
}

fn warn_of(route: &Route, faults: &mut Diagnostics) {
    let paths = &route.matches.paths;
    for pattern in paths {
        let Some((place, reading)) = pattern.place().zip(elsewhere(route, pattern)) else {
            continue;
        };
        let (setting, text) = (pattern.setting(), pattern.as_str());
        let message = format!("no request can reach `{setting} \"{text}\"`");
        let fault = Diagnostic::new(DiagnosticCode::AmbiguousPath, place, message);
        faults.push(
            fault
                .label(format!("another server may read it as `{reading}`"))
                .help(format!(
                    "write `{setting} \"{reading}\"`, in addition to it or instead of it"
                )),
        );
    }
}

/// Another reading of the path of `pattern` by other servers, if it does not match `route`.
fn elsewhere(route: &Route, pattern: &PathPattern) -> Option<String> {
    if pattern.setting() == "path-regex" {
        return None;
    }
    let leads_here = |path: &String| {
        let mut patterns = route.matches.paths.iter();
        patterns.any(|pattern| pattern.matches(path))
    };
    let readings = Readings::from_path(pattern.as_str()).paths;
    readings.into_iter().find(|path| !leads_here(path))
}
