//! The actions that the driver carries out.

use crate::bundle::Bundle;
use control_wire::{CertificateId, NodeStatus, Order, OrgId};
use std::sync::Arc;
use std::time::Duration;

/// The next action of the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Exchange the enrolment token for an identity.
    Enrol,
    /// Exchange the node key for a token of 12 hours.
    ExchangeToken,
    /// Fetch the published signing keys of the organization.
    FetchKeys(OrgId),
    /// Send a heartbeat with this status.
    Report(NodeStatus),
    /// Request an answer with another tag than `known`, and wait up to `wait` for it.
    Poll {
        /// The `ETag` of the last processed answer, unchanged; empty for none.
        known: String,
        /// Maximum time that the control plane may hold the request.
        wait: Duration,
    },
    /// Fetch the archive of the order.
    Fetch(Order),
    /// Write the bundle to the disk.
    Stage(Arc<Bundle>),
    /// Fetch these certificates with their private keys.
    FetchCertificates(Vec<CertificateId>),
    /// Activate the bundle, or change nothing.
    Activate(Arc<Bundle>),
    /// Activate the bundle and send its live tests; if one fails, reactivate the previous bundle.
    TryOut(Arc<Bundle>),
    /// Activate the last good bundle instead of the one on trial, without a request to the control
    /// plane.
    Revert,
    /// Activate the fetched certificates with the active bundle, or change nothing.
    Renew,
    /// Wait; the driver may shorten it by up to a half, so that a fleet does not reconnect
    /// simultaneously.
    Wait(Duration),
}

impl Action {
    /// Returns true if it is a request to the control plane.
    pub(crate) fn is_request(&self) -> bool {
        match self {
            Self::Enrol
            | Self::ExchangeToken
            | Self::FetchKeys(_)
            | Self::Report(_)
            | Self::Poll { .. }
            | Self::Fetch(_)
            | Self::FetchCertificates(_) => true,
            Self::Stage(_)
            | Self::Activate(_)
            | Self::TryOut(_)
            | Self::Revert
            | Self::Renew
            | Self::Wait(_) => false,
        }
    }
}
