//! Relayed connections: listeners with `protocol "tcp"` and `"tls-passthrough"`.

use crate::support::{BINARY, Binary, admin};
use control_testkit::until;
use proxy_testkit::{End, Launcher, Proxyd, RawClient, Record, Reload, Upstream, closed_port, get};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Starts a server that runs `script` for each connection, on a thread that ends with it.
fn server(script: impl Fn(TcpStream) + Send + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (script, Ok(stream)) = (script.clone(), stream) else {
                return;
            };
            thread::spawn(move || script(stream));
        }
    });
    address
}

/// Starts a server that echoes each byte, and ends after its client.
fn echo() -> SocketAddr {
    server(|mut stream| {
        let mut writer = stream.try_clone().unwrap();
        drop(std::io::copy(&mut stream, &mut writer));
    })
}

/// Starts a server that sends its name, and then echoes each byte.
fn named(name: &'static str) -> SocketAddr {
    server(move |mut stream| {
        drop(stream.write_all(name.as_bytes()));
        let mut writer = stream.try_clone().unwrap();
        drop(std::io::copy(&mut stream, &mut writer));
    })
}

/// Formats a configuration with one listener that relays to `targets`.
fn kdl(listener: &str, route: &str, targets: &[SocketAddr], top: &str) -> String {
    let targets = targets
        .iter()
        .map(|target| format!("target \"{target}\"\n"));
    let targets: String = targets.collect();
    format!(
        "listeners {{ listener \"main\" {{ address \"127.0.0.1:0\"; protocol \"tcp\"\n{listener}\n}} }}\n\
         routes {{ route \"db\" {{ listeners \"main\"; upstream \"db\"\n{route}\n}} }}\n\
         upstreams {{ upstream \"db\" {{ {targets} }} }}\nworker-threads 1\n{top}"
    )
}

fn start(listener: &str, route: &str, targets: &[SocketAddr]) -> Proxyd {
    Binary::launch(&kdl(listener, route, targets, ""))
}

/// Starts a process that relays to `targets`, with these settings of their upstream.
fn start_with_upstream(settings: &str, targets: &[SocketAddr]) -> Proxyd {
    let upstream = "upstream \"db\" {";
    let text = kdl("", "", targets, "");
    assert!(text.contains(upstream));
    Binary::launch(&text.replace(upstream, &format!("{upstream} {settings}\n")))
}

#[track_caller]
fn echoes(client: &mut RawClient, bytes: &[u8]) {
    client.send(bytes);
    assert_eq!(client.exactly(bytes.len()).unwrap(), bytes);
}

/// Waits for the access record of a matching relay.
#[track_caller]
fn record(proxyd: &Proxyd, is_wanted: impl Fn(&Record) -> bool) -> Record {
    proxyd
        .stdout()
        .find(0, |record| is_relay(record) && is_wanted(record))
}

/// Returns true for the access record of a relay.
fn is_relay(record: &Record) -> bool {
    record.has("protocol") && record.text("protocol") == "TCP"
}

/// Relays one connection from its beginning to its end, and returns its access record. No other
/// connection may end meanwhile.
#[track_caller]
fn relay_once(proxyd: &Proxyd) -> Record {
    let since = proxyd.stdout().len();
    let mut client = proxyd.connect();
    client.send("hello");
    client.finish();
    drop(client.rest());
    proxyd.stdout().find(since, is_relay)
}

/// Starts a server that answers health checks of `/up` with `status`, and other connections with
/// its name.
fn checked(name: &'static str, status: &'static str) -> SocketAddr {
    server(move |mut stream| {
        let mut first = [0; 512];
        let length = stream.read(&mut first).unwrap_or_default();
        let answer = if first[..length].starts_with(b"GET /up ") {
            format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")
        } else {
            name.to_owned()
        };
        drop(stream.write_all(answer.as_bytes()));
        drop(std::io::copy(&mut stream, &mut std::io::sink()));
    })
}

/// Returns the access record of a connection that is reset without any data.
#[track_caller]
fn refused(proxyd: &Proxyd, address: SocketAddr, reason: &str) -> Record {
    assert_eq!(RawClient::end_of_new(address), End::Reset);
    record(proxyd, |record| {
        record.has("reason") && record.text("reason") == reason
    })
}

