//! Configurations and assertions shared by many tests.

use proxy_testkit::{Gate, Proxyd, RawClient, Response, Upstream, get};
use std::fmt::Write;
use std::net::SocketAddr;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");

/// A configuration: one listener, one worker, and a test's own blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    address: Option<SocketAddr>,
    listener: String,
    routes: String,
    upstreams: String,
    top: String,
}

impl Config {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// One route, `all`, for every request to `upstream`, which is named `u`.
    pub(crate) fn to(upstream: &Upstream) -> Self {
        Self::new()
            .route("all", r#"upstream "u""#)
            .upstream("u", &target(upstream))
    }

    /// Like [`Config::to`], with settings for the route.
    pub(crate) fn through(upstream: &Upstream, route: &str) -> Self {
        let route = format!(r#"upstream "u"; {route}"#);
        Self::new()
            .route("all", &route)
            .upstream("u", &target(upstream))
    }

    /// Like [`Config::to`], with settings for the upstream.
    pub(crate) fn to_with(upstream: &Upstream, settings: &str) -> Self {
        let settings = format!("{}; {settings}", target(upstream));
        Self::new()
            .route("all", r#"upstream "u""#)
            .upstream("u", &settings)
    }

    /// Sets the address, instead of a port picked by the kernel.
    pub(crate) fn at(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// More settings for the listener.
    pub(crate) fn listener(mut self, settings: &str) -> Self {
        writeln!(self.listener, "{settings}").unwrap();
        self
    }

    pub(crate) fn route(mut self, id: &str, settings: &str) -> Self {
        writeln!(self.routes, "route \"{id}\" {{ {settings} }}").unwrap();
        self
    }

    pub(crate) fn upstream(mut self, name: &str, settings: &str) -> Self {
        writeln!(self.upstreams, "upstream \"{name}\" {{ {settings} }}").unwrap();
        self
    }

    /// More blocks.
    pub(crate) fn top(mut self, blocks: &str) -> Self {
        writeln!(self.top, "{blocks}").unwrap();
        self
    }

    pub(crate) fn kdl(&self) -> String {
        let Self {
            address,
            listener,
            routes,
            upstreams,
            top,
        } = self;
        let workers = if top.contains("worker-threads") {
            ""
        } else {
            "worker-threads 1"
        };
        let address = address.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)));
        format!(
            "listeners {{ listener \"main\" {{\naddress \"{address}\"\n{listener}}} }}\n\
             routes {{\n{routes}}}\nupstreams {{\n{upstreams}}}\n{workers}\n{top}"
        )
    }

    #[track_caller]
    pub(crate) fn start(&self) -> Proxyd {
        Proxyd::start(BINARY, &self.kdl())
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

/// The `target` line for an upstream.
pub(crate) fn target(upstream: &Upstream) -> String {
    format!("target \"{}\"", upstream.address())
}

/// Asserts that `response` is an error response in JSON, and returns its message.
#[track_caller]
pub(crate) fn refusal(response: &Response, status: u16, code: &str) -> String {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(
        response.fields.get("content-type"),
        Some("application/json")
    );
    let body = response.json();
    let error = &body["error"];
    assert_eq!(error["code"], code, "{body}");
    assert_eq!(error["correlation_id"], response.correlation_id());
    error["message"].as_str().unwrap().to_owned()
}

/// The reason of the failed request behind `response`, from the access log.
#[track_caller]
pub(crate) fn reason(proxyd: &Proxyd, response: &Response) -> String {
    let record = proxyd.access_record(&response.correlation_id());
    record.text("reason").to_owned()
}

/// A request with this first line, field lines and body, to the host `a.test`.
pub(crate) fn request(line: &str, fields: &str, body: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n{body}")
}

/// A POST with `Content-Length`.
pub(crate) fn post(target: &str, body: &str) -> String {
    let length = format!("Content-Length: {}\r\n", body.len());
    request(&format!("POST {target}"), &length, body)
}

/// Value of the first sample on the metrics page with `name` at the beginning of its line.
#[track_caller]
pub(crate) fn metric(client: &mut RawClient, name: &str) -> f64 {
    let page = client.ask(request("GET /metrics", "", "")).text();
    let line = page.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in:\n{page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// A document of the admin interface, which listens on an address.
#[track_caller]
pub(crate) fn admin(proxyd: &Proxyd, target: &str) -> serde_json::Value {
    let mut client = RawClient::connect(proxyd.admin_address());
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client.ask(request).json()
}

/// The route of the metrics page.
pub(crate) const METRICS: &str =
    r#"matches { path "/metrics" }; service-type "builtin"; builtin-handler "metrics""#;

/// Waits briefly for bytes that do not arrive, which yields to other threads without busy waiting.
#[track_caller]
pub(crate) fn pause(client: &mut RawClient, millis: u64) {
    client.be_patient_for(std::time::Duration::from_millis(millis));
    assert!(client.peek().is_err(), "nothing comes unasked");
    client.be_patient_for(proxy_testkit::EVENT_TIMEOUT);
}
