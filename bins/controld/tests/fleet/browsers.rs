//! Cost of browsers that show a running rollout: of their event streams, and of reloading pages
//! after events.
//!
//! `CONTROLD_BROWSERS="10 60"`, as set by `cargo xtask fleet --browsers 10 --seconds 60`, is the
//! number of browsers and the duration in seconds. Without it, three browsers run for 15 seconds,
//! and their cost has no limit.

use crate::CONTROLD;
use control_simulator::{FleetOptions, Measurement, Operator, SimulatedFleet};
use control_testkit::{Client, Program};
use proxy_load::clock::{Stopwatch, pause};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

const NODES: usize = 40;
/// Maximum share of a core that all browsers together may use.
const MAX_CORE_SHARE: f64 = 0.05;
/// Maximum time between reloads of a live page. If only reports of nodes arrive, it reloads seven
/// seconds after the last event.
const MAX_BETWEEN_LOADS: Duration = Duration::from_secs(20);
/// Number of simultaneous requests for pages, to find out which rate limit applies.
const BURST: usize = 30;

/// Size and duration of a run.
struct Size {
    browsers: usize,
    time: Duration,
    has_limit: bool,
}

impl Size {
    fn read() -> Self {
        let Ok(text) = std::env::var("CONTROLD_BROWSERS") else {
            return Self {
                browsers: 3,
                time: Duration::from_secs(15),
                has_limit: false,
            };
        };
        let (browsers, secs) = text.split_once(' ').unwrap();
        Self {
            browsers: browsers.parse().unwrap(),
            time: Duration::from_secs(secs.parse().unwrap()),
            has_limit: true,
        }
    }
}

/// Session and page of a browser.
struct Browser<'a> {
    authority: &'a str,
    session: &'a str,
    page: &'a str,
}

impl Browser<'_> {
    /// Sends a request on a new connection.
    fn open(&self, path: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.authority).unwrap();
        stream.set_nodelay(true).unwrap();
        self.request(&mut stream, path);
        BufReader::new(stream)
    }

    fn request(&self, stream: &mut TcpStream, path: &str) {
        let (authority, session) = (self.authority, self.session);
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {authority}\r\ncookie: session={session}\r\nx-live: 1\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
    }

    /// Follows the page's events and reloads it after each, as its script does. Returns the number
    /// of reloads.
    fn follow(&self, time: Duration) -> usize {
        let clock = Stopwatch::start();
        let mut pages = self.open(self.page);
        read_page(&mut pages);
        let mut events = self.open("/events?pulse");
        let second = Some(Duration::from_secs(1));
        events.get_ref().set_read_timeout(second).unwrap();
        let (mut line, mut loads) = (Vec::new(), 0);
        while clock.elapsed() < time {
            // `line` keeps bytes received before a timeout.
            if events.read_until(b'\n', &mut line).is_err() {
                continue;
            }
            assert!(!line.is_empty(), "the stream ended");
            if line.starts_with(b"data: changed") {
                self.request(pages.get_mut(), self.page);
                read_page(&mut pages);
                loads += 1;
            }
            line.clear();
        }
        loads
    }
}

/// Reads a response of known length.
fn read_page(stream: &mut BufReader<TcpStream>) {
    let (mut line, mut length) = (String::new(), 0);
    stream.read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).unwrap();
        let field = line.to_ascii_lowercase();
        if let Some(text) = field.strip_prefix("content-length: ") {
            length = text.trim().parse().unwrap();
        }
    }
    assert_ne!(length, 0, "a page has a length");
    let mut page = vec![0; length];
    stream.read_exact(&mut page).unwrap();
}

/// Returns the session cookie of the user that ran the set-up.
fn session(client: &Client) -> String {
    let body = json!({"email": "ann@example.com", "password": "correct horse"});
    let signed_in = client.post("/api/v1/sign-in", &body);
    assert_eq!(signed_in.status, 200, "{}", signed_in.text);
    let cookie = signed_in.header("set-cookie");
    let (_, rest) = cookie.split_once("session=").unwrap();
    rest.split(';').next().unwrap().to_owned()
}

/// Starts a rollout with a first batch that runs for hours; returns its page.
fn running_rollout(client: &Client, operator: &Operator) -> String {
    let project = operator.project();
    let rollouts = format!("/api/v1/projects/{project}/rollouts");
    let plan = json!({
        "bundle": operator.bundle("second"), "batch_percent": 25, "soak_secs": 7_200,
        "deadline_secs": 14_400, "skip_gate": true,
    });
    let made = client.post(&rollouts, &plan);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let started = client.post(&format!("{rollouts}/{id}/start"), &Value::Null);
    assert_eq!(started.status, 200, "{}", started.text);
    format!("/projects/{project}/rollouts/{id}")
}

/// Returns the number of requests that the session may still send to the interface.
fn remaining(client: &Client, session: &str) -> i64 {
    let cookie = format!("session={session}");
    let answer = client.send("GET", "/api/v1/users/me", &[("cookie", &cookie)], None);
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.header("x-ratelimit-remaining").parse().unwrap()
}

#[test]
fn browsers_on_a_rollout_cost_little_and_use_no_rate_of_the_interface() {
    let (size, folder) = (Size::read(), tempfile::tempdir().unwrap());
    let data = folder.path().display().to_string();
    let mut program = Program::start(CONTROLD, &["--data-dir", &data]);
    let operator = Operator::set_up(&mut program);
    let options = FleetOptions {
        max_interval: Duration::from_secs(10),
        ..FleetOptions::new(NODES, 1)
    };
    let fleet = SimulatedFleet::start(&operator, options);
    operator.install(&fleet, &operator.bundle("first"));
    let client = program.client().with_bearer(operator.key());
    let page = running_rollout(&client, &operator);
    let session = session(&program.client());
    let authority = program.base_url().strip_prefix("http://").unwrap();
    let browser = Browser {
        authority,
        session: &session,
        page: &page,
    };
    let before = remaining(&program.client(), &session);
    for _ in 0..BURST {
        read_page(&mut browser.open(&page));
    }
    let after = remaining(&program.client(), &session);
    assert!(before <= after + 1, "pages took {}", before - after - 1);
    let measurement = Measurement::start(&operator);
    if size.has_limit {
        pause(size.time);
    }
    let idle = measurement.usage(&operator);
    let measurement = Measurement::start(&operator);
    let loads: Vec<usize> = thread::scope(|scope| {
        let all: Vec<_> = (0..size.browsers)
            .map(|_| scope.spawn(|| browser.follow(size.time)))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let watched = measurement.usage(&operator);
    let after = remaining(&program.client(), &session);
    assert!(before <= after + 1, "browsers took {}", before - after - 1);
    drop(fleet);
    let share = |cpu: Duration, time: Duration| cpu.as_secs_f64() / time.as_secs_f64();
    let (alone, with) = (share(idle.cpu, idle.time), share(watched.cpu, watched.time));
    let pages = loads.iter().sum::<usize>();
    let percent = [with, alone].map(|share| format!("{:.1} %", share * 100.0));
    let [with_them, without] = percent;
    println!(
        "{} browsers on a rollout to {NODES} nodes: {pages} pages in {:?}, {with_them} of a core, {without} without",
        size.browsers, size.time,
    );
    let least = (size.time.as_secs() / MAX_BETWEEN_LOADS.as_secs()).max(1);
    assert!(
        loads
            .iter()
            .all(|own| least <= u64::try_from(*own).unwrap()),
        "{loads:?}"
    );
    if size.has_limit {
        let cost = with - alone;
        assert!(cost < MAX_CORE_SHARE, "{:.1} % of a core", cost * 100.0);
    }
}
