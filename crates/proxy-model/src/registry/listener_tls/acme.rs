//! Certificates obtained from an authority by ACME.

use super::server_name;
use crate::listener::{AcmeChallenge, AcmeKeyType};
use crate::registry::kind::Block;
use crate::registry::number::Time;
use crate::registry::spec::{DefaultValue, MachinePart, Repeatable, Required, Unset};
use crate::registry::table::{
    block, choice, file, flag, settings, text, time_from, word, words, written,
};
use crate::registry::text::{Text, Written};
use crate::registry::word::{Choice, ChoiceWord, Flag};
use std::path::PathBuf;
use std::time::Duration;

const BY: &str = "proxy-server";

const CHALLENGES: &[ChoiceWord<AcmeChallenge>] = &[
    word(
        "http-01",
        AcmeChallenge::Http01,
        "a token over HTTP on port 80; every listener answers it, before its networks and routes",
    ),
    word(
        "tls-alpn-01",
        AcmeChallenge::TlsAlpn01,
        "a certificate over TLS on port 443, by the listeners with the block",
    ),
    word(
        "dns-01",
        AcmeChallenge::Dns01,
        "a TXT record that `dns-command` publishes; the only one for wildcards",
    ),
];

const KEY_TYPES: &[ChoiceWord<AcmeKeyType>] = &[
    word("rsa-2048", AcmeKeyType::Rsa2048, "RSA with 2048 bits"),
    word("ecdsa-p384", AcmeKeyType::EcdsaP384, "ECDSA with P-384"),
    word("ecdsa-p256", AcmeKeyType::EcdsaP256, "ECDSA with P-256"),
];

