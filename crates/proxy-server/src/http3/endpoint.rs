//! The endpoint of one listener on one worker: sockets, QUIC state machine, timer, and all
//! connections.

mod accept;
mod handle;
mod task;

use super::settings::Http3Settings;
use super::steering::Http3Shared;
use crate::connection::settings::ConnectionSettings;
pub(crate) use handle::Endpoint;
use proxy_pipeline::Worker;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use task::EndpointTask;

/// The inputs of [`start`].
pub(crate) struct EndpointParts {
    pub(crate) worker: Rc<Worker>,
    pub(crate) shared: Http3Shared,
    pub(crate) settings: Rc<ConnectionSettings>,
    pub(crate) http3: Http3Settings,
}

/// An endpoint without sockets, and its task.
///
/// # Errors
/// No timer can be created, or the numbers of endpoints are used up.
pub(crate) fn start(
    parts: EndpointParts,
) -> io::Result<(Rc<Endpoint>, impl Future<Output = ()> + use<>)> {
    let EndpointParts {
        worker,
        shared,
        settings,
        http3,
    } = parts;
    let endpoint = Endpoint::new(settings, http3);
    let mut task = EndpointTask::new(&endpoint, worker, shared)?;
    Ok((endpoint, async move { poll_fn(|cx| task.poll(cx)).await }))
}
