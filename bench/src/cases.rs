//! Benchmark cases, in the order in which they are measured.

use crate::figure::Figure;
use crate::servers::server::{RouteKind, Setup};
use proxy_load::command::{Pacing, Protocol, ResponseSize};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// Name in targets and on the command line.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Servers to measure.
    pub(crate) field: Field,
    pub(crate) plan: Plan,
    /// Figures to report.
    pub(crate) figures: &'static [Figure],
    /// Whether `--quick` omits the case.
    pub(crate) thorough: bool,
}

/// Servers of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field {
    /// `proxyd` and its peers, with equivalent set-ups.
    Peers(Setup),
    /// `proxyd` alone, in several named set-ups. The first one is the reference.
    Ours(&'static [(&'static str, Setup)]),
}

/// Load of a case.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// Requests to running servers, in turns.
    Load(Load),
    /// Like [`Plan::Load`], in many more and shorter rounds, to measure differences of one percent.
    Fine(Load),
    /// Number of connections to a fresh process, which are idle after one request each.
    Idle(u32),
    /// Fresh process without requests.
    Start,
    /// Repeated reloads during requests at a fixed rate.
    Reload(Load),
    /// Instructions and system calls of a fresh process.
    Count,
}

/// Kind and pacing of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) protocol: Protocol,
    pub(crate) answer: ResponseSize,
    pub(crate) body_bytes: usize,
    pub(crate) browser: bool,
    pub(crate) connections: u32,
    pub(crate) streams: u32,
    pub(crate) pacing: Pacing,
}

/// Small GETs on 64 connections, each sent right after the previous response.
pub(crate) const GET: Load = Load {
    protocol: Protocol::Plain,
    answer: ResponseSize::Small,
    body_bytes: 0,
    browser: false,
    connections: 64,
    streams: 1,
    pacing: Pacing::Closed,
};

const TLS: Setup = Setup {
    tls: true,
    ..Setup::PLAIN
};

const CPU: &[Figure] = &[Figure::CpuMicros];
const LATENCY: &[Figure] = &[Figure::P50Micros, Figure::P99Micros, Figure::P999Micros];

/// All cases. Those with the same set-up are adjacent, so that they use the same processes.
pub(crate) const CASES: &[Case] = &[
    peers("get-64", "GET 100 B, 64 connections", GET, CPU),
    peers(
        "get-1",
        "GET 100 B, 1 connection",
        Load {
            connections: 1,
            ..GET
        },
        &[Figure::P50Micros],
    ),
    peers(
        "get-512",
        "GET 100 B, 512 connections",
        Load {
            connections: 512,
            ..GET
        },
        &[Figure::CpuMicros, Figure::P99Micros],
    ),
    peers(
        "get-10k",
        "GET 10 KiB, 64 connections",
        Load {
            answer: ResponseSize::Medium,
            ..GET
        },
        CPU,
    ),
    peers(
        "get-1m",
        "GET 1 MiB, 16 connections",
        Load {
            answer: ResponseSize::Large,
            connections: 16,
            ..GET
        },
        CPU,
    ),
    peers(
        "post-10k",
        "POST 10 KiB, 64 connections",
        Load {
            body_bytes: 10 << 10,
            ..GET
        },
        CPU,
    ),
    peers(
        "browser",
        "GET 100 B with a browser's headers, 64 connections",
        Load {
            browser: true,
            ..GET
        },
        CPU,
    ),
    peers(
        "rate-10k",
        "10 000 requests a second, 64 connections",
        at_rate(10_000),
        LATENCY,
    ),
    peers(
        "rate-30k",
        "30 000 requests a second, 64 connections",
        at_rate(30_000),
        LATENCY,
    ),
    with_tls(
        "tls",
        "GET 100 B, HTTP/1.1 over TLS, 64 connections",
        Load {
            protocol: Protocol::Tls,
            ..GET
        },
    ),
    with_tls(
        "h2",
        "GET 100 B, HTTP/2 over TLS, 16 connections of 16 streams",
        Load {
            protocol: Protocol::Http2,
            connections: 16,
            streams: 16,
            ..GET
        },
    ),
    with_tls(
        "handshake",
        "full TLS 1.3 handshake, GET 100 B, close; 64 at once",
        Load {
            protocol: Protocol::Tls,
            pacing: Pacing::Fresh,
            ..GET
        },
    ),
    Case {
        name: "two-workers",
        title: "GET 100 B, 64 connections, two workers on two cores",
        field: Field::Peers(Setup {
            workers: 2,
            ..Setup::PLAIN
        }),
        plan: Plan::Load(GET),
        figures: &[Figure::CpuMicros, Figure::PerSecond],
        thorough: false,
    },
    Case {
        name: "idle",
        title: "7 000 idle connections",
        field: Field::Peers(Setup::PLAIN),
        plan: Plan::Idle(7_000),
        figures: &[Figure::ConnectionBytes, Figure::RssBytes],
        thorough: false,
    },
    ours(
        "access-log",
        "GET 100 B, 64 connections, with an access log",
        Plan::Fine(GET),
        &[("no log", Setup::PLAIN), ("access log", LOGGED)],
        CPU,
    ),
    Case {
        thorough: true,
        ..ours(
            "protections",
            "GET 100 B, 64 connections, with every protection of a route",
            Plan::Fine(GET),
            &[("none", Setup::PLAIN), ("all", PROTECTED)],
            CPU,
        )
    },
    Case {
        field: Field::Peers(PROTECTED),
        thorough: true,
        ..peers(
            "protected",
            "GET 100 B, 64 connections, limited by client, checked and retried",
            GET,
            CPU,
        )
    },
    Case {
        field: Field::Peers(AGENT),
        thorough: true,
        ..peers(
            "agent",
            "GET 100 B, 64 connections, an agent asked about each head",
            GET,
            CPU,
        )
    },
    Case {
        field: Field::Peers(CACHED),
        thorough: true,
        ..peers(
            "cache-10k",
            "GET 10 KiB from the cache, 64 connections",
            Load {
                answer: ResponseSize::Medium,
                ..GET
            },
            CPU,
        )
    },
    Case {
        thorough: true,
        ..relayed(
            "relay",
            "GET 100 B through a TCP relay, 64 connections",
            GET,
        )
    },
    Case {
        thorough: true,
        ..relayed(
            "relay-1m",
            "GET 1 MiB through a TCP relay, 16 connections",
            Load {
                answer: ResponseSize::Large,
                connections: 16,
                ..GET
            },
        )
    },
    ours(
        "unused",
        "GET 100 B, 1 connection, beside settings without effect, counted",
        Plan::Count,
        &[("without", Setup::PLAIN), ("with", UNUSED)],
        &[Figure::Instructions],
    ),
    ours(
        "routes",
        "GET 100 B, 64 connections, many routes",
        Plan::Load(GET),
        &[
            ("10 routes", routes(10)),
            ("1 000 routes", routes(1_000)),
            ("10 000 routes", routes(10_000)),
        ],
        CPU,
    ),
    ours(
        "upstreams",
        "GET 100 B, 64 connections, 1 000 routes to many upstreams",
        Plan::Load(GET),
        &[
            ("10 upstreams", upstreams(10)),
            ("1 000 upstreams", upstreams(1_000)),
        ],
        CPU,
    ),
    Case {
        thorough: true,
        ..ours(
            "route-memory",
            "a process with many routes",
            Plan::Start,
            &[("10 routes", routes(10)), ("10 000 routes", routes(10_000))],
            &[Figure::RssBytes, Figure::RouteBytes],
        )
    },
    Case {
        thorough: true,
        ..ours(
            "reload",
            "reloads of 10 000 routes during 5 000 requests a second",
            Plan::Reload(at_rate(5_000)),
            &[("10 000 routes", routes(10_000))],
            &[Figure::ReloadMillis, Figure::P99Micros],
        )
    },
    Case {
        name: "count",
        title: "GET 100 B, 1 connection, counted",
        field: Field::Peers(Setup::PLAIN),
        plan: Plan::Count,
        figures: &[
            Figure::Instructions,
            Figure::SystemCalls,
            Figure::ClockReads,
        ],
        thorough: false,
    },
];

