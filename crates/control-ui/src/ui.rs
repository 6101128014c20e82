//! State that handlers share.

use control_app::App;
use control_http::SessionCookie;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum number of live pages. Each holds a connection.
const MAX_STREAMS: usize = 1_000;

/// State that handlers share.
#[derive(Debug)]
pub(crate) struct Ui {
    pub(crate) app: Arc<App>,
    pub(crate) cookie: SessionCookie,
    /// One permit for each live page.
    pub(crate) streams: Arc<Semaphore>,
}

impl Ui {
    pub(crate) fn new(app: &Arc<App>, cookie: SessionCookie) -> Self {
        Self {
            app: Arc::clone(app),
            cookie,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }
    }
}
