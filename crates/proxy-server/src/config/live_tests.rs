//! The live tests of a configuration. After a switch, they are sent to the listeners of this
//! process; before it, to a second server without sockets.
//!
//! The process sends the tests like any client's requests: agents are called, and each applicable
//! rate limit is charged a token. Per-client limits see the machine's own address, so no client is
//! charged.

use crate::runtime::system_clock;
use crate::worker::HandedConnection;
use futures_util::stream::{StreamExt, iter};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, USER_AGENT};
use http::{Request, Uri};
use proxy_model::{BindAddress, LiveAnswer, LiveRequest};
use proxy_plan::{LiveTest, Plan, live_tests};
use proxy_probe::{ListenerAnswer, ListenerRequest, ListenerSocket, ask_listener};
use proxy_tls::{Alpn, days_left, own_listener_config, server_name};
use socket2::Socket;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{sleep, timeout};

/// Maximum time of all live tests of a switch together.
const MAX_TIME: Duration = Duration::from_secs(30);
/// Maximum number of upstreams tested concurrently: an upstream that hangs delays no other one.
const MAX_UPSTREAMS: usize = 8;
/// Delay before a failed test is sent again: one lost packet must not stop a rollout.
const REPEAT_DELAY: Duration = Duration::from_millis(250);
/// Maximum number of requests of one test, one for each of several targets.
const MAX_REPETITIONS: usize = 8;
/// Time from the beginning after which each test is sent only once.
const MAX_REPEATING_TIME: Duration = Duration::from_secs(15);
/// Delay before tests that failed only by time are sent again: a machine may be busy for longer
/// than the first two tries.
const LATE_DELAY: Duration = Duration::from_secs(2);
/// Maximum time of all tests that are sent again after [`LATE_DELAY`].
const MAX_LATE_TIME: Duration = Duration::from_secs(13);
const AGENT: &str = "proxyd-live-test";
const TOO_MANY_REQUESTS: u16 = 429;

/// The live tests of the applied configuration, with the sockets of their listeners.
#[derive(Clone, Debug, Default)]
pub struct LiveTests {
    tests: Vec<BoundTest>,
    /// Failures of the previous configuration, which are not reported as new.
    known: Vec<LiveFailure>,
}

/// Failures of live tests, as messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveOutcome {
    /// Failures of the configuration.
    pub failures: Vec<String>,
    /// Failures that the previous configuration has, too.
    pub known: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct LiveFailure {
    test: LiveTest,
    answer: Result<LiveAnswer, NoAnswer>,
    why: String,
}

/// The reason why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NoAnswer {
    /// No response within the time of the test, or of all tests together.
    Late(String),
    Failed(String),
}

/// A pass over tests. Its times are readings of the clock `now`.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Maximum number of tries of a test, unless one passes.
    tries: u32,
    /// Time from which the first try of a test has only one request.
    repeat_until: Duration,
    end: Duration,
}

#[derive(Clone, Debug)]
struct BoundTest {
    test: LiveTest,
    socket: ListenerSocket,
    has_tls: bool,
    proxy_header: bool,
    /// Number of sequential requests; at least 1.
    times: usize,
    /// Receiver of the connections, if the listener has no socket.
    handover: Option<UnboundedSender<HandedConnection>>,
}

