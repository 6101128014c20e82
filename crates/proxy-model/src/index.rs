//! Indices of routes, upstreams and agents in a model.

/// A route of a model, by its index in the model's `routes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteIndex(pub u32);

/// An upstream of a model, by its index in the model's `upstreams`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpstreamIndex(pub u32);

/// An agent of a model, by its index in the model's `agents`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentIndex(pub u32);

impl RouteIndex {
    /// Index into the model's `routes`.
    pub const fn position(self) -> usize {
        self.0 as usize
    }
}

impl UpstreamIndex {
    /// Index into the model's `upstreams`.
    pub const fn position(self) -> usize {
        self.0 as usize
    }
}

impl AgentIndex {
    /// Index into the model's `agents`.
    pub const fn position(self) -> usize {
        self.0 as usize
    }
}