fn explain(proxyd: &Proxyd, arguments: &[&str]) -> String {
    let config = proxyd.config();
    let explained = Command::new(BINARY)
        .args(["explain", "--config"])
        .arg(config)
        .args(arguments)
        .output()
        .unwrap();
    let [out, err] = [explained.stdout, explained.stderr].map(|it| String::from_utf8(it).unwrap());
    out + &err
}

/// Starts a server that returns a connection's PROXY header, text or binary, and then echoes each
/// byte.
fn header_reader() -> SocketAddr {
    server(|mut stream| {
        let mut header = Vec::new();
        // Version 1 is a line. Version 2 begins with a line end, and has 28 bytes for IPv4
        // addresses.
        let is_whole = |header: &[u8]| match header {
            [b'P', ..] => header.ends_with(b"\r\n"),
            _ => header.len() == 28,
        };
        while !is_whole(&header) {
            let mut byte = [0];
            if stream.read_exact(&mut byte).is_err() {
                return;
            }
            header.extend(byte);
        }
        drop(stream.write_all(&header));
        let mut writer = stream.try_clone().unwrap();
        drop(std::io::copy(&mut stream, &mut writer));
    })
}

/// Formats the `PROXY` line of a client's connection.
fn proxy_line(client: &RawClient, proxyd: &Proxyd) -> String {
    let (from_port, to_port) = (client.local().port(), proxyd.address().port());
    format!("PROXY TCP4 127.0.0.1 127.0.0.1 {from_port} {to_port}\r\n")
}

#[test]
fn a_relay_begins_with_the_client_s_address() {
    let proxyd = start_with_upstream("send-proxy \"v1\"", &[header_reader()]);
    for _ in 0..2 {
        let mut client = proxyd.connect();
        let line = proxy_line(&client, &proxyd);
        assert_eq!(client.exactly(line.len()).unwrap(), line.as_bytes());
        echoes(&mut client, b"and then the client's bytes");
    }
}

/// Migrates a file with one relay at port 5432, and starts a process with the result.
fn migrated(from: &str, file: &str, text: &str) -> Proxyd {
    let folder = tempfile::tempdir().unwrap();
    let [theirs, ours] = [file, "out.kdl"].map(|name| folder.path().join(name));
    std::fs::write(&theirs, text).unwrap();
    let mut command = Command::new(BINARY);
    command
        .args(["config", "migrate", "--from", from])
        .arg(&theirs);
    let output = command.arg("--output").arg(&ours).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let written = std::fs::read_to_string(&ours).unwrap();
    // Tests contain the port.
    let settings = written.split("\ntests {").next().unwrap();
    assert!(settings.contains("127.0.0.1:5432"), "{settings}");
    Binary::launch(&settings.replace("127.0.0.1:5432", "127.0.0.1:0"))
}

#[test]
fn relays_of_other_servers_keep_their_proxy_headers() {
    let target = header_reader();
    let nginx = format!(
        "stream {{ upstream db {{ server {target}; }} \
         server {{ listen 127.0.0.1:5432; proxy_protocol on; proxy_pass db; }} }}"
    );
    let haproxy = |word: &str| {
        format!("listen db\nmode tcp\nbind 127.0.0.1:5432\nserver a {target} {word}\n")
    };
    for (from, text, is_binary) in [
        ("nginx", nginx, false),
        ("haproxy", haproxy("send-proxy"), false),
        ("haproxy", haproxy("send-proxy-v2"), true),
    ] {
        let proxyd = migrated(from, "theirs.conf", &text);
        let mut client = proxyd.connect();
        if is_binary {
            let header = client.exactly(28).unwrap();
            let (from, to) = (client.local().port(), proxyd.address().port());
            let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
            assert_eq!(
                header[..16],
                *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c",
                "{text}"
            );
            assert_eq!(header[16..24], [127, 0, 0, 1, 127, 0, 0, 1], "{text}");
            assert_eq!(header[24..], ports, "{text}");
        } else {
            let line = proxy_line(&client, &proxyd);
            assert_eq!(
                client.exactly(line.len()).unwrap(),
                line.as_bytes(),
                "{text}"
            );
        }
        echoes(&mut client, b"and then the client's bytes");
    }
}