impl LiveTests {
    /// The tests of a plan with listeners bound to these addresses, in the same order.
    pub(crate) fn new<'a>(plan: &Plan, bound: impl Iterator<Item = &'a BindAddress>) -> Self {
        let bound: Vec<&BindAddress> = bound.collect();
        let tests = live_tests(plan).into_iter().filter_map(|test| {
            let listener = plan.model().listeners.get(test.listener)?;
            Some(BoundTest {
                socket: reachable(bound.get(test.listener)?),
                has_tls: listener.tls.is_some(),
                proxy_header: listener.proxy_protocol.value,
                times: 1,
                handover: None,
                test,
            })
        });
        Self {
            tests: tests.collect(),
            known: Vec::new(),
        }
    }

    /// Sets the failures of the previous configuration, which are reported separately.
    pub(crate) fn knowing(mut self, known: Vec<LiveFailure>) -> Self {
        self.known = known;
        self
    }

    /// Sends the tests to a server without sockets, which accepts connections from `handover`.
    pub(crate) fn with_handover(mut self, handover: &UnboundedSender<HandedConnection>) -> Self {
        for bound in &mut self.tests {
            bound.handover = Some(handover.clone());
        }
        self
    }

    /// Sends each test with `GET` or `HEAD` as often as `targets` returns for its upstream, at
    /// least once and at most [`MAX_REPETITIONS`] times.
    pub(crate) fn repeated(mut self, targets: impl Fn(&str) -> usize) -> Self {
        for bound in &mut self.tests {
            let is_safe = ["GET", "HEAD"].contains(&bound.test.method.as_str());
            if let Some(upstream) = bound.test.upstream.as_deref().filter(|_| is_safe) {
                bound.times = targets(upstream).clamp(1, MAX_REPETITIONS);
            }
        }
        self
    }

    /// Sends all tests. `now` is the time since an arbitrary fixed moment.
    pub async fn outcome(&self, now: fn() -> Duration) -> LiveOutcome {
        let mut outcome = LiveOutcome::default();
        for failure in self.failed(now).await {
            let messages = if self.known.iter().any(|known| known.is_like(&failure)) {
                &mut outcome.known
            } else {
                &mut outcome.failures
            };
            messages.push(failure.message());
        }
        outcome
    }

    /// Sends all tests, the tests of one upstream in order, and returns those that fail twice.
    /// Tests that failed only by time are sent again at the end, and count if they fail again or
    /// have no time left.
    pub(crate) async fn failed(&self, now: fn() -> Duration) -> Vec<LiveFailure> {
        let started = now();
        let first = Round {
            tries: 2,
            repeat_until: started + MAX_REPEATING_TIME,
            end: started + MAX_TIME,
        };
        let mut found = self.round(|_| true, now, first).await;
        if found.values().any(LiveFailure::is_late) {
            sleep(LATE_DELAY).await;
            let end = now() + MAX_LATE_TIME;
            let again = Round {
                tries: 1,
                repeat_until: end,
                end,
            };
            let is_late = |number| found.get(&number).is_some_and(LiveFailure::is_late);
            let late = self.round(is_late, now, again).await;
            found.retain(|number, failure| !failure.is_late() || late.contains_key(number));
        }
        found.into_values().collect()
    }

    /// Sends the tests at the positions that `is_sent` selects, and returns the failures by
    /// position.
    async fn round(
        &self,
        is_sent: impl Fn(usize) -> bool,
        now: fn() -> Duration,
        round: Round,
    ) -> BTreeMap<usize, LiveFailure> {
        let mut groups: BTreeMap<Option<&str>, Vec<(usize, &BoundTest)>> = BTreeMap::new();
        for (number, bound) in self.tests.iter().enumerate() {
            let upstream = bound.test.upstream.as_deref();
            if is_sent(number) {
                groups.entry(upstream).or_default().push((number, bound));
            }
        }
        // Collected, because a stream with a closure that holds a reference makes a future that is
        // not `Send`.
        let sending: Vec<_> = groups
            .into_values()
            .map(|group| group_failures(group, now, round))
            .collect();
        let sent = iter(sending).buffer_unordered(MAX_UPSTREAMS);
        let found: Vec<Vec<_>> = sent.collect().await;
        found.into_iter().flatten().collect()
    }
}

/// Sends tests one after the other, and returns the failures with their positions.
async fn group_failures(
    group: Vec<(usize, &BoundTest)>,
    now: fn() -> Duration,
    round: Round,
) -> Vec<(usize, LiveFailure)> {
    let mut failures = Vec::new();
    for (number, bound) in group {
        let failure = bound.failure_within(now, round).await;
        failures.extend(failure.map(|failure| (number, failure)));
    }
    failures
}

