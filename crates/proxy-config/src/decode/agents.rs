//! The `agents` block.

use super::block::Block;
use super::decoder::Decoder;
use super::headers::{Edit, protected_in_requests, protected_in_responses};
use super::references::Among;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use http::HeaderName;
use http::header::EXPECT;
use proxy_model::registry::agents as spec;
use proxy_model::{
    Agent, AgentAddress, AgentBreaker, AgentEventKind, AgentProtocol, Model, Setting,
    UpstreamIndex, UpstreamProtocol,
};
use std::path::PathBuf;

pub(super) fn agent<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Agent> {
    let name = b.name(d);
    let address = address(d, b);
    let failure_mode = b.required(d, &spec::FAILURE_MODE);
    let protocol = b.setting(d, &spec::PROTOCOL);
    let events = b.list(d, &spec::EVENTS);
    let on_oversize = b.setting(d, &spec::ON_OVERSIZE);
    let request_path = b.setting(d, &spec::REQUEST_PATH);
    let request_host = b.optional(d, &spec::REQUEST_HOST);
    let copy_headers = b.list(d, &spec::COPY_HEADERS);
    let copy_response_headers = b.list(d, &spec::COPY_RESPONSE_HEADERS);
    check_protocol(d, *protocol, &events);
    check_copied(d, &copy_headers, |name| {
        *name == EXPECT || protected_in_requests(name, Edit::Remove).is_some()
    });
    check_copied(d, &copy_response_headers, |name| {
        protected_in_responses(name, Edit::Add).is_some()
    });
    let timeout = b.setting(d, &spec::TIMEOUT);
    let encoding = b.setting(d, &spec::ENCODING);
    let host = request_host.as_ref().and_then(Setting::place);
    let copied = copy_headers.first().and_then(Setting::place);
    let copied_back = copy_response_headers.first().and_then(Setting::place);
    for (owner, name, place) in [
        (
            AgentProtocol::ForwardAuth,
            "request-path",
            request_path.place(),
        ),
        (AgentProtocol::ForwardAuth, "request-host", host),
        (AgentProtocol::ForwardAuth, "copy-headers", copied),
        (
            AgentProtocol::ForwardAuth,
            "copy-response-headers",
            copied_back,
        ),
        (AgentProtocol::Native, "on-oversize", on_oversize.place()),
        (AgentProtocol::Native, "encoding", encoding.place()),
    ] {
        if let Some(place) = place.filter(|_| *protocol != owner) {
            let message = format!("`{name}` requires `protocol \"{owner}\"`");
            d.fault(DiagnosticCode::Conflict, place, message);
        }
    }
    let circuit_breaker = breaker(d, b);
    Some(Agent {
        name: name?.value,
        place: b.place(d),
        address: address?,
        failure_mode: failure_mode?,
        protocol,
        events,
        on_oversize,
        request_path,
        request_host,
        copy_headers,
        copy_response_headers,
        timeout,
        encoding,
        circuit_breaker,
    })
}

/// Reports events that the agent's protocol does not have.
fn check_protocol(
    d: &mut Decoder<'_, '_>,
    protocol: AgentProtocol,
    events: &[Setting<AgentEventKind>],
) {
    for event in events {
        let exists = match protocol {
            AgentProtocol::Native => true,
            AgentProtocol::ExtAuthz | AgentProtocol::ForwardAuth => {
                event.value == AgentEventKind::RequestHeaders
            }
        };
        if let Some(place) = event.place().filter(|_| !exists) {
            let message = format!("the protocol `{protocol}` has no event `{}`", event.value);
            d.fault(DiagnosticCode::Conflict, place, message);
        }
    }
}

/// Reports headers that an agent's answer cannot replace: each request would be refused for them.
fn check_copied(
    d: &mut Decoder<'_, '_>,
    names: &[Setting<HeaderName>],
    is_protected: impl Fn(&HeaderName) -> bool,
) {
    for name in names {
        if let Some(place) = name.place().filter(|_| is_protected(&name.value)) {
            let message = format!("no agent may change `{}`", name.value);
            d.fault(DiagnosticCode::ProtectedHeader, place, message);
        }
    }
}