#[test]
fn bytes_pass_both_ways_and_the_record_has_their_numbers() {
    let target = echo();
    let proxyd = start("", "", &[target]);
    let mut client = proxyd.connect();

    echoes(&mut client, b"\x00\x01 not http \r\n\r\n");
    echoes(&mut client, b"again");
    client.finish();
    assert_eq!(client.end(), End::Closed);

    let record = record(&proxyd, |_| true);
    assert_eq!(record.text("route"), "db");
    assert_eq!(record.text("upstream"), "db");
    assert_eq!(record.text("target"), target.to_string());
    assert_eq!(record.text("client_ip"), "127.0.0.1");
    assert_eq!(record.number("status"), Some(200.0));
    assert_eq!(record.number("bytes_in"), Some(21.0));
    assert_eq!(record.number("bytes_out"), Some(21.0));
    assert!(!record.has("reason"), "{record:?}");
}

#[test]
fn bytes_of_a_target_that_sends_first_are_relayed() {
    let proxyd = start("", "", &[named("220 ready")]);

    let mut client = proxyd.connect();

    assert_eq!(client.exactly(9).unwrap(), b"220 ready");
    echoes(&mut client, b"EHLO");
}

#[test]
fn each_side_may_end_before_the_other() {
    let target = server(|mut stream| {
        let mut asked = Vec::new();
        stream.read_to_end(&mut asked).unwrap();
        let answer = format!("{} bytes, and then the end", asked.len());
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let proxyd = start("", "", &[target]);
    let mut client = proxyd.connect();
    client.send(b"a question");
    client.finish();
    let (answer, end) = client.rest().unwrap();
    assert_eq!(answer, b"10 bytes, and then the end");
    assert_eq!(end, End::Closed);

    let first = server(|mut stream| {
        stream.write_all(b"bye").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"late");
    });
    let proxyd = start("", "", &[first]);
    let mut client = proxyd.connect();
    assert_eq!(client.rest().unwrap(), (b"bye".to_vec(), End::Closed));
    client.send(b"late");
    client.finish();
    let record = record(&proxyd, |_| true);
    assert_eq!(record.number("bytes_in"), Some(4.0));
    assert_eq!(record.number("bytes_out"), Some(3.0));
}

#[test]
fn long_streams_arrive_as_they_were_sent() {
    const BYTES: usize = 12 * 1024 * 1024 + 13;
    let proxyd = start("", "", &[echo()]);
    let sent: Vec<u8> = (0_u32..)
        .flat_map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes())
        .take(BYTES)
        .collect();
    let mut reader = TcpStream::connect(proxyd.address()).unwrap();
    let mut writer = reader.try_clone().unwrap();
    let copy = sent.clone();
    let writing = thread::spawn(move || {
        writer.write_all(&copy).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });

    let mut received = Vec::new();
    reader.read_to_end(&mut received).unwrap();

    writing.join().unwrap();
    assert!(received == sent, "{} bytes received", received.len());
    let record = record(&proxyd, |_| true);
    assert_eq!(record.number("bytes_out"), Some(12_582_925.0));
}

#[test]
fn a_client_that_reads_nothing_holds_its_target_back() {
    let proxyd = start(
        "",
        "",
        &[server(|mut stream| {
            let block = vec![7; 1024 * 1024];
            while stream.write_all(&block).is_ok() {}
        })],
    );
    let before = proxyd.rss_bytes();
    let mut clients: Vec<_> = (0..4)
        .map(|_| RawClient::connect_with_small_buffer(proxyd.address(), 4096))
        .collect();
    for client in &mut clients {
        assert_eq!(client.exactly(100_000).unwrap(), [7; 100_000]);
    }

    let grown = proxyd.rss_bytes().saturating_sub(before);

    assert!(grown < 16 * 1024 * 1024, "{grown}");
}

#[test]
fn a_target_that_refuses_is_left_for_another_one() {
    let proxyd = start("", "", &[closed_port(), echo(), closed_port()]);

    for _ in 0..6 {
        echoes(&mut proxyd.connect(), b"hello");
    }
    let retried = record(&proxyd, |record| record.has("retries"));
    assert_eq!(retried.text("retry_cause"), "connect-failure");

    let proxyd = start("", "", &[closed_port()]);
    let record = refused(&proxyd, proxyd.address(), "connect_refused");
    assert_eq!(record.number("status"), Some(502.0));
}