impl NoAnswer {
    fn text(&self) -> &str {
        let (Self::Late(why) | Self::Failed(why)) = self;
        why
    }
}

impl LiveFailure {
    pub(crate) fn name(&self) -> &str {
        &self.test.name
    }

    /// The name of the upstream of the request; `None` without one.
    pub(crate) fn upstream(&self) -> Option<&str> {
        self.test.upstream.as_deref()
    }

    pub(crate) fn message(&self) -> String {
        format!("live test \"{}\" fails: {}", self.name(), self.why)
    }

    /// Returns true if the response is late or missing, and otherwise as expected.
    fn is_late(&self) -> bool {
        match &self.answer {
            Ok(answer) => self.test.fails_by_time(answer),
            Err(none) => matches!(none, NoAnswer::Late(_)),
        }
    }

    /// Returns true if both are failures of the same test for the same reason.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.name() == other.name()
            && match (&self.answer, &other.answer) {
                (Ok(one), Ok(other)) => self.test.fails_alike(one, other),
                // The texts differ by the time left, which depends on the other tests.
                (Err(NoAnswer::Late(_)), Err(NoAnswer::Late(_))) => true,
                (Err(one), Err(other)) => one == other,
                (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
            }
    }
}

impl BoundTest {
    /// Returns the last failure if all tries of a round fail, or if the round ends before one
    /// passes.
    async fn failure_within(&self, now: fn() -> Duration, round: Round) -> Option<LiveFailure> {
        let left = round.end.saturating_sub(now());
        let trying = async {
            let mut found = self.failure(now, round.repeat_until).await?;
            for _ in 1..round.tries {
                sleep(REPEAT_DELAY).await;
                // All requests are repeated, because the failed one may be among the later ones.
                found = self.failure(now, round.end).await?;
            }
            Some(found)
        };
        let tried = timeout(left, trying).await;
        tried.unwrap_or_else(|_| {
            let limit = MAX_TIME.as_secs();
            let why = format!("there is no answer within the {limit} s of all live tests");
            Some(LiveFailure {
                test: self.test.clone(),
                answer: Err(NoAnswer::Late(why.clone())),
                why,
            })
        })
    }

    /// The first response that differs from the expectations. After the first request, a rate limit
    /// may refuse the rest; no request begins after `repeat_until`, except the first.
    async fn failure(&self, now: fn() -> Duration, repeat_until: Duration) -> Option<LiveFailure> {
        for number in 0..self.times {
            if number > 0 && repeat_until <= now() {
                break;
            }
            let answer = self.answer(now).await;
            let difference = match &answer {
                Ok(answer) if number > 0 && answer.status == TOO_MANY_REQUESTS => None,
                Ok(answer) => self.test.difference(answer),
                Err(none) => Some(none.text().to_owned()),
            };
            if let Some(why) = difference {
                return Some(LiveFailure {
                    test: self.test.clone(),
                    answer,
                    why,
                });
            }
        }
        None
    }

    async fn answer(&self, now: fn() -> Duration) -> Result<LiveAnswer, NoAnswer> {
        let request = self.request().map_err(NoAnswer::Failed)?;
        let (started, limit) = (now(), self.test.timeout());
        let asking = ask_listener(request, || now().saturating_sub(started));
        match timeout(limit, asking).await {
            Ok(Ok(answer)) => Ok(live_answer(answer)),
            Ok(Err(why)) => Err(NoAnswer::Failed(why.to_string())),
            Err(_) => Err(NoAnswer::Late(format!(
                "there is no complete answer within {} ms",
                limit.as_millis()
            ))),
        }
    }

