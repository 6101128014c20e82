//! Services by SRV records. [RFC 2782]

use crate::error::LookUpError;
use crate::families::{self, HostLookUp};
use crate::system_files::SystemFiles;
use futures_util::future::join_all;
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{RData, RecordType};
use proxy_upstream::ResolvedAddress;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Maximum number of records of one priority that are followed.
const MAX_RECORDS: usize = 64;

/// The highest weight of a target.
const MAX_WEIGHT: u32 = 10_000;

/// The addresses of the records with the lowest priority that has any. If a host fails and there is
/// a `known` answer, the look-up fails as a whole.
pub(crate) async fn look_up(
    files: &SystemFiles,
    service: &str,
    known: &[ResolvedAddress],
) -> Result<(Vec<ResolvedAddress>, Duration), LookUpError> {
    let resolver = files.resolver.as_ref().map_err(Clone::clone)?;
    let looked_up = resolver
        .lookup(families::name_of(service)?, RecordType::SRV)
        .await?;
    let records = looked_up.answers().iter();
    let ttl = records.clone().map(|record| record.ttl).min();
    let ttl = Duration::from_secs(ttl.unwrap_or_default().into());
    let mut priorities = BTreeMap::<u16, Vec<&SRV>>::new();
    for record in records {
        if let RData::SRV(server) = &record.data
            && !server.target.is_root()
        {
            priorities.entry(server.priority).or_default().push(server);
        }
    }
    let mut last = LookUpError::NoService;
    for mut servers in priorities.into_values() {
        servers.truncate(MAX_RECORDS);
        match server_addresses(files, &servers, !known.is_empty()).await {
            Ok((addresses, hosts_ttl)) => return Ok((addresses, ttl.min(hosts_ttl))),
            Err(error) if error.is_negative() => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

async fn server_addresses(
    files: &SystemFiles,
    servers: &[&SRV],
    all_or_nothing: bool,
) -> Result<(Vec<ResolvedAddress>, Duration), LookUpError> {
    let heaviest = servers.iter().map(|server| server.weight).max();
    let weight = |server: &SRV| weight(server.weight, heaviest.unwrap_or_default());
    let look_ups = servers.iter().map(|server| async move {
        let host = server.target.to_ascii();
        families::look_up(files, &host, &[]).await
    });
    let (mut addresses, mut ttl, mut last) = (Vec::new(), Duration::MAX, LookUpError::NoRecords);
    for (server, looked_up) in servers.iter().zip(join_all(look_ups).await) {
        match looked_up {
            Ok(HostLookUp {
                addresses: found,
                ttl: host_ttl,
            }) => {
                ttl = ttl.min(host_ttl);
                addresses.extend(found.into_iter().map(|ip| ResolvedAddress {
                    address: SocketAddr::new(ip, server.port),
                    weight: Some(weight(server)),
                }));
            }
            Err(error) if error.is_negative() || !all_or_nothing => last = error,
            Err(error) => return Err(error),
        }
    }
    if addresses.is_empty() {
        return Err(last);
    }
    Ok((addresses, ttl))
}

/// A record's weight as a target's: at least 1, at most 10 000, in the same proportions.
fn weight(weight: u16, heaviest: u16) -> u32 {
    let (weight, heaviest) = (u32::from(weight), u32::from(heaviest));
    let scaled = if heaviest > MAX_WEIGHT {
        weight * MAX_WEIGHT / heaviest
    } else {
        weight
    };
    scaled.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_records_become_weights_of_targets() {
        assert_eq!([weight(0, 0), weight(5, 60)], [1, 5]);
        assert_eq!(
            [weight(65_535, 65_535), weight(6_553, 65_535)],
            [10_000, 999]
        );
    }
}
