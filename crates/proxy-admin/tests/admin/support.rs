//! A running admin interface, and a client for raw bytes.

use proxy_admin::{Access, AdminState, BuildInfo, Listener, Sources, Token, serve};
use proxy_plan::{Plan, TargetRegistry};
use proxy_telemetry::{
    Lifecycle, LimitSetting, LimitSource, LimitUse, Registry, RegistrySettings, Snapshot,
};
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const EDGE: &str = include_str!("edge.kdl");
pub(crate) const TOKEN: &str = "0123456789abcdef";

const BUILD: BuildInfo = BuildInfo {
    name: "proxyd",
    version: "1.2.3",
    commit: "abc1234",
    built_at: "2026-01-02T03:04:05Z",
    rustc: "rustc 1.95.0",
};

/// Each call is a second later.
fn uptime() -> Duration {
    static READINGS: AtomicU64 = AtomicU64::new(0);
    Duration::from_secs(READINGS.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn plan(generation: u64, text: &str) -> Arc<Plan> {
    let loaded = proxy_config::parse(text, "edge.kdl").unwrap_or_else(|report| panic!("{report}"));
    let model = Arc::new(loaded.model);
    Arc::new(Plan::compile(
        generation,
        model,
        &mut TargetRegistry::default().begin(),
    ))
}

/// Reports every limit as neither set nor used.
#[derive(Debug)]
struct NoLimits;

impl LimitSource for NoLimits {
    fn uses(&self, _: &Snapshot) -> Vec<LimitUse> {
        let uses = LimitSetting::ALL.iter().map(|setting| LimitUse {
            setting: *setting,
            current: None,
            maximum: None,
        });
        uses.collect()
    }
}

/// A running admin interface with its own port.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) address: SocketAddr,
    pub(crate) state: Arc<AdminState>,
    pub(crate) access: Arc<Access>,
    pub(crate) sources: Sources,
    pub(crate) plan: Arc<Plan>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Admin {
    pub(crate) fn open() -> Self {
        Self::with_plan(EDGE, None)
    }

    pub(crate) fn with_token() -> Self {
        Self::with_plan(EDGE, Some(Token::new(TOKEN).unwrap()))
    }

    pub(crate) fn with_plan(text: &str, token: Option<Token>) -> Self {
        let registry = Arc::new(Registry::new(RegistrySettings {
            reasons: &[],
            max_series: 1_000,
        }));
        registry.set_limits(Arc::new(NoLimits));
        let started = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let lifecycle = Lifecycle::new(
            BUILD.version,
            BUILD.commit,
            Arc::clone(&registry),
            started,
            uptime,
        );
        let sources = Sources {
            build: BUILD,
            lifecycle: Arc::new(lifecycle),
            registry,
            memory: Arc::default(),
            health_changes: Arc::default(),
            target_changes: Arc::default(),
            recording: Arc::default(),
        };
        let plan = plan(1, text);
        let state = Arc::new(AdminState::new(sources.clone(), Arc::clone(&plan)));
        let access = Arc::new(Access::tcp(token));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = serve(
            Listener::Tcp(listener),
            Arc::clone(&state),
            Arc::clone(&access),
            async { drop(stopped.await) },
        );
        Self {
            address,
            state,
            access,
            sources,
            plan,
            stop,
            task: tokio::spawn(serving),
        }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends `request` on a new connection, and reads until the connection closes.
    pub(crate) async fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        Answer::read_all(&mut stream).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "").await
    }

    /// Sends a request; `fields` consists of complete lines.
    pub(crate) async fn ask(&self, method: &str, path: &str, fields: &str) -> Answer {
        let host = self.address;
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        self.send(&format!("{head}{fields}\r\n")).await
    }

    pub(crate) fn begin_stop(self) -> JoinHandle<io::Result<()>> {
        self.stop.send(()).unwrap();
        self.task
    }
}

/// A parsed response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// Reads a single response until the connection closes.
    pub(crate) async fn read_all(stream: &mut (impl AsyncReadExt + Unpin)) -> Self {
        let mut text = String::new();
        let reading = stream.read_to_string(&mut text);
        let read = tokio::time::timeout(Duration::from_mins(1), reading).await;
        read.expect("the connection ends").unwrap();
        Self::parse(&text).unwrap_or_else(|| panic!("no answer in {text:?}"))
    }

    /// Reads the next response of a connection that stays open.
    pub(crate) async fn read_one(stream: &mut (impl AsyncReadExt + Unpin)) -> Self {
        let mut bytes = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some(answer) = Self::parse(&text)
                && answer.field("content-length").map(str::parse) == Some(Ok(answer.body.len()))
            {
                return answer;
            }
            let more = stream.read_buf(&mut bytes).await.unwrap();
            assert!(more > 0, "cut off after {text:?}");
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.strip_prefix("HTTP/1.")?.get(2..5)?;
        Some(Self {
            status: status.parse().ok()?,
            head: head.to_owned(),
            body: body.to_owned(),
        })
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut fields = lines.filter_map(|line| line.split_once(": "));
        let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON in {self:?}"))
    }

    /// Returns the code of an error response, after checks of the fields that all of them have.
    pub(crate) fn error_code(&self) -> String {
        let error = &self.json()["error"];
        let id = self.field("x-correlation-id").unwrap();
        assert_eq!(error["correlation_id"], id, "{self:?}");
        assert!(!error["message"].as_str().unwrap().is_empty(), "{self:?}");
        assert_eq!(self.field("content-type"), Some("application/json"));
        assert_eq!(self.field("cache-control"), Some("no-store"));
        error["code"].as_str().unwrap().to_owned()
    }
}
