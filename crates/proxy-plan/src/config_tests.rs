//! The tests inside a configuration, run on the plan that it compiles to.

pub(crate) mod certificates;
mod claims;
pub(crate) mod drafts;
mod explain_command;
pub(crate) mod live;
mod prohibitions;
pub(crate) mod recorded_drafts;

use crate::explain::{ExplainRequest, Explanation, Handler};
use crate::plan::Plan;
use crate::render::shown_value;
use crate::route::{CorsPlan, RoutePlan};
use crate::targets::TargetRegistry;
use crate::upstream_states::AssumeHealthy;
use claims::StatedClaims;
use explain_command::command;
use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use prohibitions::violated_prohibitions;
use proxy_errors::Problem;
use proxy_model::{
    BuiltinHandler, ConfigTest, EffectiveSetting, Expectation, FailedTest, HeaderEdits,
    HeaderField, Model, RequestValue, RequestValues, Setting, UrlScheme,
};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Runs the tests of `model`, and returns the failed tests in file order, followed by violated
/// prohibitions. All targets count as healthy; nothing is sent.
#[must_use]
pub fn failed_tests(model: &Model) -> Vec<FailedTest> {
    if model.tests.is_empty() && model.prohibitions.is_empty() {
        return Vec::new();
    }
    let model = Arc::new(model.clone());
    let plan = Plan::compile(
        1,
        Arc::clone(&model),
        &mut TargetRegistry::default().begin(),
    );
    let states = AssumeHealthy::new(&plan);
    let failed = model
        .tests
        .iter()
        .flat_map(|test| run(test, &plan, &states));
    failed.chain(violated_prohibitions(&plan)).collect()
}

fn run(test: &ConfigTest, plan: &Plan, states: &AssumeHealthy) -> Vec<FailedTest> {
    let mut request = question(test);
    let stated = claims::state(test, &mut request, plan, states);
    let failure = |place, difference| FailedTest {
        name: test.name.clone(),
        place,
        request: test.request.place,
        difference,
        explain: command(&request, &plan.model().sources),
    };
    let explanation = match request.ask_briefly(plan, states) {
        Ok(explanation) => match &stated {
            Some(stated) => stated.authorized(explanation, plan),
            None => explanation,
        },
        Err(error) => return vec![failure(test.request.place, error.to_string())],
    };
    let differences = test.expectations.iter().filter_map(|expected| {
        let place = expected.place().unwrap_or(test.place);
        let asked = TestedRequest {
            request: &request,
            explanation: &explanation,
            plan,
            stated: stated.as_ref(),
        };
        Some(failure(place, asked.difference(&expected.value)?))
    });
    differences.collect()
}

/// Converts the request of a test to a question to a plan.
fn question(test: &ConfigTest) -> ExplainRequest {
    ExplainRequest {
        method: test.request.method.clone(),
        url: test.request.url.clone(),
        headers: test.request.headers.clone(),
        client_ip: test.request.client_ip,
        listener: test.request.listener.clone(),
    }
}

/// A request with the decision on it.
#[derive(Debug)]
struct TestedRequest<'a> {
    request: &'a ExplainRequest,
    explanation: &'a Explanation,
    plan: &'a Plan,
    /// Token claims stated by the test.
    stated: Option<&'a StatedClaims>,
}

