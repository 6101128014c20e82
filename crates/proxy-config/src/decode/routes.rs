//! The `routes` block.

pub(super) mod answers;

use super::block::Block;
use super::decoder::Decoder;
use super::forwarding;
use super::matches::matches;
use super::policies::rewrite::check_captures;
use super::policies::{breaker, policies};
use super::references::Among;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::routes as spec;
use proxy_model::registry::routes::answers as answer_spec;
use proxy_model::{
    AgentIndex, CircuitBreaker, ErrorPages, Route, Service, ServiceForm, ServiceType, Setting,
    StaticFiles, UpstreamIndex,
};
use std::path::{Component, Path, PathBuf};

pub(super) fn route<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Route> {
    let id = b.name(d);
    let priority = b.setting(d, &spec::PRIORITY);
    let listeners = b.list(d, &spec::LISTENERS);
    for name in &listeners {
        d.resolve_name(Among::Listeners, name);
    }
    let service_type = b.optional(d, &spec::SERVICE_TYPE);
    let service = service(d, b, service_type);
    let matches = matches(d, b);
    let (policies, breaker_in_policies) = policies(d, b);
    check_captures(d, &matches.paths, policies.rewrite.as_ref());
    no_pages_of_an_api(d, service_type, &policies.error_pages);
    let own_breaker = breaker(d, b);
    let circuit_breaker = one_breaker(d, own_breaker, breaker_in_policies);
    forwarding::check(d, service.as_ref(), &policies, circuit_breaker.as_ref());
    let agents = b.list(d, &spec::AGENTS);
    if agents.is_empty() {
        forwarding::check_time(d, service.as_ref(), &policies);
    }
    let agents: Vec<_> = agents
        .iter()
        .filter_map(|name| d.resolve_name(Among::Agents, name))
        .map(|index| Setting {
            value: AgentIndex(index.value),
            origin: index.origin,
        })
        .collect();
    Some(Route {
        id: id?.value,
        place: b.place(d),
        priority,
        listeners,
        matches,
        service: service?,
        form: form(service_type),
        policies,
        circuit_breaker,
        agents,
    })
}

/// Reports pages of a route with errors in JSON.
fn no_pages_of_an_api(
    d: &mut Decoder<'_, '_>,
    service_type: Option<Setting<ServiceType>>,
    pages: &ErrorPages,
) {
    let is_api = service_type.is_some_and(|service_type| *service_type == ServiceType::Api);
    if let Some(page) = pages.first().filter(|_| is_api) {
        let message = "`error-pages` has no effect on a route with `service-type \"api\"`";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, page.place, message);
        d.push(
            fault
                .label("its errors are JSON")
                .help("leave one of the two out"),
        );
    }
}

/// The breaker that is written in the route or in its `policies`; reports one in both.
fn one_breaker(
    d: &mut Decoder<'_, '_>,
    in_route: Option<CircuitBreaker>,
    in_policies: Option<CircuitBreaker>,
) -> Option<CircuitBreaker> {
    if let (Some(one), Some(other)) = (&in_route, &in_policies) {
        let (first, again) = (one.place.min(other.place), one.place.max(other.place));
        let message = "`circuit-breaker` in a route and in its `policies` is the same setting";
        let fault = Diagnostic::new(DiagnosticCode::RepeatedSetting, again, message);
        d.push(fault.label("again here").related(first, "first here"));
    }
    in_route.or(in_policies)
}

fn form(service_type: Option<Setting<ServiceType>>) -> Setting<ServiceForm> {
    let Some(Setting { value, origin }) = service_type else {
        return Setting::defaulted(ServiceForm::Negotiated);
    };
    let value = match value {
        ServiceType::Api => ServiceForm::Api,
        ServiceType::Web => ServiceForm::Web,
        ServiceType::Builtin | ServiceType::Static => ServiceForm::Negotiated,
    };
    Setting { value, origin }
}

