//! Selection of certificates by server name and signature schemes.

use crate::certificate::Certificate;
use crate::certificate::leaf::Names;
use crate::challenges::{self, ChallengeCertificates};
use crate::settings::CertificateSource;
use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum length of a host name, in bytes. [RFC 1035 §2.3.4]
const MAX_HOST_BYTES: usize = 253;

/// Certificates of a listener, each replaceable while handshakes run.
#[derive(Debug)]
pub(crate) struct CertificateStore {
    index: ArcSwap<Index>,
    challenges: Option<ChallengeCertificates>,
}

/// Slot for a configured certificate; empty until the certificate is obtained.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) source: CertificateSource,
    pub(crate) certificate: Option<Arc<Certificate>>,
}

impl CertificateStore {
    /// Creates a store. Its first certificate is the default for names that no certificate covers.
    pub(crate) fn new(slots: Vec<Slot>, challenges: Option<ChallengeCertificates>) -> Self {
        Self {
            index: ArcSwap::from_pointee(Index::new(slots)),
            challenges,
        }
    }

    /// See [`ServerTls::covers`](crate::server::ServerTls::covers).
    pub(crate) fn covers(&self, sni: Option<&str>, host: &str) -> bool {
        let Some(sni) = sni else { return true };
        if host.eq_ignore_ascii_case(sni) {
            return true;
        }
        let mut buffer = [0; MAX_HOST_BYTES];
        let Some(host) = lower_case(host, &mut buffer) else {
            return false;
        };
        let index = self.index.load();
        let served = index.for_name(sni);
        let needed = index.for_name(host);
        let same = |one: &Arc<Certificate>| needed.iter().any(|other| Arc::ptr_eq(one, other));
        served.iter().any(same) || served.iter().any(|one| speaks_for(&one.leaf().names, host))
    }

    /// Certificate that is served for `name`, in lower case, to a client that accepts every kind of
    /// key.
    pub(crate) fn shown(&self, name: &str) -> Option<Arc<Certificate>> {
        self.index.load().for_name(name).first().cloned()
    }

    /// Results of `read` for all certificates, in configuration order.
    pub(crate) fn each<T>(&self, read: impl Fn(&Certificate) -> T) -> Vec<T> {
        let index = self.index.load();
        let loaded = index.slots.iter();
        let loaded = loaded.filter_map(|slot| slot.certificate.as_deref());
        loaded.map(read).collect()
    }

    /// Files of all certificates in configuration order, including those that are not obtained yet.
    pub(crate) fn sources(&self) -> Vec<CertificateSource> {
        let index = self.index.load();
        let slots = index.slots.iter();
        slots.map(|slot| slot.source.clone()).collect()
    }

    pub(crate) fn get(&self, position: usize) -> Option<Arc<Certificate>> {
        self.index.load().slots.get(position)?.certificate.clone()
    }

    /// Replaces a certificate. Handshakes in progress keep the old one.
    pub(crate) fn replace(&self, position: usize, next: Certificate) {
        let next = Arc::new(next);
        self.index.rcu(|index| {
            let mut slots = index.slots.clone();
            if let Some(slot) = slots.get_mut(position) {
                slot.certificate = Some(Arc::clone(&next));
            }
            Index::new(slots)
        });
    }

    /// Removes the OCSP response of a certificate if it is stale; returns true if it was removed.
    pub(crate) fn drop_stale_staple(&self, position: usize, now: SystemTime) -> bool {
        let bare = self
            .get(position)
            .and_then(|current| current.without_stale_staple(now));
        let Some(bare) = bare else { return false };
        self.replace(position, bare);
        true
    }
}

impl ResolvesServerCert for CertificateStore {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if let Some(challenges) = &self.challenges
            && challenges::is_validation(&hello)
        {
            return challenges.certificate(&hello);
        }
        let index = self.index.load();
        // rustls passes the name in lower case, without a trailing dot.
        let candidates = hello
            .server_name()
            .map_or(index.default.as_slice(), |name| index.for_name(name));
        let chosen = match candidates {
            [only] => Some(only),
            several => several
                .iter()
                .find(|one| one.signs_with(hello.signature_schemes()))
                .or(several.first()),
        };
        chosen.map(|certificate| Arc::clone(certificate.key()))
    }
}

