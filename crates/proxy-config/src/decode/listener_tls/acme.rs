//! The `acme` blocks of a listener.

use crate::decode::block::Block;
use crate::decode::decoder::Decoder;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::listener_tls::acme as spec;
use proxy_model::{Acme, AcmeChallenge, ExternalAccount, ListenerProtocol, Model, Setting};
use std::path::PathBuf;

/// Maximum number of hosts of one certificate; authorities accept no more.
const MAX_HOSTS: usize = 100;

pub(super) fn acme<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Acme> {
    let hosts = b.list(d, &spec::HOSTS);
    if hosts.is_empty() && !b.is_misread(spec::HOSTS.path) {
        b.missing(d, spec::HOSTS.name());
    }
    let directory = b.required(d, &spec::DIRECTORY);
    let directory_ca_file = b.file(d, &spec::DIRECTORY_CA_FILE);
    let email = b.required(d, &spec::EMAIL);
    let terms_agreed = b.required(d, &spec::TERMS_AGREED);
    let challenge = b.setting(d, &spec::CHALLENGE);
    let dns_command = dns_command(d, b, &challenge);
    let dns_command_timeout = match challenge.value {
        AcmeChallenge::Dns01 => b.setting(d, &spec::DNS_COMMAND_TIMEOUT),
        // `close` reports it as without effect.
        AcmeChallenge::Http01 | AcmeChallenge::TlsAlpn01 => {
            Setting::defaulted(spec::DNS_COMMAND_TIMEOUT.default())
        }
    };
    let eab = external_account(d, b);
    let key_type = b.setting(d, &spec::KEY_TYPE);
    let storage = storage(d, b);
    let acme = Acme {
        place: b.place(d),
        hosts,
        directory: directory?,
        directory_ca_file,
        email: email?,
        terms_agreed: terms_agreed?,
        challenge,
        dns_command,
        dns_command_timeout,
        eab,
        key_type,
        storage,
    };
    check_agreement(d, &acme);
    check_hosts(d, &acme);
    Some(acme)
}

/// The program of DNS-01; reports its absence, and leaves it to `close` for other challenges.
fn dns_command<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    challenge: &Setting<AcmeChallenge>,
) -> Option<Setting<PathBuf>> {
    if challenge.value != AcmeChallenge::Dns01 {
        return None;
    }
    let command = if d.is_bundle() {
        // The name of a program on the machine, resolved by `bundle_reach`.
        b.path(d, &spec::DNS_COMMAND)
    } else {
        b.file(d, &spec::DNS_COMMAND)
    };
    if command.is_none() && !b.is_misread(spec::DNS_COMMAND.path) {
        b.missing(d, spec::DNS_COMMAND.name());
    }
    command
}

fn external_account<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<ExternalAccount> {
    let b = b.inner(d, &spec::EAB)?;
    let key_id = b.required(d, &spec::EAB_KEY_ID);
    let key_file = b.required_file(d, &spec::EAB_KEY_FILE);
    b.close(d);
    Some(ExternalAccount {
        key_id: key_id?,
        key_file: key_file?,
    })
}

fn storage<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Setting<PathBuf> {
    let storage = b.setting(d, &spec::STORAGE);
    match storage.place() {
        Some(place) => Setting::at(d.resolve(place, &storage.value.to_string_lossy()), place),
        None => storage,
    }
}

/// Reports a `terms-agreed` that is not true.
fn check_agreement(d: &mut Decoder<'_, '_>, acme: &Acme) {
    let Some(place) = acme.terms_agreed.place() else {
        return;
    };
    if !acme.terms_agreed.value {
        let message = "the authority makes no account without agreement to its terms of service";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help(
            "read the terms that the authority's directory names, and write `terms-agreed #true`",
        ));
    }
}

/// Reports hosts that the challenge cannot prove, and too many of them.
fn check_hosts(d: &mut Decoder<'_, '_>, acme: &Acme) {
    if let Some(place) = acme.hosts.get(MAX_HOSTS).and_then(Setting::place) {
        let message = format!("a certificate has at most {MAX_HOSTS} hosts");
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("write further hosts in another `acme` block"));
    }
    if acme.challenge.value == AcmeChallenge::Dns01 {
        return;
    }
    let is_wildcard = |host: &&Setting<String>| host.value.starts_with("*.");
    for host in acme.hosts.iter().filter(is_wildcard) {
        let Some(place) = host.place() else { continue };
        let message = format!("`{}` cannot be proved by `{}`", host.value, *acme.challenge);
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("write `challenge \"dns-01\"` with a `dns-command`, or name each host"));
    }
}

/// Reports blocks with a challenge that no listener can answer, and blocks that contradict each
/// other.
pub(in crate::decode) fn check(d: &mut Decoder<'_, '_>, model: &Model) {
    let blocks = || {
        let listeners = model.listeners.iter();
        let blocks = listeners.filter_map(|listener| listener.tls.as_ref());
        blocks.flat_map(|tls| &tls.acme)
    };
    let mut listeners = model.listeners.iter();
    let has_http = listeners.any(|listener| listener.protocol.value == ListenerProtocol::Http);
    for (index, acme) in blocks().enumerate() {
        if acme.challenge.value == AcmeChallenge::Http01 && !has_http {
            let place = acme.challenge.place().unwrap_or(acme.place);
            let message = "no listener can answer `http-01`";
            let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
            let fault = fault.label("the authority asks over HTTP, on port 80");
            d.push(fault.help(
                "add a listener with `address \"0.0.0.0:80\"`, or write `challenge \"tls-alpn-01\"`",
            ));
        }
        let mut earlier = blocks().take(index);
        if let Some(other) = earlier.find(|other| contradict(acme, other)) {
            let message = "two `acme` blocks obtain a certificate for the same hosts differently";
            let fault = Diagnostic::new(DiagnosticCode::Conflict, acme.place, message);
            let fault = fault.label("again here").related(other.place, "first here");
            d.push(fault.help("blocks of several listeners share a certificate if they are equal"));
        }
    }
}

/// Returns true if both blocks store their certificate in the same file, and differ.
fn contradict(one: &Acme, other: &Acme) -> bool {
    let hosts = |acme: &Acme| {
        let mut hosts: Vec<String> = acme.hosts.iter().map(|host| host.value.clone()).collect();
        hosts.sort_unstable();
        hosts
    };
    let optional = |path: &Option<Setting<PathBuf>>| path.as_ref().map(|path| path.value.clone());
    let account = |acme: &Acme| {
        let account = acme.eab.as_ref();
        account.map(|account| (account.key_id.value.clone(), account.key_file.value.clone()))
    };
    let is_same_certificate = one.storage.value == other.storage.value
        && one.directory.value == other.directory.value
        && hosts(one) == hosts(other);
    is_same_certificate
        && (one.challenge.value != other.challenge.value
            || one.key_type.value != other.key_type.value
            || one.email.value != other.email.value
            || one.dns_command_timeout.value != other.dns_command_timeout.value
            || optional(&one.dns_command) != optional(&other.dns_command)
            || optional(&one.directory_ca_file) != optional(&other.directory_ca_file)
            || account(one) != account(other))
}