#[test]
fn a_target_that_fails_its_health_checks_gets_no_connections() {
    let targets = [checked("ill", "503 Ill"), checked("well", "200 OK")];
    let check = "health-check { type \"http\" { path \"/up\" }\n\
                 interval-ms 800; timeout-ms 800; unhealthy-threshold 2 }";
    let proxyd = start_with_upstream(check, &targets);
    let well = targets[1].to_string();

    // By their turns, every second connection would reach the other target.
    until("the target that is not well is left out", || {
        (0..6).all(|_| relay_once(&proxyd).text("target") == well)
    });
}

#[test]
fn a_target_that_refuses_relays_is_ejected() {
    let targets = [closed_port(), echo()];
    let detection = "outlier-detection { consecutive-failures 1; base-ejection-secs 60 }";
    let proxyd = start_with_upstream(detection, &targets);

    until("the closed port is ejected", || {
        relay_once(&proxyd);
        let document = admin(&proxyd, "/admin/upstreams");
        let causes = &document["upstreams"]["db"]["targets"][0]["causes"];
        causes.to_string().contains("ejection")
    });
    for _ in 0..6 {
        let record = relay_once(&proxyd);
        assert_eq!(record.text("target"), targets[1].to_string());
        assert!(!record.has("retries"), "{record:?}");
    }
}

#[test]
fn open_relays_count_for_least_connections() {
    let targets = [named("a"), named("b")];
    let proxyd = start_with_upstream("load-balancing \"least_connections\"", &targets);
    let mut open = proxyd.connect();
    let is_first = open.exactly(1).unwrap() == b"a";
    let other = targets[usize::from(is_first)].to_string();

    for _ in 0..6 {
        assert_eq!(relay_once(&proxyd).text("target"), other);
    }
    echoes(&mut open, b"still here");
}

#[test]
fn a_breaker_opens_after_refused_connects() {
    let breaker = "circuit-breaker { failure-threshold 2 }";
    let proxyd = start("", breaker, &[closed_port()]);

    for _ in 0..2 {
        assert_eq!(RawClient::end_of_new(proxyd.address()), End::Reset);
    }

    let record = refused(&proxyd, proxyd.address(), "breaker_open");
    assert_eq!(record.number("status"), Some(503.0));
}

