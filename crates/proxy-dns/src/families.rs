//! The IPv4 and IPv6 addresses of a host.

use crate::error::LookUpError;
use crate::system_files::SystemFiles;
use futures_util::future::join;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::str::FromStr;
use std::time::Duration;

/// The addresses of a host.
pub(crate) struct HostLookUp {
    /// At least one.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) ttl: Duration,
}

/// The addresses of `host`, of both families. If the look-up of one family fails and the other's
/// succeeds, the `known` addresses of the failed family are kept.
pub(crate) async fn look_up(
    files: &SystemFiles,
    host: &str,
    known: &[IpAddr],
) -> Result<HostLookUp, LookUpError> {
    let listed = hosts_file_addresses(&files.hosts, host);
    if !listed.is_empty() {
        return Ok(HostLookUp {
            addresses: listed,
            ttl: Duration::ZERO,
        });
    }
    let resolver = files.resolver.as_ref().map_err(Clone::clone)?;
    let asking = |kind| look_up_family(resolver, host, kind);
    let (four, six) = join(asking(RecordType::A), asking(RecordType::AAAA)).await;
    let (mut addresses, mut ttl, mut first_error) = (Vec::new(), Duration::MAX, None);
    for (family, is_of_family) in [
        (four, IpAddr::is_ipv4 as fn(&IpAddr) -> bool),
        (six, IpAddr::is_ipv6),
    ] {
        match family {
            Ok(found) => {
                addresses.extend(found.addresses);
                ttl = ttl.min(found.ttl);
            }
            Err(error) if error.is_negative() => {}
            Err(error) => {
                addresses.extend(known.iter().filter(|ip| is_of_family(ip)));
                ttl = Duration::ZERO;
                first_error.get_or_insert(error);
            }
        }
    }
    let has_answer = !addresses.is_empty() && ttl > Duration::ZERO;
    match first_error {
        // Only `known` addresses: the look-up has failed.
        Some(error) if addresses.iter().all(|ip| known.contains(ip)) => Err(error),
        None if !has_answer && addresses.is_empty() => Err(LookUpError::NoRecords),
        Some(_) | None => Ok(HostLookUp {
            addresses: reachable(addresses),
            ttl,
        }),
    }
}

async fn look_up_family(
    resolver: &TokioResolver,
    host: &str,
    kind: RecordType,
) -> Result<HostLookUp, LookUpError> {
    let looked_up = resolver.lookup(host, kind).await?;
    let records = looked_up.answers().iter();
    let ttl = records.clone().map(|record| record.ttl).min();
    Ok(HostLookUp {
        addresses: records.filter_map(|record| record.data.ip_addr()).collect(),
        ttl: Duration::from_secs(ttl.unwrap_or_default().into()),
    })
}

fn hosts_file_addresses(hosts: &Hosts, host: &str) -> Vec<IpAddr> {
    let Ok(name) = Name::from_str(host) else {
        return Vec::new();
    };
    let kinds = [RecordType::A, RecordType::AAAA].into_iter();
    let found = kinds.filter_map(|kind| {
        let query = Query::query(name.clone(), kind);
        hosts.lookup_static_host(&query)
    });
    let addresses = found.flat_map(|found| {
        let addresses = found.answers().iter();
        let addresses = addresses.filter_map(|record| record.data.ip_addr());
        addresses.collect::<Vec<_>>()
    });
    addresses.collect()
}

/// The addresses that the system has a route to; all if it has none to any of them. Connecting a
/// UDP socket sends nothing. [RFC 6724 §5, rule 1]
fn reachable(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let (has, lacks): (Vec<_>, Vec<_>) = addresses.into_iter().partition(has_route);
    if has.is_empty() { lacks } else { has }
}

fn has_route(address: &IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0));
    socket.is_ok_and(|socket| socket.connect(SocketAddr::new(*address, 9)).is_ok())
}
