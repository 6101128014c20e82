//! Conversion of TLS settings to the types of `proxy-tls`.

use super::acme::acme_settings;
use crate::config::delivery::PrivateKeys;
use proxy_acme::Storage;
use proxy_config::{Diagnostic, DiagnosticCode};
use proxy_model::{
    Acme, AcmeChallenge, Certificate, ClientAuth, ClientAuthMode, ListenerProtocol, ListenerTls,
    Target, Upstream, UpstreamProtocol, UpstreamTls,
};
use proxy_tls::{
    Alpn, CertificateSource, ChallengeCertificates, ClientTlsSettings, ServerTlsSettings,
    TlsVersion, server_name,
};
use rustls_pki_types::ServerName;

pub(super) fn listener_settings(
    tls: &ListenerTls,
    protocol: ListenerProtocol,
    keys: &PrivateKeys,
    challenges: &ChallengeCertificates,
) -> ServerTlsSettings {
    let ListenerTls {
        place: _,
        certificates,
        acme,
        min_version,
        max_version,
        alpn,
        client_auth,
    } = tls;
    let offered: Vec<Alpn> = alpn
        .iter()
        .map(|protocol| offered(protocol.value))
        .collect();
    let provided = certificates.iter().map(|one| source(one, keys));
    let is_validated_here = |acme: &Acme| acme.challenge.value == AcmeChallenge::TlsAlpn01;
    ServerTlsSettings {
        certificates: provided.chain(acme.iter().map(obtained)).collect(),
        challenges: acme
            .iter()
            .any(is_validated_here)
            .then(|| challenges.clone()),
        min_version: version(min_version.value),
        max_version: version(max_version.value),
        client_auth: client_auth_mode(client_auth.as_ref()),
        // The protocol of relayed bytes is unknown.
        alpn: if offered.is_empty() && !protocol.is_relayed() {
            vec![Alpn::H2, Alpn::Http1]
        } else {
            offered
        },
    }
}

pub(super) fn upstream_settings(
    upstream: &Upstream,
    tls: &UpstreamTls,
) -> Result<ClientTlsSettings, Diagnostic> {
    let UpstreamTls {
        place,
        sni,
        ca_file,
        cert_file,
        key_file,
        verify,
        pins,
    } = tls;
    let sni = sni.as_ref().map(|sni| {
        ServerName::try_from(sni.value.clone()).map_err(|_| {
            let place = sni.place().unwrap_or(*place);
            let message = format!("\"{}\" is neither a host name nor an IP address", sni.value);
            Diagnostic::new(DiagnosticCode::BadValue, place, message)
        })
    });
    Ok(ClientTlsSettings {
        sni: sni.transpose()?,
        ca_file: ca_file.as_ref().map(|file| file.value.clone()),
        client_certificate: cert_file
            .as_ref()
            .zip(key_file.as_ref())
            .map(|(cert, key)| CertificateSource {
                cert_file: cert.value.clone(),
                key_file: key.value.clone(),
                held: None,
                is_obtained: false,
                ocsp_file: None,
                server_names: Vec::new(),
            }),
        min_version: TlsVersion::V1_2,
        alpn: match upstream.protocol.value {
            UpstreamProtocol::H1 => vec![Alpn::Http1],
            UpstreamProtocol::H2 => vec![Alpn::H2],
        },
        verify: **verify,
        pins: pins.iter().map(|pin| pin.value.0).collect(),
    })
}

/// The name that each target's certificate must have.
pub(super) fn target_names(
    upstream: &Upstream,
    sni: Option<&ServerName<'static>>,
) -> Result<Vec<ServerName<'static>>, Diagnostic> {
    let name = |target: &Target| {
        server_name(sni, &target.address.certificate_host()).map_err(|bad| {
            let place = target.address.place().unwrap_or(target.place);
            let help = "write the name of its certificate in `tls { sni }`";
            Diagnostic::new(DiagnosticCode::BadValue, place, bad.to_string()).help(help)
        })
    };
    upstream.targets.iter().map(name).collect()
}

fn source(certificate: &Certificate, keys: &PrivateKeys) -> CertificateSource {
    let Certificate {
        cert_file,
        key_file,
        ocsp_file,
        server_names,
    } = certificate;
    let names = server_names.iter();
    CertificateSource {
        cert_file: cert_file.value.clone(),
        held: keys.get(&key_file.value),
        key_file: key_file.value.clone(),
        is_obtained: false,
        ocsp_file: ocsp_file.as_ref().map(|file| file.value.clone()),
        server_names: names.map(|name| name.value.to_ascii_lowercase()).collect(),
    }
}

/// A certificate that is obtained by ACME: key and chain are in one file.
fn obtained(acme: &Acme) -> CertificateSource {
    let settings = acme_settings(acme);
    let file = Storage::new(&settings).certificate_file();
    CertificateSource {
        cert_file: file.clone(),
        key_file: file,
        held: None,
        is_obtained: true,
        ocsp_file: None,
        server_names: settings.hosts,
    }
}

fn client_auth_mode(client_auth: Option<&ClientAuth>) -> proxy_tls::ClientAuth {
    let Some(ClientAuth { ca_file, mode }) = client_auth else {
        return proxy_tls::ClientAuth::None;
    };
    let ca_file = ca_file.value.clone();
    match mode.value {
        ClientAuthMode::Required => proxy_tls::ClientAuth::Required { ca_file },
        ClientAuthMode::Optional => proxy_tls::ClientAuth::Optional { ca_file },
    }
}

fn offered(alpn: proxy_model::Alpn) -> Alpn {
    match alpn {
        proxy_model::Alpn::H2 => Alpn::H2,
        proxy_model::Alpn::Http11 => Alpn::Http1,
    }
}

fn version(version: proxy_model::TlsVersion) -> TlsVersion {
    match version {
        proxy_model::TlsVersion::V1_2 => TlsVersion::V1_2,
        proxy_model::TlsVersion::V1_3 => TlsVersion::V1_3,
    }
}
