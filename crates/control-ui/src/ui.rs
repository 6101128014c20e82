//! State shared by all handlers.

pub(crate) mod live_streams;

use crate::request::visit::Visit;
use control_app::App;
use control_http::SessionCookie;
use live_streams::LiveStreams;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// State shared by all handlers.
#[derive(Debug)]
pub(crate) struct Ui {
    pub(crate) app: Arc<App>,
    pub(crate) cookie: SessionCookie,
    /// Open event streams of live pages.
    pub(crate) streams: LiveStreams,
    /// Permits for reading forms of unauthenticated senders, to show them again.
    pub(crate) unread_forms: Semaphore,
}

/// Maximum number of such forms in memory at once.
const MAX_UNREAD_FORMS: usize = 8;

impl Ui {
    pub(crate) fn new(app: &Arc<App>, cookie: SessionCookie) -> Self {
        Self {
            app: Arc::clone(app),
            cookie,
            streams: LiveStreams::default(),
            unread_forms: Semaphore::new(MAX_UNREAD_FORMS),
        }
    }

    /// URL of this server: the configured one, or the one that the browser used.
    pub(crate) fn server_url(&self, visit: &Visit) -> String {
        if let Some(url) = &self.app.sso_site.public_url {
            return url.clone();
        }
        let scheme = match self.cookie {
            SessionCookie::Tls => "https",
            SessionCookie::Loopback => "http",
        };
        let host = visit.host.as_deref().unwrap_or("THIS-SERVER");
        format!("{scheme}://{host}")
    }
}