/// Parses the URL of a directory.
fn directory(text: &str) -> Result<String, String> {
    let rest = text
        .strip_prefix("https://")
        .ok_or("it begins with https://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Err("a credential does not belong in it".to_owned());
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse::<u16>().ok()),
        Some(_) | None => (authority, Some(443)),
    };
    if host.is_empty() {
        return Err("there is no host".to_owned());
    }
    if port.is_none_or(|port| port == 0) {
        return Err("its port is a number from 1 to 65535".to_owned());
    }
    if text.contains(|c: char| c == '#' || c.is_whitespace() || c.is_control()) {
        return Err("it is a URL without spaces and `#`".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses one address of mail. [RFC 8555 §7.3]
fn email(text: &str) -> Result<String, String> {
    if text.starts_with("mailto:") {
        return Err("write the address without `mailto:`".to_owned());
    }
    let parts = text.split_once('@');
    let good = parts.is_some_and(|(local, domain)| {
        !local.is_empty() && !domain.is_empty() && !domain.contains('@')
    });
    let good = good && !text.contains(|c: char| ",?%".contains(c) || c.is_whitespace());
    good.then(|| text.to_owned())
        .ok_or_else(|| "it is one address, as name@example.com".to_owned())
}

settings! {
    /// A certificate that the proxy obtains from an authority by ACME, and renews. Its key is made here and
    /// leaves the machine never. Until there is a certificate, handshakes for its hosts are refused. Repeat
    /// the block for further certificates; equal blocks of several listeners share one certificate.
    ACME: Block, Repeatable = block("listeners.listener.tls.acme")
        .many()
        .enforced(BY, "a_certificate_is_obtained_by_http_01");
    /// The hosts of the certificate. No certificate is obtained for other names. A host that cannot be
    /// validated fails the whole certificate: write unrelated hosts in blocks of their own.
    HOSTS: Text<String>, Repeatable = text(
        "listeners.listener.tls.acme.hosts",
        "a host name",
        "www.example.com",
        server_name,
    )
    .many()
    .enforced(BY, "a_certificate_is_obtained_by_http_01");
    /// URL of the authority's directory. Begin with the authority's staging directory: production has low
    /// limits on failures.
    DIRECTORY: Text<String>, Required = text(
        "listeners.listener.tls.acme.directory",
        "a URL",
        "https://acme-staging-v02.api.letsencrypt.org/directory",
        directory,
    )
    .names(MachinePart::PeerAddress)
    .enforced(BY, "a_certificate_is_obtained_by_http_01");
    /// Roots for the certificate of the authority's own server, PEM.
    DIRECTORY_CA_FILE: Text<PathBuf>, Unset =
        file("listeners.listener.tls.acme.directory-ca-file", "a certificate file", "ca.pem")
            .optional("the roots of the system")
            .enforced(BY, "an_authority_with_an_unknown_root_is_not_asked");
    /// E-mail address for the authority's notices about the account.
    EMAIL: Text<String>, Required =
        text("listeners.listener.tls.acme.email", "an address of mail", "ops@example.com", email)
            .enforced(BY, "a_certificate_is_obtained_by_http_01");
    /// Agreement to the authority's terms of service. Without `#true` there is no account.
    TERMS_AGREED: Flag, Required = flag("listeners.listener.tls.acme.terms-agreed")
        .enforced("proxy-config", "acme_without_agreement_to_the_terms_is_refused");
    /// Proof of control over the hosts, requested from the authority.
    CHALLENGE: Choice<AcmeChallenge>, DefaultValue<AcmeChallenge> =
        choice("listeners.listener.tls.acme.challenge", CHALLENGES)
            .or(AcmeChallenge::Http01)
            .enforced(BY, "a_certificate_is_obtained_by_tls_alpn_01");
    /// The program that publishes the TXT records of `dns-01`, called as `PROGRAM present NAME
    /// VALUE`, and removes them, as `PROGRAM cleanup NAME VALUE`. It must exit with status 0 once
    /// the authority's resolvers can see the record. Its environment contains only `PATH`.
    DNS_COMMAND: Text<PathBuf>, Unset = file(
        "listeners.listener.tls.acme.dns-command",
        "a program",
        "/usr/local/lib/proxyd/dns-record",
    )
    .optional("there is no `dns-01`")
    .enforced(BY, "a_certificate_is_obtained_by_dns_01");
    /// Maximum time of one run of `dns-command`, which is killed after that.
    DNS_COMMAND_TIMEOUT: Time, DefaultValue<Duration> = time_from(
        "listeners.listener.tls.acme.dns-command-timeout-secs",
        Duration::from_secs(1),
        Duration::from_hours(1),
    )
    .or(Duration::from_mins(2))
    .enforced(BY, "a_dns_command_that_hangs_is_killed");
    /// An account at the authority that the ACME account is bound to, for authorities that require one.
    EAB: Block, Unset = block("listeners.listener.tls.acme.eab")
        .optional("the account is bound to none")
        .enforced(BY, "an_account_is_bound_to_an_external_one");
    /// The identifier of the external account's key, from the authority.
    EAB_KEY_ID: Text<String>, Required =
        words("listeners.listener.tls.acme.eab.key-id", "an identifier", "kid-1")
            .enforced(BY, "an_account_is_bound_to_an_external_one");
    /// A file with the external account's MAC key in base64url, from the authority.
    EAB_KEY_FILE: Text<PathBuf>, Required =
        file("listeners.listener.tls.acme.eab.key-file", "a file", "eab.key")
            .enforced(BY, "an_account_is_bound_to_an_external_one");
    /// The kind of the certificate's key. Every certificate has a new key.
    KEY_TYPE: Choice<AcmeKeyType>, DefaultValue<AcmeKeyType> =
        choice("listeners.listener.tls.acme.key-type", KEY_TYPES)
            .or(AcmeKeyType::EcdsaP256)
            .enforced(BY, "a_certificate_has_a_key_of_the_type_that_is_set");
    /// The folder of accounts, keys and certificates. It is made if it is missing, with mode 0700; its files
    /// have mode 0600. Processes that share it obtain a certificate once.
    STORAGE: Text<PathBuf>, DefaultValue<Written<PathBuf>> =
        file("listeners.listener.tls.acme.storage", "a folder", "/var/lib/proxyd/acme")
            .or(written("/var/lib/proxyd/acme", || "/var/lib/proxyd/acme".into()))
            .names(MachinePart::Folder)
            .enforced(BY, "a_restart_uses_the_stored_certificate");
}
