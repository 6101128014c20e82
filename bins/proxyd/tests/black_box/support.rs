//! Configurations and assertions that many tests share.

use proxy_testkit::{Gate, Launcher, Proxyd, RawClient, Response, Upstream, get};

pub(crate) use proxy_testkit::{METRICS, metric, pause, post, refusal, request, target};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");

/// Configuration of a `proxyd` process.
pub(crate) type Config = proxy_testkit::Config<Binary>;

/// Launches the real program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binary;

impl Launcher for Binary {
    type Proxy = Proxyd;

    fn launch(kdl: &str) -> Proxyd {
        Proxyd::start(BINARY, kdl)
    }
}

/// A process with one current request, which is answered when the gate opens.
pub(crate) struct Busy {
    pub(crate) client: RawClient,
    pub(crate) proxyd: Proxyd,
    pub(crate) upstream: Upstream,
    pub(crate) gate: Gate,
}

impl Busy {
    /// Like [`Self::start`], with further blocks in the configuration.
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

/// Returns the reason of a failed request from its access record.
#[track_caller]
pub(crate) fn reason(proxyd: &Proxyd, response: &Response) -> String {
    let record = proxyd.access_record(&response.correlation_id());
    record.text("reason").to_owned()
}

/// Requests a document of the admin interface over TCP.
#[track_caller]
pub(crate) fn admin(proxyd: &Proxyd, target: &str) -> serde_json::Value {
    let mut client = RawClient::connect(proxyd.admin_address());
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.ask(request).json()
}

/// Returns the maximum size of an upload's part in the kernel: in the four buffers of two
/// connections.
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
