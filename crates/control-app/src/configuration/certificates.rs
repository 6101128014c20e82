//! Checks that nodes can fetch every certificate that a configuration names.

use super::diagnostic::Diagnostic;
use control_bundle::{Files, chain_file, key_file};
use control_wire::CertificateId;
use proxy_config::DiagnosticCode;
use proxy_model::{Model, Place, Setting};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Errors for certificate chains that are not among the files, and for private keys of certificates
/// that are not in `known`, the project's certificates. A bundle contains the chain of every
/// certificate that its nodes fetch.
pub(super) fn missing_certificates(
    model: &Model,
    files: &Files,
    known: &BTreeSet<CertificateId>,
) -> Vec<Diagnostic> {
    let served = model.listeners.iter().flat_map(|one| &one.tls);
    let served = served.flat_map(|tls| &tls.certificates);
    let served = served.map(|one| [Some(&one.cert_file), Some(&one.key_file)]);
    let client = model.upstreams.iter().filter_map(|one| one.tls.as_ref());
    let client = client.map(|tls| [tls.cert_file.as_ref(), tls.key_file.as_ref()]);
    let delivered: BTreeSet<String> = known
        .iter()
        .filter(|id| files.contains_key(&chain_file(**id)))
        .map(|id| key_file(*id))
        .collect();
    let mut unknown: BTreeSet<String> = files
        .keys()
        .filter_map(|name| certificate_of(name))
        .filter(|id| !known.contains(id))
        .map(chain_file)
        .collect();
    let mut found = Vec::new();
    for [chain, key] in served.chain(client) {
        if let Some((name, place)) = chain.and_then(bundle_file) {
            if unknown.remove(&name) {
                found.push(diagnostic(model, place, without_certificate(&name)));
            } else if !files.contains_key(&name) {
                let message = format!("the certificate `{name}` is not in the bundle");
                found.push(diagnostic(model, place, message));
            }
        }
        if let Some((name, place)) = key.and_then(bundle_file)
            && !delivered.contains(&name)
            && !files.contains_key(&name)
        {
            let message = format!("the private key `{name}` is of no certificate in the bundle");
            found.push(diagnostic(model, place, message));
        }
    }
    // Nodes fetch the certificate of every chain in the bundle, even if no setting names it.
    found.extend(unknown.into_iter().map(|name| Diagnostic {
        message: without_certificate(&name),
        file: name,
        line: 1,
        column: 1,
        length: 0,
        ..diagnostic(model, Place::default(), String::new())
    }));
    found
}

fn without_certificate(name: &str) -> String {
    format!("the project has no certificate for `{name}`")
}

/// Identifier of the certificate that a chain's file name refers to.
fn certificate_of(name: &str) -> Option<CertificateId> {
    let stem = name.rsplit('/').next()?.strip_suffix(".pem")?;
    let id: CertificateId = stem.parse().ok()?;
    (chain_file(id) == name).then_some(id)
}

/// Name of the bundle's file and its place; `None` for an absolute path, which another check
/// reports.
fn bundle_file(file: &Setting<PathBuf>) -> Option<(String, Place)> {
    let name = file.value.to_str()?;
    let name = name.strip_prefix("./").unwrap_or(name).to_owned();
    let place = file.place()?;
    (!name.starts_with('/')).then_some((name, place))
}

fn diagnostic(model: &Model, place: Place, message: String) -> Diagnostic {
    let found = proxy_config::Diagnostic::new(DiagnosticCode::MissingFile, place, message)
        .label("nodes cannot get it")
        .help(
            "create the certificate in the project, name its files `certificates/ID.pem` and \
             `certificates/ID.key`, and put its chain into the bundle",
        );
    Diagnostic::in_sources(&found, &model.sources)
}
