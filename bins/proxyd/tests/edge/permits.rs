//! Permits of requests after their client leaves: over HTTP/1.1 with its connection, over HTTP/2 by
//! `RST_STREAM` while the connection continues.
#![expect(clippy::disallowed_methods, reason = "tests wait until a deadline")]

use crate::support::{BINARY, Http2, ask, block_on, send_some};
use agent_protocol::Wants;
use h2::Reason;
use proxy_testkit::{
    AgentReply, EVENT_TIMEOUT, FakeAgent, Proxyd, RawClient, Served, SilentListener, Upstream, get,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The wait of a request when its client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A place among the requests in flight.
    Queue,
    /// A decision of an agent.
    Agent,
    /// A connection to a target that does not answer.
    Connecting,
    /// The only connection that a target may have.
    Pool,
    /// The rest of its body.
    Upload,
    /// The rest of its body, which is buffered.
    BufferedUpload,
    /// The head of the response.
    Head,
    /// The head of the response of a second attempt.
    Retry,
    /// The rest of the response.
    Download,
    /// The rest of the response, which is buffered.
    BufferedDownload,
}

const STAGES: [Stage; 10] = [
    Stage::Queue,
    Stage::Agent,
    Stage::Connecting,
    Stage::Pool,
    Stage::Upload,
    Stage::BufferedUpload,
    Stage::Head,
    Stage::Retry,
    Stage::Download,
    Stage::BufferedDownload,
];

/// Gauges that are 0 without requests, under any labels.
const IDLE_GAUGES: [&str; 4] = [
    "proxy_requests_in_flight",
    "proxy_requests_queued",
    "proxy_upstream_target_active_requests",
    "proxy_agent_queue_depth",
];

const METRICS_REQUEST: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

impl Stage {
    fn path(self) -> String {
        format!("/{self:?}").to_ascii_lowercase()
    }

    /// Length of the announced body, half of which is sent.
    fn body_length(self) -> Option<usize> {
        matches!(self, Self::Upload | Self::BufferedUpload).then_some(8)
    }

    /// Requests that occupy the resource that this one waits for.
    fn holders(self) -> &'static [&'static str] {
        match self {
            Self::Queue => &["/held", "/held"],
            Self::Pool => &["/pool/held"],
            Self::Agent
            | Self::Connecting
            | Self::Upload
            | Self::BufferedUpload
            | Self::Head
            | Self::Retry
            | Self::Download
            | Self::BufferedDownload => &[],
        }
    }
}

/// The proxy with few permits of each kind.
struct Setup {
    proxyd: Proxyd,
    upstream: Upstream,
    agent: FakeAgent,
    _silent: SilentListener,
}

impl Setup {
    fn start() -> Self {
        let is_first = Arc::new(AtomicBool::new(true));
        let upstream = Upstream::start(move |served| while serve(served, &is_first).is_some() {});
        let agent = FakeAgent::start(Wants::default(), |_| AgentReply::Silence);
        let silent = SilentListener::start();
        Self {
            proxyd: Proxyd::start(BINARY, &kdl(&upstream, &agent, &silent)),
            upstream,
            agent,
            _silent: silent,
        }
    }

    /// Waits for these numbers of requests in flight, queued ones, and ones that reached the
    /// upstream or the agent.
    #[track_caller]
    fn wait_for(&self, stage: Stage, before: [usize; 2]) {
        let [requests, events] = before;
        match stage {
            Stage::Queue => self.wait_for_gauge("proxy_requests_queued", "1"),
            Stage::Agent => drop(self.agent.wait_for_events(events + 1)),
            Stage::Pool => self.wait_for_gauge("proxy_requests_in_flight", "2"),
            Stage::Connecting | Stage::BufferedUpload => {
                self.wait_for_gauge("proxy_requests_in_flight", "1");
            }
            Stage::Upload | Stage::Head | Stage::Download | Stage::BufferedDownload => {
                drop(self.upstream.wait_for_requests(requests + 1));
            }
            Stage::Retry => drop(self.upstream.wait_for_requests(requests + 2)),
        }
    }

    #[track_caller]
    fn wait_for_gauge(&self, name: &str, value: &str) {
        let expected = format!("{name} {value}");
        self.wait_until(&expected, |page| page.lines().any(|line| line == expected));
    }

    /// Waits until no permit is in use.
    #[track_caller]
    fn wait_until_idle(&self) {
        self.wait_until("nothing is in use", |page| {
            let mut busy = page.lines().filter(|line| {
                let is_gauge = IDLE_GAUGES.iter().any(|name| line.starts_with(name));
                is_gauge && !line.ends_with(" 0")
            });
            busy.next().is_none()
        });
    }

