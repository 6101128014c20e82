//! Log events as JSON lines on standard error.

use proxy_server::Events;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, registry};

/// Starts the log. `RUST_LOG` filters events; the default level is `info`. Release builds contain
/// no events of level `trace`.
///
/// # Errors
/// Standard error is closed, or the log's thread cannot be started.
pub(crate) fn start() -> io::Result<Events> {
    let events = Events::on_stderr()?;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    registry().with(filter).with(events.clone()).init();
    // The default hook writes to standard error directly, so a panicking thread could block on a
    // slow reader.
    std::panic::set_hook(Box::new(|panic| {
        let trace = Backtrace::capture();
        let trace = (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string());
        tracing::error!(%panic, trace, "a thread panicked");
    }));
    Ok(events)
}
