//! The `listeners` block.

mod http3;

use super::block::Block;
use super::decoder::Decoder;
use super::listener_tls::listener_tls;
use super::policies::{access, error_pages};
use super::references::Among;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::listeners as spec;
use proxy_model::{
    Admin, Listener, ListenerProtocol, ListenerTimeouts, Model, RouteIndex, Setting,
};
use std::net::SocketAddr;

pub(super) fn listener<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Listener> {
    let name = b.name(d);
    let address = b.required(d, &spec::ADDRESS);
    let protocol = b.setting(d, &spec::PROTOCOL);
    let default_route = d.reference(b, &spec::DEFAULT_ROUTE, Among::Routes);
    let trusted_proxies = b.list(d, &spec::TRUSTED_PROXIES);
    let path_policy = b.setting(d, &spec::PATH_POLICY);
    let via = b.setting(d, &spec::VIA);
    let expose_reasons = b.setting(d, &spec::EXPOSE_REASONS);
    let h2c = b.setting(d, &spec::H2C);
    let proxy_protocol = b.setting(d, &spec::PROXY_PROTOCOL);
    let http3 = b.setting(d, &spec::HTTP3);
    let alt_svc_max_age = b.optional(d, &spec::ALT_SVC_MAX_AGE);
    let alt_svc_port = b.optional(d, &spec::ALT_SVC_PORT);
    let max_concurrent_streams = b.setting(d, &spec::MAX_CONCURRENT_STREAMS);
    let max_stream_resets = b.setting(d, &spec::MAX_STREAM_RESETS);
    let max_connection_age = b.optional(d, &spec::MAX_CONNECTION_AGE);
    let max_requests_per_connection = b.optional(d, &spec::MAX_REQUESTS_PER_CONNECTION);
    let backlog = b.setting(d, &spec::BACKLOG);
    let access = access::access(d, b, &access::LISTENER);
    let error_pages = error_pages::error_pages(d, b, &error_pages::LISTENER);
    let timeouts = timeouts(d, b);
    let place = b.place(d);
    let has_tls = b.has(proxy_model::registry::listener_tls::TLS.path);
    let tls = listener_tls(d, b);
    let fault = contradiction(&protocol, has_tls, &h2c);
    if let Some((place, message)) = fault {
        d.fault(
            DiagnosticCode::Conflict,
            place.unwrap_or_else(|| b.place(d)),
            message,
        );
    }
    check_proxy_protocol(d, &proxy_protocol, trusted_proxies.is_empty());
    let listener = Listener {
        name: name?.value,
        place,
        address: address?,
        protocol,
        default_route: default_route.map(|index| Setting {
            value: RouteIndex(index.value),
            origin: index.origin,
        }),
        trusted_proxies,
        path_policy,
        via,
        expose_reasons,
        h2c,
        proxy_protocol,
        http3,
        alt_svc_max_age,
        alt_svc_port,
        max_concurrent_streams,
        max_stream_resets,
        max_connection_age,
        max_requests_per_connection,
        backlog,
        access,
        error_pages,
        timeouts,
        tls,
    };
    http3::check(d, &listener);
    Some(listener)
}

fn timeouts<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> ListenerTimeouts {
    let b = b.inner(d, &spec::TIMEOUTS).unwrap_or_else(Block::empty);
    let timeouts = ListenerTimeouts {
        header: b.setting(d, &spec::HEADER),
        body_idle: b.setting(d, &spec::BODY_IDLE),
        write_idle: b.setting(d, &spec::WRITE_IDLE),
        keep_alive: b.setting(d, &spec::KEEP_ALIVE),
        handshake: b.setting(d, &spec::HANDSHAKE),
    };
    b.close(d);
    timeouts
}