    #[track_caller]
    fn wait_until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        let mut client = RawClient::connect(self.proxyd.admin_address());
        loop {
            let page = client.ask(METRICS_REQUEST).text();
            if holds(&page) {
                return;
            }
            assert!(begun.elapsed() < EVENT_TIMEOUT, "{what}:\n{page}");
        }
    }

    /// Requests that reached the upstream and the agent.
    fn arrived(&self) -> [usize; 2] {
        [self.upstream.requests().len(), self.agent.events().len()]
    }

    /// The requests that occupy the awaited resource, once they do.
    fn hold(&self, stage: Stage) -> Vec<RawClient> {
        let holders = stage.holders();
        let [requests, _] = self.arrived();
        let clients = holders.iter().map(|path| {
            let mut client = self.proxyd.connect();
            client.send(get(path, &[]));
            client
        });
        let clients = clients.collect();
        self.upstream.wait_for_requests(requests + holders.len());
        clients
    }

    /// Checks the record of a client that has left, and that nothing is in use.
    #[track_caller]
    fn check(&self, stage: Stage, id: &str, holders: Vec<RawClient>) {
        let record = self.proxyd.access_record(id);
        let status = if stage == Stage::Download {
            200.0
        } else {
            499.0
        };
        assert_eq!(record.number("status"), Some(status), "{record:?}");
        assert_eq!(record.text("reason"), "client_aborted", "{record:?}");
        drop(holders);
        self.wait_until_idle();
    }
}

fn kdl(upstream: &Upstream, agent: &FakeAgent, silent: &SilentListener) -> String {
    let target = upstream.address();
    let agent = agent.path().display();
    let silent = silent.address();
    format!(
        r#"
            listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
            routes {{
                route "agent" {{ matches {{ path "/agent" }}; upstream "u"; agents "a" }}
                route "connecting" {{ matches {{ path "/connecting" }}; upstream "silent" }}
                route "buffered" {{
                    matches {{ path "/bufferedupload" "/buffereddownload" }}
                    upstream "u"
                    policies {{ buffer-requests #true; buffer-responses #true }}
                }}
                route "pool" {{ matches {{ path-prefix "/pool" }}; upstream "one" }}
                route "all" {{ upstream "u" }}
            }}
            upstreams {{
                upstream "u" {{ target "{target}"; connection-pool {{ max-connections 2 }} }}
                upstream "one" {{
                    target "{target}"
                    timeouts {{ connect-secs 60 }}
                    connection-pool {{ max-connections 1 }}
                }}
                upstream "silent" {{ target "{silent}"; timeouts {{ connect-secs 60 }} }}
            }}
            agents {{
                agent "a" {{ unix-socket "{agent}"; failure-mode "closed"; timeout-ms 60000 }}
            }}
            limits {{
                max-in-flight-requests 2
                max-queued-requests 1
                max-queue-wait-secs 60
                max-agent-queue-depth 1
            }}
            worker-threads 1
            "#
    )
}

/// Serves a request as selected by its path. `None` at the end of the connection.
fn serve(served: &mut Served, is_first: &AtomicBool) -> Option<()> {
    let mut request = served.head()?;
    match request.target.as_str() {
        "/upload" => served.body(&mut request)?,
        "/download" | "/buffereddownload" => {
            served.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
        }
        // Every other one is closed without a response.
        "/retry" if is_first.fetch_not(Ordering::Relaxed) => return None,
        _ => {}
    }
    served.end();
    None
}

#[test]
fn a_client_that_leaves_at_any_point_releases_its_permits() {
    let setup = Setup::start();
    // A permit that one round leaks is missing in the next one.
    for round in 0..2 {
        for stage in STAGES {
            let id = format!("http1-{stage:?}-{round}");
            let (holders, before) = (setup.hold(stage), setup.arrived());
            let mut client = setup.proxyd.connect();
            let id_field = ("X-Correlation-Id", id.as_str());
            match stage.body_length() {
                None => client.send(get(&stage.path(), &[id_field])),
                Some(length) => client.send(format!(
                    "POST {} HTTP/1.1\r\nHost: a.test\r\nX-Correlation-Id: {id}\r\n\
                     Content-Length: {length}\r\n\r\nhalf",
                    stage.path()
                )),
            };
            setup.wait_for(stage, before);
            if stage == Stage::Download {
                assert_eq!(client.head().status, 200);
                assert_eq!(client.exactly(4).unwrap(), b"half");
            }

            drop(client);

            setup.check(stage, &id, holders);
        }
    }
}

#[test]
fn a_stream_that_is_reset_at_any_point_releases_its_permits() {
    let setup = Setup::start();
    block_on(async {
        let mut http = Http2::prior_knowledge(setup.proxyd.address()).await;
        for round in 0..2 {
            for stage in STAGES {
                let id = format!("http2-{stage:?}-{round}");
                let (holders, before) = (setup.hold(stage), setup.arrived());
                let method = stage.body_length().map_or("GET", |_| "POST");
                let mut request = ask(method, &stage.path());
                let fields = request.headers_mut();
                fields.insert("x-correlation-id", id.parse().unwrap());
                let (mut answer, mut stream) = if let Some(length) = stage.body_length() {
                    fields.insert("content-length", length.into());
                    let (answer, mut stream) = http.begin(request).await;
                    send_some(&mut stream, b"half").await;
                    (answer, Some(stream))
                } else {
                    (http.send(request).await, None)
                };
                setup.wait_for(stage, before);
                let mut body = None;
                if stage == Stage::Download {
                    let response = (&mut answer).await.unwrap();
                    let mut pieces = response.into_body();
                    assert_eq!(&pieces.data().await.unwrap().unwrap()[..], b"half");
                    body = Some(pieces);
                }

                if let Some(stream) = &mut stream {
                    stream.send_reset(Reason::CANCEL);
                }
                // The last handle of a stream resets it.
                drop((answer, body, stream));

                setup.check(stage, &id, holders);
            }
        }
    });
}