/// Certificates by name; those for the same name are sorted by preference.
#[derive(Debug)]
struct Index {
    slots: Vec<Slot>,
    exact: HashMap<Box<str>, Vec<Arc<Certificate>>>,
    /// Keys are names without `*.`.
    wildcard: HashMap<Box<str>, Vec<Arc<Certificate>>>,
    default: Vec<Arc<Certificate>>,
}

impl Index {
    fn new(slots: Vec<Slot>) -> Self {
        let mut exact: HashMap<Box<str>, Vec<Arc<Certificate>>> = HashMap::new();
        let mut wildcard: HashMap<Box<str>, Vec<Arc<Certificate>>> = HashMap::new();
        let certificates = slots.iter();
        let certificates: Vec<_> = certificates
            .filter_map(|slot| slot.certificate.clone())
            .collect();
        // A configured name has precedence over a name in the certificate. The sort is stable, so
        // among equals the one configured first wins.
        let mut preferred = certificates.clone();
        preferred.sort_by_key(|certificate| {
            let unnamed = certificate.source().server_names.is_empty();
            (unnamed, certificate.rank())
        });
        for certificate in &preferred {
            for name in served_names(certificate) {
                let (names, name) = match name.strip_prefix("*.") {
                    Some(domain) => (&mut wildcard, domain),
                    None => (&mut exact, name),
                };
                let candidates = names.entry(name.into()).or_default();
                candidates.push(Arc::clone(certificate));
            }
        }
        // No other certificate is served for the names of one that is not obtained yet.
        for slot in slots.iter().filter(|slot| slot.certificate.is_none()) {
            for name in &slot.source.server_names {
                let (names, name) = match name.strip_prefix("*.") {
                    Some(domain) => (&mut wildcard, domain),
                    None => (&mut exact, &**name),
                };
                names.entry(name.into()).or_default();
            }
        }
        let default = siblings_of_first(&certificates, preferred);
        Self {
            slots,
            exact,
            wildcard,
            default,
        }
    }

    /// Certificates for a name in lower case: exact before wildcard before default. Empty if the
    /// name's certificate is not obtained yet.
    fn for_name(&self, name: &str) -> &[Arc<Certificate>] {
        let parent = || name.split_once('.').map(|(_, parent)| parent);
        let exact = self.exact.get(name);
        if let Some(exact) = exact.filter(|exact| !exact.is_empty()) {
            return exact;
        }
        let wildcard = parent().and_then(|parent| self.wildcard.get(parent));
        let wildcard = wildcard.filter(|found| !found.is_empty() || exact.is_none());
        wildcard.or(exact).unwrap_or(&self.default)
    }
}

/// Names that a certificate is served for: the configured ones, or else those in the certificate.
fn served_names(certificate: &Certificate) -> impl Iterator<Item = &str> {
    let configured = &certificate.source().server_names;
    let own = configured
        .is_empty()
        .then(|| certificate.leaf().names.dns.iter());
    let own = own.into_iter().flatten().map(|name| &**name);
    configured.iter().map(String::as_str).chain(own)
}

/// The first certificate, and those for exactly the same names with other kinds of keys.
fn siblings_of_first(
    certificates: &[Arc<Certificate>],
    mut preferred: Vec<Arc<Certificate>>,
) -> Vec<Arc<Certificate>> {
    if let Some(first) = certificates.first() {
        let names = &first.leaf().names.dns;
        preferred.retain(|one| {
            Arc::ptr_eq(one, first) || (!names.is_empty() && one.leaf().names.dns == *names)
        });
    }
    preferred
}

fn speaks_for(names: &Names, host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(ip) => names.ips.contains(&ip),
        Err(_) => names.cover(host),
    }
}

/// Converts `host` to lower case without a trailing dot; `None` if it is too long.
fn lower_case<'a>(host: &str, buffer: &'a mut [u8; MAX_HOST_BYTES]) -> Option<&'a str> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let lower = buffer.get_mut(..host.len())?;
    lower.copy_from_slice(host.as_bytes());
    lower.make_ascii_lowercase();
    std::str::from_utf8(lower).ok()
}
