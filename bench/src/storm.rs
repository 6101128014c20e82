//! `cargo xtask bench --storm`: responses to uninvolved requests while targets fail, for `proxyd`,
//! nginx and `HAProxy`.

mod bystander;
mod targets;

use self::bystander::Outcome;
use self::targets::{HungTarget, WellTarget};
use crate::grid::Grid;
use crate::servers::environment::{BACKEND_PORT, Environment, HUNG_PORT, LoadBuild};
use crate::servers::running::{Run, Running};
use crate::servers::server::{OURS, Program, RouteKind, Server, Setup};
use crate::ship::build_guarded;
use proxy_load::clock::{self, Stopwatch};
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// A failure of targets, and the path of the uninvolved requests.
struct Scenario {
    title: &'static str,
    path: &'static str,
    /// Number of clients that each send one request to the hung target.
    clients: u32,
    workers: usize,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        title: "no trouble",
        path: "/",
        clients: 0,
        workers: 1,
    },
    Scenario {
        title: "1 300 clients of a hung route, one worker",
        path: "/",
        clients: 1_300,
        workers: 1,
    },
    Scenario {
        title: "2 600 clients of a hung route, two workers",
        path: "/",
        clients: 2_600,
        workers: 2,
    },
    Scenario {
        title: "two of three targets refuse connections",
        path: "/dead/",
        clients: 0,
        workers: 1,
    },
];

/// Maximum time until the requests to the hung target have reached it, or were refused.
const RISING: Duration = Duration::from_secs(3);

/// Measures every scenario with every proxy, and prints a table.
///
/// # Errors
/// The environment failed, or an uninvolved request to `proxyd` did.
pub(crate) fn run(workspace: &Workspace) -> Result<(), TaskError> {
    let proxyd = build_guarded(workspace)?;
    let environment = Environment::prepare(workspace, LoadBuild::Debug, proxyd)?;
    let _well = WellTarget::start(BACKEND_PORT)?;
    let mut bad = 0;
    let heading = ["trouble", "proxy", "bad answers", "p50", "p99", "slowest"];
    let mut grid = Grid::new(heading.map(str::to_owned).to_vec());
    for scenario in &SCENARIOS {
        for (name, program) in [
            (OURS, Program::Proxyd),
            ("nginx", Program::Nginx),
            ("haproxy", Program::Haproxy),
        ] {
            let outcome = measure(&environment, scenario, name, program)?;
            if name == OURS {
                bad += outcome.bad;
            }
            grid.push(row(scenario.title, name, &outcome));
        }
    }
    say(format!("\n{}", grid.plain()));
    if bad > 0 {
        let failure = format!("bench: {bad} wrong answers of proxyd to a bystander");
        return Err(TaskError::Failed(failure));
    }
    Ok(())
}

fn measure(
    environment: &Environment,
    scenario: &Scenario,
    name: &str,
    program: Program,
) -> Result<Outcome, TaskError> {
    let server = Server {
        name: name.to_owned(),
        program,
        setup: Setup {
            route: RouteKind::Storm,
            workers: scenario.workers,
            ..Setup::PLAIN
        },
    };
    let hung = HungTarget::start(HUNG_PORT)?;
    let running = Running::start(environment, &server, &Run::Bare)?;
    let clients = storm(running.ports.clients, scenario.clients)?;
    let watch = Stopwatch::start();
    while hung.held() < scenario.clients && watch.elapsed() < RISING {
        clock::pause(Duration::from_millis(10));
    }
    let outcome = bystander::ask(running.ports.clients, scenario.path);
    drop(clients);
    Ok(outcome)
}

/// Opens connections of different clients, with one request each to the hung target.
fn storm(port: u16, clients: u32) -> Result<Vec<TcpStream>, TaskError> {
    let client = |number: u32| {
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + number);
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        let request =
            format!("GET /hung/ HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {address}\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        Ok(stream)
    };
    let streams: std::io::Result<_> = (0..clients).map(client).collect();
    streams.map_err(|source| TaskError::System {
        action: "connect a client",
        source,
    })
}

fn row(trouble: &str, proxy: &str, outcome: &Outcome) -> Vec<String> {
    let Outcome { asked, bad, times } = outcome;
    let quantile = |permille: usize| {
        let last = times.len().saturating_sub(1);
        let time = times.get(last * permille / 1_000).copied();
        let millis = time.unwrap_or_default().as_secs_f64() * 1e3;
        format!("{millis:.2} ms")
    };
    let bad = format!("{bad} of {asked}");
    let [p50, p99, slowest] = [500, 990, 1_000].map(quantile);
    vec![trouble.to_owned(), proxy.to_owned(), bad, p50, p99, slowest]
}
