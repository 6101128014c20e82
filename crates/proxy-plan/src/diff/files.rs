//! Files that settings name, and the risks of their contents.

use super::parts::{Change, Part, PartChange};
use super::plan_diff::PlanDiff;
use super::relative_path::relative;
use super::risk::Risk;
use super::risk::class::RiskClass;
use proxy_model::registry::policies::{access, basic_auth, jwt};
use proxy_model::registry::{self, MachinePart, listener_tls, observability, routes, upstreams};
use proxy_model::{Model, effective};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Settings that name a file or a folder, with the class of a change of its contents.
const CLASSES: [(&str, RiskClass); 13] = [
    (access::LISTENER_ALLOW_FILE.path, RiskClass::AccessWidened),
    (access::LISTENER_DENY_FILE.path, RiskClass::AccessWidened),
    (access::ALLOW_FILE.path, RiskClass::AccessWidened),
    (access::DENY_FILE.path, RiskClass::AccessWidened),
    (basic_auth::BASIC_USERS_FILE.path, RiskClass::AccessWidened),
    (jwt::JWKS_FILE.path, RiskClass::AccessWidened),
    (jwt::HMAC_FILE.path, RiskClass::AccessWidened),
    (
        listener_tls::CLIENT_AUTH_CA_FILE.path,
        RiskClass::AccessWidened,
    ),
    (listener_tls::CERT_FILE.path, RiskClass::TlsWeakened),
    (
        listener_tls::CERTIFICATE_CERT_FILE.path,
        RiskClass::TlsWeakened,
    ),
    (upstreams::CA_FILE.path, RiskClass::VerificationWeakened),
    (upstreams::CERT_FILE.path, RiskClass::VerificationWeakened),
    (routes::STATIC_ROOT.path, RiskClass::AnswerChanged),
];

/// The settings that name one file, by the path of each, with the path of its row.
pub type NamedBy = BTreeMap<String, &'static str>;

/// The files and folders that settings name and the process reads. A name is relative to the configuration's folder
/// if it is inside, so that copies in two folders have equal names.
#[must_use]
pub fn named_files(model: &Model) -> BTreeMap<String, NamedBy> {
    let parts = [MachinePart::File, MachinePart::Folder].map(Some);
    let written = [
        observability::ACCESS_PATH.path,
        observability::ERROR_PATH.path,
    ];
    let rows = registry::all().into_iter();
    let read = rows.filter(|row| parts.contains(&row.machine) && !written.contains(&row.path));
    let read: BTreeSet<&str> = read.map(|row| row.path).collect();
    let mut files: BTreeMap<String, NamedBy> = BTreeMap::new();
    for setting in effective(model) {
        if let (true, Some(file)) = (read.contains(setting.row), setting.value.as_str()) {
            let settings = files.entry(relative(model, Path::new(file))).or_default();
            settings.insert(setting.path, setting.row);
        }
    }
    files
}

impl PlanDiff {
    /// Adds the risks of `files`, which have other contents in `after` or are in one of both alone, and removes those of
    /// certificates that are renewed. `renews` compares the contents of a file of `before` with those of one of `after`.
    pub fn judge_files(
        &mut self,
        [before, after]: [&Model; 2],
        files: &[String],
        renews: &dyn Fn(&str, &str) -> bool,
    ) {
        let renewed = renewed_certificates(&self.parts, renews);
        self.risks.retain(|risk| {
            risk.class != RiskClass::TlsWeakened || !renewed.contains(&risk.subject)
        });
        let named = [before, after].map(named_files);
        self.risks.extend(files.iter().map(|file| {
            // One of another name comes with its setting.
            let [old, new] = named.each_ref().map(|named| class_of(named, file));
            let class = { old.zip(new).map(|(old, new)| old.min(new)) }
                .filter(|class| *class != RiskClass::TlsWeakened || !renews(file, file));
            Risk {
                class: class.unwrap_or(RiskClass::Unlisted),
                subject: format!("file {file}"),
                change: "its contents differ".to_owned(),
            }
        }));
        self.risks.sort();
    }
}

/// The most severe class of the settings that name a file, or a folder above it.
fn class_of(named: &BTreeMap<String, NamedBy>, file: &str) -> Option<RiskClass> {
    let path = Path::new(file);
    let own = named
        .iter()
        .filter(|(name, _)| path.starts_with(name.as_str()));
    let rows: BTreeSet<&str> = own
        .flat_map(|(_, settings)| settings.values().copied())
        .collect();
    let classes = CLASSES.iter().filter(|(row, _)| rows.contains(row));
    classes.map(|(_, class)| *class).min()
}

/// Removed certificates that a new one of the same listener renews, as the subjects of their risks.
fn renewed_certificates(
    parts: &[PartChange],
    renews: &dyn Fn(&str, &str) -> bool,
) -> BTreeSet<String> {
    let certificates = |wanted: Change| {
        let changed = parts.iter().filter(move |part| part.change == wanted);
        changed.filter_map(|PartChange { part, .. }| {
            let Part::Certificate { listener, file } = part else {
                return None;
            };
            Some((part, listener, file))
        })
    };
    let renewed = certificates(Change::Removed).filter(|(_, listener, old)| {
        let mut added = certificates(Change::Added);
        added.any(|(_, other, new)| other == *listener && renews(old, new))
    });
    renewed.map(|(part, _, _)| part.to_string()).collect()
}
