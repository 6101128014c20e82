//! Events that the node reports in addition to its status.

use crate::error::OrderError;

/// An event on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind of event.
    pub kind: EventKind,
    /// A sentence for people.
    pub message: String,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A bundle was activated.
    BundleActivated,
    /// The files of the active bundle were edited on the disk; they are not loaded.
    BundleAltered,
    /// A bundle was rejected; the previous one stays active.
    BundleRejected(RefusalReason),
    /// An order was refused because of its signature, node or counter.
    OrderRefused(RefusalReason),
    /// Trust in signing keys changed.
    KeysChanged,
    /// Renewed certificates are served.
    CertificatesRenewed,
    /// Renewed certificates cannot be served; the previous ones stay in use.
    CertificatesRejected,
    /// A live test fails that also failed under the previous bundle.
    LiveTestFailing,
}

impl EventKind {
    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::BundleActivated => "bundle.activated",
            Self::BundleAltered => "bundle.altered",
            Self::BundleRejected(_) => "bundle.rejected",
            Self::OrderRefused(_) => "order.refused",
            Self::KeysChanged => "keys.changed",
            Self::CertificatesRenewed => "certificates.renewed",
            Self::CertificatesRejected => "certificates.rejected",
            Self::LiveTestFailing => "live_test.failing",
        }
    }

    /// Reason of a refusal; `None` for other events.
    pub fn refusal(self) -> Option<RefusalReason> {
        match self {
            Self::BundleRejected(reason) | Self::OrderRefused(reason) => Some(reason),
            Self::BundleActivated
            | Self::BundleAltered
            | Self::KeysChanged
            | Self::CertificatesRenewed
            | Self::CertificatesRejected
            | Self::LiveTestFailing => None,
        }
    }
}

/// Reason to refuse an order or its bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// The order is for another node.
    OtherNode,
    /// The order's counter was answered before.
    OldCounter,
    /// Two orders have the same counter and different bundles.
    Conflict,
    /// The order is signed by an untrusted key.
    UnknownKey,
    /// The order's signature does not verify.
    Signature,
    /// The archive is unavailable, or does not match the order.
    Archive,
    /// The bundle cannot be stored.
    Disk,
    /// The bundle's certificates cannot be fetched.
    Certificates,
    /// The activation fails, or a live test.
    Activation,
    /// The control plane did not confirm the order in time.
    Unconfirmed,
    /// Far more requests fail than before the switch.
    FarWorse,
    /// The process ended repeatedly in the trial.
    Crashed,
}

impl RefusalReason {
    /// All reasons.
    pub const ALL: [Self; 12] = [
        Self::OtherNode,
        Self::OldCounter,
        Self::Conflict,
        Self::UnknownKey,
        Self::Signature,
        Self::Archive,
        Self::Disk,
        Self::Certificates,
        Self::Activation,
        Self::Unconfirmed,
        Self::FarWorse,
        Self::Crashed,
    ];

    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::OtherNode => "other_node",
            Self::OldCounter => "old_counter",
            Self::Conflict => "conflict",
            Self::UnknownKey => "unknown_key",
            Self::Signature => "signature",
            Self::Archive => "archive",
            Self::Disk => "disk",
            Self::Certificates => "certificates",
            Self::Activation => "activation",
            Self::Unconfirmed => "unconfirmed",
            Self::FarWorse => "far_worse",
            Self::Crashed => "crashed",
        }
    }
}

impl From<&OrderError> for RefusalReason {
    fn from(error: &OrderError) -> Self {
        match error {
            OrderError::OtherNode => Self::OtherNode,
            OrderError::Old { .. } => Self::OldCounter,
            OrderError::Conflict(_) => Self::Conflict,
            OrderError::UnknownKey(_) => Self::UnknownKey,
            OrderError::Signature => Self::Signature,
        }
    }
}
