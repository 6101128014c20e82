//! Serving: the listener, routes outside the interface, background work, shutdown.

use crate::background::Background;
use crate::cli::ServeArgs;
use crate::commands::check::{Prepared, prepare, tell};
use crate::config::ConfigFile;
use crate::connections::Connections;
use crate::state::{now, open_in};
use crate::trust::TrustedProxies;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use control_app::metric::describe_metrics;
use control_app::{App, Error, SsoSite};
use control_domain::{HeartbeatInterval, PrivateAddresses};
use control_http::SessionCookie;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::future::IntoFuture;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

/// Upper bounds of the request histogram, in seconds.
const BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Media type of the Prometheus text format, with the version that the exporter writes: scrapers choose their parser by it.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Seconds until a balancer retries.
const READY_RETRY_SECS: &str = "5";

/// Serves until SIGTERM or SIGINT.
pub(crate) async fn run(
    args: ServeArgs,
    file: Option<&ConfigFile>,
) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let Prepared { data_dir, tls } = match prepare(&args, now()) {
        Ok(prepared) => prepared,
        Err(faults) => {
            tell(&faults, file);
            return Ok(ExitCode::FAILURE);
        }
    };
    let metrics = PrometheusBuilder::new()
        .set_buckets(BUCKETS)?
        .install_recorder()?;
    let made = data_dir.make();
    made.map_err(|error| data_dir.at_folder(&error))?;
    let _lock = data_dir.lock()?;
    let mut app = open_in(&data_dir).await?;
    app.heartbeat_interval = HeartbeatInterval::from_secs(args.heartbeat_secs);
    app.quotas = args.quotas.into();
    app.retention = args.retention.into();
    app.sso_site = sso_site(args.public_url, args.sso_private_addresses);
    let app = Arc::new(app);
    describe_metrics(env!("CARGO_PKG_VERSION"), app.now());
    let listener = TcpListener::bind(args.listen).await;
    let listener = listener.map_err(|error| not_bound("listen", args.listen, &error))?;
    let address = listener.local_addr()?;
    let metrics_server = bind_metrics(args.metrics_listen).await?;
    announce(&app, address, tls.is_some()).await?;
    announce_metrics(metrics_server.as_ref())?;
    let background = Background {
        app: Arc::clone(&app),
        metrics: metrics.clone(),
        key_file: data_dir.key_file,
        tls: tls.clone(),
    };
    let background = tokio::spawn(background.run());
    let in_clear = tls.is_none() && args.trusted_proxies.is_empty() && address.ip().is_loopback();
    let cookie = if in_clear {
        SessionCookie::Loopback
    } else {
        SessionCookie::Tls
    };
    let rendered = control_api::answering(&app, metrics_router(metrics));
    let (local, metrics_task) = match metrics_server {
        None => (Some(rendered), None),
        Some(listener) => {
            let task = tokio::spawn(axum::serve(listener, rendered).into_future());
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
        stopped().await;
        // Long polls would hold the shutdown up.
        stopping.end_waits();
    };
    connections.serve(listener, stop).await;
    background.abort();
    if let Some(task) = metrics_task {
        task.abort();
    }
    app.close().await;
    Ok(ExitCode::SUCCESS)
}

/// `GET /metrics`.
fn metrics_router(metrics: PrometheusHandle) -> Router {
    let fields = [(header::CONTENT_TYPE, METRICS_TYPE)];
    Router::new().route("/metrics", get(async move || (fields, metrics.render())))
}

/// The settings of single sign-on.
fn sso_site(public_url: Option<String>, allows_private_addresses: bool) -> SsoSite {
    let private_addresses = if allows_private_addresses {
        PrivateAddresses::Allowed
    } else {
        PrivateAddresses::Refused
    };
    SsoSite {
        public_url,
        private_addresses,
    }
}

/// Error of a listener that cannot be opened, with its remedy.
fn not_bound(setting: &str, listen: SocketAddr, error: &io::Error) -> String {
    let ways_out = [
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
    let way_out = ways_out.iter().find(|(kind, _)| *kind == error.kind());
    let way_out = way_out.map_or(String::new(), |(_, text)| format!("; {text}"));
    format!("--{setting} {listen}: {error}{way_out}")
}

fn max_connections(setting: u32) -> usize {
    usize::try_from(setting).unwrap_or(Semaphore::MAX_PERMITS)
}

/// The listener of the metrics, if they have an address of their own.
async fn bind_metrics(listen: Option<SocketAddr>) -> Result<Option<TcpListener>, String> {
    let Some(listen) = listen else {
        return Ok(None);
    };
    let listener = TcpListener::bind(listen).await;
    let listener = listener.map_err(|error| not_bound("metrics-listen", listen, &error))?;
    Ok(Some(listener))
}

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

/// State of `/ready`.
#[derive(Debug)]
struct Readiness {
    app: Arc<App>,
    /// The last answer: only changes are logged, because any client may ask at any rate.
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

#[expect(
    clippy::print_stdout,
    reason = "the operator reads these lines, and so may a script"
)]
async fn announce(app: &App, address: SocketAddr, is_tls: bool) -> Result<(), Error> {
    let scheme = if is_tls { "https" } else { "http" };
    println!("listening on {scheme}://{address}");
    app.key_audit(app.now()).await?;
    if let Some(secret) = app.bootstrap(app.now()).await? {
        let secret = secret.reveal();
        println!("set up at {scheme}://{address}/set-up?token={secret}");
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the operator reads this line")]
fn announce_metrics(listener: Option<&TcpListener>) -> Result<(), io::Error> {
    if let Some(listener) = listener {
        println!("metrics at http://{}/metrics", listener.local_addr()?);
    }
    Ok(())
}

async fn stopped() {
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