/// The service of a route: the configured one, of the kind required by its `service-type`, and no
/// second one.
fn service<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    service_type: Option<Setting<ServiceType>>,
) -> Option<Service> {
    let service_type = service_type.map(|service_type| service_type.value);
    let is_open = matches!(
        service_type,
        None | Some(ServiceType::Api | ServiceType::Web)
    );
    let own = [answer_spec::REDIRECT.path, answer_spec::RESPOND.path];
    let own = own.into_iter().find(|path| b.has(path));
    let wanted = |path, by, goes_with| ServiceTypeRule {
        path,
        by,
        goes_with,
        instead: own.filter(|own| *own != path),
    };
    let is_own = |path| is_open && own == Some(path);
    let wanted = [
        wanted(spec::UPSTREAM.path, is_open && own.is_none(), ""),
        wanted(
            spec::BUILTIN_HANDLER.path,
            service_type == Some(ServiceType::Builtin),
            "builtin",
        ),
        wanted(
            spec::STATIC_FILES.path,
            service_type == Some(ServiceType::Static),
            "static",
        ),
        wanted(
            answer_spec::REDIRECT.path,
            is_own(answer_spec::REDIRECT.path),
            "",
        ),
        wanted(
            answer_spec::RESPOND.path,
            is_own(answer_spec::RESPOND.path),
            "",
        ),
    ];
    let others = wanted
        .iter()
        .filter(|one| !one.by && b.has(one.path))
        .count();
    for one in wanted {
        one.check(d, b, others > 0);
    }
    let upstream = d.reference(b, &spec::UPSTREAM, Among::Upstreams);
    let handler = b.optional(d, &spec::BUILTIN_HANDLER);
    let files = static_files(d, b);
    let redirect = answers::redirect(d, b);
    let response = answers::respond(d, b);
    match service_type {
        Some(ServiceType::Builtin) => handler.map(Service::Builtin),
        Some(ServiceType::Static) => files.map(Service::Static),
        None | Some(ServiceType::Api | ServiceType::Web) => {
            let upstream = upstream.map(|index| {
                Service::Upstream(Setting {
                    value: UpstreamIndex(index.value),
                    origin: index.origin,
                })
            });
            let redirect = redirect.map(Service::Redirect);
            upstream.or(redirect).or(response.map(Service::Respond))
        }
    }
}

/// A setting that a `service-type` requires or excludes.
#[derive(Clone, Copy)]
struct ServiceTypeRule {
    path: &'static str,
    by: bool,
    /// The service type that the setting requires; empty for every type with an upstream.
    goes_with: &'static str,
    /// The path of a redirect or a response that the route has instead.
    instead: Option<&'static str>,
}

impl ServiceTypeRule {
    fn check(self, d: &mut Decoder<'_, '_>, b: &Block<'_>, others: bool) {
        let name_of = |path: &'static str| path.rsplit('.').next().unwrap_or_default();
        let name = name_of(self.path);
        match (self.by, b.place_of(d, self.path)) {
            (false, Some(place)) => {
                let message = match (self.instead, self.goes_with) {
                    (Some(other), _) => {
                        format!("`{name}` cannot be combined with `{}`", name_of(other))
                    }
                    (None, "") => format!("`{name}` is not allowed with this `service-type`"),
                    (None, kind) => format!("`{name}` requires `service-type \"{kind}\"`"),
                };
                d.fault(DiagnosticCode::Conflict, place, message);
            }
            // A setting of another service type is reported already.
            (true, None) if !others && !b.is_misread(self.path) => {
                let place = b.place(d);
                let message = format!("`{name}` is missing{}", b.within(d));
                let fault = Diagnostic::new(DiagnosticCode::MissingSetting, place, message);
                let fault = fault.label(format!("needs `{name}`"));
                d.push(match self.goes_with {
                    "" => fault.help(
                        "or `redirect`, `respond`, or `service-type \"builtin\"` with a \
                         `builtin-handler`",
                    ),
                    _ => fault,
                });
            }
            (true, _) | (false, None) => {}
        }
    }
}

/// Checks that the root is a folder and that the index and the fallback are names relative to it.
fn check_files(
    d: &mut Decoder<'_, '_>,
    root: Option<&Setting<PathBuf>>,
    index: &Setting<String>,
    fallback: Option<&Setting<String>>,
) {
    if let Some(root) = root
        && let Some(place) = root.place()
        && d.is_no_folder(root)
    {
        let message = format!("`{}` is not a folder", root.display());
        d.fault(DiagnosticCode::BadValue, place, message);
    }
    for name in [Some(index), fallback].into_iter().flatten() {
        let mut components = Path::new(name.as_str()).components();
        let is_plain = components.all(|one| matches!(one, Component::Normal(_)));
        if let Some(place) = name.place().filter(|_| !is_plain || name.is_empty()) {
            let message = format!("`{}` is not a name of a file below the root", name.value);
            d.fault(DiagnosticCode::BadValue, place, message);
        }
    }
}

fn static_files<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<StaticFiles> {
    let b = b.inner(d, &spec::STATIC_FILES)?;
    let place = b.place(d);
    // In a bundle, it may be a name that the node's own file maps to a path.
    let root = if d.is_bundle() {
        b.required_path(d, &spec::STATIC_ROOT)
    } else {
        b.required_file(d, &spec::STATIC_ROOT)
    };
    let index = b.setting(d, &spec::STATIC_INDEX);
    let fallback = b.optional(d, &spec::STATIC_FALLBACK);
    check_files(d, root.as_ref(), &index, fallback.as_ref());
    let precompressed = b.setting(d, &spec::STATIC_PRECOMPRESSED);
    b.close(d);
    Some(StaticFiles {
        place,
        root: root?,
        index,
        fallback,
        precompressed,
    })
}
