//! Checks of the addresses of listeners and targets.

use super::finding::Finding;
use proxy_model::{BindAddress, Host, Listener, Model, TargetAddress};
use proxy_server::{BindError, probe_tcp, probe_udp};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum time of a name look-up. The system resolver's own timeout can be half a minute.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn check(model: &Model) -> Vec<Finding> {
    let mut findings: Vec<_> = model.listeners.iter().flat_map(listener).collect();
    let mut checked = BTreeSet::new();
    for upstream in &model.upstreams {
        for target in &upstream.targets {
            let address = &*target.address;
            if checked.insert(subject(address)) {
                findings.extend(check_target(address));
            }
        }
    }
    findings
}

/// Checks that the address can be bound, with HTTP/3 also its UDP port. Unix sockets are not checked,
/// because the start replaces existing ones.
fn listener(listener: &Listener) -> Vec<Finding> {
    let BindAddress::Tcp(address) = *listener.address else {
        return Vec::new();
    };
    let (name, port) = (&listener.name, address.port());
    let tcp = probe_tcp(address).map(|()| format!("{address} can be bound"));
    let mut findings = vec![bound(name, tcp, &format!("ss -ltnp 'sport = :{port}'"))];
    if *listener.http3 {
        let udp = probe_udp(address).map(|()| format!("UDP port {address} can be bound"));
        findings.push(bound(name, udp, &format!("ss -lunp 'sport = :{port}'")));
    }
    findings
}

/// The finding of an attempt to bind; `command` shows the program with the port.
fn bound(listener: &str, probed: Result<String, BindError>, command: &str) -> Finding {
    let subject = format!("listener {listener}");
    let error = match probed {
        Ok(state) => return Finding::ok(subject, state),
        Err(error) => error,
    };
    let (place, source) = (&error.address, &error.source);
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind grows")]
    match source.kind() {
        ErrorKind::AddrInUse => Finding::warning(
            subject,
            format!("{place} is in use"),
            format!("expected if proxyd runs; else see `{command}`"),
        ),
        ErrorKind::PermissionDenied => Finding::fault(
            subject,
            format!("{place}: {source}"),
            "give the unit AmbientCapabilities=CAP_NET_BIND_SERVICE or a socket unit, or use a port from 1024",
        ),
        _ => Finding::fault(
            subject,
            format!("{place}: {source}"),
            "`ip address` lists the addresses of this machine",
        ),
    }
}

fn subject(address: &TargetAddress) -> String {
    let TargetAddress { host, port } = address;
    match host {
        Host::Ip(ip) => format!("target {}", SocketAddr::new(*ip, *port)),
        Host::Name(name) => format!("target {name}:{port}"),
        Host::Service(name) => format!("target {name}"),
    }
}

/// Resolves the target's name and connects to each address. SRV records are not resolved: the
/// system's resolver has no function for them.
fn check_target(address: &TargetAddress) -> Vec<Finding> {
    let subject = subject(address);
    let port = address.port;
    match &address.host {
        Host::Ip(ip) => vec![connect(subject, SocketAddr::new(*ip, port))],
        Host::Service(_) => vec![Finding::ok(subject, "SRV records are not checked")],
        Host::Name(name) => match look_up(name, port) {
            Ok(addresses) => {
                let each = addresses.into_iter();
                each.map(|found| connect(format!("{subject} ({found})"), found))
                    .collect()
            }
            Err(problem) => vec![Finding::warning(
                subject,
                problem,
                format!("`getent hosts {name}` asks the same resolver; see /etc/resolv.conf"),
            )],
        },
    }
}

fn look_up(name: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let (sender, receiver) = mpsc::channel();
    let host = name.to_owned();
    // The thread of a look-up that timed out ends with the program.
    thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs();
        drop(sender.send(found.map(Iterator::collect::<Vec<_>>)));
    });
    match receiver.recv_timeout(LOOKUP_TIMEOUT) {
        Ok(Ok(addresses)) if addresses.is_empty() => Err("the name has no address".to_owned()),
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => Err(format!("the name is not resolved: {error}")),
        Err(_) => Err(format!(
            "the name is not resolved in {} s",
            LOOKUP_TIMEOUT.as_secs()
        )),
    }
}

fn connect(subject: String, address: SocketAddr) -> Finding {
    match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
        Ok(_) => Finding::ok(subject, "accepts connections"),
        Err(error) => Finding::warning(
            subject,
            error.to_string(),
            "start it, or open the firewall; requests for it are answered by other targets, or 503",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity;
    use super::*;
    use proxy_testkit::closed_port;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn a_target_is_tried_once() {
        let target = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed_address = closed_port();
        let open = target.local_addr().unwrap();
        let text = format!(
            "upstreams {{ upstream \"a\" {{ target \"{open}\"; target \"{closed_address}\" }}; \
             upstream \"b\" {{ target \"{open}\" }} }}\n\
             listeners {{ listener \"l\" {{ address \"{open}\" }} }}"
        );
        let model = proxy_config::parse(&text, "test.kdl").unwrap().model;

        let found: Vec<_> = check(&model)
            .into_iter()
            .map(|finding| (finding.severity, finding.subject))
            .collect();

        let expected = [
            (Severity::Warning, "listener l".to_owned()),
            (Severity::Ok, format!("target {open}")),
            (Severity::Warning, format!("target {closed_address}")),
        ];
        assert_eq!(found, expected);
    }

    fn listeners(text: &str) -> Vec<(Severity, String)> {
        let text = format!("listeners {{ {text} }}");
        let model = proxy_config::parse(&text, "test.kdl").unwrap().model;
        let findings = model.listeners.iter().flat_map(listener);
        findings
            .map(|finding| (finding.severity, finding.state))
            .collect()
    }

    #[test]
    fn addresses_are_bound_as_a_listener_binds_them() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();

        // A listener on `[::]` takes no addresses of IPv4.
        let found = listeners(&format!(r#"listener "six" {{ address "[::]:{port}" }}"#));

        let expected = format!("[::]:{port} can be bound");
        assert_eq!(found, [(Severity::Ok, expected)]);
    }

    #[test]
    fn the_udp_port_of_http3_is_checked_too() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let found = listeners(&format!(
            r#"listener "three" {{ address "{address}"; protocol "https"; http3 #true
            tls {{ cert-file "c.pem"; key-file "k.pem" }} }}"#
        ));

        let in_use = format!("UDP port {address} is in use");
        assert_eq!(found.last(), Some(&(Severity::Warning, in_use)));
    }

    #[test]
    fn a_name_without_addresses_is_reported() {
        let problem = look_up("no-such-name.invalid", 80).unwrap_err();

        assert!(problem.contains("not resolved"), "{problem}");
    }
}
