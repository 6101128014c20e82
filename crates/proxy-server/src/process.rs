//! The process: starts, serves until a signal, and exits.

pub(crate) mod server_handle;

use crate::config::options::Options;
use crate::control_loop;
use crate::error::start_error::StartError;
use crate::sockets::inherited_sockets::InheritedSockets;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Loads the configuration, serves until a signal ends the process, and drains.
///
/// # Errors
/// [`StartError`] if serving could not begin, or a worker died.
pub fn run(options: &Options) -> Result<(), StartError> {
    let inherited = InheritedSockets::from_service_manager();
    claim_files();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let lived = runtime.block_on(control_loop::run(options, inherited));
    // A slow name server must not keep the process alive.
    runtime.shutdown_background();
    lived
}

/// Raises the limit of open files to the hard limit; the default soft limit is too low for a
/// server.
fn claim_files() {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tracing::warn!(%error, "the limit on open files stays as it was");
    }
}
