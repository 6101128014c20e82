//! The parts of `proxyd explain --json` that the page shows.

use crate::request::failure::Failure;
use crate::view::component::{Status, Tone};
use control_app::Error;
use serde::Deserialize;
use serde_json::Value;

/// Decision on a request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Document {
    pub(super) request: ExplainedRequest,
    pub(super) listener: Option<Named>,
    pub(super) route: Option<Winner>,
    pub(super) agents: Vec<Named>,
    pub(super) outcome: Outcome,
    rejected: Vec<Rejected>,
    pub(super) settings: Vec<Setting>,
}

/// The request, with its normalized parts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct ExplainedRequest {
    pub(super) host: Host,
    pub(super) path: Target,
    pub(super) client_ip: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Host {
    pub(super) matched: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Target {
    pub(super) sent: String,
    pub(super) canonical: Option<String>,
}

/// A part of the configuration with its file and line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) source: String,
}

/// The matching route.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Winner {
    pub(super) name: String,
    source: String,
    priority: i32,
    matched: Vec<Condition>,
    default_route: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Condition {
    condition: String,
    value: String,
}

/// Response to the request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub(super) enum Outcome {
    Forward {
        upstream: Named,
        candidates: Vec<Candidate>,
    },
    Answer {
        handler: String,
    },
    Files {
        root: String,
    },
    Refuse {
        status: u16,
        message: String,
        nearest: Option<Nearest>,
    },
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Candidate {
    pub(super) address: String,
}

/// The route that came closest to a match.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Nearest {
    pub(super) name: String,
    unmet: Unmet,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Rejected {
    name: String,
    source: String,
    priority: i32,
    why: LossReason,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum LossReason {
    Unmet {
        unmet: Unmet,
    },
    Outranked {
        outranked_by: String,
        because: String,
    },
}

/// A condition that is not met.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Unmet {
    condition: String,
    wanted: String,
    got: String,
}

/// A setting that applies to the request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Setting {
    pub(super) path: String,
    value: Value,
    pub(super) origin: String,
}

/// A route with the reason why it matches or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) route: String,
    pub(super) priority: i32,
    pub(super) status: Status,
    pub(super) because: String,
    pub(super) source: String,
}

impl Document {
    /// Parses the JSON document of the application.
    pub(super) fn read(value: Value) -> Result<Self, Failure> {
        serde_json::from_value(value).map_err(|error| {
            tracing::error!(cause = %error, "explanation has another form than its page");
            Failure::from(Error::Stopped)
        })
    }

    /// Returns true if other agents are called, or in another order.
    pub(super) fn agents_differ(&self, other: &Self) -> bool {
        let names = self.agents.iter().map(|agent| &agent.name);
        !names.eq(other.agents.iter().map(|agent| &agent.name))
    }

    /// Returns true if the request may be sent to other targets.
    pub(super) fn targets_differ(&self, other: &Self) -> bool {
        self.outcome.candidates() != other.outcome.candidates()
    }

    /// All routes: first the matching one, then further candidates, then the rest in configuration
    /// order.
    pub(super) fn reasons(&self) -> Vec<Reason> {
        let outranked = |one: &&Rejected| matches!(one.why, LossReason::Outranked { .. });
        let close = self.rejected.iter().filter(outranked);
        let far = self.rejected.iter().filter(|one| !outranked(one));
        let winner = self.route.iter().map(Winner::reason);
        winner
            .chain(close.chain(far).map(Rejected::reason))
            .collect()
    }
}

impl Outcome {
    fn candidates(&self) -> &[Candidate] {
        match self {
            Self::Forward { candidates, .. } => candidates,
            Self::Answer { .. } | Self::Files { .. } | Self::Refuse { .. } => &[],
        }
    }
}

impl Winner {
    fn reason(&self) -> Reason {
        let conditions = self.matched.iter();
        let conditions = conditions.map(|one| format!("{} {}", one.condition, one.value));
        let conditions: Vec<String> = conditions.collect();
        Reason {
            route: self.name.clone(),
            priority: self.priority,
            status: Status::new(Tone::Ok, "ok", "Takes it"),
            because: match (&self.default_route, conditions.is_empty()) {
                (Some(_), _) => "no route fits, and it is the default of the listener".to_owned(),
                (None, true) => "it has no conditions".to_owned(),
                (None, false) => conditions.join(", "),
            },
            source: self.source.clone(),
        }
    }
}

impl Rejected {
    fn reason(&self) -> Reason {
        let (status, because) = match &self.why {
            LossReason::Unmet { unmet } => (Status::new(Tone::Off, "off", "No"), unmet.words()),
            LossReason::Outranked {
                outranked_by,
                because,
            } => (
                Status::new(Tone::Off, "wait", "Would fit"),
                outranked(outranked_by, because),
            ),
        };
        Reason {
            route: self.name.clone(),
            priority: self.priority,
            status,
            because,
            source: self.source.clone(),
        }
    }
}

impl Unmet {
    fn words(&self) -> String {
        // A condition on the path contains the name of its setting.
        let condition = match self.condition.as_str() {
            "path" => self.wanted.clone(),
            condition => format!("{condition} {}", self.wanted),
        };
        format!("requires {condition}, got {}", self.got)
    }
}

impl Nearest {
    /// The route, and its first unmet condition.
    pub(super) fn words(&self) -> String {
        format!("{} {}", self.name, self.unmet.words())
    }
}

impl Setting {
    /// The value as written.
    pub(super) fn value(&self) -> String {
        let text = self.value.as_str().map(str::to_owned);
        text.unwrap_or_else(|| self.value.to_string())
    }
}

fn outranked(by: &str, because: &str) -> String {
    match because {
        "priority" => format!("{by} has a higher priority"),
        "path" => format!("the path of {by} is more specific"),
        "host" => format!("the host of {by} is more specific"),
        "conditions" => format!("more conditions of {by} hold"),
        _ => format!("{by} precedes it in the file"),
    }
}
