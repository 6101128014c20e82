//! The process: it serves until told to stop.

pub(crate) mod server_handle;

use crate::config::options::Options;
use crate::control_loop;
use crate::error::start_error::StartError;
use crate::sockets::inherited_sockets::InheritedSockets;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Loads the configuration, serves until told to stop, and exits gracefully.
///
/// # Errors
/// [`StartError`] if serving could not begin, or a worker died.
pub fn run(options: &Options) -> Result<(), StartError> {
    let inherited = InheritedSockets::of_the_manager();
    claim_files();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let lived = runtime.block_on(control_loop::run(options, inherited));
    // A slow name server must not keep the process alive.
    runtime.shutdown_background();
    lived
}

/// Raises the limit of open files to the maximum that the system grants; the default is meant for
/// small programs.
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
