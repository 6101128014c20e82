//! Targets with DNS names: look-ups and found addresses.

use crate::runtime::system_clock;
use crate::runtime::task_scope::{TaskScope, TaskTransaction};
use proxy_dns::{Answer, LookUp, LookUpError, NameResolver, ResolverSettings};
use proxy_model::{Dns, Model, PeerRule, TargetAddress};
use proxy_plan::{NameResolution, Resolution};
use proxy_telemetry::{Gauge, Registry, names};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum delay of a start or reload by first look-ups of new names.
const FIRST_LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Capacity of the queue of results for the control loop; a full queue delays look-ups.
const WAITING_ANSWERS: usize = 64;

/// The identity of the task that resolves a name; other settings make another task.
type NameTask = (ResolverSettings, TargetAddress);

/// The names of the active plan.
#[derive(Debug)]
pub(crate) struct NameTable {
    resolver: NameResolver,
    tasks: TaskScope<NameTask, ()>,
    sender: Sender<Answer>,
    answers: Receiver<Answer>,
    resolution: Resolution,
    /// Names with a failed last look-up.
    failing: HashSet<TargetAddress>,
    /// Gauges of each name, exposed while this value exists.
    gauges: HashMap<TargetAddress, NameGauges>,
    registry: Arc<Registry>,
    /// Addresses that targets of the active plan may have.
    peers: Option<PeerRule>,
}

#[derive(Debug)]
struct NameGauges {
    /// Number of addresses.
    addresses: Arc<Gauge>,
    /// Unix time of the next look-up.
    next_lookup: Arc<Gauge>,
}

/// First look-ups of names, made without holding the table, which stays in use meanwhile.
#[derive(Debug)]
pub(crate) struct FirstLookUps {
    /// The active addresses.
    known: Resolution,
    peers: Option<PeerRule>,
}

/// Results of first look-ups.
#[derive(Debug)]
pub(crate) struct FoundNames {
    resolver: NameResolver,
    first: Vec<Answer>,
}

/// The names of the next plan, looked up. Active state is unchanged.
#[derive(Debug)]
pub(crate) struct NameTransaction {
    resolver: NameResolver,
    tasks: TaskTransaction<NameTask, ()>,
    names: HashSet<TargetAddress>,
    first: Vec<Answer>,
    peers: Option<PeerRule>,
    /// The addresses that the plan is compiled with.
    pub(crate) resolution: Resolution,
}

impl NameTable {
    pub(crate) fn new(model: &Model, registry: Arc<Registry>) -> Self {
        let (sender, answers) = channel(WAITING_ANSWERS);
        Self {
            resolver: NameResolver::new(settings(&model.system.dns)),
            tasks: TaskScope::new(system_clock::now),
            sender,
            answers,
            resolution: Resolution::default(),
            failing: HashSet::new(),
            gauges: HashMap::new(),
            registry,
            peers: model.peers,
        }
    }

    /// First look-ups for another plan.
    pub(crate) fn first_look_ups(&self) -> FirstLookUps {
        FirstLookUps {
            known: self.resolution.clone(),
            peers: self.peers,
        }
    }

    /// The names of `model`. Names without addresses were `found` before.
    pub(crate) fn prepare(
        &self,
        model: &Model,
        found: FoundNames,
        now: SystemTime,
    ) -> NameTransaction {
        let FoundNames { resolver, first } = found;
        let names = names_of(model);
        let mut resolution = self.resolution.clone();
        if self.peers != model.peers {
            // Earlier answers were checked by another rule.
            resolution.retain(|_| false);
        }
        for Answer { name, look_up } in &first {
            match &look_up.found {
                Ok(addresses) => drop(resolution.record_addresses(name.clone(), addresses.clone())),
                Err(error) => {
                    let error = failure(name, error);
                    resolution.record_failure(name.clone(), &error, now);
                }
            }
        }
        let resolver = if resolver.settings() == self.resolver.settings() {
            self.resolver.clone()
        } else {
            resolver
        };
        NameTransaction {
            tasks: self.tasks(&resolver, &names, &first),
            resolver,
            names,
            first,
            peers: model.peers,
            resolution,
        }
    }

    /// Tasks for `names`, one for each. A task continues from its answer in `first`, or begins with
    /// a look-up.
    fn tasks(
        &self,
        resolver: &NameResolver,
        names: &HashSet<TargetAddress>,
        first: &[Answer],
    ) -> TaskTransaction<NameTask, ()> {
        let mut tasks = self.tasks.begin();
        for name in names {
            let key = (resolver.settings().clone(), name.clone());
            let first = first.iter().find(|answer| answer.name == *name);
            let first = first.map(|answer| answer.look_up.clone());
            let (resolver, answers) = (resolver.clone(), self.sender.clone());
            tasks.add(key, format!("look-ups of {name}"), (), |_| {
                resolver.follow(name.clone(), first, answers)
            });
        }
        tasks
    }

