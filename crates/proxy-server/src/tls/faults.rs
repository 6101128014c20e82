//! Diagnostics of certificates, at the place of the setting that names the file.

use super::loaded::LoadedTls;
use proxy_config::{Diagnostic, DiagnosticCode};
use proxy_model::{ListenerTls, Model, Place, Setting, UpstreamTls};
use proxy_tls::{TlsError, TlsWarning};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tokio::task::JoinError;

/// An error that no setting caused.
pub(super) fn process_diagnostic(fault: &TlsError) -> Diagnostic {
    certificate_error(Place::default(), fault)
}

/// The thread that loads certificates has panicked.
pub(super) fn thread_diagnostic(error: &JoinError) -> Diagnostic {
    Diagnostic::new(
        DiagnosticCode::BadCertificate,
        Place::default(),
        error.to_string(),
    )
}

/// An error of a file that a setting of `model` names.
pub(super) fn model_diagnostic(model: &Model, fault: &TlsError) -> Diagnostic {
    let listeners = model.listeners.iter().filter_map(|one| one.tls.as_ref());
    let mut from_listeners = listeners.filter_map(|tls| listener_place(tls, fault.file()));
    let upstreams = model.upstreams.iter().filter_map(|one| one.tls.as_ref());
    let mut from_upstreams = upstreams.filter_map(|tls| upstream_place(tls, fault.file()));
    let place = from_listeners.next().or_else(|| from_upstreams.next());
    certificate_error(place.unwrap_or_default(), fault)
}

pub(super) fn listener_diagnostic(tls: &ListenerTls, fault: &TlsError) -> Diagnostic {
    certificate_error(place_in_listener(tls, fault.file()), fault)
}

pub(super) fn upstream_diagnostic(tls: &UpstreamTls, fault: &TlsError) -> Diagnostic {
    certificate_error(place_in_upstream(tls, fault.file()), fault)
}

/// Warnings about the certificates of `loaded_tls`, loaded for `model`.
pub(super) fn warnings(model: &Model, loaded_tls: &LoadedTls, now: SystemTime) -> Vec<Diagnostic> {
    let listeners = model.listeners.iter().zip(&loaded_tls.listeners);
    let from_listeners = listeners.flat_map(|(listener, server)| {
        let pair = listener.tls.as_ref().zip(server.as_ref());
        pair.into_iter().flat_map(|(tls, server)| {
            let warnings = server.warnings(now).into_iter();
            warnings.map(|warning| {
                certificate_warning(place_in_listener(tls, Some(warning.file())), &warning)
            })
        })
    });
    let upstreams = model.upstreams.iter().zip(&loaded_tls.upstreams);
    let from_upstreams = upstreams.flat_map(|(upstream, outward)| {
        let pair = upstream.tls.as_ref().zip(outward.as_ref());
        pair.into_iter().flat_map(|(tls, outward)| {
            let warnings = outward.tls.warnings(now).into_iter();
            warnings.map(|warning| {
                certificate_warning(place_in_upstream(tls, Some(warning.file())), &warning)
            })
        })
    });
    from_listeners.chain(from_upstreams).collect()
}

/// The error about a certificate or key.
fn certificate_error(place: Place, fault: &TlsError) -> Diagnostic {
    Diagnostic::new(DiagnosticCode::BadCertificate, place, fault.to_string())
}

/// The warning about a certificate that is usable.
fn certificate_warning(place: Place, warning: &TlsWarning) -> Diagnostic {
    let code = match warning {
        TlsWarning::Expired { .. } | TlsWarning::ExpiresSoon { .. } => {
            DiagnosticCode::CertificateExpires
        }
        TlsWarning::NotYetValid { .. }
        | TlsWarning::Nameless { .. }
        | TlsWarning::StapleStale { .. } => DiagnosticCode::DoubtfulCertificate,
    };
    Diagnostic::new(code, place, warning.to_string())
}

/// The place of the file's setting, or of the `tls` block.
fn place_in_listener(tls: &ListenerTls, file: Option<&Path>) -> Place {
    listener_place(tls, file).unwrap_or(tls.place)
}

fn listener_place(tls: &ListenerTls, file: Option<&Path>) -> Option<Place> {
    let certificates = tls.certificates.iter();
    let named = certificates.flat_map(|one| {
        let files = [&one.cert_file, &one.key_file].into_iter();
        files.chain(one.ocsp_file.as_ref())
    });
    let client_ca = tls.client_auth.as_ref().map(|auth| &auth.ca_file);
    place_of(file, named.chain(client_ca))
}

/// The place of a fault in the settings of an upstream.
fn place_in_upstream(tls: &UpstreamTls, file: Option<&Path>) -> Place {
    upstream_place(tls, file).unwrap_or(tls.place)
}

fn upstream_place(tls: &UpstreamTls, file: Option<&Path>) -> Option<Place> {
    let named = [&tls.ca_file, &tls.cert_file, &tls.key_file];
    place_of(file, named.into_iter().flatten())
}

/// The place of the setting that names `file`.
fn place_of<'s>(
    file: Option<&Path>,
    mut named: impl Iterator<Item = &'s Setting<PathBuf>>,
) -> Option<Place> {
    let file = file?;
    named.find(|setting| setting.value == file)?.place()
}
