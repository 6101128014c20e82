//! The `tls` block of a listener.

pub mod acme;

use super::kind::Block;
use super::spec::{DefaultValue, Repeatable, Required, Unset};
use super::table::{block, choice, file, settings, text, word};
use super::text::Text;
use super::word::{Choice, ChoiceWord};
use crate::listener::{Alpn, ClientAuthMode, TlsVersion};
use proxy_routing::normal_host;
use std::net::IpAddr;
use std::path::PathBuf;

const VERSIONS: &[ChoiceWord<TlsVersion>] = &[
    word("1.2", TlsVersion::V1_2, "TLS 1.2"),
    word("1.3", TlsVersion::V1_3, "TLS 1.3"),
];

const MODES: &[ChoiceWord<ClientAuthMode>] = &[
    word(
        "required",
        ClientAuthMode::Required,
        "requests without a good certificate are answered 495",
    ),
    word(
        "optional",
        ClientAuthMode::Optional,
        "a client may show none; one that is shown must be good",
    ),
];

const PROTOCOLS: &[ChoiceWord<Alpn>] = &[
    word("h2", Alpn::H2, "HTTP/2"),
    word("http/1.1", Alpn::Http11, "HTTP/1.1"),
];

/// Parses a server name as in the TLS extension; lower case. [RFC 6066 §3]
fn server_name(text: &str) -> Result<String, String> {
    let (any, rest) = match text.strip_prefix("*.") {
        Some(rest) => ("*.", rest),
        None => ("", text),
    };
    let host = normal_host(rest).map_err(|fault| fault.to_string())?;
    let name = host.name.trim_start_matches('[').trim_end_matches(']');
    if name.contains('*') {
        return Err("a wildcard stands for the whole first label".to_owned());
    }
    if name.parse::<IpAddr>().is_ok() {
        return Err("clients ask for no address by name".to_owned());
    }
    if rest.contains(':') {
        return Err("a server name has no port".to_owned());
    }
    Ok(format!("{any}{name}"))
}

settings! {
    /// TLS of the listener. Requires `protocol "https"`.
    TLS: Block, Unset = block("listeners.listener.tls")
        .optional("there is no TLS")
        .enforced("proxy-server", "https_is_spoken_with_the_listeners_certificate");
    /// The certificate chain, leaf first, PEM. It is the default for server names that no other
    /// certificate covers.
    CERT_FILE: Text<PathBuf>, Unset =
        file("listeners.listener.tls.cert-file", "a certificate file", "cert.pem")
            .optional("there must be a `certificate` or an `acme` block")
            .enforced("proxy-server", "https_is_spoken_with_the_listeners_certificate");
    /// The private key of `cert-file`, PEM.
    KEY_FILE: Text<PathBuf>, Unset =
        file("listeners.listener.tls.key-file", "a key file", "key.pem")
            .optional("there must be a `certificate` or an `acme` block")
            .enforced("proxy-server", "https_is_spoken_with_the_listeners_certificate");
    /// An OCSP response for `cert-file`, DER. It is stapled while it is fresh, and read again when
    /// the file changes.
    OCSP_FILE: Text<PathBuf>, Unset =
        file("listeners.listener.tls.ocsp-file", "a file", "cert.ocsp")
            .optional("nothing is stapled")
            .enforced("proxy-server", "an_ocsp_response_is_stapled_and_renewed");
    /// The lowest accepted version of TLS.
    MIN_VERSION: Choice<TlsVersion>, DefaultValue<TlsVersion> =
        choice("listeners.listener.tls.min-version", VERSIONS)
            .or(TlsVersion::V1_2)
            .enforced("proxy-server", "a_version_outside_the_listeners_range_is_refused");
    /// The highest accepted version of TLS.
    MAX_VERSION: Choice<TlsVersion>, DefaultValue<TlsVersion> =
        choice("listeners.listener.tls.max-version", VERSIONS)
            .or(TlsVersion::V1_3)
            .enforced("proxy-server", "a_version_outside_the_listeners_range_is_refused");
    /// Protocols offered by ALPN, in order of preference. Without the setting: `h2` and `http/1.1`.
    ALPN: Choice<Alpn>, Repeatable = choice("listeners.listener.tls.alpn", PROTOCOLS)
        .many()
        .enforced("proxy-server", "the_listeners_protocols_are_offered");
    /// A further certificate, for other server names.
    CERTIFICATE: Block, Repeatable = block("listeners.listener.tls.certificate")
        .many()
        .enforced("proxy-server", "a_further_certificate_is_selected_by_sni");
    /// The certificate chain, leaf first, PEM.
    CERTIFICATE_CERT_FILE: Text<PathBuf>, Required =
        file("listeners.listener.tls.certificate.cert-file", "a certificate file", "cert.pem")
            .enforced("proxy-server", "a_further_certificate_is_selected_by_sni");
    /// The private key, PEM.
    CERTIFICATE_KEY_FILE: Text<PathBuf>, Required =
        file("listeners.listener.tls.certificate.key-file", "a key file", "key.pem")
            .enforced("proxy-server", "a_further_certificate_is_selected_by_sni");
    /// An OCSP response for the certificate, DER.
    CERTIFICATE_OCSP_FILE: Text<PathBuf>, Unset =
        file("listeners.listener.tls.certificate.ocsp-file", "a file", "cert.ocsp")
            .optional("nothing is stapled")
            .enforced("proxy-server", "an_ocsp_response_is_stapled_and_renewed");
    /// A server name the certificate is used for. Without the setting: the names in the
    /// certificate. `*.example.com` matches one label before `.example.com`.
    SERVER_NAME: Text<String>, Repeatable = text(
        "listeners.listener.tls.certificate.server-name",
        "a host name or a wildcard",
        "*.example.com",
        server_name,
    )
    .many()
    .enforced("proxy-server", "a_certificate_is_shown_for_the_names_it_was_given_for");
    /// Authentication of clients by certificate: `client-auth "optional"`, or with a block.
    CLIENT_AUTH: Block, Unset = block("listeners.listener.tls.client-auth")
        .optional("clients are not asked for one")
        .enforced("proxy-server", "a_client_without_its_certificate_is_answered_495");
    /// The accepted certificate authorities, PEM.
    CLIENT_AUTH_CA_FILE: Text<PathBuf>, Required =
        file("listeners.listener.tls.client-auth.ca-file", "a certificate file", "ca.pem")
            .also(&["listeners.listener.tls"])
            .enforced("proxy-server", "a_client_without_its_certificate_is_answered_495");
    /// Mandatory or optional client certificates.
    CLIENT_AUTH_MODE: Choice<ClientAuthMode>, DefaultValue<ClientAuthMode> =
        choice("listeners.listener.tls.client-auth.mode", MODES)
            .or(ClientAuthMode::Required)
            .enforced("proxy-server", "a_client_may_leave_out_an_optional_certificate");
}
