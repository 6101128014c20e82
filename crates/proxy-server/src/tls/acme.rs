//! Certificates obtained by ACME: one task for each, with the settings of the active configuration.

mod observer;
mod responder;

use crate::runtime::system_clock;
use crate::runtime::task_scope::{TaskContext, TaskScope};
use observer::{Observer, log_damaged, shown};
use proxy_acme::{
    AcmeSettings, Challenge, DnsCommand, ExternalAccount, Storage, maintain_certificate,
    set_aside_damaged,
};
use proxy_model::{Acme, AcmeChallenge, Model};
use proxy_pipeline::ChallengeTokens;
use proxy_telemetry::{Lifecycle, Registry};
use proxy_tls::ChallengeCertificates;
use responder::ListenerResponder;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The tasks that obtain certificates and renew them. They write files, which the watch of
/// certificates finds.
#[derive(Debug)]
pub(crate) struct AcmeTasks {
    /// One task for each certificate file.
    tasks: TaskScope<PathBuf, AcmeSettings>,
    responder: Arc<ListenerResponder>,
    registry: Arc<Registry>,
    lifecycle: Arc<Lifecycle>,
}

impl AcmeTasks {
    pub(crate) fn new(
        tokens: ChallengeTokens,
        certificates: ChallengeCertificates,
        registry: Arc<Registry>,
        lifecycle: Arc<Lifecycle>,
    ) -> Self {
        Self {
            tasks: TaskScope::new(system_clock::now),
            responder: Arc::new(ListenerResponder {
                tokens,
                certificates,
            }),
            registry,
            lifecycle,
        }
    }

    /// Obtains exactly the certificates of `model` from now on. Certificates that were obtained
    /// before keep their state.
    pub(crate) fn apply(&mut self, model: &Model) {
        let mut tasks = self.tasks.begin();
        for (file, settings) in by_file(model) {
            let name = format!("certificate {}", file.display());
            let responder = Arc::clone(&self.responder);
            let hosts = settings.hosts.clone();
            let registry = Arc::clone(&self.registry);
            let lifecycle = Arc::clone(&self.lifecycle);
            let mut observer = Observer::new(&file, hosts, registry, lifecycle);
            tasks.add(file, name, settings, |context| {
                let TaskContext { settings, now } = context;
                maintain_certificate(
                    settings,
                    responder,
                    move |event| observer.observe(&event, now()),
                    now,
                )
            });
        }
        self.tasks.commit(tasks);
        let running: Vec<String> = self.tasks.keys().map(|file| shown(file)).collect();
        self.lifecycle
            .retain_certificates(|file| running.iter().any(|own| own == file));
    }

    /// Ends all tasks, and with them their challenges and locks: a successor continues.
    pub(crate) fn stop(&mut self) {
        let none = self.tasks.begin();
        self.tasks.commit(none);
    }
}

/// The settings of each certificate file; listeners with equal blocks share one.
fn by_file(model: &Model) -> BTreeMap<PathBuf, AcmeSettings> {
    let listeners = model.listeners.iter();
    let blocks = listeners.filter_map(|listener| listener.tls.as_ref());
    let settings = blocks.flat_map(|tls| &tls.acme).map(acme_settings);
    settings
        .map(|settings| (Storage::new(&settings).certificate_file(), settings))
        .collect()
}

/// Renames the stored certificates of `model` that cannot be used: the listeners start without
/// them, as before their first certificates. Errors are left to the load of the files. Blocking.
pub(crate) fn set_damaged_aside(model: &Model) {
    for settings in by_file(model).into_values() {
        if let Ok(Some((file, why))) = set_aside_damaged(&settings) {
            log_damaged(&settings.hosts.join(" "), &file, why);
        }
    }
}

pub(super) fn acme_settings(acme: &Acme) -> AcmeSettings {
    let Acme {
        place: _,
        hosts,
        directory,
        directory_ca_file,
        email,
        terms_agreed: _, // A model without the agreement is refused.
        challenge,
        dns_command,
        dns_command_timeout,
        eab,
        key_type,
        storage,
    } = acme;
    let hosts = hosts.iter().map(|host| host.value.to_ascii_lowercase());
    AcmeSettings {
        hosts: hosts.collect(),
        directory: directory.value.clone(),
        directory_ca_file: directory_ca_file.as_ref().map(|file| file.value.clone()),
        email: email.value.clone(),
        challenge: match (challenge.value, dns_command) {
            (AcmeChallenge::Dns01, Some(program)) => Challenge::Dns01(DnsCommand {
                program: program.value.clone(),
                timeout: dns_command_timeout.value,
            }),
            (AcmeChallenge::TlsAlpn01, _) => Challenge::TlsAlpn01,
            (AcmeChallenge::Http01, _) | (AcmeChallenge::Dns01, None) => Challenge::Http01,
        },
        external_account: eab.as_ref().map(|account| ExternalAccount {
            key_id: account.key_id.value.clone(),
            key_file: account.key_file.value.clone(),
        }),
        key_type: key_type.value,
        storage: storage.value.clone(),
        user_agent: concat!("proxyd/", env!("CARGO_PKG_VERSION")).to_owned(),
    }
}
