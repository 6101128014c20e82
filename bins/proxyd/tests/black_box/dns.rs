//! Targets by name, resolved by a real name server.

use crate::support::{Config, admin, reason, refusal, target};
use proxy_testkit::{
    DnsReply, DnsServer, Proxyd, RawClient, Record, Reload, SilentListener, Upstream, get, ok,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

/// Returns the loopback address with this number, from 1.
fn ip(number: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, number).into()
}

/// Starts upstreams at `127.0.0.1`, `127.0.0.2` and so on, with the same port. Each responds with
/// its address.
fn upstreams<const N: usize>() -> ([Upstream; N], u16) {
    let scripts = |listeners: [TcpListener; N]| {
        listeners.map(|listener| {
            let reported = listener.local_addr().unwrap().ip().to_string();
            Upstream::start_on(listener, move |served| {
                while served.request().is_some() {
                    served.send(ok(&reported));
                }
            })
        })
    };
    loop {
        let first = TcpListener::bind((ip(1), 0)).unwrap();
        let port = first.local_addr().unwrap().port();
        let others = (2..).take(N - 1);
        let others = others.map(|number| TcpListener::bind((ip(number), port)));
        let Ok(others) = others.collect::<Result<Vec<_>, _>>() else {
            continue;
        };
        let all: Vec<_> = std::iter::once(first).chain(others).collect();
        return (scripts(all.try_into().unwrap()), port);
    }
}

/// Creates a configuration with the name server `server`, and times of one second.
fn config(server: &DnsServer, upstream: &str) -> Config {
    let address = server.address();
    Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", upstream)
        .top(&format!(
            "admin {{ address \"127.0.0.1:0\" }}\n\
             system {{ dns {{ name-servers \"{address}\"; timeout-secs 1; min-ttl-secs 1; max-ttl-secs 1 }} }}"
        ))
}

fn targets(proxyd: &Proxyd) -> Vec<Value> {
    let document = admin(proxyd, "/admin/upstreams");
    document["upstreams"]["u"]["targets"]
        .as_array()
        .unwrap()
        .clone()
}

fn addresses(proxyd: &Proxyd) -> Vec<String> {
    let targets = targets(proxyd);
    let address = |target: &Value| target["address"].as_str().unwrap().to_owned();
    targets.iter().map(address).collect()
}

/// Sends requests until the targets are as expected, at least after each look-up.
#[track_caller]
fn wait_for_targets(proxyd: &Proxyd, server: &DnsServer, wanted: &[String]) {
    for _ in 0..20 {
        if addresses(proxyd) == wanted {
            return;
        }
        server.wait_for_queries(1);
    }
    panic!("{:?} is not {wanted:?}", addresses(proxyd));
}

/// Returns the upstreams that respond to 12 requests.
fn answering_upstreams(client: &mut RawClient) -> BTreeSet<String> {
    (0..12).map(|_| client.ask(get("/", &[])).text()).collect()
}

/// Waits for this response. The worker receives new targets later than the admin interface.
#[track_caller]
fn wait_for_answer(client: &mut RawClient, wanted: &str) {
    assert!((0..10_000).any(|_| client.ask(get("/", &[])).text() == wanted));
}

fn address_at(number: u8, port: u16) -> String {
    format!("127.0.0.{number}:{port}")
}

#[test]
fn each_address_of_a_name_is_a_target_of_its_own() {
    let (upstreams, port) = upstreams::<3>();
    let server = DnsServer::start();
    server.set_addresses("app.test", &[ip(1), ip(2), ip(3)]);
    let proxyd = config(&server, &format!("target \"app.test:{port}\"")).start();
    let mut client = proxyd.connect();

    for _ in 0..12 {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }

    let shares = upstreams.each_ref().map(|one| one.requests().len());
    assert_eq!(shares, [4, 4, 4]);
    let listed = targets(&proxyd);
    let names: Vec<_> = listed.iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, [(); 3].map(|()| format!("app.test:{port}")));
    let expected = [1, 2, 3].map(|number| address_at(number, port));
    assert_eq!(addresses(&proxyd), expected);
    let page = metrics(&proxyd);
    let counted = format!("proxy_dns_addresses{{name=\"app.test:{port}\"}} 3");
    assert!(page.contains(&counted), "{page}");
    let is_due = |target: &Value| {
        let due = target["next_lookup"].as_str();
        due.is_some_and(|due| due.ends_with('Z') && "2020" <= due)
    };
    assert!(listed.iter().all(is_due), "{listed:?}");
}

fn metrics(proxyd: &Proxyd) -> String {
    let mut client = RawClient::connect(proxyd.admin_address());
    client
        .ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .text()
}

