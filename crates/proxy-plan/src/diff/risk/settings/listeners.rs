//! The risk of a listener for other clients than before, and of weaker verification of targets.

use super::values::{Classified, added, becomes, instead, missing, shown, texts};
use crate::diff::parts::Change;
use crate::diff::relative_path::relative;
use crate::diff::risk::class::RiskClass;
use crate::diff::risk::{Compared, Risk};
use crate::diff::setting_change::SettingChange;
use proxy_model::registry::listener_tls::acme;
use proxy_model::registry::{listener_tls, listeners, upstreams};
use proxy_model::{Listener, Model};
use serde_json::Value;

/// Settings that decide which certificate an authority issues, and whether it is renewed. Harm may
/// show only at the next renewal.
const OBTAINED: [&str; 7] = [
    acme::DIRECTORY.path,
    acme::DIRECTORY_CA_FILE.path,
    acme::CHALLENGE.path,
    acme::DNS_COMMAND.path,
    acme::EAB_KEY_ID.path,
    acme::KEY_TYPE.path,
    acme::STORAGE.path,
];

pub(super) fn risk(change: &SettingChange) -> Classified {
    listener_risk(change)
        .or_else(|| narrowed(change))
        .or_else(|| verification_risk(change))
}

/// Risks of a listener with another address or weaker TLS.
fn listener_risk(change: &SettingChange) -> Classified {
    let row = change.row;
    let values = || {
        format!(
            "{} instead of {}",
            shown(&change.after),
            shown(&change.before)
        )
    };
    if row == listeners::ADDRESS.path {
        let text = format!("listens on {}", values());
        return Some((RiskClass::ListenerRemoved, text));
    }
    let versions = [
        listener_tls::MIN_VERSION.path,
        listener_tls::MAX_VERSION.path,
    ];
    let text = if row == listeners::PROTOCOL.path && becomes(change, "http") {
        "speaks in the clear".to_owned()
    } else if versions.contains(&row) && first(&change.after) < first(&change.before) {
        format!("TLS `{}` is {}", change.path, values())
    } else if row == listener_tls::CLIENT_AUTH_MODE.path && !becomes(change, "required") {
        format!("client certificates: {}", values())
    } else if row == listener_tls::CLIENT_AUTH_CA_FILE.path && change.change != Change::Added {
        format!("client certificates are verified by {}", values())
    } else if row == listener_tls::SERVER_NAME.path {
        format!("a certificate is for other names: {}", instead(change))
    } else if OBTAINED.contains(&row) && change.change == Change::Changed {
        format!(
            "certificates are obtained or renewed another way: {}",
            instead(change)
        )
    } else {
        return None;
    };
    Some((RiskClass::TlsWeakened, text))
}

/// The risks of listeners that serve another default certificate: to clients that send no server
/// name, or a name that no certificate covers.
pub(crate) fn default_certificate_risks(compared: &Compared<'_>) -> Vec<Risk> {
    let Compared { before, after, .. } = compared;
    let risks = after.listeners.iter().filter_map(|new| {
        let old = before.listeners.iter().find(|old| old.name == new.name)?;
        let (old, certificates) = (certificates(before, old), certificates(after, new));
        let (old, new_first) = (old.first()?, certificates.first()?);
        // A removed certificate is compared with its renewal.
        (old != new_first && certificates.contains(old)).then(|| Risk {
            class: RiskClass::TlsWeakened,
            subject: format!("listener {}", new.name),
            change: format!(
                "clients that send no server name, or an unknown one, get {new_first} instead of {old}"
            ),
        })
    });
    risks.collect()
}

fn certificates(model: &Model, listener: &Listener) -> Vec<String> {
    let certificates = listener.tls.iter().flat_map(|tls| &tls.certificates);
    let files = certificates.map(|certificate| relative(model, &certificate.cert_file));
    files.collect()
}

/// The risk of a listener that refuses clients that it accepted before.
fn narrowed(change: &SettingChange) -> Classified {
    let row = change.row;
    let text = if [listeners::PROXY_PROTOCOL.path, listeners::PROTOCOL.path].contains(&row) {
        instead(change)
    } else if row == listeners::H2C.path && !change.after.contains(&Value::Bool(true)) {
        "no longer takes HTTP/2 in the clear".to_owned()
    } else if row == listeners::HTTP3.path && !change.after.contains(&Value::Bool(true)) {
        "no longer takes HTTP/3".to_owned()
    } else if row == listener_tls::MIN_VERSION.path {
        format!("older clients are refused: {}", instead(change))
    } else if row == listener_tls::ALPN.path {
        // Without the setting all protocols are offered.
        let is_less = change.before.is_empty() || !missing(change).is_empty();
        if !is_less || change.after.is_empty() {
            return None;
        }
        format!("offers fewer protocols: {}", instead(change))
    } else if [
        listener_tls::CLIENT_AUTH_MODE.path,
        listener_tls::CLIENT_AUTH_CA_FILE.path,
    ]
    .contains(&row)
    {
        "asks clients for a certificate".to_owned()
    } else {
        return None;
    };
    Some((RiskClass::ListenerNarrowed, text))
}

/// The risk of targets that are verified by other rules.
fn verification_risk(change: &SettingChange) -> Classified {
    let row = change.row;
    let values = || {
        format!(
            "{} instead of {}",
            shown(&change.after),
            shown(&change.before)
        )
    };
    let text = if row == upstreams::CA_FILE.path && change.change == Change::Removed {
        "targets are no longer verified by a `ca-file`".to_owned()
    } else if row == upstreams::CA_FILE.path && change.change == Change::Changed {
        format!("targets are verified by another `ca-file`: {}", values())
    } else if row == upstreams::VERIFY.path && !change.after.contains(&Value::Bool(true)) {
        "certificates of targets are not verified".to_owned()
    } else if row == upstreams::PIN.path
        && !change.before.is_empty()
        && (change.after.is_empty() || !added(change).is_empty())
    {
        format!("the pinned keys of targets are {}", values())
    } else if row == upstreams::SNI.path {
        format!("the verified name of targets is {}", values())
    } else {
        return None;
    };
    Some((RiskClass::VerificationWeakened, text))
}

fn first(values: &[Value]) -> String {
    texts(values).into_iter().next().unwrap_or_default()
}
