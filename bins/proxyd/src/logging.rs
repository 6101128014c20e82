//! What the process says about itself, as JSON lines on the standard error output.

use proxy_server::Events;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, registry};

/// Starts writing events. `RUST_LOG` chooses which; by default those of level `info` and above.
/// Release builds hold none of level `trace`.
///
/// # Errors
/// When there is no standard error output, or no thread can be started.
pub(crate) fn start() -> io::Result<Events> {
    let events = Events::on_stderr()?;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    registry().with(filter).with(events.clone()).init();
    // The usual hook writes by itself, and whatever panics would wait for it.
    std::panic::set_hook(Box::new(|panic| {
        let trace = Backtrace::capture();
        let trace = (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string());
        tracing::error!(%panic, trace, "a thread panicked");
    }));
    Ok(events)
}
