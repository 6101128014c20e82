//! The parts that are carried over, in the terms of the configuration that is written.

use crate::kdl::Node;
use crate::migrated::{Left, Place};

/// A configuration to be written.
#[derive(Debug, Default)]
pub(crate) struct Site {
    /// Blocks at the top, besides those below.
    pub(crate) settings: Vec<Node>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) routes: Vec<Route>,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) left: Vec<Left>,
}

#[derive(Debug, Default)]
pub(crate) struct Listener {
    pub(crate) name: String,
    /// `host:port`, or `unix:/path`.
    pub(crate) address: String,
    pub(crate) is_tls: bool,
    /// The first one is the default.
    pub(crate) certificates: Vec<Certificate>,
    /// Settings of the block `tls`.
    pub(crate) tls: Vec<Node>,
    pub(crate) settings: Vec<Node>,
    pub(crate) timeouts: Vec<Node>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) cert: String,
    pub(crate) key: String,
    pub(crate) names: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) name: String,
    pub(crate) priority: Option<u32>,
    /// Names of listeners; empty for all.
    pub(crate) listeners: Vec<String>,
    pub(crate) hosts: Vec<String>,
    /// Alternatives; empty for every path.
    pub(crate) paths: Vec<Path>,
    /// Further conditions.
    pub(crate) matches: Vec<Node>,
    pub(crate) service: Service,
    pub(crate) policies: Policies,
    /// A host that the route's test asks for.
    pub(crate) sample_host: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Exact(String),
    Prefix(String),
    Regex(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Upstream(String),
    Static {
        root: String,
        index: Option<String>,
        fallback: Option<String>,
        precompressed: bool,
    },
    Redirect {
        to: Option<String>,
        status: u16,
        /// A prefix of the path, and its replacement.
        replace_prefix: Option<(String, String)>,
    },
    Respond {
        status: u16,
        body: Option<String>,
    },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    pub(crate) request_headers: Vec<Node>,
    pub(crate) response_headers: Vec<Node>,
    pub(crate) timeouts: Vec<Node>,
    /// The path that the upstream gets.
    pub(crate) rewrite: Option<Rewrite>,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    /// Further policies.
    pub(crate) settings: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    Strip(String),
    Replace(String, String),
    Path(String),
}

#[derive(Debug, Default)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    /// Addresses with weights.
    pub(crate) targets: Vec<(String, u64)>,
    /// Addresses of the targets that serve only while no other one can.
    pub(crate) backups: Vec<String>,
    pub(crate) settings: Vec<Node>,
    pub(crate) timeouts: Vec<Node>,
    /// TLS to the targets, with its settings.
    pub(crate) tls: Option<Vec<Node>>,
}

impl Route {
    pub(crate) fn new(name: String, service: Service) -> Self {
        Self {
            name,
            priority: None,
            listeners: Vec::new(),
            hosts: Vec::new(),
            paths: Vec::new(),
            matches: Vec::new(),
            service,
            policies: Policies::default(),
            sample_host: None,
        }
    }
}

impl Service {
    /// The answer for content that could not be carried over.
    pub(crate) fn not_migrated() -> Self {
        Self::Respond {
            status: 501,
            body: Some("not migrated".to_owned()),
        }
    }
}

impl Site {
    pub(crate) fn left(&mut self, place: &Place, directive: &str, advice: &str) {
        self.left.push(Left {
            place: place.clone(),
            directive: directive.to_owned(),
            advice: advice.to_owned(),
        });
    }

    /// A name that no route has yet.
    pub(crate) fn route_name(&self, wanted: &str) -> String {
        let is_taken = |name: &str| self.routes.iter().any(|route| route.name == name);
        unique(wanted, is_taken)
    }

    /// A name that no upstream has yet.
    pub(crate) fn upstream_name(&self, wanted: &str) -> String {
        let is_taken = |name: &str| self.upstreams.iter().any(|it| it.name == name);
        unique(wanted, is_taken)
    }
}

fn unique(wanted: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let wanted = name_of(wanted);
    let mut name = wanted.clone();
    let mut number = 2;
    while is_taken(&name) {
        name = format!("{wanted}-{number}");
        number += 1;
    }
    name
}

/// A name of letters, digits, dots and dashes.
fn name_of(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    let words = text.split(|c| !is_plain(c)).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    if name.is_empty() {
        "all".to_owned()
    } else {
        name
    }
}

/// A text as a regular expression of itself.
pub(crate) fn escaped(text: &str) -> String {
    let mut regex = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && !matches!(c, '/' | '-' | '_') {
            regex.push('\\');
        }
        regex.push(c);
    }
    regex
}