    /// Activates `transaction`: exactly its names are resolved periodically from now on.
    pub(crate) fn commit(&mut self, transaction: NameTransaction) {
        let NameTransaction {
            resolver,
            tasks,
            names,
            first,
            peers,
            resolution,
        } = transaction;
        self.peers = peers;
        self.resolution = resolution;
        self.resolution.retain(|name| names.contains(name));
        self.failing.retain(|name| names.contains(name));
        self.gauges.retain(|name, _| names.contains(name));
        self.resolver = resolver;
        self.tasks.commit(tasks);
        self.show_counts();
        let now = system_clock::now();
        for answer in &first {
            self.report(answer, now);
        }
    }

    /// Waits for the results of one or more look-ups.
    pub(crate) async fn next(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        // The channel is open as long as its sender, a field of this value.
        if self.answers.recv_many(&mut answers, usize::MAX).await == 0 {
            return std::future::pending().await;
        }
        answers
    }

    /// Records `answers`. Returns whether the addresses of any name have changed.
    pub(crate) fn adopt(&mut self, answers: Vec<Answer>, now: SystemTime) -> bool {
        let mut changed = false;
        for answer in answers {
            let answer = permitted(answer, self.peers);
            self.report(&answer, now);
            let Answer { name, look_up } = answer;
            match look_up.found {
                Ok(addresses) => changed |= self.resolution.record_addresses(name, addresses),
                Err(error) => {
                    let error = failure(&name, &error);
                    self.resolution.record_failure(name, &error, now);
                }
            }
        }
        if changed {
            self.show_counts();
        }
        changed
    }

    /// The current addresses of names.
    pub(crate) fn resolution(&self) -> &Resolution {
        &self.resolution
    }

    /// Counts a look-up, and logs changes of its result.
    fn report(&mut self, answer: &Answer, now: SystemTime) {
        let Answer { name, look_up } = answer;
        let LookUp {
            found,
            rest,
            left_out,
        } = look_up;
        if let Some(gauges) = self.gauges.get(name) {
            let next = now.duration_since(SystemTime::UNIX_EPOCH);
            let next = next.map(|now| now.saturating_add(*rest).as_secs());
            gauges.next_lookup.set(next.unwrap_or_default());
        }
        let result = if found.is_ok() { "success" } else { "failure" };
        let label = name.to_string();
        let counter = self
            .registry
            .counter(&names::DNS_LOOKUPS_TOTAL, [&label, result]);
        counter.add(1);
        match found {
            Ok(addresses) => self.report_success(name, addresses.len(), *left_out),
            Err(error) => self.report_failure(name, error),
        }
    }

    fn report_success(&mut self, name: &TargetAddress, addresses: usize, left_out: usize) {
        let before = self.addresses(name);
        if self.failing.remove(name) || before != addresses {
            tracing::info!(%name, addresses, before, "a target is resolved");
        }
        if left_out > 0 {
            tracing::warn!(%name, addresses, left_out, "a target has too many addresses");
        }
    }

    /// Logs the first failure in a row.
    fn report_failure(&mut self, name: &TargetAddress, error: &LookUpError) {
        if self.failing.insert(name.clone()) {
            let kept = self.addresses(name);
            tracing::warn!(%name, %error, kept, "cannot resolve a target");
        }
    }

    /// Number of addresses of `name`.
    fn addresses(&self, name: &TargetAddress) -> usize {
        match self.resolution.get(name) {
            Some(NameResolution::Addresses(addresses)) => addresses.len(),
            Some(NameResolution::Failed { .. }) | None => 0,
        }
    }

    fn show_counts(&mut self) {
        let names: Vec<_> = self.tasks.keys().map(|(_, name)| name.clone()).collect();
        for name in names {
            let addresses = self.addresses(&name);
            let registry = &self.registry;
            let gauges = self.gauges.entry(name).or_insert_with_key(|name| {
                let name = name.to_string();
                NameGauges {
                    addresses: registry.gauge(&names::DNS_ADDRESSES, [&name]),
                    next_lookup: registry.gauge(&names::DNS_NEXT_LOOKUP_TIMESTAMP_SECONDS, [&name]),
                }
            });
            gauges.addresses.set(addresses as u64);
        }
    }
}

