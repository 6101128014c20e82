//! Events of the process, as JSON lines on standard error.

use proxy_server::Events;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, registry};

/// Starts writing events. `RUST_LOG` filters them; by default level `info` and above is written.
/// Release builds contain no events of level `trace`.
///
/// # Errors
/// Standard error is closed, or the thread cannot be started.
pub(crate) fn start() -> io::Result<Events> {
    let events = Events::on_stderr()?;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    registry().with(filter).with(events.clone()).init();
    // The default hook writes directly, so that a panicking thread would wait for the reader.
    std::panic::set_hook(Box::new(|panic| {
        let trace = Backtrace::capture();
        let trace = (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string());
        tracing::error!(%panic, trace, "a thread panicked");
    }));
    Ok(events)
}
