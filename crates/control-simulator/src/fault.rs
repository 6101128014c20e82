//! Faults of bundles, and the nodes that they affect.

/// Effect of a bundle on a node that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This many of 1000 responses are 5xx.
    Errors(u64),
    /// This many of 1000 responses of one route are 5xx; the other route is healthy.
    RouteErrors(u64),
    /// Every response falls into this latency bucket, counted from 0.
    Slow(usize),
    /// The node uses so much more CPU; 100 is one core.
    Cpu(u32),
    /// This many of 1000 requests fail with this reason.
    Reason(&'static str, u64),
    /// This many of 1000 responses have this status, without a reason of failure.
    Status(u16, u64),
    /// The first route serves the requests of the second one too.
    Misrouted,
    /// Every TLS handshake fails: the certificate is another one.
    WrongCertificate,
    /// The listener with TLS is removed.
    LostTls,
    /// Latency bucket of the first byte of a stream.
    HeldBack(usize),
    /// The node rejects the bundle.
    Invalid,
    /// The node never finishes the activation of the bundle.
    Stuck,
    /// The node reports no traffic.
    Silent,
    /// The node stops after its first report.
    Dead,
    /// The proxy restarts between two reports, which resets its counters.
    CrashLoop,
    /// The node no longer serves requests.
    Idle,
    /// Every other report has errors only.
    Flapping,
    /// Well in its first two reports; then errors only.
    Late,
}

/// The nodes on which a fault shows, by their position in the rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of them.
    All,
    /// One node in this many, beginning with the first.
    OneIn(usize),
    /// Only the first node of the fleet.
    First,
}

/// A planted fault that the gate must stop in the first batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedFault {
    /// The name, as `--faults` takes it.
    pub name: &'static str,
    /// The fault.
    pub fault: Fault,
    /// Place of the fault.
    pub share: Share,
}

impl Share {
    /// Returns true if the node at this position is concerned.
    pub fn includes(self, position: usize) -> bool {
        match self {
            Self::All => true,
            Self::OneIn(count) => position.is_multiple_of(count),
            Self::First => position == 0,
        }
    }
}

/// Faults that are large enough for a single node of a batch.
const ON_ANY_SHARE: [(&str, Fault); 14] = [
    ("error", Fault::Errors(500)),
    ("error-total", Fault::Errors(1_000)),
    ("slow", Fault::Slow(9)),
    ("timeout", Fault::Slow(11)),
    ("cpu", Fault::Cpu(300)),
    ("reason", Fault::Reason("connect_refused", 50)),
    ("invalid", Fault::Invalid),
    ("stuck", Fault::Stuck),
    ("silent", Fault::Silent),
    ("dead", Fault::Dead),
    ("crash-loop", Fault::CrashLoop),
    ("idle", Fault::Idle),
    ("flapping", Fault::Flapping),
    ("late", Fault::Late),
];

/// Faults that are small on each node, and harmful because they are on all of them.
const ON_ALL: [(&str, Fault); 16] = [
    ("error-20-permille", Fault::Errors(20)),
    ("error-50-permille", Fault::Errors(50)),
    ("error-one-route", Fault::RouteErrors(300)),
    ("slow-100-ms", Fault::Slow(6)),
    ("cpu-80-percent", Fault::Cpu(80)),
    ("reason-rare", Fault::Reason("tls_verify_failed", 1)),
    ("reason-unknown", Fault::Reason("a_reason_of_tomorrow", 5)),
    ("route-not-found", Fault::Reason("route_not_found", 100)),
    ("status-404", Fault::Status(404, 300)),
    ("status-413", Fault::Status(413, 100)),
    ("status-429", Fault::Status(429, 300)),
    ("status-302", Fault::Status(302, 500)),
    ("misrouted", Fault::Misrouted),
    ("wrong-certificate", Fault::WrongCertificate),
    ("lost-tls", Fault::LostTls),
    ("held-back", Fault::HeldBack(9)),
];

/// Every planted fault: the large ones on all nodes, a half, a tenth and one, the small ones on all.
pub fn planted_faults() -> Vec<PlantedFault> {
    let shares = [Share::All, Share::First, Share::OneIn(10), Share::OneIn(2)];
    let large = shares.into_iter().flat_map(|share| {
        let faults = ON_ANY_SHARE.into_iter();
        faults.map(move |(name, fault)| PlantedFault { name, fault, share })
    });
    let small = ON_ALL.into_iter().map(|(name, fault)| PlantedFault {
        name,
        fault,
        share: Share::All,
    });
    let (mut first, mut rest): (Vec<_>, Vec<_>) =
        large.partition(|planted| planted.share == Share::All);
    first.extend(small);
    first.append(&mut rest);
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_seventy_different_planted_faults() {
        let all = planted_faults();
        let differ = |(index, planted): (usize, &PlantedFault)| {
            let mut others = all.iter().skip(index + 1);
            others.all(|other| (other.fault, other.share) != (planted.fault, planted.share))
        };
        assert!(all.len() >= 70);
        assert!(all.iter().enumerate().all(differ));
    }

    #[test]
    fn every_planted_fault_includes_the_first_node() {
        assert!(
            planted_faults()
                .iter()
                .all(|planted| planted.share.includes(0))
        );
        assert!(!Share::First.includes(1));
        assert!(!Share::OneIn(10).includes(9));
    }
}
