//! One look-up of a name.

use crate::error::LookUpError;
use crate::families::{self, HostLookUp};
use crate::service;
use crate::settings::ResolverSettings;
use crate::system_files::SystemFiles;
use arc_swap::ArcSwapOption;
use proxy_model::{Host, TargetAddress};
use proxy_upstream::ResolvedAddress;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Maximum number of addresses of one name; more are left out.
pub(crate) const MAX_ADDRESSES: usize = 256;

/// Maximum number of concurrent look-ups. An unanswered one does not delay the rest.
const MAX_LOOK_UPS: usize = 256;

/// The result of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookUp {
    /// The addresses, at least one, sorted.
    pub found: Result<Vec<ResolvedAddress>, LookUpError>,
    /// Time until the next look-up.
    pub rest: Duration,
    /// Number of addresses beyond the maximum, which were left out.
    pub left_out: usize,
}

/// Asks name servers.
pub(crate) struct Client {
    settings: ResolverSettings,
    permits: Semaphore,
    files: ArcSwapOption<SystemFiles>,
}

impl Client {
    pub(crate) fn new(settings: ResolverSettings) -> Self {
        Self {
            settings,
            permits: Semaphore::new(MAX_LOOK_UPS),
            files: ArcSwapOption::empty(),
        }
    }

    pub(crate) fn settings(&self) -> &ResolverSettings {
        &self.settings
    }

    /// Resolves `name`. Addresses of the `known` answer are kept if a part of the answer fails, and
    /// if there are too many.
    pub(crate) async fn look_up(
        self: &Arc<Self>,
        name: &TargetAddress,
        known: &[ResolvedAddress],
    ) -> LookUp {
        let asking = self.ask(name, known);
        let found = timeout(self.settings.timeout, asking).await;
        let found = found.unwrap_or(Err(LookUpError::TimedOut(self.settings.timeout)));
        match found {
            Ok((addresses, ttl)) => {
                let (addresses, left_out) = bounded(addresses, known);
                LookUp {
                    found: Ok(addresses),
                    rest: self.settings.rest(ttl),
                    left_out,
                }
            }
            Err(error) => LookUp {
                found: Err(if error == LookUpError::Silent {
                    LookUpError::TimedOut(self.settings.timeout)
                } else {
                    error
                }),
                rest: self.settings.min_ttl,
                left_out: 0,
            },
        }
    }

    async fn ask(
        self: &Arc<Self>,
        name: &TargetAddress,
        known: &[ResolvedAddress],
    ) -> Result<(Vec<ResolvedAddress>, Duration), LookUpError> {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let files = self.files().await;
        match &name.host {
            Host::Ip(ip) => {
                let address = SocketAddr::new(*ip, name.port);
                Ok((vec![resolved(address)], Duration::MAX))
            }
            Host::Name(host) => {
                let known: Vec<_> = known.iter().map(|one| one.address.ip()).collect();
                let looked_up = families::look_up(&files, host, &known).await?;
                let HostLookUp { addresses, ttl } = looked_up;
                let addresses = addresses.into_iter();
                let addresses = addresses.map(|ip| resolved(SocketAddr::new(ip, name.port)));
                Ok((addresses.collect(), ttl))
            }
            Host::Service(service) => service::look_up(&files, service, known).await,
        }
    }

    /// The present contents of the system's files.
    async fn files(self: &Arc<Self>) -> Arc<SystemFiles> {
        let client = Arc::clone(self);
        let reading = spawn_blocking(move || {
            let held = client.files.load_full();
            if let Some(held) = held.filter(|held| !held.are_stale(&client.settings)) {
                return held;
            }
            let read = Arc::new(SystemFiles::read(&client.settings));
            client.files.store(Some(Arc::clone(&read)));
            read
        });
        match reading.await {
            Ok(files) => files,
            // The process ends, or reading has panicked.
            Err(_) => std::future::pending().await,
        }
    }
}

fn resolved(address: SocketAddr) -> ResolvedAddress {
    ResolvedAddress {
        address,
        weight: None,
    }
}

/// At most [`MAX_ADDRESSES`] of `addresses`, first those that are `known`; and how many were left out.
fn bounded(
    mut addresses: Vec<ResolvedAddress>,
    known: &[ResolvedAddress],
) -> (Vec<ResolvedAddress>, usize) {
    addresses.sort_unstable();
    addresses.dedup_by_key(|one| one.address);
    let left_out = addresses.len().saturating_sub(MAX_ADDRESSES);
    if left_out > 0 {
        let is_known = |one: &ResolvedAddress| known.iter().any(|it| it.address == one.address);
        addresses.sort_by_key(|one| !is_known(one));
        addresses.truncate(MAX_ADDRESSES);
        addresses.sort_unstable();
    }
    (addresses, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn at(number: usize) -> ResolvedAddress {
        let number = u32::try_from(number).unwrap();
        resolved((Ipv4Addr::from(0x0a00_0000 + number), 80).into())
    }

    #[test]
    fn of_too_many_addresses_those_in_use_are_kept() {
        let all: Vec<_> = (0..MAX_ADDRESSES + 50).map(at).collect();
        let known = [at(MAX_ADDRESSES + 10), at(MAX_ADDRESSES + 20)];

        let (kept, left_out) = bounded(all, &known);

        assert_eq!((kept.len(), left_out), (MAX_ADDRESSES, 50));
        assert!(known.iter().all(|one| kept.contains(one)));
        assert!(kept.is_sorted());
    }
}
