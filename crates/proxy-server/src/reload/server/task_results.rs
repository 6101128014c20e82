//! Results of background tasks: new addresses of names, changed certificates.

use super::Server;
use crate::runtime::system_clock::now;
use crate::targets::connectors;
use crate::targets::target_health::TargetHealth;
use crate::tls::CertificateChanges;
use crate::worker::{AddressUpdate, Command};
use proxy_dns::Answer;
use std::sync::Arc;

/// Results of background tasks, for the control loop.
#[derive(Debug)]
pub(crate) enum TaskResults {
    /// Results of one or more DNS look-ups.
    Names(Vec<Answer>),
    /// A check of the certificates.
    Certificates(CertificateChanges),
}

impl Server {
    /// The next results of background tasks, as soon as there are any.
    pub(crate) async fn next_results(&mut self) -> TaskResults {
        tokio::select! {
            answers = self.names.next() => TaskResults::Names(answers),
            changes = self.certificates.next() => TaskResults::Certificates(changes),
        }
    }

    /// Applies and reports `results`. Returns whether the plan has changed.
    pub(crate) fn adopt(&mut self, results: TaskResults) -> bool {
        match results {
            TaskResults::Names(answers) => self.adopt_answers(answers),
            TaskResults::Certificates(changes) => {
                self.certificates
                    .report(changes, &self.common.registry, now());
                false
            }
        }
    }

    fn adopt_answers(&mut self, answers: Vec<Answer>) -> bool {
        if !self.names.adopt(answers, now()) {
            return false;
        }
        let targets = self.targets.begin();
        let mut targets = targets.with_resolution(self.names.resolution().clone());
        let plan = Arc::new(self.plan.resolved(&mut targets));
        let limits = self.limits.prepare(&plan);
        self.targets.commit_addresses(targets);
        self.limits.commit(limits, &plan);
        let loaded_tls = self.certificates.loaded();
        let update = AddressUpdate {
            plan: Arc::clone(&plan),
            connectors: connectors::for_plan(&plan, loaded_tls, &self.limits),
            pools: self.limits.pool_settings(&plan),
        };
        self.prober.apply(&plan, loaded_tls);
        self.key_sets.apply(&plan, loaded_tls);
        TargetHealth::extend_overrides(&self.plan, &plan);
        self.health = TargetHealth::new(&plan, &self.common.registry, &self.health);
        self.replace_plan(plan);
        self.show_limits();
        let update = || Command::ApplyAddresses(Box::new(update.clone()));
        self.workers.send_all(update);
        true
    }
}
