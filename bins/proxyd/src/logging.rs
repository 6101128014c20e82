//! What the process says about itself, as JSON lines on the standard error output.

use tracing_subscriber::EnvFilter;

/// Starts writing events. `RUST_LOG` chooses which; by default those of level `info` and above.
/// Release builds hold none of level `trace`.
pub(crate) fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_target(false)
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
}
