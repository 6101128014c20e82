//! A reload between its request and its commit.

use crate::admin::AdminListeners;
use crate::config::delivery::Delivery;
use crate::config::live_tests::{LiveFailure, LiveTests};
use crate::error::start_error::StartError;
use crate::reload::server::Opened;
use crate::sockets::inherited_sockets::InheritedSockets;
use proxy_model::Model;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A reload waiting for files or DNS answers; the control loop runs meanwhile.
pub(super) struct PendingReload {
    pub(super) prepared: Pin<Box<dyn Future<Output = Prepared>>>,
    pub(super) bundle: Option<Delivery>,
    /// Receives the result of a delivery; `None` after a signal.
    pub(super) answer: Option<DeliveryAnswer>,
}

pub(super) type DeliveryAnswer = oneshot::Sender<Result<LiveTests, Vec<String>>>;

/// The outcome of a reload's wait, before anything is applied.
pub(super) struct Prepared {
    pub(super) result: Result<ReadyReload, StartError>,
    /// Inherited sockets that no setting has claimed.
    pub(super) inherited: InheritedSockets,
}

/// A configuration that only has to be applied.
pub(super) struct ReadyReload {
    pub(super) opened: Opened,
    pub(super) listeners: AdminListeners,
    pub(super) model: Arc<Model>,
    /// Live tests that also fail under the previous configuration.
    pub(super) known: Vec<LiveFailure>,
}

/// Waits for the files and names of the current reload; pending without a reload. Cancel safe.
pub(super) async fn prepared(reload: &mut Option<PendingReload>) -> Prepared {
    match reload {
        Some(reload) => reload.prepared.as_mut().await,
        None => std::future::pending().await,
    }
}
