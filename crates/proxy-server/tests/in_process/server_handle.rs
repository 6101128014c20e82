//! The handle itself: connections, addresses, reloads, and several proxies in one process.

use crate::support::{Config, METRICS, Proxy, metric, request};
use proxy_testkit::{End, Gate, RawClient, Reload, Upstream, get};
use std::net::{IpAddr, TcpListener};
use std::os::unix::net::UnixStream;

#[test]
fn no_address_of_the_configuration_is_bound() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let upstream = Upstream::saying("here");

    let proxyd = Config::to(&upstream)
        .at(taken.local_addr().unwrap())
        .start();

    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "here");
    taken.set_nonblocking(true).unwrap();
    assert!(taken.accept().is_err(), "no connection came by the address");
}

#[test]
fn the_client_s_address_is_the_one_that_the_program_names() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).start();

    for address in ["192.0.2.7", "2001:db8::7"] {
        let peer: IpAddr = address.parse().unwrap();
        let response = proxyd.connect_from(peer).ask(get("/", &[]));

        let forwarded = upstream.requests().pop().unwrap().fields;
        assert_eq!(forwarded.get("x-forwarded-for"), Some(address));
        let record = proxyd.access_record(&response.correlation_id());
        assert_eq!(record.text("client_ip"), address);
    }
}

#[test]
fn a_unix_socket_is_served_like_a_tcp_connection() {
    let upstream = Upstream::saying("here");
    let proxyd = Config::to(&upstream).start();
    let (client, server) = UnixStream::pair().unwrap();

    proxyd.accept(0, server);

    let mut client = RawClient::over_unix(client);
    assert_eq!(client.ask(get("/", &[])).text(), "here");
    assert_eq!(client.ask(get("/", &[])).text(), "here");
}

#[test]
fn a_client_that_has_closed_its_connection_has_its_place_for_the_next() {
    let upstream = Upstream::saying("here");
    let limit = "limits { max-connections-per-client 1 }";
    let proxyd = Config::to(&upstream).top(limit).start();

    for _ in 0..50 {
        let response = proxyd.connect().ask(get("/", &[]));
        assert_eq!((response.status, response.text().as_str()), (200, "here"));
    }
}

#[test]
fn a_connection_for_a_listener_that_is_not_there_is_closed() {
    let upstream = Upstream::saying("here");
    let proxyd = Config::to(&upstream).start();

    assert_eq!(proxyd.connect_to(1).end(), End::Closed);
    assert_eq!(proxyd.connect_to(0).ask(get("/", &[])).text(), "here");
}

#[test]
fn a_configuration_that_is_refused_changes_nothing() {
    let upstream = Upstream::saying("here");
    let proxyd = Config::to(&upstream).start();

    let refused = proxyd.reload("routes { route \"all\" { upstrem \"u\" } }");

    assert!(matches!(&refused, Reload::Refused(why) if why.contains("upstrem")));
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "here");
}

#[test]
fn a_reload_serves_connections_from_then_on() {
    let (old, new) = (Upstream::saying("old"), Upstream::saying("new"));
    let proxyd = Config::to(&old).start();
    let mut before = proxyd.connect();
    assert_eq!(before.ask(get("/", &[])).text(), "old");

    assert_eq!(proxyd.reload(&Config::to(&new).kdl()), Reload::Applied);

    assert_eq!(before.ask(get("/", &[])).text(), "new");
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "new");
}

#[test]
fn a_drain_lets_a_request_in_flight_end_and_closes_idle_connections() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let proxyd = Config::to(&upstream).start();
    let (mut busy, mut idle) = (proxyd.connect(), proxyd.connect());
    busy.send(get("/", &[]));
    upstream.wait_for_requests(1);

    proxyd.drain();

    assert_eq!(idle.end(), End::Closed);
    gate.open();
    assert_eq!(busy.response().status, 200);
    assert_eq!(busy.end(), End::Closed);
}

#[test]
fn proxies_in_one_process_share_neither_counts_nor_connections() {
    let upstream = Upstream::saying("");
    let start = || -> Proxy { Config::to(&upstream).route("metrics", METRICS).start() };
    let (one, other) = (start(), start());

    for _ in 0..3 {
        assert_eq!(one.connect().ask(request("GET /", "", "")).status, 200);
    }

    let count = "proxy_requests_total{";
    assert!(metric(&mut one.connect(), count) > 2.5);
    drop(one);
    let mut client = other.connect();
    assert_eq!(client.ask(request("GET /", "", "")).status, 200);
    assert!(metric(&mut client, count) < 1.5);
}
