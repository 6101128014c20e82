//! A measured server: its program and its set-up.

use std::process::Command;
use xtask_kit::command;

/// The name of proxyd in tables.
pub(crate) const OURS: &str = "proxyd";

/// A program in one set-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// The name in tables.
    pub(crate) name: String,
    pub(crate) program: Program,
    pub(crate) setup: Setup,
}

/// A proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Proxyd,
    Nginx,
    Haproxy,
    Varnish,
}

/// The set-up of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    /// With TLS, for HTTP/1.1 and HTTP/2.
    pub(crate) tls: bool,
    /// Number of threads, and of their cores.
    pub(crate) workers: usize,
    /// Number of routes in addition to the catch-all; proxyd only.
    pub(crate) routes: u32,
    /// Number of upstreams that these routes use in rotation; proxyd only.
    pub(crate) upstreams: u32,
    /// Requests are logged to a file; proxyd only.
    pub(crate) access_log: bool,
    /// Heads are recorded by the defaults of `recording`; proxyd's plain route only.
    pub(crate) recording: bool,
    /// Work of its route besides forwarding.
    pub(crate) route: RouteKind,
}

/// Work of a route besides forwarding. All but plain routes are without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteKind {
    /// Nothing.
    Plain,
    /// Every protection: limits by client, in flight and on rates, checks, retries and a breaker, none of
    /// which ever takes effect.
    Protected,
    /// An agent on a Unix socket decides on the head of each request.
    Agent,
    /// Responses are stored and served from the store.
    Cached,
    /// Connections are relayed, and requests not read.
    Relay,
    /// There are lists of networks, and further routes with redirects, rewrites and header values, that have no effect.
    Unused,
    /// There are more routes, to targets in trouble, and all limits are as by default.
    Storm,
}

/// Number of routes requested in a set-up with many, spread from first to last.
const SPREAD: u32 = 16;

impl Setup {
    /// One worker, one route, no TLS, no log, no recording.
    pub(crate) const PLAIN: Self = Self {
        tls: false,
        workers: 1,
        routes: 0,
        upstreams: 0,
        access_log: false,
        recording: false,
        route: RouteKind::Plain,
    };

    /// The peers that proxyd is compared with, and their names in tables.
    pub(crate) const fn peers(&self) -> &'static [(&'static str, Program)] {
        match self.route {
            RouteKind::Cached => &[("nginx", Program::Nginx), ("varnish", Program::Varnish)],
            // Debian's nginx has a relay as a module only.
            RouteKind::Relay => &[("haproxy", Program::Haproxy)],
            RouteKind::Plain
            | RouteKind::Protected
            | RouteKind::Agent
            | RouteKind::Unused
            | RouteKind::Storm => &[("nginx", Program::Nginx), ("haproxy", Program::Haproxy)],
        }
    }

    /// The paths for a response, by its letter.
    pub(crate) fn paths(&self, letter: char) -> Vec<String> {
        let Some(last) = self.routes.checked_sub(1) else {
            return vec![format!("/{letter}")];
        };
        let asked = SPREAD.min(self.routes);
        let route = |turn| u64::from(last) * u64::from(turn) / u64::from(asked.max(2) - 1);
        (0..asked)
            .map(|turn| format!("/r{}/{letter}", route(turn)))
            .collect()
    }
}

impl Program {
    /// Its version, on one line.
    pub(crate) fn version(&self, proxyd: &std::path::Path) -> Option<String> {
        let (program, argument) = match self {
            Self::Proxyd => (proxyd.to_owned(), "--version"),
            Self::Nginx => (command::find("nginx")?, "-v"),
            Self::Haproxy => (command::find("haproxy")?, "-v"),
            Self::Varnish => (command::find("varnishd")?, "-V"),
        };
        let output = Command::new(program).arg(argument).output().ok()?;
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        printed.lines().next().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_from_the_first_route_to_the_last() {
        assert_eq!(Setup::PLAIN.paths('s'), ["/s"]);
        let many = Setup {
            routes: 10_000,
            ..Setup::PLAIN
        };
        let paths = many.paths('m');
        assert_eq!(paths.len(), 16);
        assert_eq!(paths.first().unwrap(), "/r0/m");
        assert_eq!(paths.last().unwrap(), "/r9999/m");
        let one = Setup {
            routes: 1,
            ..Setup::PLAIN
        };
        assert_eq!(one.paths('s'), ["/r0/s"]);
    }
}
