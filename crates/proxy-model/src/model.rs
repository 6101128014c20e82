//! The whole configuration, as one value.

use crate::admin::Admin;
use crate::agent::Agent;
use crate::control_plane::ControlPlane;
use crate::limits::Limits;
use crate::listener::Listener;
use crate::observability::Observability;
use crate::place::Sources;
use crate::route::Route;
use crate::system::System;
use crate::upstream::Upstream;

/// A configuration known to be right. Immutable; a reload makes another.
#[derive(Clone, Debug)]
pub struct Model {
    /// Where clients connect, in file order.
    pub listeners: Vec<Listener>,
    /// Where requests go, in file order.
    pub routes: Vec<Route>,
    /// Groups of targets, in file order.
    pub upstreams: Vec<Upstream>,
    /// External agents, in file order.
    pub agents: Vec<Agent>,
    /// How much of everything.
    pub limits: Limits,
    /// The admin interface.
    pub admin: Admin,
    /// Logs.
    pub observability: Observability,
    /// The process.
    pub system: System,
    /// The control plane that this node follows, if any.
    pub control_plane: Option<ControlPlane>,
    /// The files it was read from.
    pub sources: Sources,
}

/// A route of a [`Model`], by its index in [`Model::routes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteIndex(pub u32);

/// An upstream of a [`Model`], by its index in [`Model::upstreams`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpstreamIndex(pub u32);

/// An agent of a [`Model`], by its index in [`Model::agents`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentIndex(pub u32);

impl Model {
    /// The route at `index`; none only when the index is another model's.
    pub fn route(&self, index: RouteIndex) -> Option<&Route> {
        self.routes.get(index.position())
    }

    /// The upstream at `index`; none only when the index is another model's.
    pub fn upstream(&self, index: UpstreamIndex) -> Option<&Upstream> {
        self.upstreams.get(index.position())
    }

    /// The agent at `index`; none only when the index is another model's.
    pub fn agent(&self, index: AgentIndex) -> Option<&Agent> {
        self.agents.get(index.position())
    }
}

impl RouteIndex {
    /// The position in [`Model::routes`].
    pub const fn position(self) -> usize {
        self.0 as usize
    }
}

impl UpstreamIndex {
    /// The position in [`Model::upstreams`].
    pub const fn position(self) -> usize {
        self.0 as usize
    }
}

impl AgentIndex {
    /// The position in [`Model::agents`].
    pub const fn position(self) -> usize {
        self.0 as usize
    }
}