/// The first TLS setting that contradicts `protocol` or `h2c`, with its place.
fn contradiction(
    protocol: &Setting<ListenerProtocol>,
    has_tls: bool,
    h2c: &Setting<bool>,
) -> Option<(Option<proxy_model::Place>, &'static str)> {
    match (protocol.value, has_tls, h2c.value) {
        (ListenerProtocol::Https, false, _) => {
            Some((protocol.place(), "an `https` listener needs a `tls` block"))
        }
        (ListenerProtocol::Http, true, _) => Some((
            protocol.place(),
            "a listener with a `tls` block needs `protocol \"https\"`",
        )),
        (ListenerProtocol::Https, true, true) => Some((
            h2c.place(),
            "`h2c` is HTTP/2 without TLS; an `https` listener speaks HTTP/2 by ALPN",
        )),
        (ListenerProtocol::TlsPassthrough, true, _) => Some((
            protocol.place(),
            "a `tls-passthrough` listener has no `tls` block; where TLS ends here, write \
             `protocol \"tcp\"`",
        )),
        (ListenerProtocol::Https, true, false)
        | (ListenerProtocol::Http | ListenerProtocol::TlsPassthrough, false, _)
        | (ListenerProtocol::Tcp, _, _) => None,
    }
}

/// Reports `proxy-protocol` on a listener without trusted proxies: no header would be read.
fn check_proxy_protocol(
    d: &mut Decoder<'_, '_>,
    proxy_protocol: &Setting<bool>,
    trusts_none: bool,
) {
    let is_ignored = proxy_protocol.value && trusts_none;
    let Some(place) = proxy_protocol.place().filter(|_| is_ignored) else {
        return;
    };
    let message =
        "`proxy-protocol` needs `trusted-proxies`: connections from other peers are closed";
    let help = "name the load balancers, as in `trusted-proxies \"10.0.0.0/8\"`";
    d.push(Diagnostic::new(DiagnosticCode::Conflict, place, message).help(help));
}

/// Reports names and addresses that two listeners share.
pub(super) fn no_two_alike(d: &mut Decoder<'_, '_>, listeners: &[Listener]) {
    for (index, listener) in listeners.iter().enumerate() {
        let earlier = listeners.iter().take(index);
        let mut sharing = earlier.filter(|other| bind_alike(listener, other));
        let Some((other, place)) = sharing.next().zip(listener.address.place()) else {
            continue;
        };
        let message = format!(
            "listener \"{}\" has the address of \"{}\"",
            listener.name, other.name
        );
        let fault =
            Diagnostic::new(DiagnosticCode::AddressInUse, place, message).label("again here");
        d.push(match other.address.place() {
            Some(first) => fault.related(first, "first here"),
            None => fault,
        });
    }
}

/// Reports listeners with an address or a socket of the admin interface.
pub(super) fn no_listener_at_admin(d: &mut Decoder<'_, '_>, model: &Model) {
    use proxy_model::BindAddress::{Tcp, Unix};
    let Admin {
        address,
        unix_socket,
        token_file: _,
    } = &model.admin;
    for listener in &model.listeners {
        let other = match &listener.address.value {
            Tcp(own) => address
                .filter(|admin| tcp_alike(*own, *admin))
                .map(|_| address.place()),
            Unix(own) => unix_socket
                .as_ref()
                .filter(|socket| socket.value == *own)
                .map(Setting::place),
        };
        let Some((admin, place)) = other.zip(listener.address.place()) else {
            continue;
        };
        let message = format!(
            "listener \"{}\" has the address of the admin interface",
            listener.name
        );
        let fault = Diagnostic::new(DiagnosticCode::AddressInUse, place, message);
        d.push(match admin {
            Some(first) => fault.label("again here").related(first, "first here"),
            None => fault
                .label("the default of `admin { address … }`")
                .help("write `admin { address … }` with another address, or \"off\""),
        });
    }
}

/// Returns true if two listeners cannot both be bound.
fn bind_alike(one: &Listener, other: &Listener) -> bool {
    use proxy_model::BindAddress::{Tcp, Unix};
    match (&one.address.value, &other.address.value) {
        (Tcp(one), Tcp(other)) => tcp_alike(*one, *other),
        (Unix(one), Unix(other)) => one == other,
        (Tcp(_), Unix(_)) | (Unix(_), Tcp(_)) => false,
    }
}

/// Returns true if two addresses cannot both be bound. Port 0 never conflicts: the kernel picks a
/// free port.
fn tcp_alike(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = one.ip() == other.ip()
        || one.is_ipv4() == other.is_ipv4()
            && (one.ip().is_unspecified() || other.ip().is_unspecified());
    one.port() == other.port() && one.port() != 0 && covers
}
