//! `serve`: listeners, routes outside the interface, background work, shutdown.

use crate::background::Background;
use crate::cli::ServeArgs;
use crate::commands::check::{Prepared, prepare, print_faults};
use crate::config::ConfigFile;
use crate::connections::Connections;
use crate::data_dir::DataDir;
use crate::standard_output::print_line;
use crate::state::{now, open_in};
use crate::trust::TrustedProxies;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use control_app::metric::describe_metrics;
use control_app::{App, SsoSite};
use control_domain::{HeartbeatInterval, PrivateAddresses};
use control_http::SessionCookie;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::fmt::Arguments;
use std::future::IntoFuture;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

/// Bounds of the buckets of latency histograms, in seconds.
const BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Media type of the Prometheus text format. Scrapers choose their parser by the version.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `Retry-After` of `/ready` while the service is not ready, in seconds.
const READY_RETRY_SECS: &str = "5";

/// Bound sockets.
struct Listeners {
    interface: TcpListener,
    /// `None` if the main listener serves the metrics, to clients on this host only.
    metrics: Option<TcpListener>,
}

/// Serves until SIGTERM or SIGINT.
pub(crate) async fn run(
    args: ServeArgs,
    file: Option<&ConfigFile>,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let Prepared { data_dir, tls } = match prepare(&args, now()) {
        Ok(prepared) => prepared,
        Err(faults) => {
            print_faults(&faults, file);
            return Ok(ExitCode::FAILURE);
        }
    };
    let metrics = PrometheusBuilder::new()
        .set_buckets(BUCKETS)?
        .install_recorder()?;
    let made = data_dir.create();
    made.map_err(|error| data_dir.at_folder(&*error))?;
    let _lock = data_dir.lock()?;
    let app = Arc::new(open_app(&data_dir, &args).await?);
    describe_metrics(env!("CARGO_PKG_VERSION"), app.now());
    let listeners = Listeners::bind(&args).await?;
    let address = listeners.interface.local_addr()?;
    initialize(&app, &listeners, tls.is_some()).await?;
    let background = Background {
        app: Arc::clone(&app),
        metrics: metrics.clone(),
        key_file: data_dir.key_file,
        tls: tls.clone(),
    };
    let background = tokio::spawn(background.run());
    let cookie = session_cookie(&args, address, tls.is_some());
    let metrics_router = control_api::answering(&app, metrics_router(metrics));
    let (local, metrics_task) = match listeners.metrics {
        None => (Some(metrics_router), None),
        Some(listener) => {
            let task = tokio::spawn(axum::serve(listener, metrics_router).into_future());
            (None, Some(task))
        }
    };
    let connections = Connections {
        router: router(&app, cookie),
        local,
        tls,
        trusted: TrustedProxies::new(args.trusted_proxies),
        max_open: max_connections(args.max_connections),
    };
    let stopping = Arc::clone(&app);
    let stop = async move {
        stop_signal().await;
        // Ends long polls, which would delay the shutdown.
        stopping.end_waits();
    };
    connections.serve(listeners.interface, stop).await;
    background.abort();
    if let Some(task) = metrics_task {
        task.abort();
    }
    app.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Opens the application on the database of `data_dir`, with the settings in `args`.
async fn open_app(data_dir: &DataDir, args: &ServeArgs) -> Result<App, Box<dyn std::error::Error>> {
    let mut app = open_in(data_dir).await?;
    app.heartbeat_interval = HeartbeatInterval::from_secs(args.heartbeat_secs);
    app.quotas = args.quotas.into();
    app.retention = args.retention.into();
    app.acme = args.acme.clone().into();
    app.sso_site = SsoSite {
        public_url: args.public_url.clone(),
        private_addresses: if args.sso_private_addresses {
            PrivateAddresses::Allowed
        } else {
            PrivateAddresses::Refused
        },
    };
    Ok(app)
}

/// Chooses the session cookie: `Secure`, except for a server on loopback without TLS and without a
/// balancer, which may use TLS. Browsers send a `Secure` cookie over TLS only.
fn session_cookie(args: &ServeArgs, address: SocketAddr, is_tls: bool) -> SessionCookie {
    let is_plain = !is_tls && args.trusted_proxies.is_empty() && address.ip().is_loopback();
    if is_plain {
        SessionCookie::Loopback
    } else {
        SessionCookie::Tls
    }
}

impl Listeners {
    async fn bind(args: &ServeArgs) -> Result<Self, String> {
        let interface = bind("listen", args.listen).await?;
        let metrics = match args.metrics_listen {
            Some(address) => Some(bind("metrics-listen", address).await?),
            None => None,
        };
        Ok(Self { interface, metrics })
    }
}

/// Binds `address`, the value of the flag `setting`.
///
/// # Errors
/// The operating system's error, with the flag and a remedy.
async fn bind(setting: &str, address: SocketAddr) -> Result<TcpListener, String> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| bind_error(setting, address, &error))
}

