//! Conditions of a project that need an operator, worst first.

use crate::node::standing::Standings;
use crate::request::failure::Failure;
use crate::request::visit::Caller;
use crate::rollout::words;
use crate::ui::Ui;
use crate::view::component::{Icon, Tone, icon};
use crate::view::link::Link;
use crate::view::phrase::{ago, count, duration, list_of, pick};
use control_app::{CertificateFilter, DriftFilter, Page, PageOrder, RolloutFilter, Versioned};
use control_domain::{Certificate, Drift, DriftState, NodeStanding, Rollout, RolloutState};
use control_wire::{BundleId, NodeId, ProjectId};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of listed items per kind.
const MAX_LISTED: i64 = 5;
/// Maximum number of certificates read.
const MAX_CERTIFICATES: i64 = 200;
/// Remaining validity below which a certificate should be replaced.
const CERTIFICATE_NOTICE: SignedDuration = SignedDuration::from_hours(21 * 24);

/// A condition that needs an operator.
#[derive(Clone, Debug)]
pub(crate) struct Attention {
    tone: Tone,
    pub(crate) icon: Icon,
    /// Link of the sentence's subject, followed by the rest.
    pub(crate) link: Link,
    pub(crate) rest: String,
    pub(crate) detail: String,
    pub(crate) button: &'static str,
}

impl Attention {
    pub(crate) fn class(&self) -> &'static str {
        self.tone.class()
    }
}

/// Finds the conditions of a project that need an operator.
pub(crate) async fn find(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    standings: &Standings,
) -> Result<Vec<Attention>, Failure> {
    let call = &caller.call;
    let (app, now) = (&ui.app, caller.visit.now);
    let few = Page {
        after: None,
        limit: MAX_LISTED,
        order: PageOrder::Oldest,
    };
    let mut rollouts = Vec::new();
    for state in [
        RolloutState::Paused,
        RolloutState::RollingBack,
        RolloutState::AwaitingApproval,
    ] {
        rollouts.extend(
            app.rollouts(
                call,
                project,
                &RolloutFilter {
                    state: Some(state),
                    bundle: None,
                },
                few,
            )
            .await?,
        );
    }
    let open = DriftFilter {
        state: Some(DriftState::Open),
        node: None,
    };
    let drifts = app.drifts(call, project, &open, few).await?;
    let all = Page {
        after: None,
        limit: MAX_CERTIFICATES,
        order: PageOrder::Oldest,
    };
    let ending = CertificateFilter {
        expires_before: Some(now + CERTIFICATE_NOTICE),
        ..CertificateFilter::default()
    };
    let certificates = app.certificates(call, project, &ending, all).await?;
    let bundles: BTreeSet<BundleId> = rollouts.iter().map(|found| found.value.bundle).collect();
    let bundles = app.bundle_names(call, project, &bundles).await?;
    let nodes: BTreeSet<NodeId> = drifts.iter().map(|found| found.value.node).collect();
    let nodes = app.node_names(call, project, &nodes).await?;
    let mut list: Vec<Attention> = Vec::new();
    list.extend(
        rollouts
            .iter()
            .map(|found| rollout_attention(&found.value, &bundles)),
    );
    list.extend(nodes_attention(ui, caller, project, standings).await?);
    list.extend(
        drifts
            .iter()
            .map(|found| drift_attention(&found.value, &nodes, now)),
    );
    list.extend(certificates_attention(&certificates, now));
    list.sort_by_key(|one| match one.tone {
        Tone::Bad => 0,
        Tone::Warn => 1,
        Tone::Ok | Tone::Busy | Tone::Off => 2,
    });
    Ok(list)
}

fn rollout_attention(rollout: &Rollout, names: &BTreeMap<BundleId, String>) -> Attention {
    let status = words::status(rollout);
    let name = names
        .get(&rollout.bundle)
        .map_or("a bundle", String::as_str);
    let project = rollout.tenant.project.map(|id| id.to_string());
    let href = format!(
        "/projects/{}/rollouts/{}",
        project.unwrap_or_default(),
        rollout.id
    );
    let (sign, rest, button, detail) = match rollout.state {
        RolloutState::AwaitingApproval => (
            "wait",
            "waits for another person’s approval".to_owned(),
            "Look at it",
            format!(
                "{} get it once it is approved.",
                count(rollout.nodes, "node")
            ),
        ),
        RolloutState::Paused => (
            "pause",
            stopped(rollout),
            "Decide",
            format!("{} Nothing moves until a person decides.", why(rollout)),
        ),
        RolloutState::Planned
        | RolloutState::Running
        | RolloutState::Completed
        | RolloutState::Failed
        | RolloutState::RollingBack
        | RolloutState::RolledBack
        | RolloutState::Cancelled => (
            "back",
            "is being rolled back".to_owned(),
            "Follow it",
            why(rollout),
        ),
    };
    Attention {
        tone: status.tone,
        icon: icon(sign),
        link: Link {
            path: href,
            text: format!("Rollout of {name}"),
        },
        rest,
        detail: detail.trim().to_owned(),
        button,
    }
}

