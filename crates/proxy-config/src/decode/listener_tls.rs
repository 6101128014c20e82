//! The `tls` block of a listener.

pub(super) mod acme;

use super::block::Block;
use super::decoder::Decoder;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::listener_tls as spec;
use proxy_model::{Acme, Certificate, ClientAuth, ListenerTls};

pub(super) fn listener_tls<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<ListenerTls> {
    let b = b.inner(d, &spec::TLS)?;
    let has_files = b.has(spec::CERT_FILE.path) || b.has(spec::KEY_FILE.path);
    let first = first_certificate(d, &b);
    let blocks = b.each(d, &spec::CERTIFICATE);
    let acme_blocks = b.each(d, &spec::acme::ACME);
    if !has_files && blocks.is_empty() && acme_blocks.is_empty() {
        b.missing(d, "cert-file");
    }
    let further = blocks.into_iter().filter_map(|block| {
        let certificate = certificate(d, &block);
        block.close(d);
        certificate
    });
    let further: Vec<Certificate> = further.collect();
    let obtained = acme_blocks.into_iter().filter_map(|block| {
        let acme = acme::acme(d, &block);
        block.close(d);
        acme
    });
    let obtained: Vec<Acme> = obtained.collect();
    let tls = ListenerTls {
        place: b.place(d),
        certificates: first.into_iter().chain(further).collect(),
        acme: obtained,
        min_version: b.setting(d, &spec::MIN_VERSION),
        max_version: b.setting(d, &spec::MAX_VERSION),
        alpn: b.list(d, &spec::ALPN),
        client_auth: client_auth(d, &b),
    };
    if *tls.min_version > *tls.max_version
        && let Some(place) = tls.min_version.place().or(tls.max_version.place())
    {
        d.fault(
            DiagnosticCode::Conflict,
            place,
            "`min-version` is above `max-version`",
        );
    }
    b.close(d);
    Some(tls)
}

/// The certificate written directly in the `tls` block.
fn first_certificate<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Certificate> {
    let has = [spec::CERT_FILE, spec::KEY_FILE].map(|spec| b.has(spec.path));
    match has {
        [true, false] => b.missing(d, spec::KEY_FILE.name()),
        [false, true] => b.missing(d, spec::CERT_FILE.name()),
        [true, true] | [false, false] => {}
    }
    let cert_file = b.file(d, &spec::CERT_FILE);
    let key_file = b.file(d, &spec::KEY_FILE);
    if has == [false, false] {
        // `close` reports an OCSP response without a certificate.
        return None;
    }
    let ocsp_file = b.file(d, &spec::OCSP_FILE);
    Some(Certificate {
        cert_file: cert_file?,
        key_file: key_file?,
        ocsp_file,
        server_names: Vec::new(),
    })
}

fn certificate<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Certificate> {
    let cert_file = b.required_file(d, &spec::CERTIFICATE_CERT_FILE);
    let key_file = b.required_file(d, &spec::CERTIFICATE_KEY_FILE);
    let ocsp_file = b.file(d, &spec::CERTIFICATE_OCSP_FILE);
    let server_names = b.list(d, &spec::SERVER_NAME);
    Some(Certificate {
        cert_file: cert_file?,
        key_file: key_file?,
        ocsp_file,
        server_names,
    })
}

/// `client-auth "optional"` with `ca-file` in the same block or its own, or both settings in a
/// block.
fn client_auth<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<ClientAuth> {
    if !b.has(spec::CLIENT_AUTH.path) {
        // `ca-file` alone requests no client certificate; `close` reports it.
        return None;
    }
    let b = b.merged(d, &spec::CLIENT_AUTH)?;
    let ca_file = b.required_file(d, &spec::CLIENT_AUTH_CA_FILE);
    let mode = b.argument_or_default(d, &spec::CLIENT_AUTH_MODE);
    b.close(d);
    Some(ClientAuth {
        ca_file: ca_file?,
        mode,
    })
}