fn bind_error(setting: &str, address: SocketAddr, error: &io::Error) -> String {
    let remedies = [
        (
            ErrorKind::AddrInUse,
            "stop the program that listens there, or choose another port",
        ),
        (
            ErrorKind::AddrNotAvailable,
            "no interface of this machine has the address",
        ),
        (
            ErrorKind::PermissionDenied,
            "ports below 1024 need CAP_NET_BIND_SERVICE",
        ),
    ];
    let remedy = remedies.iter().find(|(kind, _)| *kind == error.kind());
    let remedy = remedy.map_or(String::new(), |(_, text)| format!("; {text}"));
    format!("--{setting} {address}: {error}{remedy}")
}

fn max_connections(setting: u32) -> usize {
    usize::try_from(setting).unwrap_or(Semaphore::MAX_PERMITS)
}

/// Routes of `GET /metrics`.
fn metrics_router(metrics: PrometheusHandle) -> Router {
    let fields = [(header::CONTENT_TYPE, METRICS_TYPE)];
    Router::new().route("/metrics", get(async move || (fields, metrics.render())))
}

/// Routes of the interface and the pages, `/health` and `/ready`.
fn router(app: &Arc<App>, cookie: SessionCookie) -> Router {
    let ready = get(ready).with_state(Arc::new(Readiness {
        app: Arc::clone(app),
        is_ready: AtomicBool::new(true),
    }));
    let further = Router::new()
        .route(
            "/health",
            get(async || Json(serde_json::json!({"status": "healthy"}))),
        )
        .route("/ready", ready)
        .merge(control_ui::router(app, cookie));
    control_api::router(app, further, cookie)
}

/// State of the readiness check.
#[derive(Debug)]
struct Readiness {
    app: Arc<App>,
    /// The last result. Only changes are logged, because any client can request `/ready` at any
    /// rate.
    is_ready: AtomicBool,
}

async fn ready(State(readiness): State<Arc<Readiness>>) -> Response {
    let Readiness { app, is_ready } = &*readiness;
    if app.is_clock_wrong() {
        return not_ready("clock");
    }
    match app.ready().await {
        Ok(()) => {
            if !is_ready.swap(true, Ordering::Relaxed) {
                tracing::info!("ready again");
            }
            Json(serde_json::json!({"status": "ready"})).into_response()
        }
        Err(error) => {
            if is_ready.swap(false, Ordering::Relaxed) {
                tracing::warn!(%error, "not ready");
            }
            not_ready("database")
        }
    }
}

fn not_ready(reason: &str) -> Response {
    let body = Json(serde_json::json!({"status": "not_ready", "reasons": [reason]}));
    let retry = [(header::RETRY_AFTER, READY_RETRY_SECS)];
    (StatusCode::SERVICE_UNAVAILABLE, retry, body).into_response()
}

/// Prints the addresses, creates the audit log's key, and prints the set-up link if there are no
/// users.
async fn initialize(
    app: &App,
    listeners: &Listeners,
    is_tls: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let scheme = if is_tls { "https" } else { "http" };
    let address = listeners.interface.local_addr()?;
    announce(format_args!("listening on {scheme}://{address}"));
    app.key_audit(app.now()).await?;
    if let Some(secret) = app.bootstrap(app.now()).await? {
        let secret = secret.reveal();
        announce(format_args!(
            "set up at {scheme}://{address}/set-up?token={secret}"
        ));
    }
    if let Some(listener) = &listeners.metrics {
        let address = listener.local_addr()?;
        announce(format_args!("metrics at http://{address}/metrics"));
    }
    Ok(())
}

/// Prints a line for the operator or a script. A failure, for example on a full disk, is only
/// logged, so that the service starts anyway.
fn announce(line: Arguments<'_>) {
    if let Err(error) = print_line(line) {
        tracing::warn!(%error, "a line about the start is lost");
    }
}

/// Waits for SIGTERM or SIGINT.
async fn stop_signal() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return;
    };
    let Ok(mut interrupt) = signal(SignalKind::interrupt()) else {
        return;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;
    use control_domain::Retention;

    #[tokio::test]
    async fn the_application_has_the_retention_of_the_flags() {
        let folder = tempfile::tempdir().unwrap();
        let data = format!("--data-dir={}", folder.path().join("data").display());
        let flags = [
            "controld",
            &data,
            "--rollout-retention-days=1",
            "--bundle-retention-days=2",
            "--drift-retention-days=3",
            "--token-retention-days=4",
            "--audit-retention-days=50",
            "--traffic-retention-days=60",
        ];
        let args = Cli::try_parse_from(flags).unwrap().serve;
        let data_dir = DataDir::new(args.state.clone());
        let app = open_app(&data_dir, &args).await.unwrap();
        let expected = Retention {
            rollouts: 1,
            bundles: 2,
            drift: 3,
            tokens: 4,
            audit: 50,
            traffic: 60,
        };
        assert_eq!(app.retention, expected);
        app.close().await;
    }
}
