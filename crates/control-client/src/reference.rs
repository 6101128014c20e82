//! Generates the reference page of a node's actions in each phase by running the machine.

use crate::bundle::OwnVersions;
use crate::machine::{Action, Assignment, Machine, Outcome, Phase};
use crate::state::PersistedState;
use control_auth::SigningPair;
use control_bundle::{Requirements, Version, digest, pack};
use control_wire::{JsonWebKey, Order, RegisterResponse, SigningKeyId};
use std::sync::Arc;
use std::time::Duration;

const HEAD: &str = "# The state machine of a node\n\n\
    Made by `cargo xtask reference` from `crates/control-client/src/machine.rs`: each row is asked of the \
    machine itself. Outcomes that are not listed for a phase belong to another action, and make the node \
    report.\n\n\
    | phase | outcome | next action | next phase |\n|---|---|---|---|\n";

/// Age of the sample's token.
const TOKEN_AGE: Duration = Duration::from_hours(1);
/// A number that no key and no node of the sample has.
const OTHER: u128 = 20;

/// Markdown table of all phases with their possible outcomes.
pub fn page() -> String {
    let Some(sample) = Sample::new() else {
        return HEAD.to_owned();
    };
    let mut page = HEAD.to_owned();
    for machine in sample.phases() {
        for (name, outcome) in sample.outcomes() {
            if belongs(machine.phase(), &outcome) {
                row(&mut page, machine.clone(), name, outcome);
            }
        }
        if *machine.phase() == Phase::Polling {
            let (serving, renewal) = sample.renewal();
            row(&mut page, serving, "renewed certificates", renewal);
        }
    }
    page
}

fn row(page: &mut String, mut machine: Machine, name: &str, outcome: Outcome) {
    let phase = machine.phase().name();
    let action = action_name(&machine.next(outcome, TOKEN_AGE));
    let next = machine.phase().name();
    page.extend(["| ", phase, " | ", name, " | ", action, " | ", next, " |\n"]);
}

/// A node with an order and its bundle, for running the machine.
struct Sample {
    registered: RegisterResponse,
    key: JsonWebKey,
    order: Order,
    archive: Arc<[u8]>,
}

impl Sample {
    fn new() -> Option<Self> {
        let pair = SigningPair::new(&[7; 32]).ok()?;
        let kid: SigningKeyId = id(1);
        let key = JsonWebKey::ed25519(kid, pair.public().as_str().to_owned());
        let chain = format!("certificates/{}.pem", uuid::Uuid::from_u128(2));
        let files = [("proxy.kdl".to_owned(), Vec::new()), (chain, Vec::new())];
        let requirements = Requirements {
            schema_version: 1,
            least_proxy_version: "0.0.0".to_owned(),
        };
        let archive = pack(&files.into(), &requirements).ok()?;
        let mut order = Order {
            node: id(3),
            bundle: id(4),
            digest: digest(&archive),
            counter: 1,
            kid,
            signature: String::new(),
        };
        order.signature = pair.sign(order.signed_text().as_bytes());
        let registered = RegisterResponse {
            node_id: order.node,
            node_key: String::new(),
            project: id(5),
            org: id(6),
            signing_keys: vec![key.clone()],
            heartbeat_interval_secs: 30,
        };
        let archive = archive.into();
        Some(Self {
            registered,
            key,
            order,
            archive,
        })
    }

    /// Outcomes from the node's first action until it serves a bundle.
    fn steps(&self) -> Vec<Outcome> {
        vec![
            Outcome::Enrolled(self.registered.clone()),
            Outcome::TokenIssued,
            Outcome::Keys(vec![self.key.clone()].into()),
            Outcome::Reported(Duration::from_secs(30)),
            assigned(self.order.clone(), 0),
            Outcome::Fetched(Arc::clone(&self.archive)),
            Outcome::Staged,
            Outcome::CertificatesFetched,
        ]
    }

    /// A machine in each phase, reached by the sample's outcomes.
    fn phases(&self) -> Vec<Machine> {
        let mut machine = start();
        let mut unknown = self.order.clone();
        unknown.kid = id(OTHER);
        let mut phases = vec![machine.clone()];
        for step in self.steps() {
            machine.next(step, Duration::ZERO);
            phases.push(machine.clone());
            if *machine.phase() == Phase::Polling {
                let mut other = machine.clone();
                other.next(assigned(unknown.clone(), 0), Duration::ZERO);
                phases.push(other);
            }
        }
        machine.next(Outcome::Failed(None), Duration::ZERO);
        let (mut serving, renewal) = self.renewal();
        for step in [renewal, Outcome::CertificatesFetched] {
            serving.next(step, Duration::ZERO);
            phases.push(serving.clone());
        }
        phases.push(machine);
        phases
    }

    /// A machine that serves the bundle and polls, and the response after a renewal.
    fn renewal(&self) -> (Machine, Outcome) {
        let mut serving = start();
        let further = [
            Outcome::Activated,
            Outcome::Reported(Duration::from_secs(30)),
        ];
        for step in self.steps().into_iter().chain(further) {
            serving.next(step, Duration::ZERO);
        }
        (serving, assigned(self.order.clone(), 1))
    }

