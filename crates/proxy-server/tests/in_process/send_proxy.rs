//! The PROXY protocol header in front of requests to targets.

use crate::support::{Config, Proxy};
use proxy_testkit::{RawClient, Upstream, get, ok};
use std::net::{IpAddr, Ipv4Addr};

const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));
const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 8));

/// A target that reads a line of version 1, and answers each request with it and the number of its
/// connection.
fn target_of_version_1() -> Upstream {
    Upstream::start(|served| {
        let Ok(line) = served.line() else {
            return;
        };
        let line = String::from_utf8(line).unwrap();
        while served.request().is_some() {
            let text = format!("{} {line}", served.number());
            served.send(ok(text));
        }
    })
}

/// A target like [`target_of_version_1`], for version 2: it answers with the command, the family
/// and the bytes of the addresses in hexadecimal.
fn target_of_version_2() -> Upstream {
    Upstream::start(|served| {
        let Ok(fixed) = served.exactly(16) else {
            return;
        };
        assert_eq!(fixed[..12], *b"\r\n\r\n\0\r\nQUIT\n");
        let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
        let rest = served.exactly(length).unwrap();
        let hex: String = [&fixed[12..14], &rest]
            .concat()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        while served.request().is_some() {
            let text = format!("{} {hex}", served.number());
            served.send(ok(text));
        }
    })
}

fn to(upstream: &Upstream, settings: &str, listener: &str) -> Proxy {
    let target = upstream.address();
    Config::new()
        .listener(listener)
        .route("all", "upstream \"u\"")
        .upstream("u", &format!("target \"{target}\"; {settings}"))
        .start()
}

/// The number of the target's connection, and the addresses and ports of its header without the
/// client's destination port, which differs between clients.
fn seen(client: &mut RawClient, fields: &[(&str, &str)]) -> (String, String) {
    let text = client.ask(get("/", fields)).text();
    let (number, line) = text.split_once(' ').unwrap();
    let (known, port) = line.rsplit_once(' ').unwrap();
    assert_ne!(port.parse::<u16>().unwrap(), 0);
    (number.to_owned(), known.to_owned())
}

#[test]
fn a_target_gets_the_client_s_address_before_the_request() {
    let upstream = target_of_version_1();
    let proxyd = to(&upstream, "send-proxy \"v1\"", "");
    let mut one = proxyd.connect_from(ONE);
    let mut other = proxyd.connect_from(OTHER);

    let (first, line) = seen(&mut one, &[]);
    assert_eq!(line, "PROXY TCP4 192.0.2.7 127.0.0.1 40000");
    let (second, line) = seen(&mut other, &[]);
    assert_eq!(line, "PROXY TCP4 192.0.2.8 127.0.0.1 40000");
    assert_ne!(
        first, second,
        "an idle connection of another client is not used"
    );

    // Each client keeps its connection.
    for _ in 0..3 {
        assert_eq!(seen(&mut one, &[]).0, first);
        assert_eq!(seen(&mut other, &[]).0, second);
    }
}

#[test]
fn version_2_has_the_same_addresses_in_its_bytes() {
    let upstream = target_of_version_2();
    let proxyd = to(&upstream, "send-proxy \"v2\"", "");

    let four = proxyd.connect_from(ONE).ask(get("/", &[])).text();
    let (_, hex) = four.split_once(' ').unwrap();
    // PROXY, TCP over IPv4; the client, this host, and the client's port.
    assert_eq!(hex[..24], *"2111c00002077f0000019c40", "{hex}");
    assert_eq!(hex.len(), 2 * (2 + 12));

    let client = "2001:db8::7".parse().unwrap();
    let six = proxyd.connect_from(client).ask(get("/", &[])).text();
    let (_, hex) = six.split_once(' ').unwrap();
    let source = "20010db8000000000000000000000007";
    let mapped = "00000000000000000000ffff7f000001";
    assert_eq!(hex[..72], *format!("2121{source}{mapped}9c40"), "{hex}");
}

#[test]
fn clients_behind_one_trusted_proxy_have_a_connection_each() {
    let upstream = target_of_version_1();
    let trusted = "trusted-proxies \"192.0.2.0/24\"";
    let proxyd = to(&upstream, "send-proxy \"v1\"", trusted);
    let mut client = proxyd.connect_from(ONE);
    let from = |address| [("X-Forwarded-For", address)];

    let (first, line) = seen(&mut client, &from("203.0.113.1"));
    // The port of a client behind another proxy is not known.
    assert_eq!(line, "PROXY TCP4 203.0.113.1 127.0.0.1 0");
    let (second, line) = seen(&mut client, &from("203.0.113.2"));
    assert_eq!(line, "PROXY TCP4 203.0.113.2 127.0.0.1 0");
    assert_ne!(first, second);
    assert_eq!(seen(&mut client, &from("203.0.113.1")).0, first);
}

#[test]
fn a_client_waits_for_a_connection_of_its_own() {
    let upstream = target_of_version_1();
    let limits = "send-proxy \"v1\"; connection-pool { max-connections 1 }";
    let proxyd = to(&upstream, limits, "");
    let (mut one, mut other) = (proxyd.connect_from(ONE), proxyd.connect_from(OTHER));

    for _ in 0..2 {
        assert_eq!(
            seen(&mut one, &[]).1,
            "PROXY TCP4 192.0.2.7 127.0.0.1 40000"
        );
        assert_eq!(
            seen(&mut other, &[]).1,
            "PROXY TCP4 192.0.2.8 127.0.0.1 40000"
        );
    }
}

#[test]
fn the_newest_client_keeps_its_connection_in_a_full_pool() {
    let upstream = target_of_version_1();
    let pool = "send-proxy \"v1\"; connection-pool { max-idle 1 }";
    let proxyd = to(&upstream, pool, "");
    seen(&mut proxyd.connect_from(ONE), &[]);

    let mut other = proxyd.connect_from(OTHER);
    let (number, _) = seen(&mut other, &[]);
    assert_eq!(seen(&mut other, &[]).0, number);
}

#[test]
fn a_later_client_connection_gets_a_connection_of_its_own() {
    let upstream = target_of_version_1();
    let proxyd = to(&upstream, "send-proxy \"v1\"", "");
    // Both clients have the same address and port.
    let (first, line) = seen(&mut proxyd.connect_from(ONE), &[]);
    let (second, again) = seen(&mut proxyd.connect_from(ONE), &[]);
    assert_eq!(line, again);
    assert_ne!(first, second);
}

#[test]
fn a_received_header_names_both_addresses() {
    let upstream = target_of_version_1();
    let listener = "proxy-protocol #true; trusted-proxies \"192.0.2.0/24\"";
    let proxyd = to(&upstream, "send-proxy \"v1\"", listener);
    let received = "PROXY TCP4 203.0.113.1 198.51.100.2 1111 2222\r\n";
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let mut client = proxyd.connect_from(ONE);
        client.send(received);
        let text = client.ask(get("/", &[])).text();
        let (number, line) = text.split_once(' ').unwrap();
        assert_eq!(format!("{line}\r\n"), received);
        numbers.push(number.to_owned());
    }
    // The proxy in front named the same client in both connections.
    assert_eq!(numbers[0], numbers[1]);
}
