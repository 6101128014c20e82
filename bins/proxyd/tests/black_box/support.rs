//! Configurations and assertions shared by many tests.

use proxy_testkit::{Gate, Launcher, Proxyd, RawClient, Response, Upstream, get};

pub(crate) use proxy_testkit::{METRICS, metric, pause, post, refusal, request, target};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");

/// A configuration for a process of proxyd.
pub(crate) type Config = proxy_testkit::Config<Binary>;

/// Starts the real binary.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binary;

impl Launcher for Binary {
    type Proxy = Proxyd;

    fn launch(kdl: &str) -> Proxyd {
        Proxyd::start(BINARY, kdl)
    }
}

/// A process with one request in flight, which is answered once the gate is open.
pub(crate) struct Busy {
    pub(crate) client: RawClient,
    pub(crate) proxyd: Proxyd,
    pub(crate) upstream: Upstream,
    pub(crate) gate: Gate,
}

impl Busy {
    /// Like [`Self::start`], with more blocks in the configuration.
    #[track_caller]
    pub(crate) fn with(blocks: &str) -> Self {
        let gate = Gate::new();
        let upstream = Upstream::slow_reader(&gate);
        let proxyd = Config::to(&upstream).top(blocks).start();
        let mut client = proxyd.connect();
        client.send(get("/", &[]));
        upstream.wait_for_requests(1);
        Self {
            client,
            proxyd,
            upstream,
            gate,
        }
    }
}

/// The reason of a failed request, from its record in the access log.
#[track_caller]
pub(crate) fn reason(proxyd: &Proxyd, response: &Response) -> String {
    let record = proxyd.access_record(&response.correlation_id());
    record.text("reason").to_owned()
}

/// A document of the admin interface, which listens on an address.
#[track_caller]
pub(crate) fn admin(proxyd: &Proxyd, target: &str) -> serde_json::Value {
    let mut client = RawClient::connect(proxyd.admin_address());
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.ask(request).json()
}

/// Most bytes that the kernel holds of an upload, in the four buffers of its two connections.
pub(crate) fn kernel_buffers() -> usize {
    let most = |name: &str| -> usize {
        let sizes = std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
        sizes
            .split_whitespace()
            .next_back()
            .unwrap()
            .parse()
            .unwrap()
    };
    2 * (most("tcp_rmem") + most("tcp_wmem"))
}