    /// The listener's socket. For a handover, a new connection: its other end is handed over with
    /// the client address that the listener would see at its socket.
    fn connection(&self) -> io::Result<ListenerSocket> {
        let Some(handover) = &self.handover else {
            return Ok(self.socket.clone());
        };
        let (own, other) = UnixStream::pair()?;
        let peer = match &self.socket {
            ListenerSocket::Tcp(address) => Some(SocketAddr::new(address.ip(), 0)),
            ListenerSocket::Unix(_) | ListenerSocket::Connected(_) => None,
        };
        let connection = HandedConnection {
            listener: self.test.listener,
            socket: Socket::from(OwnedFd::from(other)),
            peer,
        };
        // Sending fails if the server has ended, which closes the connection.
        drop(handover.send(connection));
        Ok(ListenerSocket::Connected(Arc::new(own)))
    }

    fn request(&self) -> Result<ListenerRequest, String> {
        let LiveTest {
            name: _,
            listener: _, // The socket is its own.
            upstream: _,
            method,
            path,
            authority,
            headers,
            form,
            ..
        } = &self.test;
        let LiveRequest {
            http2,
            upload_bytes,
        } = *form;
        let authority = authority.as_deref().unwrap_or("localhost");
        let host = authority
            .parse::<http::uri::Authority>()
            .map_err(|error| format!("`{authority}` is not a host: {error}"))?;
        let mut request = Request::builder().method(method.as_str());
        if http2 {
            let scheme = if self.has_tls { "https" } else { "http" };
            let uri: Result<Uri, _> = format!("{scheme}://{authority}{path}").parse();
            request = request.uri(uri.map_err(|error| error.to_string())?);
        } else {
            request = request.uri(path.as_str()).header(HOST, authority);
            request = request.header(CONNECTION, "close");
        }
        let has_agent =
            |(name, _): &(String, String)| name.eq_ignore_ascii_case(USER_AGENT.as_str());
        if !headers.iter().any(has_agent) {
            request = request.header(USER_AGENT, AGENT);
        }
        if upload_bytes > 0 {
            request = request.header(CONTENT_LENGTH, upload_bytes);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let body = vec![0; usize::try_from(upload_bytes).unwrap_or_default()];
        let request = request.body(body.into());
        let alpn = if http2 { Alpn::H2 } else { Alpn::Http1 };
        let tls = self.has_tls.then(|| {
            let config = own_listener_config(alpn).map_err(|error| error.to_string())?;
            let name = server_name(None, host.host()).map_err(|error| error.to_string())?;
            Ok::<_, String>((config, name))
        });
        Ok(ListenerRequest {
            socket: self.connection().map_err(|error| error.to_string())?,
            tls: tls.transpose()?,
            http2,
            proxy_header: self.proxy_header,
            request: request.map_err(|error| error.to_string())?,
        })
    }
}

fn live_answer(answer: ListenerAnswer) -> LiveAnswer {
    let ListenerAnswer {
        status,
        headers,
        body,
        leaf,
        first_byte,
        total,
    } = answer;
    let now = system_clock::now();
    LiveAnswer {
        status: status.as_u16(),
        headers,
        body,
        certificate_days: leaf.and_then(|leaf| days_left(&leaf, now)),
        first_byte,
        total,
    }
}

/// The address of a listener for connections from the same machine.
fn reachable(bound: &BindAddress) -> ListenerSocket {
    match bound {
        BindAddress::Unix(path) => ListenerSocket::Unix(path.clone()),
        BindAddress::Tcp(address) => {
            let ip = match address.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
                ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
            };
            let mut reachable: SocketAddr = *address;
            reachable.set_ip(ip);
            ListenerSocket::Tcp(reachable)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_plan::TargetRegistry;
    use std::sync::OnceLock;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
    use tokio::time::Instant;

    /// The time of the paused runtime.
    fn now() -> Duration {
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        #[expect(clippy::disallowed_methods, reason = "the clock of the test")]
        let now = Instant::now();
        now.duration_since(*BEGIN.get_or_init(|| now))
    }

    fn tests(text: &str) -> LiveTests {
        let loaded = proxy_config::parse(text, "edge.kdl").unwrap();
        let mut targets = TargetRegistry::default().begin();
        let plan = Plan::compile(1, Arc::new(loaded.model), &mut targets);
        let address = BindAddress::Tcp(([127, 0, 0, 1], 8080).into());
        LiveTests::new(&plan, [address].iter())
    }

    /// A configuration with two upstreams and these tests.
    fn shop_and_wiki(tests_text: &str) -> LiveTests {
        tests(&format!(
            "listeners {{ listener \"main\" {{ address \"127.0.0.1:8080\" }} }}\n\
             routes {{ route \"wiki\" {{ matches {{ path-prefix \"/wiki\" }}; upstream \"wiki\" }}\n\
             route \"shop\" {{ upstream \"shop\" }} }}\n\
             upstreams {{ upstream \"wiki\" {{ target \"10.0.0.1:80\" }}; \
             upstream \"shop\" {{ target \"10.0.0.2:80\" }} }}\n\
             tests {{ {tests_text} }}"
        ))
    }

    fn test(name: &str, path: &str) -> String {
        format!(
            "test \"{name}\" {{ request \"GET\" \"{path}\"; live #true; expect {{ answer-status 200 }} }}\n"
        )
    }

    /// A proxy that answers requests of the shop except for the first ones, and none of the wiki.
    /// Returns the paths of all.
    async fn answer(
        mut handed: UnboundedReceiver<HandedConnection>,
        mut silent: usize,
    ) -> Vec<String> {
        let (mut open, mut paths) = (Vec::new(), Vec::new());
        while let Some(connection) = handed.recv().await {
            let stream = UnixStream::from(OwnedFd::from(connection.socket));
            stream.set_nonblocking(true).unwrap();
            let mut stream = tokio::net::UnixStream::from_std(stream).unwrap();
            let mut head = [0; 1_024];
            let read = stream.read(&mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..read]);
            let path = head.split(' ').nth(1).unwrap_or_default();
            if path == "/cart" && silent == 0 {
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                stream.write_all(answer).await.unwrap();
            } else if path == "/cart" {
                silent -= 1;
            }
            paths.push(path.to_owned());
            open.push(stream);
        }
        paths
    }

    #[tokio::test(start_paused = true)]
    async fn an_upstream_that_hangs_takes_no_time_from_the_tests_of_others() {
        let live = shop_and_wiki(&format!(
            "{}{}{}{}",
            test("first", "/wiki/1"),
            test("second", "/wiki/2"),
            test("third", "/wiki/3"),
            test("the shop answers", "/cart"),
        ));
        let (handover, handed) = unbounded_channel();
        let answering = tokio::spawn(answer(handed, 0));
        let live = live.with_handover(&handover);
        let began = now();
        let failures = live.failed(now).await;
        let names: Vec<&str> = failures.iter().map(LiveFailure::name).collect();
        assert_eq!(names, ["first", "second", "third"]);
        let late =
            "live test \"third\" fails: there is no answer within the 30 s of all live tests";
        assert_eq!(failures[2].message(), late);
        let took = now().saturating_sub(began);
        let limit = MAX_TIME + LATE_DELAY + MAX_LATE_TIME;
        assert_eq!(took.as_secs(), limit.as_secs());
        // The same under another configuration, with other times left.
        assert!(failures[0].is_like(&failures[0].clone()));
        let other = LiveFailure {
            answer: Err(NoAnswer::Late(String::new())),
            ..failures[1].clone()
        };
        assert!(failures[1].is_like(&other));
        assert!(!failures[0].is_like(&other));
        answering.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_test_that_fails_by_time_alone_is_sent_again_at_the_end() {
        for (silent, failed) in [(2, 0), (3, 1)] {
            let live = shop_and_wiki(&test("the shop answers", "/cart"));
            let (handover, handed) = unbounded_channel();
            let answering = tokio::spawn(answer(handed, silent));
            let live = live.with_handover(&handover);
            drop(handover);
            assert_eq!(live.failed(now).await.len(), failed, "{silent}");
            drop(live);
            assert_eq!(answering.await.unwrap(), ["/cart"; 3]);
        }
    }
}
