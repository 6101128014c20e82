//! Parts of a configuration that one plan has and the other does not.

use super::relative_path::relative;
use proxy_model::Model;
use std::collections::BTreeSet;
use std::fmt;

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Only in the newer configuration.
    Added,
    /// The part was removed.
    Removed,
    /// The part's value changed.
    Changed,
}

/// A named part of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A listener, by its name.
    Listener(String),
    /// A certificate of a listener.
    Certificate {
        /// The listener's name.
        listener: String,
        /// The file of the chain; relative to the configuration if it is inside its folder.
        file: String,
    },
    /// A host with a certificate that a listener obtains by ACME.
    ObtainedHost {
        /// The listener's name.
        listener: String,
        /// Host of the obtained certificate.
        host: String,
    },
    /// A route, by its id.
    Route(String),
    /// An upstream, by its name.
    Upstream(String),
    /// A target of an upstream.
    Target {
        /// The upstream's name.
        upstream: String,
        /// The address as written.
        address: String,
    },
    /// An agent, by its name.
    Agent(String),
}

/// A part that was added or removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartChange {
    /// Part of the configuration.
    pub part: Part,
    /// [`Change::Added`] or [`Change::Removed`].
    pub change: Change,
}

/// The parts that only one of the models has.
pub(super) fn part_changes(before: &Model, after: &Model) -> Vec<PartChange> {
    let (old, new) = (parts(before), parts(after));
    let removed = old.difference(&new).map(|part| (part, Change::Removed));
    let added = new.difference(&old).map(|part| (part, Change::Added));
    let changes = removed.chain(added).map(|(part, change)| PartChange {
        part: part.clone(),
        change,
    });
    let mut changes: Vec<PartChange> = changes.collect();
    changes.sort();
    changes
}

fn parts(model: &Model) -> BTreeSet<Part> {
    let listeners = model.listeners.iter().flat_map(|listener| {
        let certificates = listener.tls.iter().flat_map(|tls| &tls.certificates);
        let certificates = certificates.map(|certificate| Part::Certificate {
            listener: listener.name.clone(),
            file: relative(model, &certificate.cert_file),
        });
        let obtained = listener.tls.iter().flat_map(|tls| &tls.acme);
        let obtained = obtained.flat_map(|acme| &acme.hosts);
        let obtained = obtained.map(|host| Part::ObtainedHost {
            listener: listener.name.clone(),
            host: host.value.clone(),
        });
        [Part::Listener(listener.name.clone())]
            .into_iter()
            .chain(certificates)
            .chain(obtained)
    });
    let upstreams = model.upstreams.iter().flat_map(|upstream| {
        let targets = upstream.targets.iter().map(|target| Part::Target {
            upstream: upstream.name.clone(),
            address: target.address.to_string(),
        });
        [Part::Upstream(upstream.name.clone())]
            .into_iter()
            .chain(targets)
    });
    let routes = model
        .routes
        .iter()
        .map(|route| Part::Route(route.id.clone()));
    let agents = model
        .agents
        .iter()
        .map(|agent| Part::Agent(agent.name.clone()));
    listeners
        .chain(upstreams)
        .chain(routes)
        .chain(agents)
        .collect()
}

impl Change {
    /// The word in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listener(name) => write!(f, "listener {name}"),
            Self::Certificate { listener, file } => {
                write!(f, "certificate {file} of listener {listener}")
            }
            Self::ObtainedHost { listener, host } => {
                write!(f, "certificate by ACME for {host} of listener {listener}")
            }
            Self::Route(id) => write!(f, "route {id}"),
            Self::Upstream(name) => write!(f, "upstream {name}"),
            Self::Target { upstream, address } => {
                write!(f, "target {address} of upstream {upstream}")
            }
            Self::Agent(name) => write!(f, "agent {name}"),
        }
    }
}