/// Reports agents with a protocol that does not match their upstream's.
pub(super) fn check_upstreams(d: &mut Decoder<'_, '_>, model: &Model) {
    for agent in &model.agents {
        let AgentAddress::Upstream(index) = &agent.address else {
            continue;
        };
        let Some((upstream, place)) = model.upstream(index.value).zip(index.place()) else {
            continue;
        };
        let needed = match *agent.protocol {
            AgentProtocol::Native => {
                let message = "the protocol `native` is spoken over a Unix socket";
                let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
                d.push(fault.help(
                    "write `unix-socket`, or `protocol \"forward-auth\"` or `\"ext-authz\"`",
                ));
                continue;
            }
            AgentProtocol::ForwardAuth => UpstreamProtocol::H1,
            AgentProtocol::ExtAuthz => UpstreamProtocol::H2,
        };
        if *upstream.protocol != needed {
            let message = format!(
                "the protocol `{}` needs an upstream with `protocol \"{needed}\"`",
                agent.protocol.value
            );
            let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
            let written = upstream.protocol.place().unwrap_or(upstream.place);
            d.push(fault.related(written, format!("this one speaks {}", *upstream.protocol)));
        }
    }
}

/// The agent's upstream, or the path of its socket.
fn address<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<AgentAddress> {
    if !b.has(spec::UPSTREAM.path) {
        return socket(d, b).map(AgentAddress::Socket);
    }
    let upstream = d.reference(b, &spec::UPSTREAM, Among::Upstreams);
    for name in [spec::UNIX_SOCKET.path, spec::TRANSPORT.path] {
        if b.has(name) {
            let message = "an agent has either a Unix socket or an `upstream`";
            let place = b.place(d);
            d.fault(DiagnosticCode::Conflict, place, message);
            socket(d, b);
            return None;
        }
    }
    let Setting { value, origin } = upstream?;
    Some(AgentAddress::Upstream(Setting {
        value: UpstreamIndex(value),
        origin,
    }))
}

/// The agent's socket path, in any of its three spellings.
fn socket<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Setting<PathBuf>> {
    let direct = b.merged(d, &spec::UNIX_SOCKET);
    let transport = b.merged(d, &spec::TRANSPORT);
    let path = match (direct, transport) {
        (Some(direct), None) => {
            let path = direct.argument_or_setting(d, &spec::PATH);
            direct.close(d);
            path
        }
        (None, Some(transport)) => {
            let kind = transport.arguments(d);
            if kind.is_empty() {
                transport.missing(d, "\"unix_socket\"");
            }
            for found in &kind {
                transport.read(d, &spec::TRANSPORT, "transport", found);
            }
            let path = transport.required(d, &spec::PATH);
            transport.close(d);
            path
        }
        (Some(direct), Some(transport)) => {
            let place = transport.place(d);
            let message = "`transport` and `unix-socket` say the same";
            let fault = Diagnostic::new(DiagnosticCode::RepeatedSetting, place, message);
            d.push(
                fault
                    .label("again here")
                    .related(direct.place(d), "first here"),
            );
            None
        }
        // The node's own file has the socket.
        (None, None) if d.is_bundle() => return Some(Setting::at(PathBuf::new(), b.place(d))),
        (None, None) => {
            b.missing(d, "unix-socket");
            None
        }
    };
    let path = path?;
    let place = path.place()?;
    Some(Setting::at(
        d.resolve(place, &path.value.to_string_lossy()),
        place,
    ))
}

fn breaker<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<AgentBreaker> {
    let b = b.inner(d, &spec::CIRCUIT_BREAKER)?;
    let breaker = AgentBreaker {
        place: b.place(d),
        failure_threshold: b.setting(d, &spec::FAILURE_THRESHOLD),
        timeout: b.setting(d, &spec::BREAKER_TIMEOUT),
    };
    b.close(d);
    Some(breaker)
}
