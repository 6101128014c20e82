//! The last word of a connection.

use rustls::{ConnectionCommon, SideData};
use std::io::Write;

/// Tells the peer of `session` that nothing more comes, as far as `socket` takes it at once; nothing is
/// waited for. Says nothing if it was told before.
///
/// Without it nobody can tell the end of a connection from one that was cut.
/// [RFC 8446 §6.1, RFC 9112 §9.8]
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
