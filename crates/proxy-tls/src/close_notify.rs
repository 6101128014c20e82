//! The `close_notify` alert.

use rustls::{ConnectionCommon, SideData};
use std::io::Write;

/// Sends `close_notify` to the peer of `session`, as far as `socket` accepts it without blocking.
/// Does nothing if it was sent already.
///
/// Without the alert, the peer cannot tell the end of the connection from a truncation. [RFC 8446
/// §6.1, RFC 9112 §9.8]
pub fn send_close_notify<S: SideData>(session: &mut ConnectionCommon<S>, socket: &mut impl Write) {
    if session.is_handshaking() {
        return;
    }
    session.send_close_notify();
    while session.wants_write() {
        if !matches!(session.write_tls(socket), Ok(1..)) {
            return;
        }
    }
}
