//! Configurations of servers, generated from templates in the `bench` folder.

use crate::servers::certificate::{BOTH, CERTIFICATE, KEY};
use crate::servers::environment::{BACKEND_PORT, Environment, HUNG_PORT};
use crate::servers::server::{Program, RouteKind, Setup};
use std::fs;
use std::path::{Path, PathBuf};
use xtask_kit::task_error::TaskError;

/// Ports of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) clients: u16,
    /// Port of the admin interface; `proxyd` only.
    pub(crate) admin: u16,
}

/// Returns the name of the agent's socket in the folder of the run.
pub(crate) fn agent_socket(ports: Ports) -> String {
    format!("{}-agent.sock", ports.clients)
}

/// Returns the template of a program for a set-up, relative to the `bench` folder.
fn template(program: &Program, setup: &Setup) -> &'static str {
    match (program, setup.route) {
        (Program::Proxyd, RouteKind::Protected) => "proxyd/protected.kdl",
        (Program::Nginx, RouteKind::Protected) => "nginx/protected.conf",
        (Program::Haproxy, RouteKind::Protected) => "haproxy/protected.cfg",
        (Program::Proxyd, RouteKind::Agent) => "proxyd/agent.kdl",
        (Program::Nginx, RouteKind::Agent) => "nginx/agent.conf",
        (Program::Haproxy, RouteKind::Agent) => "haproxy/agent.cfg",
        (Program::Proxyd, RouteKind::Storm) => "proxyd/storm.kdl",
        (Program::Nginx, RouteKind::Storm) => "nginx/storm.conf",
        (Program::Haproxy, RouteKind::Storm) => "haproxy/storm.cfg",
        (Program::Proxyd, RouteKind::Cached) => "proxyd/cached.kdl",
        (Program::Nginx, RouteKind::Cached) => "nginx/cached.conf",
        (Program::Varnish, _) => "varnish/cached.vcl",
        (Program::Proxyd, RouteKind::Unused) => "proxyd/unused.kdl",
        (Program::Proxyd, RouteKind::Relay) => "proxyd/relay.kdl",
        (Program::Haproxy, RouteKind::Relay) => "haproxy/relay.cfg",
        (Program::Proxyd, RouteKind::Plain) if setup.tls => "proxyd/tls.kdl",
        (Program::Nginx, RouteKind::Plain) if setup.tls => "nginx/tls.conf",
        (Program::Haproxy, RouteKind::Plain) if setup.tls => "haproxy/tls.cfg",
        (Program::Proxyd, RouteKind::Plain) => "proxyd/plain.kdl",
        (Program::Nginx, RouteKind::Plain | RouteKind::Unused | RouteKind::Relay) => {
            "nginx/plain.conf"
        }
        (Program::Haproxy, RouteKind::Plain | RouteKind::Cached | RouteKind::Unused) => {
            "haproxy/plain.cfg"
        }
    }
}

/// Writes the configuration of a program; returns its path.
pub(crate) fn write(
    environment: &Environment,
    program: &Program,
    setup: &Setup,
    ports: Ports,
) -> Result<PathBuf, TaskError> {
    let template = template(program, setup);
    let kept = environment.kept(template);
    let text =
        fs::read_to_string(&kept).map_err(|source| TaskError::File { path: kept, source })?;
    let mut values = values(environment.folder(), setup, ports).to_vec();
    let spoe = environment.kept("haproxy/agent.spoe");
    values.push(("agent-spoe", spoe.display().to_string()));
    let mut text = fill(&text, &values)?;
    if *program == Program::Proxyd {
        text.push_str(&growth(setup));
    }
    let path = environment.file(&format!("{}-{}", ports.clients, template.replace('/', "-")));
    fs::write(&path, text).map_err(|source| TaskError::File {
        path: path.clone(),
        source,
    })?;
    Ok(path)
}

