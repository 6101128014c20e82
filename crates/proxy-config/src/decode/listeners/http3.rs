//! Settings that HTTP/3 requires, and settings that require HTTP/3.

use crate::decode::decoder::Decoder;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::{BindAddress, Listener, ListenerProtocol, Setting, TlsVersion};

/// Reports `http3` on a listener that cannot have it, and an advertisement without it.
pub(super) fn check(d: &mut Decoder<'_, '_>, listener: &Listener) {
    let places = [
        listener.http3.value.then(|| listener.http3.place()),
        listener.alt_svc_max_age.as_ref().map(Setting::place),
        listener.alt_svc_port.as_ref().map(Setting::place),
    ];
    let [http3, max_age, port] =
        places.map(|place| place.map(|place| place.unwrap_or(listener.place)));
    let fault = match (http3, max_age, port) {
        (Some(place), _, _) => obstacle(listener).map(|message| (place, message)),
        (None, Some(place), _) => Some((
            place,
            "`alt-svc-max-age-secs` advertises HTTP/3: write `http3 #true`, too",
        )),
        (None, None, _) => None,
    };
    let without_age = "`alt-svc-port` needs `alt-svc-max-age-secs`";
    let port_fault = port
        .filter(|_| max_age.is_none())
        .map(|place| (place, without_age));
    for (place, message) in fault.into_iter().chain(port_fault) {
        d.fault(DiagnosticCode::Conflict, place, message);
    }
}

/// The setting of `listener` that excludes HTTP/3.
fn obstacle(listener: &Listener) -> Option<&'static str> {
    if listener.protocol.value != ListenerProtocol::Https {
        return Some("`http3` needs `protocol \"https\"` and a `tls` block");
    }
    if matches!(listener.address.value, BindAddress::Unix(_)) {
        return Some("`http3` needs an IP address: it is spoken over UDP");
    }
    if listener.proxy_protocol.value {
        return Some("`http3` excludes `proxy-protocol`: datagrams have no such header");
    }
    let tls = listener.tls.as_ref()?;
    (tls.max_version.value < TlsVersion::V1_3)
        .then_some("`http3` needs TLS 1.3: `max-version` excludes it")
}
