//! The IPv4 and IPv6 addresses of a host.

use crate::error::LookUpError;
use crate::system_files::SystemFiles;
use futures_util::future::{Either, select};
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, TokioResolver};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// The addresses of a host.
pub(crate) struct HostLookUp {
    /// At least one.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) ttl: Duration,
}

/// The addresses of `host`, of both families. If the look-up of one family fails and the other's
/// succeeds, the `known` addresses of the failed family are kept. A family without an answer fails
/// in the time of one attempt if the other one has addresses: some networks drop queries for IPv6.
pub(crate) async fn look_up(
    files: &SystemFiles,
    host: &str,
    known: &[IpAddr],
) -> Result<HostLookUp, LookUpError> {
    let name = name_of(host)?;
    let listed = hosts_file_addresses(&files.hosts, &name);
    if !listed.is_empty() {
        return Ok(HostLookUp {
            addresses: listed,
            ttl: Duration::ZERO,
        });
    }
    let resolver = files.resolver.as_ref().map_err(Clone::clone)?;
    let four = pin!(look_up_family(resolver, &name, RecordType::A));
    let six = pin!(look_up_family(resolver, &name, RecordType::AAAA));
    let (four, six) = match select(four, six).await {
        Either::Left((four, six)) => {
            let six = look_up_second(six, &four, files.attempt_timeout).await;
            (four, six)
        }
        Either::Right((six, four)) => {
            let four = look_up_second(four, &six, files.attempt_timeout).await;
            (four, six)
        }
    };
    let (mut addresses, mut ttl, mut first_error) = (Vec::new(), Duration::MAX, None);
    let has_answer = has_addresses(&four) || has_addresses(&six);
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
    if !has_answer {
        // At most `known` addresses: the look-up has failed.
        return Err(first_error.unwrap_or(LookUpError::NoRecords));
    }
    Ok(HostLookUp {
        addresses: reachable(addresses),
        ttl,
    })
}

/// `host` as a DNS name. Underscores are accepted: names of containers and services have them.
pub(crate) fn name_of(host: &str) -> Result<Name, LookUpError> {
    Name::from_str_relaxed(host).map_err(|error| LookUpError::Failed(error.to_string()))
}

/// The look-up of the family that is answered second, within `limit` if the `first` one has addresses.
async fn look_up_second(
    second: impl Future<Output = Result<HostLookUp, LookUpError>>,
    first: &Result<HostLookUp, LookUpError>,
    limit: Duration,
) -> Result<HostLookUp, LookUpError> {
    if !has_addresses(first) {
        return second.await;
    }
    let ended = timeout(limit, second).await;
    ended.unwrap_or(Err(LookUpError::Silent))
}

fn has_addresses(found: &Result<HostLookUp, LookUpError>) -> bool {
    found
        .as_ref()
        .is_ok_and(|found| !found.addresses.is_empty())
}

async fn look_up_family(
    resolver: &TokioResolver,
    host: &Name,
    kind: RecordType,
) -> Result<HostLookUp, LookUpError> {
    let looked_up = resolver.lookup(host.clone(), kind).await?;
    let records = looked_up.answers().iter();
    let ttl = records.clone().map(|record| record.ttl).min();
    Ok(HostLookUp {
        addresses: records.filter_map(|record| record.data.ip_addr()).collect(),
        ttl: Duration::from_secs(ttl.unwrap_or_default().into()),
    })
}

fn hosts_file_addresses(hosts: &Hosts, name: &Name) -> Vec<IpAddr> {
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
    let (routed, unrouted): (Vec<_>, Vec<_>) = addresses.into_iter().partition(has_route);
    if routed.is_empty() { unrouted } else { routed }
}

fn has_route(address: &IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0));
    socket.is_ok_and(|socket| socket.connect(SocketAddr::new(*address, 9)).is_ok())
}