#[test]
fn a_changed_answer_keeps_the_connections_of_addresses_that_stay() {
    let (upstreams, port) = upstreams::<3>();
    let server = DnsServer::start();
    server.set_addresses("app.test", &[ip(1), ip(2)]);
    let proxyd = config(&server, &format!("target \"app.test:{port}\"")).start();
    let mut client = proxyd.connect();
    assert_eq!(answering_upstreams(&mut client).len(), 2);

    server.set_addresses("app.test", &[ip(3), ip(2)]);
    wait_for_targets(
        &proxyd,
        &server,
        &[address_at(2, port), address_at(3, port)],
    );
    upstreams[0].wait_for_ends(1);

    let answering = answering_upstreams(&mut client);
    assert_eq!(
        answering,
        ["127.0.0.2", "127.0.0.3"].map(str::to_owned).into()
    );
    let connections = upstreams.each_ref().map(Upstream::connections);
    assert_eq!(connections, [1, 1, 1]);
    let targets = targets(&proxyd);
    assert!(
        targets[0]["total_requests"].as_u64() > Some(6),
        "{targets:?}"
    );
}

#[test]
fn the_last_good_answer_is_kept_when_name_servers_fail() {
    let (_upstreams, port) = upstreams::<2>();
    let server = DnsServer::start();
    server.set_addresses("app.test", &[ip(1), ip(2)]);
    let proxyd = config(&server, &format!("target \"app.test:{port}\"")).start();
    let mut client = proxyd.connect();
    let failures = |proxyd: &Proxyd| {
        let page = metrics(proxyd);
        let name =
            format!("proxy_dns_lookups_total{{name=\"app.test:{port}\",result=\"failure\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&name));
        line.map_or(0, |count| count.parse::<u32>().unwrap())
    };

    let mut before = 0;
    for reply in [
        Some(DnsReply::Failure),
        Some(DnsReply::Silence),
        Some(DnsReply::Garbage),
        Some(DnsReply::Addresses(1, Vec::new())),
        None,
    ] {
        let error_message = format!("{reply:?}");
        match reply {
            Some(reply) => server.set("app.test", reply),
            None => server.remove("app.test"),
        }
        let failed = (0..100).any(|_| {
            server.wait_for_queries(1);
            before < failures(&proxyd)
        });
        assert!(failed, "{error_message}");
        before = failures(&proxyd);
        assert_eq!(answering_upstreams(&mut client).len(), 2, "{error_message}");
    }
    assert!(targets(&proxyd).iter().all(|one| one["healthy"] == true));
}

#[test]
fn a_name_that_never_had_an_address_is_answered_503_until_it_has_one() {
    let (_upstreams, port) = upstreams::<1>();
    let server = DnsServer::start();
    let proxyd = config(&server, &format!("target \"app.test:{port}\"")).start();
    let mut client = proxyd.connect();

    let refused = client.ask(get("/", &[]));
    refusal(&refused, 503, "NO_HEALTHY_UPSTREAM");
    assert_eq!(reason(&proxyd, &refused), "dns_failed");
    let [unhealthy] = &targets(&proxyd)[..] else {
        panic!("one target stands for the name");
    };
    assert_eq!(unhealthy["address"], format!("app.test:{port}"));
    assert_eq!(unhealthy["causes"], serde_json::json!(["dns"]));
    let error = unhealthy["last_error"].as_str().unwrap();
    assert!(error.contains("cannot resolve app.test"), "{error}");

    server.set_addresses("app.test", &[ip(1)]);
    wait_for_targets(&proxyd, &server, &[address_at(1, port)]);
    wait_for_answer(&mut client, "127.0.0.1");
}

#[test]
fn queries_to_a_silent_name_server_time_out() {
    let (_upstreams, port) = upstreams::<1>();
    let server = DnsServer::start();
    server.set("app.test", DnsReply::Silence);
    let proxyd = config(&server, &format!("target \"app.test:{port}\"")).start();

    let error = targets(&proxyd)[0]["last_error"].clone();

    assert!(
        error.as_str().unwrap().contains("no answer within 1s"),
        "{error}"
    );
}

#[test]
fn a_name_server_that_drops_queries_for_ipv6_gives_the_ipv4_addresses() {
    let (_upstreams, port) = upstreams::<2>();
    let server = DnsServer::start();
    server.set("app.test", DnsReply::OnlyIpv4(vec![ip(1)]));
    let proxyd = config(&server, &format!("target \"app.test:{port}\"")).start();
    let mut client = proxyd.connect();

    assert_eq!(client.ask(get("/", &[])).text(), "127.0.0.1");

    // Answers with known addresses do not count as failures.
    let looked_up = |result: &str| {
        let page = metrics(&proxyd);
        let start =
            format!("proxy_dns_lookups_total{{name=\"app.test:{port}\",result=\"{result}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&start));
        line.map_or(0, |count| count.parse::<u32>().unwrap())
    };
    while looked_up("success") < 2 {
        server.wait_for_queries(1);
    }
    assert_eq!(looked_up("failure"), 0);
    server.set("app.test", DnsReply::OnlyIpv4(vec![ip(2)]));
    wait_for_targets(&proxyd, &server, &[address_at(2, port)]);
}

#[test]
fn datagrams_that_answer_no_query_are_ignored() {
    let (_upstreams, port) = upstreams::<2>();
    let server = DnsServer::start();
    server.set("app.test", DnsReply::AfterForgeries(ip(2), ip(1)));
    let proxyd = config(&server, &format!("target \"app.test:{port}\"")).start();
    let mut client = proxyd.connect();

    assert_eq!(client.ask(get("/", &[])).text(), "127.0.0.1");
    server.wait_for_queries(4);
    assert_eq!(addresses(&proxyd), [address_at(1, port)]);
    let page = metrics(&proxyd);
    let failures =
        format!("proxy_dns_lookups_total{{name=\"app.test:{port}\",result=\"failure\"}} ");
    let failed = page.lines().find_map(|line| line.strip_prefix(&*failures));
    assert!(matches!(failed, None | Some("0")), "{failed:?}");
}

#[test]
fn names_of_containers_may_have_underscores() {
    let (_upstreams, port) = upstreams::<2>();
    let server = DnsServer::start();
    server.set_addresses("my_app", &[ip(1)]);
    let services = vec![(1, 1, port, "back_end.test".to_owned())];
    server.set("_http._tcp.my_app", DnsReply::Services(1, services));
    server.set_addresses("back_end.test", &[ip(2)]);
    let settings = format!("target \"my_app:{port}\"; target \"_http._tcp.my_app\"");
    let proxyd = config(&server, &settings).start();
    let mut client = proxyd.connect();

    let answering = answering_upstreams(&mut client);

    let both = ["127.0.0.1", "127.0.0.2"].map(str::to_owned);
    assert_eq!(answering, both.into());
}

#[test]
fn a_truncated_answer_is_asked_for_by_tcp_and_a_huge_one_is_cut() {
    let (_upstreams, port) = upstreams::<1>();
    let server = DnsServer::start();
    let many = (1..=250).chain(1..=250).map(ip);
    let more = (1..=250).map(|last| IpAddr::from([127, 0, 1, last]));
    let all: Vec<IpAddr> = many.chain(more).collect();
    server.set_addresses("app.test", &all);
    let proxyd = config(&server, &format!("target \"app.test:{port}\"")).start();

    assert_eq!(targets(&proxyd).len(), 256);
    let by_tcp = |query: &(&str, String, u16)| query.0 == "tcp";
    assert!(server.queries().iter().any(by_tcp));
    let is_logged = |record: &Record| record.text("message") == "a target has too many addresses";
    drop(proxyd.stderr().find(0, is_logged));
}

#[test]
fn srv_records_give_hosts_ports_and_weights() {
    let (upstreams, port) = upstreams::<2>();
    let spare = Upstream::saying("spare");
    let server = DnsServer::start();
    let service = |priority, weight, port, host: &str| (priority, weight, port, host.to_owned());
    let records = vec![
        service(10, 30, port, "one.app.test"),
        service(10, 10, port, "two.app.test"),
        service(20, 10, spare.address().port(), "one.app.test"),
    ];
    server.set("_http._tcp.app.test", DnsReply::Services(1, records));
    server.set_addresses("one.app.test", &[ip(1)]);
    server.set_addresses("two.app.test", &[ip(2)]);
    let settings = r#"target "_http._tcp.app.test"; load-balancing "weighted""#;
    let proxyd = config(&server, settings).start();
    let mut client = proxyd.connect();

    for _ in 0..40 {
        assert_eq!(client.ask(get("/", &[])).status, 200);
    }

    let shares = upstreams.each_ref().map(|one| one.requests().len());
    assert_eq!((shares, spare.requests().len()), ([30, 10], 0));
    assert_eq!(targets(&proxyd)[0]["name"], "_http._tcp.app.test");
    let lower = vec![service(20, 10, spare.address().port(), "one.app.test")];
    server.set("_http._tcp.app.test", DnsReply::Services(1, lower));
    wait_for_targets(&proxyd, &server, &[spare.address().to_string()]);
    wait_for_answer(&mut client, "spare");
}

#[test]
fn names_are_looked_up_again_by_their_ttl_within_bounds() {
    let (_upstreams, port) = upstreams::<1>();
    let server = DnsServer::start();
    server.set("long.test", DnsReply::Addresses(86_400, vec![ip(1)]));
    server.set("short.test", DnsReply::Addresses(0, vec![ip(1)]));
    let upstream = format!("target \"long.test:{port}\"; target \"short.test:{port}\"");
    let proxyd = Config::new()
        .route("all", r#"upstream "u""#)
        .upstream("u", &upstream)
        .top(&format!(
            "system {{ dns {{ name-servers \"{}\"; min-ttl-secs 1; max-ttl-secs 3 }} }}",
            server.address()
        ))
        .start();

    // Each look-up has two queries, one per address family.
    let count = |wanted: &str| {
        let queries = server.queries();
        queries.iter().filter(|(_, name, _)| name == wanted).count() / 2
    };
    while count("long.test") < 3 {
        server.wait_for_queries(1);
    }
    let short = count("short.test");
    // In six seconds, which are two long intervals.
    assert!((5..=8).contains(&short), "{short}");
    drop(proxyd);
}

#[test]
fn an_address_that_refuses_costs_no_request_of_its_name() {
    let (mut upstreams, port) = upstreams::<3>();
    upstreams[0].stop_accepting();
    upstreams[2].stop_accepting();
    let server = DnsServer::start();
    server.set_addresses("app.test", &[ip(1), ip(2), ip(3)]);
    let settings = format!("target \"app.test:{port}\"; connection-pool {{ max-idle 0 }}");
    let proxyd = config(&server, &settings).start();
    let mut client = proxyd.connect();

    for _ in 0..30 {
        // A method that is not retried automatically.
        let response = client.ask(crate::support::post("/", "x"));
        assert_eq!(response.text(), "127.0.0.2");
    }

    let targets = targets(&proxyd);
    let failed = |position: usize| targets[position]["failed_requests"].as_u64().unwrap();
    assert!(failed(0) > 0 && failed(2) > 0, "{targets:?}");
    assert_eq!(failed(1), 0);
    assert_eq!(targets[1]["total_requests"].as_u64(), Some(30));
}

#[test]
fn a_target_keeps_its_health_while_other_addresses_of_its_name_change() {
    let (_upstreams, port) = upstreams::<2>();
    let server = DnsServer::start();
    // No server listens at the third address.
    server.set_addresses("app.test", &[ip(1), ip(3)]);
    let check =
        r#"health-check type="tcp" { interval-ms 50; timeout-ms 50; unhealthy-threshold 1 }"#;
    let settings = format!("target \"app.test:{port}\"; {check}");
    let proxyd = config(&server, &settings).start();
    let unhealthy = || {
        let listed = targets(&proxyd).into_iter();
        let unhealthy = listed.filter(|one| one["healthy"] == false);
        unhealthy
            .map(|one| (one["address"].clone(), one["unhealthy_since"].clone()))
            .collect::<Vec<_>>()
    };
    while unhealthy().is_empty() {
        std::thread::yield_now();
    }
    let before = unhealthy();
    assert_eq!(before[0].0, address_at(3, port));

    server.set_addresses("app.test", &[ip(1), ip(2), ip(3)]);
    wait_for_targets(
        &proxyd,
        &server,
        &[1, 2, 3].map(|number| address_at(number, port)),
    );

    assert_eq!(unhealthy(), before);
}

#[test]
fn a_reload_keeps_resolved_targets_and_their_connections() {
    let (upstreams, port) = upstreams::<2>();
    let server = DnsServer::start();
    server.set_addresses("app.test", &[ip(1), ip(2)]);
    let config = config(&server, &format!("target \"app.test:{port}\""));
    let proxyd = config.start();
    let mut client = proxyd.connect();
    assert_eq!(answering_upstreams(&mut client).len(), 2);

    let kdl = config
        .route("more", r#"matches { path "/x" }; upstream "u""#)
        .kdl();
    assert!(matches!(proxyd.reload(&kdl), Reload::Applied));

    assert_eq!(answering_upstreams(&mut client).len(), 2);
    let connections = upstreams.each_ref().map(Upstream::connections);
    assert_eq!(connections, [1, 1]);
}

#[test]
fn a_name_is_looked_up_again_only_while_the_active_configuration_has_it() {
    let server = DnsServer::start();
    for name in ["first.test", "refused.test", "second.test"] {
        server.set_addresses(name, &[ip(1)]);
    }
    let with = |name: &str| config(&server, &format!("target \"{name}:80\""));
    let count = |wanted: &str| {
        let queries = server.queries();
        queries.iter().filter(|(_, name, _)| name == wanted).count()
    };
    let proxyd = with("first.test").start();

    // The name is resolved first. Binding the listener fails then.
    let taken = TcpListener::bind((ip(1), 0)).unwrap();
    let refused = with("refused.test").at(taken.local_addr().unwrap());
    let refused = proxyd.reload(&refused.kdl());
    assert!(matches!(refused, Reload::Refused(_)));
    let (first, refused) = (count("first.test"), count("refused.test"));
    assert!(refused > 0);
    while count("first.test") < first + 4 {
        server.wait_for_queries(1);
    }
    let applied = proxyd.reload(&with("second.test").kdl());
    assert!(matches!(applied, Reload::Applied));
    let wait_for_second = || {
        let second = count("second.test");
        while count("second.test") < second + 2 {
            server.wait_for_queries(1);
        }
    };
    // By then, the pending query for the first name counts.
    wait_for_second();
    let first = count("first.test");
    wait_for_second();
    wait_for_second();

    assert_eq!(count("refused.test"), refused);
    assert_eq!(count("first.test"), first);
}

#[test]
fn a_name_in_the_hosts_file_needs_no_name_server() {
    let upstream = Upstream::saying("here");
    let server = DnsServer::start();
    let named = target(&upstream).replace("127.0.0.1", "localhost");
    let proxyd = config(&server, &named).start();

    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "here");
    assert!(server.queries().is_empty(), "{:?}", server.queries());
}

#[test]
fn a_new_address_of_a_drained_name_is_drained_too() {
    let (upstreams, port) = upstreams::<3>();
    let other = Upstream::saying("other");
    let server = DnsServer::start();
    server.set_addresses("app.test", &[ip(1)]);
    let name = format!("app.test:{port}");
    let settings = format!("target \"{name}\"; {}", target(&other));
    let proxyd = config(&server, &settings).start();
    let other_address = other.address().to_string();
    wait_for_targets(
        &proxyd,
        &server,
        &[address_at(1, port), other_address.clone()],
    );
    let change = r#"{"draining": true}"#;
    let response = RawClient::connect(proxyd.admin_address()).ask(format!(
        "PATCH /admin/upstreams/u/targets/{name} HTTP/1.1\r\nHost: localhost\r\n\
         Content-Length: {}\r\n\r\n{change}",
        change.len()
    ));
    assert_eq!(response.status, 200, "{}", response.text());

    // First an additional address, then one that replaces both.
    for numbers in [&[1, 2][..], &[3]] {
        let addresses: Vec<_> = numbers.iter().map(|number| ip(*number)).collect();
        server.set_addresses("app.test", &addresses);
        let mut expected: Vec<_> = numbers
            .iter()
            .map(|number| address_at(*number, port))
            .collect();
        expected.push(other_address.clone());
        wait_for_targets(&proxyd, &server, &expected);

        for listed in targets(&proxyd).iter().filter(|one| one["name"] == *name) {
            assert_eq!(listed["override"]["draining"], true, "{listed}");
        }
    }
    let before = upstreams[2].requests().len();
    let answers = answering_upstreams(&mut proxyd.connect());
    assert_eq!(answers, BTreeSet::from(["other".to_owned()]));
    assert_eq!(upstreams[2].requests().len(), before);
}

#[test]
fn a_silent_address_delays_a_request_of_its_name_by_a_quarter_of_a_second() {
    let (silent, upstream) = loop {
        let silent = SilentListener::start_at(ip(1), 0).unwrap();
        let port = silent.address().port();
        if let Ok(listener) = TcpListener::bind((ip(2), port)) {
            let answer = |served: &mut proxy_testkit::Served| {
                while served.request().is_some() {
                    served.send(ok("answered"));
                }
            };
            break (silent, Upstream::start_on(listener, answer));
        }
    };
    let server = DnsServer::start();
    server.set_addresses("app.test", &[ip(1), ip(2)]);
    let name = format!("app.test:{}", silent.address().port());
    let settings = format!("target \"{name}\"; timeouts {{ connect-secs 60 }}");
    let proxyd = config(&server, &settings).start();

    // Each of the two addresses is the first choice for some requests.
    for _ in 0..4 {
        let mut client = proxyd.connect();
        let response = client.ask(get("/", &[("Connection", "close")]));
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, "answered")
        );
    }
    // Without parallel attempts, the requests would have waited for a minute.
    assert!(upstream.requests().len() == 4);
}
