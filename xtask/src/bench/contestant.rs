//! Who is measured: a program, and how it is set up.

use crate::command;
use std::process::Command;
use std::str::FromStr;

/// The name of our own entry in every table.
pub(super) const OURS: &str = "proxyd";

/// The names that tables have without anybody's asking.
const TAKEN: [&str; 3] = [OURS, "nginx", "haproxy"];

/// A program in one set-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contestant {
    /// How tables call it.
    pub(super) name: String,
    pub(super) program: Program,
    pub(super) setup: Setup,
}

/// A proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Proxyd,
    Nginx,
    Haproxy,
    /// One that the command line names.
    Other(Peer),
}

/// A proxy that the command line names: `name=command,port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(super) name: String,
    /// Program and arguments, parted by blanks.
    pub(super) command: String,
    /// Where it listens, for HTTP without TLS.
    pub(super) port: u16,
}

/// How a proxy is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    /// Whether it listens with TLS, for HTTP/1.1 and HTTP/2.
    pub(super) tls: bool,
    /// Threads, and cores for them.
    pub(super) workers: usize,
    /// Routes besides the one that takes everything; proxyd only.
    pub(super) routes: u32,
    /// Upstreams that these routes share out among them; proxyd only.
    pub(super) upstreams: u32,
    /// Whether requests are logged to a file; proxyd only.
    pub(super) access_log: bool,
}

/// Paths that a set-up with many routes is asked for: so many of its routes, from first to last.
const SPREAD: u32 = 16;

impl Setup {
    /// One worker, one route, no TLS, no log.
    pub(super) const PLAIN: Self = Self {
        tls: false,
        workers: 1,
        routes: 0,
        upstreams: 0,
        access_log: false,
    };

    /// The paths that lead to an answer, by its letter.
    pub(super) fn paths(&self, letter: char) -> Vec<String> {
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
    /// What it says of its version, on one line.
    pub(super) fn version(&self, proxyd: &std::path::Path) -> Option<String> {
        let (program, argument) = match self {
            Self::Proxyd => (proxyd.to_owned(), "--version"),
            Self::Nginx => (command::find("nginx")?, "-v"),
            Self::Haproxy => (command::find("haproxy")?, "-v"),
            Self::Other(_) => return None,
        };
        let output = Command::new(program).arg(argument).output().ok()?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        said.lines().next().map(str::to_owned)
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = || {
            let (name, rest) = text.split_once('=')?;
            let (command, port) = rest.rsplit_once(',')?;
            let port = port.trim().parse().ok()?;
            let words = [name, command].iter().all(|part| !part.trim().is_empty());
            words.then(|| Self {
                name: name.trim().to_owned(),
                command: command.trim().to_owned(),
                port,
            })
        };
        let peer = parts().ok_or_else(|| "write name=command,port".to_owned())?;
        if TAKEN.contains(&peer.name.as_str()) {
            return Err(format!(
                "{} is measured already; call yours otherwise",
                peer.name
            ));
        }
        Ok(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_a_name_a_command_and_a_port() {
        let peer: Peer = "envoy=envoy -c a,b.yaml --concurrency 1,21500"
            .parse()
            .unwrap();
        assert_eq!(
            (peer.name.as_str(), peer.command.as_str(), peer.port),
            ("envoy", "envoy -c a,b.yaml --concurrency 1", 21_500)
        );
        let taken = "nginx=nginx -c other.conf,21500";
        for text in [
            "envoy",
            "=envoy,1",
            "a=,1",
            "a=b",
            "a=b,c",
            "a=b,70000",
            taken,
        ] {
            assert!(text.parse::<Peer>().is_err(), "{text}");
        }
    }

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
