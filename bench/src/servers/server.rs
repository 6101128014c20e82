//! A server to measure: program and set-up.

use std::process::Command;
use xtask_kit::command;

/// Name of `proxyd` in tables.
pub(crate) const OURS: &str = "proxyd";

/// A program in one set-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    /// Name in tables.
    pub(crate) name: String,
    pub(crate) program: Program,
    pub(crate) setup: Setup,
}

/// A measured program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Proxyd,
    Nginx,
    Haproxy,
    Varnish,
}

/// Set-up of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    /// TLS for HTTP/1.1 and HTTP/2.
    pub(crate) tls: bool,
    /// Number of threads, and of their cores.
    pub(crate) workers: usize,
    /// Number of routes in addition to the catch-all; `proxyd` only.
    pub(crate) routes: u32,
    /// Number of upstreams that these routes use in rotation; `proxyd` only.
    pub(crate) upstreams: u32,
    /// Access log in a file; `proxyd` only.
    pub(crate) access_log: bool,
    /// Recording of heads by the defaults of `recording`; `proxyd` with a plain route only.
    pub(crate) recording: bool,
    /// Work of the route in addition to forwarding.
    pub(crate) route: RouteKind,
}

/// Work of a route in addition to forwarding. Only plain routes support TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteKind {
    /// None.
    Plain,
    /// All protections: limits per client, on concurrency and on rates, checks, retries and a
    /// circuit breaker. None of them ever takes effect.
    Protected,
    /// Decision of an agent on each request's head, over a Unix socket.
    Agent,
    /// Cache, from which responses are served.
    Cached,
    /// Relay of connections, without parsing requests.
    Relay,
    /// Lists of networks, and further routes with redirects, rewrites and header values, all
    /// without effect.
    Unused,
    /// Further routes to failing targets, with default limits.
    Storm,
}

/// Number of routes to request in a set-up with many, spread evenly from first to last.
const SPREAD: u32 = 16;

impl Setup {
    /// One worker, one route; no TLS, access log or recording.
    pub(crate) const PLAIN: Self = Self {
        tls: false,
        workers: 1,
        routes: 0,
        upstreams: 0,
        access_log: false,
        recording: false,
        route: RouteKind::Plain,
    };

    /// Returns the peers to compare with, and their names in tables.
    pub(crate) const fn peers(&self) -> &'static [(&'static str, Program)] {
        match self.route {
            RouteKind::Cached => &[("nginx", Program::Nginx), ("varnish", Program::Varnish)],
            // In Debian's nginx, relaying needs an additional module.
            RouteKind::Relay => &[("haproxy", Program::Haproxy)],
            RouteKind::Plain
            | RouteKind::Protected
            | RouteKind::Agent
            | RouteKind::Unused
            | RouteKind::Storm => &[("nginx", Program::Nginx), ("haproxy", Program::Haproxy)],
        }
    }

    /// Returns the paths to request for a response with this letter.
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
    /// Returns the version, on one line.
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