impl FoundNames {
    /// Names without an address according to a name server.
    pub(crate) fn missing(&self) -> HashSet<TargetAddress> {
        let missing = self.first.iter().filter(|answer| {
            let found = &answer.look_up.found;
            found.as_ref().is_err_and(LookUpError::is_negative)
        });
        missing.map(|answer| answer.name.clone()).collect()
    }
}

impl FirstLookUps {
    /// Looks up the names of `model` that have no addresses yet, within [`FIRST_LOOKUP_TIMEOUT`]. A name
    /// unanswered in that time has no addresses until its next look-up.
    pub(crate) async fn run(self, model: &Model) -> FoundNames {
        let Self { known, peers } = self;
        let is_known = |name: &TargetAddress| {
            // Earlier answers were checked by another rule if the rule has changed.
            peers == model.peers && matches!(known.get(name), Some(NameResolution::Addresses(_)))
        };
        let names = names_of(model).into_iter();
        let new = names.filter(|name| !is_known(name));
        // Active names that wait for a silent server must not delay the new ones.
        let resolver = NameResolver::new(settings(&model.system.dns));
        let first = resolver.look_up(new.collect(), FIRST_LOOKUP_TIMEOUT).await;
        let first = first
            .into_iter()
            .map(|answer| permitted(answer, model.peers));
        FoundNames {
            first: first.collect(),
            resolver,
        }
    }
}

/// The answer without addresses forbidden for a bundle's targets; a failure if none remains.
fn permitted(mut answer: Answer, peers: Option<PeerRule>) -> Answer {
    let (Some(rule), Ok(addresses)) = (peers, &mut answer.look_up.found) else {
        return answer;
    };
    let mut refused = None;
    addresses.retain(|one| {
        let checked = rule.check(one.address, is_own);
        refused = checked.err().or(refused);
        checked.is_ok()
    });
    if let Some(reason) = refused.filter(|_| addresses.is_empty()) {
        answer.look_up.found = Err(LookUpError::Refused(reason));
    }
    answer
}

/// Returns true if this machine has the address: only then can a socket be bound to it.
fn is_own(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

fn failure(name: &TargetAddress, error: &dyn std::fmt::Display) -> String {
    format!("cannot resolve {}: {error}", name.host)
}

fn settings(dns: &Dns) -> ResolverSettings {
    let Dns {
        name_servers,
        timeout,
        min_ttl,
        max_ttl,
    } = dns;
    ResolverSettings {
        name_servers: name_servers.iter().map(|server| server.value).collect(),
        timeout: **timeout,
        min_ttl: **min_ttl,
        max_ttl: **max_ttl,
    }
}

/// The names of all targets, without duplicates.
fn names_of(model: &Model) -> HashSet<TargetAddress> {
    let targets = model.upstreams.iter().flat_map(|one| &one.targets);
    let addresses = targets.map(|target| &target.address.value);
    let names = addresses.filter(|address| address.is_name());
    names.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy_model::PeerFault;
    use proxy_upstream::ResolvedAddress;

    fn answer(addresses: &[&str]) -> Answer {
        let at = |text: &&str| ResolvedAddress {
            address: text.parse().unwrap(),
            weight: None,
        };
        Answer {
            name: "app.example:80".parse().unwrap(),
            look_up: LookUp {
                found: Ok(addresses.iter().map(at).collect()),
                rest: Duration::from_secs(1),
                left_out: 0,
            },
        }
    }

    #[test]
    fn a_name_of_a_bundle_never_leads_to_the_machine() {
        let rule = PeerRule {
            loopback: false,
            admin: Some(([127, 0, 0, 1], 9090).into()),
        };
        let found = |addresses: &[&str], rule| permitted(answer(addresses), rule).look_up.found;
        let mixed = ["127.0.0.1:80", "10.0.0.1:80", "[::ffff:127.0.0.1]:80"];
        let kept = found(&mixed, Some(rule)).unwrap();
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(found(&mixed, None).unwrap().len(), 3);
        let refused = found(&["127.0.0.1:80"], Some(rule));
        assert_eq!(refused, Err(LookUpError::Refused(PeerFault::Loopback)));
        let loopback = PeerRule {
            loopback: true,
            ..rule
        };
        assert!(found(&["127.0.0.1:80"], Some(loopback)).is_ok());
        let refused = found(&["127.0.0.1:9090"], Some(loopback));
        assert_eq!(refused, Err(LookUpError::Refused(PeerFault::Admin)));
    }
}