#[test]
fn networks_and_rates_refuse_connections() {
    let target = echo();
    let proxyd = start(r#"deny "127.0.0.0/8""#, "", &[target]);
    let record = refused(&proxyd, proxyd.address(), "access_denied");
    assert_eq!(record.number("status"), Some(403.0));
    let proxyd = start("", r#"allow "10.0.0.0/8""#, &[target]);
    refused(&proxyd, proxyd.address(), "access_denied");
    let rate = "rate-limit { requests-per-second 1; burst 1 }";
    let proxyd = start("", rate, &[target]);
    echoes(&mut proxyd.connect(), b"one");
    refused(&proxyd, proxyd.address(), "policy_rate_limit");
}

#[test]
fn a_proxy_header_names_the_client() {
    let listener = "proxy-protocol #true; trusted-proxies \"127.0.0.0/8\"\ndeny \"192.0.2.1\"";
    let proxyd = start(listener, "", &[echo()]);

    let mut client = proxyd.connect();
    client.send("PROXY TCP4 192.0.2.2 127.0.0.1 1 2\r\nhello");
    assert_eq!(client.exactly(5).unwrap(), b"hello");
    let mut denied = proxyd.connect();
    denied.send("PROXY TCP4 192.0.2.1 127.0.0.1 1 2\r\n");
    assert_eq!(denied.end(), End::Reset);
    let mut without = proxyd.connect();
    without.send("hello, no header\r\n");
    assert_eq!(without.end(), End::Reset);
    let mut admin = RawClient::connect(proxyd.admin_address());
    let ask = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    while !admin
        .ask(ask)
        .text()
        .contains("\nproxy_proxy_headers_failed_total 1\n")
    {}

    drop(client);
    record(&proxyd, |record| record.text("client_ip") == "192.0.2.2");
}

#[test]
fn connections_of_a_client_are_limited() {
    let limits = "limits { max-connections-per-client 1 }";
    let proxyd = Binary::launch(&kdl("", "", &[echo()], limits));
    let mut first = proxyd.connect();
    echoes(&mut first, b"first");

    let end = RawClient::end_of_new(proxyd.address());

    assert!(matches!(end, End::Closed | End::Reset), "{end:?}");
    echoes(&mut first, b"still");
}

#[test]
fn a_silent_relay_ends_at_its_idle_time() {
    let proxyd = start("", "timeouts { idle-ms 200 }", &[echo()]);
    let mut client = proxyd.connect();
    echoes(&mut client, b"hello");

    assert_eq!(client.end(), End::Reset);
    let record = record(&proxyd, |record| record.has("reason"));
    assert_eq!(record.number("bytes_in"), Some(5.0));
}

#[test]
fn a_reload_leaves_relays_alone_and_leads_new_ones_elsewhere() {
    let proxyd = start("", "", &[named("old")]);
    let mut client = proxyd.connect();
    assert_eq!(client.exactly(3).unwrap(), b"old");

    let reloaded = proxyd.reload(&kdl("", "", &[named("new")], ""));

    assert_eq!(reloaded, Reload::Applied);
    echoes(&mut client, b"still here");
    assert_eq!(proxyd.connect().exactly(3).unwrap(), b"new");
}

#[test]
fn a_relay_outlives_an_upgrade() {
    let mut proxyd = start("", "", &[echo()]);
    let mut client = proxyd.connect();
    echoes(&mut client, b"before");

    drop(proxyd.upgrade());

    echoes(&mut proxyd.connect(), b"the successor");
    echoes(&mut client, b"after");
    drop(client);
    proxyd.wait_for_former();
}

#[test]
fn a_drain_waits_for_relays() {
    let mut proxyd = start("", "", &[echo()]);
    let mut client = proxyd.connect();
    echoes(&mut client, b"before");

    proxyd.terminate();
    let drains = |record: &Record| record.text("message").contains("drain");
    assert!(proxyd.stderr().try_find(0, drains).is_some());
    echoes(&mut client, b"while it drains");
    drop(client);

    assert!(proxyd.wait().success());
}

#[test]
fn a_drain_ends_relays_at_its_end() {
    let system = "system { graceful-shutdown-timeout-secs 1 }";
    let proxyd = Binary::launch(&kdl("", "", &[echo()], system));
    let mut client = proxyd.connect();
    echoes(&mut client, b"before");

    proxyd.terminate();

    assert!(matches!(client.end(), End::Reset | End::Closed));
    assert!(proxyd.has_ended_within(Duration::from_secs(30)));
}

#[test]
fn routes_for_requests_take_no_connections() {
    let upstream = Upstream::saying("http");
    let kdl = format!(
        "listeners {{\nlistener \"web\" {{ address \"127.0.0.1:0\" }}\n\
         listener \"raw\" {{ address \"127.0.0.1:0\"; protocol \"tcp\"; deny \"10.0.0.1\" }}\n}}\n\
         routes {{\nroute \"all\" {{ upstream \"web\"; priority 900 }}\n\
         route \"raw\" {{ listeners \"raw\"; upstream \"raw\" }}\n}}\n\
         upstreams {{\nupstream \"web\" {{ target \"{}\" }}\nupstream \"raw\" {{ target \"{}\" }}\n}}\n\
         tests {{\n\
         test \"raw\" {{ request \"TCP\" \"tcp://127.0.0.1\"; expect {{ route \"raw\"; upstream \"raw\" }} }}\n\
         test \"denied\" {{ request \"TCP\" \"tcp://127.0.0.1\"; client-ip \"10.0.0.1\"; \
         expect {{ reason \"access_denied\" }} }}\n\
         test \"web\" {{ request \"GET\" \"/\"; expect {{ route \"all\" }} }}\n}}\n",
        upstream.address(),
        named("raw"),
    );
    let proxyd = Binary::launch(&kdl);
    let [web, raw] = proxyd.addresses() else {
        panic!("{:?}", proxyd.addresses());
    };

    let mut client = RawClient::connect(*raw);
    assert_eq!(client.exactly(3).unwrap(), b"raw");
    echoes(&mut client, &get("/", &[]));
    assert_eq!(RawClient::connect(*web).ask(get("/", &[])).status, 200);

    let explained = explain(&proxyd, &["TCP", "tcp://localhost:1"]);
    assert!(explained.contains("route     raw ("), "{explained}");
    assert!(!explained.contains("path   "), "{explained}");
    let explained = explain(&proxyd, &["GET", "http://localhost/x"]);
    assert!(explained.contains("route     all ("), "{explained}");
    let explained = explain(&proxyd, &["--listener", "raw", "GET", "/"]);
    assert!(
        explained.contains("write `tcp://address:port`"),
        "{explained}"
    );
}