    fn outcomes(&self) -> Vec<(&'static str, Outcome)> {
        let mut forged = self.order.clone();
        forged.counter = 2;
        let mut foreign = self.order.clone();
        foreign.node = id(OTHER);
        let mut unknown = self.order.clone();
        unknown.kid = id(OTHER);
        let secs = Duration::from_secs;
        vec![
            ("enrolled", Outcome::Enrolled(self.registered.clone())),
            ("token issued", Outcome::TokenIssued),
            ("keys", Outcome::Keys(vec![self.key.clone()].into())),
            ("heartbeat taken", Outcome::Reported(secs(30))),
            (
                "heartbeat taken, order confirmed",
                Outcome::Confirmed(secs(30)),
            ),
            ("no other order, in time", Outcome::Unchanged(secs(30))),
            ("no other order, early", Outcome::Unchanged(secs(0))),
            ("no order at all", Outcome::Unassigned("\"0\"".to_owned())),
            ("a genuine order", assigned(self.order.clone(), 0)),
            ("an order by an unknown key", assigned(unknown, 0)),
            ("a forged order", assigned(forged, 0)),
            ("an order for another node", assigned(foreign, 0)),
            ("the archive", Outcome::Fetched(Arc::clone(&self.archive))),
            ("another archive", Outcome::Fetched(Arc::from([]))),
            ("refused for good", Outcome::Refused(String::new())),
            ("staged", Outcome::Staged),
            ("certificates fetched", Outcome::CertificatesFetched),
            ("activated", Outcome::Activated),
            ("served", Outcome::Renewed(true)),
            ("rejected", Outcome::Rejected(vec![String::new()])),
            ("waited", Outcome::Waited),
            ("credential refused", Outcome::Unauthorized),
            ("failed", Outcome::Failed(None)),
        ]
    }
}

/// A response with this order and number of renewals.
fn assigned(order: Order, renewals: u64) -> Outcome {
    Outcome::Assigned(Assignment {
        challenges: Vec::new(),
        tag: format!("\"{}-{renewals}\"", order.counter),
        order,
        renewals,
        trial: None,
    })
}

/// A machine before its first outcome.
fn start() -> Machine {
    let versions = OwnVersions {
        schema: 1,
        proxy: Version::default(),
    };
    let mut machine = Machine::new(None, PersistedState::default(), versions);
    machine.begin();
    machine
}

fn id<T: From<uuid::Uuid>>(number: u128) -> T {
    uuid::Uuid::from_u128(number).into()
}

fn belongs(phase: &Phase, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Enrolled(_) => matches!(phase, Phase::Enrolling),
        Outcome::TokenIssued => matches!(phase, Phase::ExchangingToken),
        Outcome::Keys(_) => matches!(phase, Phase::FetchingKeys(_)),
        Outcome::Reported(_) | Outcome::Confirmed(_) | Outcome::Held(_) => {
            matches!(phase, Phase::Reporting)
        }
        Outcome::Unchanged(_) | Outcome::Assigned(_) | Outcome::Unassigned(_) => {
            matches!(phase, Phase::Polling)
        }
        Outcome::Fetched(_) => matches!(phase, Phase::Fetching(_)),
        Outcome::Refused(_) => matches!(
            phase,
            Phase::Reporting
                | Phase::Fetching(_)
                | Phase::FetchingCertificates(_)
                | Phase::FetchingRenewal
        ),
        Outcome::Staged => matches!(phase, Phase::Staging(_)),
        Outcome::CertificatesFetched => matches!(
            phase,
            Phase::FetchingCertificates(_) | Phase::FetchingRenewal
        ),
        Outcome::Activated => matches!(phase, Phase::Activating(_) | Phase::Reverting),
        Outcome::Renewed(_) => matches!(phase, Phase::Renewing),
        Outcome::Rejected(_) => matches!(
            phase,
            Phase::Staging(_) | Phase::Activating(_) | Phase::Reverting | Phase::Renewing
        ),
        Outcome::Waited => matches!(phase, Phase::Waiting),
        Outcome::Unauthorized | Outcome::Failed(_) => !matches!(
            phase,
            Phase::Waiting
                | Phase::Staging(_)
                | Phase::Activating(_)
                | Phase::Reverting
                | Phase::Renewing
        ),
    }
}

fn action_name(action: &Action) -> &'static str {
    match action {
        Action::Enrol => "enrol",
        Action::ExchangeToken => "exchange the node key for a token",
        Action::FetchKeys(_) => "fetch the published keys",
        Action::Report(_) => "send a heartbeat",
        Action::Poll { .. } => "ask for orders",
        Action::Fetch(_) => "fetch the archive",
        Action::Stage(_) => "write the bundle to the disk",
        Action::FetchCertificates(_) => "fetch certificates",
        Action::Activate(_) => "put the bundle in force",
        Action::TryOut(_) => "put the bundle in force and send its live tests",
        Action::Revert => "put the last good bundle in force again",
        Action::Renew => "serve the renewed certificates",
        Action::Wait(_) => "wait",
    }
}
