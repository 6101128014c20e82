//! Reloads that add, rename and remove targets under load, some of them refused: each request
//! reaches the target of its route.
//!
//! `PROXYD_SOAK_TARGETS="300 40"` performs 300 reloads, with pauses of 40 ms.

use crate::stage::Figures;
use proxy_testkit::{Gate, Proxyd, RawClient, Reload, Served, Upstream, get, ok};
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

const TARGETS: usize = 8;
const CLIENTS: usize = 6;

/// Pause within a slow response: longer than a few reloads.
const SLOW: Duration = Duration::from_millis(300);

/// Tolerance for connections that open and close meanwhile.
const COMING_AND_GOING: usize = 16;

/// Memory that an allocator may keep, in bytes.
const KEPT_BYTES: u64 = 12 << 20;

/// Results of the requests of one client.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    answered: u64,
    /// Requests for which there was no route.
    unrouted: u64,
}

#[test]
fn each_request_reaches_its_own_target_while_reloads_rename_them() {
    let (reloads, pause) = size();
    let upstreams: Vec<Upstream> = (0..TARGETS).map(target).collect();
    let proxyd = Proxyd::start(env!("CARGO_BIN_EXE_proxyd"), &config(&upstreams, 0));
    // Opened and allocated once, for any configuration.
    for number in 1..=TARGETS {
        apply(&proxyd, &config(&upstreams, number));
    }
    let before = figures_at_rest(&proxyd, &upstreams, None);
    let (over, address) = (Gate::new(), proxyd.address());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let over = over.clone();
            thread::spawn(move || ask(address, client, &over))
        })
        .collect();
    let mut refused = 0;
    for number in 0..reloads {
        if let Some(kdl) = unusable(&upstreams, number) {
            let Reload::Refused(_) = proxyd.reload(&kdl) else {
                panic!("reload {number} was to be refused");
            };
            refused += 1;
        } else {
            apply(&proxyd, &config(&upstreams, number));
        }
        over.opens_within(pause);
    }
    over.open();
    let mut sum = Tally::default();
    for client in clients {
        let served = client.join().unwrap();
        sum.answered += served.answered;
        sum.unrouted += served.unrouted;
    }
    let after = figures_at_rest(&proxyd, &upstreams, Some(before));
    print_summary(reloads, refused, sum, [before, after]);
    assert!(sum.answered > 0 && sum.unrouted > 0, "{sum:?}");
    assert!(
        after.files <= before.files + COMING_AND_GOING,
        "{after:?} after {before:?}"
    );
    let grown = after.rss_bytes.saturating_sub(before.rss_bytes);
    assert!(grown <= KEPT_BYTES, "{after:?} after {before:?}");
}

/// Number of reloads, and the pause after each.
fn size() -> (usize, Duration) {
    let text = std::env::var("PROXYD_SOAK_TARGETS").unwrap_or_else(|_| "30 20".to_owned());
    let numbers: Vec<usize> = text.split(' ').map(|word| word.parse().unwrap()).collect();
    let [reloads, millis] = numbers[..] else {
        panic!("two numbers: reloads, milliseconds; not {text}");
    };
    (reloads, Duration::from_millis(millis as u64))
}

/// A target that responds with its name, or with the intended target of a request.
fn target(number: usize) -> Upstream {
    let name = format!("t{number}");
    Upstream::start(move |served| {
        while let Some(request) = served.request() {
            let answer = match request.fields.get("x-target") {
                Some(wanted) if wanted == name => name.clone(),
                wanted => format!("{name} got a request for {wanted:?}"),
            };
            if request.target.ends_with("/slow") {
                answer_slowly(served, &answer);
            } else {
                served.send(ok(answer));
            }
        }
    })
}

fn answer_slowly(served: &mut Served, answer: &str) {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
        answer.len()
    );
    let (first, rest) = answer.split_at(1);
    served.send(head + first);
    Gate::new().opens_within(SLOW);
    served.send(rest);
}

/// Half of the targets, selected by `number`, as are the names of their upstreams.
fn config(upstreams: &[Upstream], number: usize) -> String {
    let (mut routes, mut blocks) = (String::new(), String::new());
    for index in (0..TARGETS).filter(|index| (index + number) % TARGETS < TARGETS / 2) {
        let name = format!("u{index}-{}", (number / 3 + index) % 3);
        let address = upstreams[index].address();
        writeln!(
            routes,
            r#"route "r{index}" {{
                upstream "{name}"
                matches {{ path-prefix "/t{index}" }}
                request-headers {{ set "X-Target" "t{index}" }}
            }}"#
        )
        .unwrap();
        writeln!(
            blocks,
            r#"upstream "{name}" {{
                target "{address}"
                connection-pool {{ idle-timeout-secs 2 }}
            }}"#
        )
        .unwrap();
    }
    format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
        routes {{ {routes} }}
        upstreams {{ {blocks} }}
        system {{ worker-threads 2 }}
        observability {{ access-log {{ enabled #false }} }}
        "#
    )
}

/// For every third number, an invalid configuration: an address in use, or a broken file.
fn unusable(upstreams: &[Upstream], number: usize) -> Option<String> {
    let kdl = config(upstreams, number + 1);
    let taken = upstreams[0].address();
    match number % 6 {
        2 => Some(format!(
            "{kdl}\nlisteners {{ listener \"taken\" {{ address \"{taken}\" }} }}"
        )),
        5 => Some(kdl + "routes {"),
        _ => None,
    }
}

#[track_caller]
fn apply(proxyd: &Proxyd, kdl: &str) {
    assert_eq!(proxyd.reload(kdl), Reload::Applied);
}

/// Sends requests to one target after the other until `over`.
fn ask(address: SocketAddr, client: usize, over: &Gate) -> Tally {
    let mut served = Tally::default();
    let mut connection = RawClient::connect(address);
    for number in client.. {
        let name = format!("t{}", number % TARGETS);
        let more = if client == 0 { "/slow" } else { "" };
        let answer = connection.ask(get(&format!("/{name}{more}"), &[]));
        match answer.status {
            404 => served.unrouted += 1,
            status => {
                assert_eq!((status, answer.text()), (200, name));
                served.answered += 1;
            }
        }
        if answer.fields.get("connection") == Some("close") {
            connection = RawClient::connect(address);
        }
        if over.opens_within(Duration::from_millis(1)) {
            break;
        }
    }
    served
}

/// Resources of the process without clients. Waits until it has at most `expected` files.
fn figures_at_rest(proxyd: &Proxyd, upstreams: &[Upstream], expected: Option<Figures>) -> Figures {
    apply(proxyd, &config(upstreams, 0));
    let never = Gate::new();
    let mut figures = Figures::measure(proxyd);
    for _ in 0..400 {
        if expected.is_some_and(|expected| figures.files <= expected.files) {
            break;
        }
        never.opens_within(Duration::from_millis(if expected.is_some() {
            25
        } else {
            5
        }));
        figures = Figures::measure(proxyd);
    }
    figures
}

fn print_summary(reloads: usize, refused: usize, sum: Tally, rest: [Figures; 2]) {
    let Tally { answered, unrouted } = sum;
    let [before, after] = rest;
    let text = format!(
        "soak: {reloads} reloads that rename targets, {refused} of them refused\n\
         \x20 {answered:>9} requests, each answered by its own target, {unrouted} without a route\n\
         \x20 at rest before: {before}; after: {after}\n"
    );
    std::io::stdout().lock().write_all(text.as_bytes()).unwrap();
}
