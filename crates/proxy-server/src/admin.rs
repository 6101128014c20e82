//! The admin interface of the running proxy.

use crate::process::Build;
use crate::server::Server;
use proxy_telemetry::{Lifecycle, Registry};
use std::sync::Arc;

/// The admin interface, open.
#[derive(Debug)]
pub(crate) struct Admin;

impl Admin {
    pub(crate) fn open(
        _server: &Server,
        _build: Build,
        _registry: &Arc<Registry>,
        _lifecycle: &Arc<Lifecycle>,
    ) -> Result<Self, String> {
        Ok(Self)
    }

    pub(crate) fn follow(&mut self, _server: &Server) -> Result<(), String> {
        Ok(())
    }
}