/// Phrase such as `stopped at batch 3 of 6`, by its gate or by hand.
fn stopped(rollout: &Rollout) -> String {
    let verb = if rollout.is_stopped_by_hand() {
        "is paused by hand"
    } else {
        "stopped"
    };
    format!("{verb}{}", words::place(rollout))
}

fn why(rollout: &Rollout) -> String {
    words::full_reason(rollout).unwrap_or_default()
}

/// Conditions for offline nodes and for nodes that rejected their bundles.
async fn nodes_attention(
    ui: &Ui,
    caller: &Caller,
    project: ProjectId,
    standings: &Standings,
) -> Result<Vec<Attention>, Failure> {
    let mut list = Vec::new();
    for standing in [NodeStanding::Refused, NodeStanding::Silent] {
        let nodes = standings.nodes(standing);
        let mut link = Link {
            path: format!("/projects/{project}/nodes?standing={standing}"),
            text: count(nodes, "node"),
        };
        if nodes == 1 {
            let page = Page {
                after: None,
                limit: 1,
                order: PageOrder::Oldest,
            };
            let found = ui.app.nodes_standing(&caller.call, project, standing, page);
            if let Some(node) = found.await?.first() {
                link.path = format!("/projects/{project}/nodes/{}", node.value.id);
                link.text = node.value.name.to_string();
            }
        }
        if 0 < nodes {
            list.push(standing_attention(standing, link, nodes));
        }
    }
    Ok(list)
}

/// Condition for `nodes` that are offline or rejected their bundles.
fn standing_attention(standing: NodeStanding, link: Link, nodes: i64) -> Attention {
    let (tone, sign, rest, detail) = if standing == NodeStanding::Refused {
        let rest = pick(nodes, "rejected its bundle", "rejected their bundles");
        let detail = "The page of a node shows its reason.";
        (Tone::Bad, "bad", rest, detail)
    } else {
        let rest = pick(nodes, "is offline", "are offline");
        let detail =
            "Three heartbeats are missing. A node keeps serving without the control plane.";
        (Tone::Warn, "off", rest, detail)
    };
    Attention {
        tone,
        icon: icon(sign),
        link,
        rest: rest.to_owned(),
        detail: detail.to_owned(),
        button: pick(nodes, "Look at it", "Look at them"),
    }
}

fn drift_attention(drift: &Drift, names: &BTreeMap<NodeId, String>, now: Timestamp) -> Attention {
    let name = names.get(&drift.node).map_or("A node", String::as_str);
    let project = drift.tenant.project.map(|id| id.to_string());
    let project = project.unwrap_or_default();
    let href = format!("/projects/{project}/drift/{}", drift.id);
    Attention {
        tone: Tone::Warn,
        icon: icon("drift"),
        link: Link {
            path: href,
            text: name.to_owned(),
        },
        rest: match drift.active {
            Some(_) if drift.is_edited() => "has edited files of its bundle on its disk",
            Some(_) => "runs a bundle that is not assigned to it",
            None => "runs no bundle, although one is assigned to it",
        }
        .to_owned(),
        detail: format!("Noticed {}.", ago(drift.opened_at, now)),
        button: if drift.is_edited() {
            "Look at it"
        } else {
            "Compare"
        },
    }
}

fn certificates_attention(found: &[Versioned<Certificate>], now: Timestamp) -> Vec<Attention> {
    let certificates = found.iter().map(|found| &found.value);
    let ending = certificates.filter(|one| one.facts.not_after < now + CERTIFICATE_NOTICE);
    let limit = usize::try_from(MAX_LISTED).unwrap_or(usize::MAX);
    ending
        .take(limit)
        .map(|one| certificate_attention(one, now))
        .collect()
}

fn certificate_attention(certificate: &Certificate, now: Timestamp) -> Attention {
    let end = certificate.facts.not_after;
    let left = end.as_second() - now.as_second();
    let is_expired = left <= 0;
    let project = certificate.tenant.project.map(|id| id.to_string());
    Attention {
        tone: if is_expired { Tone::Bad } else { Tone::Warn },
        icon: icon("lock"),
        link: Link {
            path: format!("/projects/{}/certificates", project.unwrap_or_default()),
            text: format!("Certificate {}", certificate.name),
        },
        rest: if is_expired {
            format!("expired {}", ago(end, now))
        } else {
            format!("expires in {}", duration(left))
        },
        detail: format!("For {}.", list_of(&certificate.facts.hosts)),
        button: "Replace",
    }
}
