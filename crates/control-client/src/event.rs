//! What the node tells of itself besides its status.

/// Something that happened on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it was.
    pub kind: EventKind,
    /// A sentence for readers.
    pub message: String,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A bundle came into force.
    BundleActivated,
    /// A bundle did not come into force; what ran before still does.
    BundleRejected,
    /// An order was not believed.
    OrderRefused,
    /// Trust in signing keys changed.
    KeysChanged,
}

impl EventKind {
    /// The name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::BundleActivated => "bundle.activated",
            Self::BundleRejected => "bundle.rejected",
            Self::OrderRefused => "order.refused",
            Self::KeysChanged => "keys.changed",
        }
    }
}