impl TestedRequest<'_> {
    /// The difference between the expectation and the decision; `None` if it is fulfilled.
    fn difference(&self, expected: &Expectation) -> Option<String> {
        let explanation = self.explanation;
        let winner = explanation.winner.as_ref();
        let refusal = refusal(explanation);
        let (noun, found, wanted) = match expected {
            Expectation::Route(name) => {
                let found = winner.map(|winner| winner.route.name.clone());
                ("route", found, name.clone())
            }
            Expectation::Upstream(name) => ("upstream", upstream(explanation), name.clone()),
            Expectation::Builtin(handler) => {
                let found = builtin(explanation).map(|found| found.to_string());
                ("built-in handler", found, handler.to_string())
            }
            Expectation::Agents(names) => ("list of agents", agents(explanation), names.join(" ")),
            Expectation::Status(status) => {
                let found = own_status(explanation).map(|status| status.to_string());
                (
                    "status of the proxy's own answer",
                    found,
                    status.to_string(),
                )
            }
            Expectation::Redirect(url) => ("redirect", location(explanation), url.clone()),
            Expectation::UpstreamPath(path) => (
                "path for an upstream",
                upstream_path(explanation),
                path.clone(),
            ),
            Expectation::Reason(reason) => {
                let found = refusal.map(|problem| problem.reason().as_str().to_owned());
                ("reason of a refusal", found, reason.as_str().to_owned())
            }
            Expectation::Listener(name) => {
                let found = explanation.listener.as_ref().map(|one| one.name.clone());
                ("listener", found, name.clone())
            }
            Expectation::Targets(addresses) => (
                "set of targets",
                targets(explanation),
                in_order(addresses.clone()),
            ),
            Expectation::Setting { name, value } => return self.setting(name, value),
            Expectation::RequestHeader(name, value) => {
                return self.field("request", &self.request_fields(), name, value);
            }
            Expectation::NoRequestHeader(name) => {
                return unwanted("request", &self.request_fields(), name);
            }
            Expectation::ResponseHeader(name, value) => {
                return self.field("response", &self.response_fields(), name, value);
            }
            Expectation::NoResponseHeader(name) => return self.kept_response_field(name),
            // No connection is made here; `failed_certificate_tests` reads the certificate files.
            Expectation::Certificate(_)
            | Expectation::CertificateDays(_)
            | Expectation::AnswerStatus(_)
            | Expectation::AnswerHeader(..)
            | Expectation::NoAnswerHeader(_)
            | Expectation::AnswerContains(_)
            | Expectation::FirstByte(_)
            | Expectation::Total(_) => return None,
        };
        match found {
            Some(found) if found == wanted => None,
            Some(found) => Some(format!("the {noun} is `{found}`, not `{wanted}`")),
            None => Some(format!("there is no {noun}; {}", decided(explanation))),
        }
    }

    /// The difference in the value of a setting; `None` if one of its values is `wanted`.
    fn setting(&self, name: &str, wanted: &str) -> Option<String> {
        let settings = self.explanation.settings.iter();
        let found: Vec<&EffectiveSetting> = settings.filter(|one| one.name() == name).collect();
        let is_wanted = |setting: &&EffectiveSetting| {
            written(&setting.value) == wanted || shown_value(setting) == wanted
        };
        if found.is_empty() && wanted == "none" || found.iter().any(is_wanted) {
            return None;
        }
        let values = found.iter().map(|setting| shown_value(setting));
        let values: Vec<String> = values.collect();
        Some(if values.is_empty() {
            format!("no setting `{name}` applies; it should be `{wanted}`")
        } else {
            format!(
                "the setting `{name}` is `{}`, not `{wanted}`",
                values.join(", ")
            )
        })
    }

    /// The difference in a field; `None` if one of its values is `wanted`.
    fn field(
        &self,
        message: &str,
        fields: &HeaderMap,
        name: &HeaderName,
        wanted: &HeaderValue,
    ) -> Option<String> {
        let mut values = fields.get_all(name).iter();
        if values.any(|value| value == wanted) {
            return None;
        }
        let found = fields.get_all(name).iter();
        let found: Vec<_> = found
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        Some(if found.is_empty() {
            format!(
                "the {message} has no header `{name}`; {}",
                decided(self.explanation)
            )
        } else {
            let wanted = String::from_utf8_lossy(wanted.as_bytes());
            format!(
                "the {message} header `{name}` is `{}`, not `{wanted}`",
                found.join(", ")
            )
        })
    }

    /// The request's fields after the edits of its route.
    fn request_fields(&self) -> HeaderMap {
        let mut fields = self.sent_fields();
        if let (Some(stated), Some(route)) = (self.stated, self.route()) {
            stated.apply(route, &mut fields);
        }
        if let Some(edits) = self.edits(|route| &route.request_headers) {
            self.filled(edits).apply(&mut fields);
        }
        fields
    }

    /// The request's fields as the test states them.
    fn sent_fields(&self) -> HeaderMap {
        let mut fields = HeaderMap::new();
        for (name, value) in &self.request.headers {
            let field = HeaderName::from_bytes(name.as_bytes()).ok();
            if let Some((name, value)) = field.zip(HeaderValue::from_str(value).ok()) {
                fields.append(name, value);
            }
        }
        fields
    }

    /// Response fields set by the edits of the route and by its `cors` block.
    fn response_fields(&self) -> HeaderMap {
        let mut fields = HeaderMap::new();
        if let Some(cors) = self.route().and_then(|route| route.cors.as_ref()) {
            let method = Method::from_bytes(self.request.method.as_bytes()).unwrap_or_default();
            cors.edits(&method, &self.sent_fields()).apply(&mut fields);
        }
        if let Some(edits) = self.edits(|route| &route.response_headers) {
            self.filled(edits).apply(&mut fields);
        }
        fields
    }

    /// The reason why a client may get a response field that the test forbids.
    fn kept_response_field(&self, name: &HeaderName) -> Option<String> {
        let edits = self.edits(|route| &route.response_headers);
        let is_removed =
            edits.is_some_and(|edits| edits.remove.iter().any(|one| one.value == *name));
        let has_cors = self.route().is_some_and(|route| route.cors.is_some());
        let is_removed = is_removed || has_cors && CorsPlan::replaces(name);
        if let Some(set) = unwanted("response", &self.response_fields(), name) {
            return Some(set);
        }
        let is_answered_upstream = upstream(self.explanation).is_some();
        (is_answered_upstream && !is_removed)
            .then(|| format!("no edit removes the response header `{name}` of the upstream"))
    }

    /// Fills `edits` with the values of the request. Placeholders with values known only at run
    /// time stay in braces.
    fn filled(&self, edits: &HeaderEdits) -> HeaderEdits {
        let Explanation {
            method,
            host,
            path,
            query,
            client_ip,
            listener,
            winner,
            is_tls,
            ..
        } = self.explanation;
        let scheme = if *is_tls {
            UrlScheme::Https
        } else {
            UrlScheme::Http
        };
        let asks_for_user = self
            .route()
            .is_some_and(|route| route.credentials.is_some());
        let if_tls = |value: &'static str| if *is_tls { value } else { "" };
        let values = RequestValues {
            client_ip: client_ip.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            host: &host.sent,
            scheme,
            method,
            path: &path.sent,
            query: Some(query.as_str()).filter(|query| !query.is_empty()),
            route: winner.as_ref().map_or("", |winner| &winner.route.name),
            listener: listener.as_ref().map_or("", |listener| &listener.name),
            correlation_id: "{correlation_id}",
            protocol: "{protocol}",
            tls_version: if_tls("{tls_version}"),
            tls_server_name: if_tls("{tls_server_name}"),
            tls_client_subject: if_tls("{tls_client_subject}"),
            tls_client_fingerprint: if_tls("{tls_client_fingerprint}"),
            time: None,
            user: match self.stated {
                Some(stated) => stated.user(),
                None if asks_for_user => "{user}",
                None => "",
            },
        };
        let mut filled = edits.filled(&values);
        let hosts = edits.set.iter();
        let hosts = hosts.filter_map(|set| host_in_braces(set, &values));
        filled.set.extend(hosts);
        filled
    }

    fn edits(&self, get: impl Fn(&RoutePlan) -> &HeaderEdits) -> Option<&HeaderEdits> {
        self.route().map(get)
    }

    fn route(&self) -> Option<&RoutePlan> {
        let name = &self.explanation.winner.as_ref()?.route.name;
        let mut routes = self.plan.routes().iter();
        routes.find(|route| *route.id == **name)
    }
}