fn values(folder: &Path, setup: &Setup, ports: Ports) -> [(&'static str, String); 15] {
    let file = |name: &str| folder.join(name).display().to_string();
    let access_log = if setup.access_log {
        format!("path \"{}\"", file("access.log"))
    } else {
        "enabled #false".to_owned()
    };
    let recording = if setup.recording { "recording {}" } else { "" };
    [
        ("workers", setup.workers.to_string()),
        ("port", ports.clients.to_string()),
        ("admin-port", ports.admin.to_string()),
        ("backend", format!("127.0.0.1:{BACKEND_PORT}")),
        ("backend-port", BACKEND_PORT.to_string()),
        ("hung", format!("127.0.0.1:{HUNG_PORT}")),
        ("dead-1", format!("127.0.0.1:{}", HUNG_PORT + 1)),
        ("dead-2", format!("127.0.0.1:{}", HUNG_PORT + 2)),
        ("folder", folder.display().to_string()),
        ("certificate", file(CERTIFICATE)),
        ("key", file(KEY)),
        ("certificate-and-key", file(BOTH)),
        ("access-log", access_log),
        ("recording", recording.to_owned()),
        ("agent-socket", file(&agent_socket(ports))),
    ]
}

/// Replaces names between `@` signs by values.
fn fill(template: &str, values: &[(&str, String)]) -> Result<String, TaskError> {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("@{name}@"), value);
    }
    if let Some((_, unknown)) = text.split_once('@') {
        let unknown = unknown.split('@').next().unwrap_or_default();
        return Err(TaskError::Failed(format!(
            "a configuration under bench/ names @{unknown}@, which means nothing"
        )));
    }
    Ok(text)
}

/// Generates routes and upstreams in addition to those of the template.
fn growth(setup: &Setup) -> String {
    if setup.routes == 0 {
        return String::new();
    }
    let upstream = |route: u32| match route.checked_rem(setup.upstreams) {
        Some(number) => format!("u{number}"),
        None => "backend".to_owned(),
    };
    let routes: Vec<String> = (0..setup.routes)
        .map(|route| {
            format!(
                "    route \"r{route}\" {{ matches {{ path-prefix \"/r{route}\" }}; \
                 upstream \"{upstream}\" }}\n",
                upstream = upstream(route)
            )
        })
        .collect();
    let upstreams: Vec<String> = (0..setup.upstreams)
        .map(|number| {
            format!(
                "    upstream \"u{number}\" {{ targets {{ target \"127.0.0.1:{BACKEND_PORT}\" }}; \
                 connection-pool {{ max-idle 1024 }} }}\n"
            )
        })
        .collect();
    let (routes, upstreams) = (routes.concat(), upstreams.concat());
    format!("\nroutes {{\n{routes}}}\n\nupstreams {{\n{upstreams}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports {
        clients: 21_010,
        admin: 21_011,
    };

    /// Generates the configuration of `proxyd` for a set-up.
    fn proxyd(setup: &Setup) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let name = template(&Program::Proxyd, setup);
        let text = fs::read_to_string(root.join("bench").join(name)).unwrap();
        let filled = fill(&text, &values(Path::new("run"), setup, PORTS)).unwrap();
        filled + &growth(setup)
    }

    #[test]
    fn proxyd_accepts_its_own_configurations_without_diagnostics() {
        let plain = Setup::PLAIN;
        let setups = [
            plain,
            Setup { tls: true, ..plain },
            Setup {
                route: RouteKind::Protected,
                ..plain
            },
            Setup {
                route: RouteKind::Agent,
                ..plain
            },
            Setup {
                route: RouteKind::Storm,
                ..plain
            },
            Setup {
                route: RouteKind::Cached,
                ..plain
            },
            Setup {
                route: RouteKind::Unused,
                ..plain
            },
            Setup {
                route: RouteKind::Relay,
                ..plain
            },
            Setup {
                access_log: true,
                ..plain
            },
            Setup {
                recording: true,
                ..plain
            },
            Setup {
                routes: 20,
                upstreams: 10,
                ..plain
            },
        ];
        for setup in setups {
            let text = proxyd(&setup);
            let loaded = proxy_config::parse(&text, "bench.kdl").unwrap();
            assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        }
    }

    #[test]
    fn values_go_where_they_are_named() {
        let values = [("port", "1".to_owned()), ("admin-port", "2".to_owned())];
        let filled = fill("a @port@ b @admin-port@ @port@", &values).unwrap();
        assert_eq!(filled, "a 1 b 2 1");
        assert!(fill("@prot@", &values).is_err());
    }

    #[test]
    fn routes_share_the_upstreams_out() {
        let setup = Setup {
            routes: 3,
            upstreams: 2,
            ..Setup::PLAIN
        };
        let text = growth(&setup);
        for part in [
            "route \"r0\" { matches { path-prefix \"/r0\" }; upstream \"u0\" }",
            "route \"r1\" { matches { path-prefix \"/r1\" }; upstream \"u1\" }",
            "route \"r2\" { matches { path-prefix \"/r2\" }; upstream \"u0\" }",
            "upstream \"u1\" { targets",
        ] {
            assert!(text.contains(part), "{part}");
        }
        assert_eq!(growth(&Setup::PLAIN), "");
    }
}
