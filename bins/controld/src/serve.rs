//! Serving: the listener, the routes beside the interface, the work in the background, the end.

use crate::cli::ServeArgs;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use control_app::{App, Error};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

/// Between two looks for changes of other replicas.
const RELAY_INTERVAL: Duration = Duration::from_secs(1);
/// Between two rounds of housekeeping.
const HOUSEKEEPING_INTERVAL: Duration = Duration::from_secs(30);
/// Upper bounds of the request histogram, in seconds.
const BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Serves until SIGTERM or SIGINT.
pub(crate) async fn run(args: ServeArgs) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let ServeArgs { state, listen } = args;
    let metrics = PrometheusBuilder::new()
        .set_buckets(BUCKETS)?
        .install_recorder()?;
    let app = Arc::new(crate::state::open(state).await?);
    let listener = TcpListener::bind(listen).await?;
    announce(&app, listener.local_addr()?).await?;
    let background = tokio::spawn(work(Arc::clone(&app), metrics.clone()));
    let service = router(&app, metrics).into_make_service_with_connect_info::<SocketAddr>();
    let stopping = Arc::clone(&app);
    axum::serve(listener, service)
        .with_graceful_shutdown(async move {
            stopped().await;
            // Long polls would hold the shutdown up.
            stopping.end_waits();
        })
        .await?;
    background.abort();
    app.close().await;
    Ok(ExitCode::SUCCESS)
}

fn router(app: &Arc<App>, metrics: PrometheusHandle) -> Router {
    let ready = get(ready).with_state(Arc::clone(app));
    control_api::router(app)
        .route("/setup", get(setup_hint))
        .route(
            "/health",
            get(async || Json(serde_json::json!({"status": "healthy"}))),
        )
        .route("/ready", ready)
        .route("/metrics", get(async move || metrics.render()))
}

async fn ready(State(app): State<Arc<App>>) -> Response {
    match app.ready().await {
        Ok(()) => Json(serde_json::json!({"status": "ready"})).into_response(),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            let reasons = serde_json::json!({"status": "not_ready", "reasons": ["database"]});
            (StatusCode::SERVICE_UNAVAILABLE, Json(reasons)).into_response()
        }
    }
}

/// What the set-up link shows.
async fn setup_hint() -> &'static str {
    "Send the token of this link once, as `Authorization: Bearer`, with\n\
     POST /api/v1/setup {\"org_name\", \"email\", \"user_name\", \"password\"}\n"
}

#[expect(
    clippy::print_stdout,
    reason = "the operator reads these lines, and so may a script"
)]
async fn announce(app: &App, address: SocketAddr) -> Result<(), Error> {
    println!("listening on http://{address}");
    if let Some(secret) = app.bootstrap(app.now()).await? {
        println!("set up at http://{address}/setup?token={}", secret.reveal());
    }
    Ok(())
}

/// A round that fails is tried again: the next one starts from the database anyway.
async fn work(app: Arc<App>, metrics: PrometheusHandle) {
    let replica = Uuid::now_v7();
    let mut relays = rounds(RELAY_INTERVAL);
    let mut cleanings = rounds(HOUSEKEEPING_INTERVAL);
    loop {
        let round = tokio::select! {
            _ = relays.tick() => {
                metrics.run_upkeep();
                app.relay().await
            }
            _ = cleanings.tick() => app.clean_up(replica, app.now()).await.map(drop),
        };
        if let Err(error) = round {
            tracing::error!(%error, "background work failed");
        }
    }
}

fn rounds(every: Duration) -> tokio::time::Interval {
    let mut rounds = interval(every);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    rounds
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
