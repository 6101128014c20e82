//! The `agents` block.

use super::block::Block;
use super::decoder::Decoder;
use super::headers::{Edit, protected_in_requests};
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use http::HeaderName;
use http::header::EXPECT;
use proxy_model::registry::agents as spec;
use proxy_model::{Agent, AgentBreaker, AgentEventKind, AgentProtocol, Setting};
use std::path::PathBuf;

pub(super) fn agent<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Agent> {
    let name = b.name(d);
    let unix_socket = socket(d, b);
    let failure_mode = b.required(d, &spec::FAILURE_MODE);
    let protocol = b.setting(d, &spec::PROTOCOL);
    let events = b.list(d, &spec::EVENTS);
    let on_oversize = b.setting(d, &spec::ON_OVERSIZE);
    let request_path = b.setting(d, &spec::REQUEST_PATH);
    let copy_headers = b.list(d, &spec::COPY_HEADERS);
    check_protocol(d, *protocol, &events);
    check_copied(d, &copy_headers);
    let timeout = b.setting(d, &spec::TIMEOUT);
    let encoding = b.setting(d, &spec::ENCODING);
    let copied = copy_headers.first().and_then(Setting::place);
    for (owner, name, place) in [
        (
            AgentProtocol::ForwardAuth,
            "request-path",
            request_path.place(),
        ),
        (AgentProtocol::ForwardAuth, "copy-headers", copied),
        (AgentProtocol::Native, "on-oversize", on_oversize.place()),
        (AgentProtocol::Native, "encoding", encoding.place()),
    ] {
        if let Some(place) = place.filter(|_| *protocol != owner) {
            let message = format!("`{name}` goes with `protocol \"{owner}\"`");
            d.fault(DiagnosticCode::Conflict, place, message);
        }
    }
    let circuit_breaker = breaker(d, b);
    Some(Agent {
        name: name?.value,
        place: b.place(d),
        unix_socket: unix_socket?,
        failure_mode: failure_mode?,
        protocol,
        events,
        on_oversize,
        request_path,
        copy_headers,
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
fn check_copied(d: &mut Decoder<'_, '_>, names: &[Setting<HeaderName>]) {
    for name in names {
        let is_protected =
            name.value == EXPECT || protected_in_requests(&name.value, Edit::Remove).is_some();
        if let Some(place) = name.place().filter(|_| is_protected) {
            let message = format!("no agent may change `{}`", name.value);
            d.fault(DiagnosticCode::ProtectedHeader, place, message);
        }
    }
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
