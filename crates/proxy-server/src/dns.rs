//! Targets by name: their look-ups, and what has come of them.

use proxy_dns::{Answer, LookUp, LookUpError, NameResolver, ResolverSettings};
use proxy_model::{Dns, Model, TargetAddress};
use proxy_plan::{NameResolution, Resolution};
use proxy_telemetry::{Gauge, Registry, names};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc::Receiver;

/// Maximum delay of a start or a reload by the first look-ups of new names.
const FIRST: Duration = Duration::from_secs(5);

/// The names of the active plan.
#[derive(Debug)]
pub(crate) struct NameTable {
    resolver: NameResolver,
    answers: Receiver<Answer>,
    resolution: Resolution,
    /// Names with a last look-up that failed.
    failing: HashSet<TargetAddress>,
    /// The number of addresses of each name, exposed while this value exists.
    counts: HashMap<TargetAddress, Arc<Gauge>>,
    registry: Arc<Registry>,
}

/// The names of the next plan, looked up. Nothing active has been changed.
#[derive(Debug)]
pub(crate) struct NameTransaction {
    settings: ResolverSettings,
    names: Vec<TargetAddress>,
    first: Vec<Answer>,
    /// The addresses that the plan is compiled with.
    pub(crate) resolution: Resolution,
}

impl NameTable {
    pub(crate) fn new(model: &Model, registry: Arc<Registry>) -> Self {
        let (resolver, answers) = NameResolver::new(settings(&model.system.dns));
        Self {
            resolver,
            answers,
            resolution: Resolution::default(),
            failing: HashSet::new(),
            counts: HashMap::new(),
            registry,
        }
    }

    /// Looks up the names of `model` that have no addresses yet, for a limited time. One without an
    /// answer by then has none until it is looked up again.
    pub(crate) async fn prepare(&self, model: &Model, now: SystemTime) -> NameTransaction {
        let settings = settings(&model.system.dns);
        let names = names_of(model);
        let mut resolution = self.resolution.clone();
        let is_known = |name: &TargetAddress| {
            matches!(resolution.get(name), Some(NameResolution::Addresses(_)))
        };
        let new = names.iter().filter(|name| !is_known(name)).cloned();
        let first = NameResolver::look_up(settings.clone(), new.collect(), FIRST).await;
        for Answer { name, look_up } in &first {
            match &look_up.found {
                Ok(addresses) => drop(resolution.found(name.clone(), addresses.clone())),
                Err(error) => {
                    let error = failure(name, error);
                    resolution.failed(name.clone(), &error, now);
                }
            }
        }
        NameTransaction {
            settings,
            names,
            first,
            resolution,
        }
    }

    /// Activates `transaction`: its names are resolved again and again from now on, and no other names.
    pub(crate) fn commit(&mut self, transaction: NameTransaction) {
        let NameTransaction {
            settings,
            names,
            first,
            resolution,
        } = transaction;
        self.resolution = resolution;
        let present: HashSet<_> = names.iter().collect();
        self.resolution.retain(|name| present.contains(name));
        self.failing.retain(|name| present.contains(name));
        self.counts.retain(|name, _| present.contains(name));
        for answer in &first {
            self.report(answer);
        }
        self.resolver.arrange(settings, names.into_iter(), &first);
        self.show_counts();
    }

    /// The answers of one or more look-ups, as soon as there are any.
    pub(crate) async fn next(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        // The channel is open as long as the resolver, which lives here.
        if self.answers.recv_many(&mut answers, usize::MAX).await == 0 {
            return std::future::pending().await;
        }
        answers
    }

    /// Notes `answers`. Returns whether the addresses of any name have changed.
    pub(crate) fn adopt(&mut self, answers: Vec<Answer>, now: SystemTime) -> bool {
        let mut changed = false;
        for answer in answers {
            self.report(&answer);
            let Answer { name, look_up } = answer;
            match look_up.found {
                Ok(addresses) => changed |= self.resolution.found(name, addresses),
                Err(error) => {
                    let error = failure(&name, &error);
                    self.resolution.failed(name, &error, now);
                }
            }
        }
        if changed {
            self.show_counts();
        }
        changed
    }

    /// The addresses that names have now.
    pub(crate) fn resolution(&self) -> &Resolution {
        &self.resolution
    }

    /// Counts a look-up, and logs what is new.
    fn report(&mut self, answer: &Answer) {
        let Answer { name, look_up } = answer;
        let LookUp {
            found,
            rest: _,
            left_out,
        } = look_up;
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
        let names: Vec<_> = self.resolver.names().cloned().collect();
        for name in names {
            let addresses = self.addresses(&name);
            let registry = &self.registry;
            let gauge = self.counts.entry(name).or_insert_with_key(|name| {
                registry.gauge(&names::DNS_ADDRESSES, [&name.to_string()])
            });
            gauge.set(addresses as u64);
        }
    }
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

/// The names of all targets, each once.
fn names_of(model: &Model) -> Vec<TargetAddress> {
    let targets = model.upstreams.iter().flat_map(|one| &one.targets);
    let addresses = targets.map(|target| &target.address.value);
    let names: HashSet<_> = addresses.filter(|address| address.is_name()).collect();
    names.into_iter().cloned().collect()
}
