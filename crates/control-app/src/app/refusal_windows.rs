//! Aggregation of refused sign-ins: windows of about a minute per account, reason and client.

use crate::call::visit::Visit;
use control_wire::UserId;
use jiff::{SignedDuration, Timestamp};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{MutexGuard, PoisonError};

const WINDOW: SignedDuration = SignedDuration::from_secs(60);
/// Maximum number of open windows of known accounts.
const MAX_KNOWN: usize = 500;
/// Maximum number of open windows of unknown accounts.
const MAX_UNKNOWN: usize = 100;
/// Maximum number of clients with separate windows, per account and reason.
const MAX_CLIENTS: usize = 20;
/// Mask of the /64 prefix: one IPv6 client may use all of its addresses.
const IPV6_CLIENT_BITS: u128 = !0 << 64;

/// Refused sign-ins with equal keys share a window.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RefusalKey {
    /// `None` for unknown accounts, and for further accounts when there are too many windows.
    pub(crate) user: Option<UserId>,
    pub(crate) reason: &'static str,
    /// `None` if the account has windows of too many clients.
    client: Option<IpAddr>,
}

/// Aggregate of a window's refusals after the first, which has an audit entry of its own.
#[derive(Clone, Debug)]
pub(crate) struct FoldedRefusals {
    pub(crate) key: RefusalKey,
    /// At least 1.
    pub(crate) count: u64,
    pub(crate) since: Timestamp,
    /// The last refusal, without an address if the window has several clients.
    pub(crate) visit: Visit,
}

#[derive(Debug)]
struct RefusalWindow {
    began: Timestamp,
    folded: u64,
    visit: Visit,
}

#[expect(
    clippy::disallowed_types,
    reason = "held for a look-up among at most 603 windows, and by refused sign-ins alone"
)]
type Lock = std::sync::Mutex<HashMap<RefusalKey, RefusalWindow>>;

/// The open windows of this replica.
#[derive(Debug, Default)]
pub(crate) struct RefusalWindows(Lock);

impl RefusalKey {
    pub(crate) fn new(user: Option<UserId>, reason: &'static str, visit: &Visit) -> Self {
        Self {
            user,
            reason,
            client: visit.client_ip.map(client_prefix),
        }
    }
}

impl RefusalWindows {
    /// Counts a refused sign-in; returns true for the first one of a window, which gets an audit
    /// entry of its own.
    pub(crate) fn begin_or_count(&self, key: RefusalKey, visit: &Visit) -> bool {
        let mut windows = self.lock();
        let key = bounded(&windows, key);
        if let Some(window) = windows.get_mut(&key) {
            window.folded += 1;
            window.visit = visit.clone();
            return false;
        }
        let window = RefusalWindow {
            began: visit.now,
            folded: 0,
            visit: visit.clone(),
        };
        windows.insert(key, window);
        true
    }

    /// Closes the windows that began at least a minute before `now`; returns those with more than
    /// one refusal.
    pub(crate) fn take_ended(&self, now: Timestamp) -> Vec<FoldedRefusals> {
        let mut windows = self.lock();
        // The clock may have been set back, so the age is an absolute value.
        let ended =
            windows.extract_if(|_, window| WINDOW <= now.duration_since(window.began).abs());
        let folded = ended.filter(|(_, window)| 0 < window.folded);
        let folded = folded.map(|(key, window)| {
            let RefusalWindow {
                began,
                folded,
                visit,
            } = window;
            let client_ip = visit.client_ip.filter(|_| key.client.is_some());
            FoldedRefusals {
                key,
                count: folded,
                since: began,
                visit: Visit {
                    client_ip,
                    now,
                    ..visit
                },
            }
        });
        folded.collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RefusalKey, RefusalWindow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key itself, or a coarser one if there are too many windows.
fn bounded(windows: &HashMap<RefusalKey, RefusalWindow>, mut key: RefusalKey) -> RefusalKey {
    if windows.contains_key(&key) {
        return key;
    }
    let is_alike = |own: &&RefusalKey| {
        own.user == key.user && own.reason == key.reason && own.client.is_some()
    };
    if key.user.is_some() && MAX_CLIENTS <= windows.keys().filter(is_alike).count() {
        key.client = None;
        if windows.contains_key(&key) {
            return key;
        }
    }
    let max = if key.user.is_some() {
        MAX_KNOWN
    } else {
        MAX_UNKNOWN
    };
    let of_kind = windows
        .keys()
        .filter(|own| own.user.is_some() == key.user.is_some());
    if max <= of_kind.count() {
        key.user = None;
        key.client = None;
    }
    key
}

fn client_prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & IPV6_CLIENT_BITS).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn visit(address: u32, second: i64) -> Visit {
        Visit {
            client_ip: Some(IpAddr::V4(address.into())),
            browser: String::new(),
            known_browser: None,
            now: Timestamp::from_second(second).unwrap(),
            correlation_id: "c".to_owned(),
        }
    }

    fn count(windows: &RefusalWindows, user: Option<UserId>, visit: &Visit) -> bool {
        windows.begin_or_count(RefusalKey::new(user, "password", visit), visit)
    }

    #[test]
    fn the_first_refusal_of_a_client_is_logged_and_further_ones_are_counted() {
        let (windows, user) = (RefusalWindows::default(), Some(UserId(Uuid::nil())));
        for address in 0..5 {
            assert!(count(&windows, user, &visit(address, 0)));
        }
        assert!(!count(&windows, user, &visit(3, 30)));
        assert!(!count(&windows, user, &visit(3, 31)));
        let now = |second| Timestamp::from_second(second).unwrap();
        assert!(windows.take_ended(now(59)).is_empty());
        let ended = windows.take_ended(now(60));
        let [folded] = ended.as_slice() else {
            panic!("{ended:?}")
        };
        assert_eq!((folded.count, folded.since), (2, now(0)));
        assert_eq!(folded.visit.client_ip, visit(3, 0).client_ip);
        assert!(count(&windows, user, &visit(3, 61)), "another window");
    }

    #[test]
    fn windows_are_bounded_and_lose_no_count() {
        let (windows, user) = (RefusalWindows::default(), UserId(Uuid::from_u128(1)));
        let mut entries = 0_u64;
        for address in 0..1_000 {
            let visit = visit(address, 0);
            entries += u64::from(count(&windows, Some(user), &visit));
            entries += u64::from(count(&windows, None, &visit));
            let other = UserId(Uuid::from_u128(2 + u128::from(address)));
            entries += u64::from(count(&windows, Some(other), &visit));
        }
        let bound = u64::try_from(MAX_KNOWN + MAX_UNKNOWN + 1).unwrap();
        assert!(entries <= bound, "{entries}");
        let ended = windows.take_ended(Timestamp::from_second(60).unwrap());
        let folded: u64 = ended.iter().map(|folded| folded.count).sum();
        assert_eq!(entries + folded, 3_000);
        let of_user = ended.iter().find(|folded| folded.key.user == Some(user));
        assert_eq!(of_user.unwrap().visit.client_ip, None, "of many clients");
    }

    #[test]
    fn addresses_of_one_ipv6_prefix_are_one_client() {
        let own = |text: &str| client_prefix(text.parse().unwrap());
        assert_eq!(own("2001:db8::1"), own("2001:db8::2"));
        assert_ne!(own("2001:db8::1"), own("2001:db8:0:1::1"));
        assert_eq!(own("::ffff:10.0.0.1"), own("10.0.0.1"));
    }
}
