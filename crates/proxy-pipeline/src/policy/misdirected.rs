//! Refuses requests for hosts that the connection's certificate does not cover. [RFC 9110 §7.4]

use crate::worker::connection_info::ConnectionInfo;
use proxy_errors::{Detail, Problem, Reason};

/// Answers 421 if `authority` requires another certificate than the one served.
pub(crate) fn check(client: &ConnectionInfo, authority: &str) -> Result<(), Problem> {
    let Some(session) = &client.session else {
        return Ok(());
    };
    let shown_for = session.server_name.as_deref();
    if shown_for == Some(authority) {
        return Ok(());
    }
    let host = without_port(authority);
    if host.is_empty() || session.server.covers(shown_for, host) {
        return Ok(());
    }
    Err(Problem::new(Reason::MisdirectedRequest, Detail::None))
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // The last colon of an address in brackets is not always the port's.
        Some((host, port)) if !port.ends_with(']') => host,
        Some(_) | None => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_not_part_of_the_host() {
        for (authority, host) in [
            ("a.test", "a.test"),
            ("a.test:443", "a.test"),
            ("[::1]", "[::1]"),
            ("[::1]:443", "[::1]"),
            ("", ""),
        ] {
            assert_eq!(without_port(authority), host);
        }
    }
}