const PROTECTED: Setup = Setup {
    route: RouteKind::Protected,
    ..Setup::PLAIN
};

const AGENT: Setup = Setup {
    route: RouteKind::Agent,
    ..Setup::PLAIN
};

const CACHED: Setup = Setup {
    route: RouteKind::Cached,
    ..Setup::PLAIN
};

const RELAY: Setup = Setup {
    route: RouteKind::Relay,
    ..Setup::PLAIN
};

const UNUSED: Setup = Setup {
    route: RouteKind::Unused,
    ..Setup::PLAIN
};

const LOGGED: Setup = Setup {
    access_log: true,
    ..Setup::PLAIN
};

const fn routes(routes: u32) -> Setup {
    Setup {
        routes,
        ..Setup::PLAIN
    }
}

const fn upstreams(upstreams: u32) -> Setup {
    Setup {
        routes: 1_000,
        upstreams,
        ..Setup::PLAIN
    }
}

const fn at_rate(rate: u32) -> Load {
    Load {
        pacing: Pacing::PerSecond(rate),
        ..GET
    }
}

const fn peers(
    name: &'static str,
    title: &'static str,
    load: Load,
    figures: &'static [Figure],
) -> Case {
    Case {
        name,
        title,
        field: Field::Peers(Setup::PLAIN),
        plan: Plan::Load(load),
        figures,
        thorough: false,
    }
}

const fn with_tls(name: &'static str, title: &'static str, load: Load) -> Case {
    Case {
        field: Field::Peers(TLS),
        ..peers(name, title, load, CPU)
    }
}

const fn relayed(name: &'static str, title: &'static str, load: Load) -> Case {
    Case {
        field: Field::Peers(RELAY),
        ..peers(name, title, load, CPU)
    }
}

const fn ours(
    name: &'static str,
    title: &'static str,
    plan: Plan,
    setups: &'static [(&'static str, Setup)],
    figures: &'static [Figure],
) -> Case {
    Case {
        name,
        title,
        field: Field::Ours(setups),
        plan,
        figures,
        thorough: false,
    }
}

impl Load {
    /// Returns true if requests are sent without a pause, so that the proxy limits the rate, not
    /// the load.
    pub(crate) fn is_saturating(&self) -> bool {
        let at_once = self.connections.saturating_mul(self.streams);
        matches!(self.pacing, Pacing::Closed | Pacing::Fresh) && at_once >= 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own() {
        let mut names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
    }
}