/// The difference of a forbidden field; `None` if it is absent.
fn unwanted(message: &str, fields: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = fields.get(name)?;
    let value = String::from_utf8_lossy(value.as_bytes());
    Some(format!(
        "the {message} has the header `{name}` with `{value}`"
    ))
}

/// The value of a setting as written in a configuration.
fn written(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

/// The configured targets of the upstream, in order; `None` without an upstream.
fn targets(explanation: &Explanation) -> Option<String> {
    let Handler::Upstream { candidates, .. } = &explanation.answerer else {
        return None;
    };
    let written = candidates
        .iter()
        .map(|one| one.name.clone().unwrap_or_else(|| one.address.clone()));
    Some(in_order(written.collect()))
}

fn in_order(mut names: Vec<String>) -> String {
    names.sort();
    names.dedup();
    names.join(" ")
}

fn refusal(explanation: &Explanation) -> Option<&Problem> {
    match &explanation.answerer {
        Handler::Refused { problem, .. } => Some(problem),
        Handler::Upstream { .. }
        | Handler::Builtin(_)
        | Handler::Files(_)
        | Handler::Redirect { .. }
        | Handler::Respond { .. } => None,
    }
}

/// Status of the proxy's own response; `None` if the decision does not determine it.
fn own_status(explanation: &Explanation) -> Option<u16> {
    match &explanation.answerer {
        Handler::Refused { problem, .. } => Some(problem.status().as_u16()),
        Handler::Redirect { status, .. } | Handler::Respond { status, .. } => Some(*status),
        Handler::Upstream { .. } | Handler::Builtin(_) | Handler::Files(_) => None,
    }
}

fn location(explanation: &Explanation) -> Option<String> {
    match &explanation.answerer {
        Handler::Redirect { location, .. } => Some(location.clone()),
        Handler::Upstream { .. }
        | Handler::Builtin(_)
        | Handler::Files(_)
        | Handler::Respond { .. }
        | Handler::Refused { .. } => None,
    }
}

/// The path and query for the upstream; `None` without an upstream.
fn upstream_path(explanation: &Explanation) -> Option<String> {
    upstream(explanation)?;
    let sent = &explanation.path.sent;
    let as_sent = || match explanation.query.as_str() {
        "" => sent.clone(),
        query => format!("{sent}?{query}"),
    };
    Some(explanation.rewritten.clone().unwrap_or_else(as_sent))
}

fn upstream(explanation: &Explanation) -> Option<String> {
    match &explanation.answerer {
        Handler::Upstream { upstream, .. } => Some(upstream.name.clone()),
        Handler::Refused { .. }
        | Handler::Builtin(_)
        | Handler::Files(_)
        | Handler::Redirect { .. }
        | Handler::Respond { .. } => None,
    }
}

fn builtin(explanation: &Explanation) -> Option<BuiltinHandler> {
    match &explanation.answerer {
        Handler::Builtin(handler) => Some(*handler),
        Handler::Refused { .. }
        | Handler::Upstream { .. }
        | Handler::Files(_)
        | Handler::Redirect { .. }
        | Handler::Respond { .. } => None,
    }
}

/// The names of the agents, in order; `None` without agents.
fn agents(explanation: &Explanation) -> Option<String> {
    let names: Vec<&str> = explanation
        .agents
        .iter()
        .map(|agent| agent.name.as_str())
        .collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// Describes the decision in a clause, for a message.
fn decided(explanation: &Explanation) -> String {
    match &explanation.answerer {
        Handler::Upstream { upstream, .. } => {
            format!("the request goes to upstream `{}`", upstream.name)
        }
        Handler::Builtin(handler) => format!("`{handler}` answers"),
        Handler::Files(root) => format!("files below `{}` answer", root.name),
        Handler::Redirect { location, .. } => {
            format!("the request is redirected to {location}")
        }
        Handler::Respond { status, .. } => format!("the route responds with {status}"),
        Handler::Refused { problem, .. } => format!(
            "the request is refused with {} ({})",
            problem.status().as_u16(),
            problem.reason().as_str()
        ),
    }
}

/// Values known only at run time.
const RUN_TIME: [RequestValue; 7] = [
    RequestValue::CorrelationId,
    RequestValue::Protocol,
    RequestValue::TlsVersion,
    RequestValue::TlsServerName,
    RequestValue::TlsClientSubject,
    RequestValue::TlsClientFingerprint,
    RequestValue::User,
];

/// The `Host` that contains values known only at run time, with their placeholders in braces.
/// Braces are no valid host, so [`HeaderEdits::filled`] would leave the client's field.
fn host_in_braces(
    set: &Setting<HeaderField>,
    values: &RequestValues<'_>,
) -> Option<Setting<HeaderField>> {
    let template = set.template.as_ref().filter(|_| set.name == HOST)?;
    let is_of_run_time = RUN_TIME.iter().any(|value| template.has(*value));
    let value = template.fill(values).filter(|_| is_of_run_time)?;
    Some(Setting {
        value: HeaderField {
            value,
            ..set.value.clone()
        },
        origin: set.origin,
    })
}
