//! Files that settings name, and the risks of their contents.

use super::parts::{Change, Part, PartChange};
use super::plan_diff::PlanDiff;
use super::relative_path::relative;
use super::risk::Risk;
use super::risk::class::RiskClass;
use proxy_model::registry::policies::{access, basic_auth, error_pages, jwt};
use proxy_model::registry::{self, MachinePart, listener_tls, observability, routes, upstreams};
use proxy_model::{Model, effective};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Settings that name a file or a folder, with the class of a change of its contents.
const CLASSES: [(&str, RiskClass); 15] = [
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
    (
        error_pages::LISTENER_PAGE_FILE.path,
        RiskClass::AnswerChanged,
    ),
    (error_pages::PAGE_FILE.path, RiskClass::AnswerChanged),
];

/// A file with different contents in both configurations, or in only one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Name of the file, relative to the configuration's folder if inside it.
    pub name: String,
    /// The kind of change.
    pub change: Change,
}

/// The settings that name one file, by the path of each, with the path of its row.
pub type NamedBy = BTreeMap<String, &'static str>;

/// The files and folders that settings name and the process reads. A name is relative to the
/// configuration's folder if it is inside, so that copies in two folders have equal names.
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
    /// Adds the risks of `files`, which differ between `before` and `after` or are in one of both
    /// only, and removes the risks of renewed certificates. `renews` compares the contents of a
    /// file of `before` with the contents of a file of `after`. Networks of clients in files are
    /// compared with the settings; their files add no class.
    pub fn judge_files(
        &mut self,
        [before, after]: [&Model; 2],
        files: &[ChangedFile],
        renews: &dyn Fn(&str, &str) -> bool,
    ) {
        let renewed = renewed_certificates(&self.parts, renews);
        self.risks.retain(|risk| {
            risk.class != RiskClass::TlsWeakened || !renewed.contains(&risk.subject)
        });
        let named = [before, after].map(named_files);
        let listed = [before, after].map(files_of_networks);
        self.risks
            .extend(files.iter().map(|ChangedFile { name: file, change }| {
                // A file with another name is reported with its setting.
                let [old, new] = named.each_ref().map(|named| class_of(named, file));
                let is_listed = || {
                    listed.iter().all(|files| files.contains(file))
                        && named.iter().all(|named| names_networks(named, file))
                };
                let is_harmless = |class: RiskClass| {
                    class == RiskClass::TlsWeakened && renews(file, file)
                            || class == RiskClass::AccessWidened && is_listed()
                            // A new file changes no answer to requests that had one.
                            || class == RiskClass::AnswerChanged && *change == Change::Added
                };
                let class = old
                    .zip(new)
                    .map(|(old, new)| old.min(new))
                    .filter(|class| !is_harmless(*class));
                let change = match change {
                    Change::Added => "is new",
                    Change::Removed => "is gone",
                    Change::Changed => "its contents differ",
                };
                Risk {
                    class: class.unwrap_or(RiskClass::Unlisted),
                    subject: format!("file {file}"),
                    change: change.to_owned(),
                }
            }));
        self.risks.sort();
    }
}

/// Returns true if all settings that name a file read networks of clients from it.
fn names_networks(named: &BTreeMap<String, NamedBy>, file: &str) -> bool {
    let rows = [
        access::LISTENER_ALLOW_FILE.path,
        access::LISTENER_DENY_FILE.path,
        access::ALLOW_FILE.path,
        access::DENY_FILE.path,
    ];
    let settings = named.get(file);
    settings.is_some_and(|settings| settings.values().all(|row| rows.contains(row)))
}

/// Files that were read as networks of clients. A file without a network may not have been read.
fn files_of_networks(model: &Model) -> BTreeSet<String> {
    let listeners = model.listeners.iter().map(|one| &one.access);
    let routes = model.routes.iter().map(|one| &one.policies.access);
    let lists = listeners
        .chain(routes)
        .flat_map(|access| access.allow_files.iter().chain(&access.deny_files));
    let read = lists.filter(|file| !file.value.networks.is_empty());
    read.map(|file| relative(model, &file.value.path)).collect()
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
