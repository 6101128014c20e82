//! Heartbeats of simulated nodes to the real program.
//!
//! `CONTROLD_FLEET="20000 60 sqlite"`, as set by `cargo xtask fleet`, is the number of nodes, each
//! with a heartbeat every 30 seconds, the duration in seconds, and the database. Without it, a
//! small fleet sends one round.
use crate::CONTROLD;
use crate::nodes::{database_url, insert};
use control_domain::Tenant;
use control_simulator::{Measurement, Operator, quantile};
use control_testkit::{Database, Postgres, Program, until, until_every};
use control_wire::{NodeId, OrgId, ProjectId};
use proxy_load::clock::{Stopwatch, pause};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(30);
const CONNECTIONS: usize = 64;
/// A prime: nodes that are adjacent in the database send at different times.
const STRIDE: usize = 7_919;

/// Number of heartbeats without news, sent one after the other.
const QUIET_NODES: usize = 64;
/// Minimum of the heartbeats without news per transaction, on average. An eighth of an interval has
/// many more, even on a machine that stalls.
const MIN_GROUP: usize = 8;

/// Size and duration of a run.
struct Size {
    nodes: usize,
    time: Duration,
    interval: Duration,
    database: Database,
    full: bool,
}

impl Size {
    fn read() -> Self {
        let Ok(text) = std::env::var("CONTROLD_FLEET") else {
            let time = Duration::from_secs(2);
            return Self {
                nodes: 200,
                time,
                interval: time,
                database: Database::sqlite(),
                full: false,
            };
        };
        let mut words = text.split(' ');
        let mut number = || words.next().unwrap().parse::<u32>().unwrap();
        let (nodes, secs) = (number(), number());
        Self {
            nodes: usize::try_from(nodes).unwrap(),
            time: Duration::from_secs(u64::from(secs)),
            interval: INTERVAL,
            database: match words.next() {
                Some("postgres") => Database::postgres(),
                _ => Database::sqlite(),
            },
            full: true,
        }
    }
}

struct SimulatedNode {
    id: NodeId,
    key: String,
    /// Time of the heartbeat within each interval.
    offset: Duration,
}

fn tenant(operator: &Operator) -> Tenant {
    let (org, project) = (operator.org().parse(), operator.project().parse());
    Tenant::project(OrgId(org.unwrap()), ProjectId(project.unwrap()))
}

/// Returns the nodes of a project, with their times within the interval.
fn nodes(url: &str, tenant: Tenant, size: &Size) -> Vec<SimulatedNode> {
    let share = u32::try_from(size.nodes).unwrap();
    let inserted = insert(url, tenant, size.nodes).into_iter().enumerate();
    let simulated = inserted.map(|(number, inserted)| SimulatedNode {
        id: inserted.id,
        key: inserted.key,
        offset: size.interval * u32::try_from(number * STRIDE % size.nodes).unwrap() / share,
    });
    simulated.collect()
}

/// Connection that stays open, as that of a real node.
struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn open(authority: &str) -> Self {
        let stream = TcpStream::connect(authority).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(INTERVAL)).unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    fn heartbeat(&mut self, node: &SimulatedNode) {
        let body = r#"{"health":{"cpu_percent":12.5}}"#;
        let (id, key, length) = (node.id, &node.key, body.len());
        let request = format!(
            "POST /api/v1/nodes/{id}/heartbeat HTTP/1.1\r\nhost: control\r\n\
             x-service-node-key: {key}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes()).unwrap();
        let (mut line, mut length) = (String::new(), 0);
        self.stream.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        while line != "\r\n" {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
    }
}

/// Sends the heartbeats of `nodes` when they are due. Returns the delay of each response.
fn beat(nodes: &[&SimulatedNode], authority: &str, size: &Size, clock: Stopwatch) -> Vec<Duration> {
    let mut connection = Connection::open(authority);
    let (mut latencies, mut round) = (Vec::new(), Duration::ZERO);
    while round < size.time {
        for node in nodes {
            let due = round + node.offset;
            pause(due.saturating_sub(clock.elapsed()));
            connection.heartbeat(node);
            latencies.push(clock.elapsed().saturating_sub(due));
        }
        round += size.interval;
    }
    latencies
}

/// Sends requests of an operator during the heartbeats.
fn operate(
    program: &Program,
    key: &str,
    tenant: Tenant,
    node: NodeId,
    until: Duration,
) -> Vec<Duration> {
    let client = program.client().with_bearer(key);
    let project = format!("/api/v1/projects/{}", tenant.project.unwrap());
    let paths = [
        format!("{project}/nodes"),
        format!("{project}/nodes/{node}"),
        format!("{project}/nodes?state=offline"),
        project.clone(),
    ];
    let (clock, mut latencies) = (Stopwatch::start(), Vec::new());
    for path in paths.iter().cycle() {
        if until < clock.elapsed() {
            break;
        }
        let started = Stopwatch::start();
        assert_eq!(client.get(path).status, 200);
        latencies.push(started.elapsed());
        pause(Duration::from_millis(250));
    }
    latencies
}

fn quantiles(what: &str, latencies: &mut [Duration]) -> Duration {
    let mut at = |permille| quantile(latencies, permille).unwrap();
    let (p50, p99, most) = (at(500), at(990), at(1_000));
    println!(
        "{what}: {}, p50 {p50:?}, p99 {p99:?}, most {most:?}",
        latencies.len()
    );
    p99
}

/// Returns the bytes that the program wrote to disk. With PostgreSQL it writes none itself.
fn written_bytes(program: &Program) -> u64 {
    let counters = std::fs::read_to_string(format!("/proc/{}/io", program.id())).unwrap();
    let mut lines = counters.lines();
    let bytes = lines.find_map(|line| line.strip_prefix("write_bytes: "));
    bytes.unwrap().parse().unwrap()
}

#[test]
fn heartbeats_of_a_fleet_are_answered_in_time() {
    let (size, folder) = (Size::read(), tempfile::tempdir().unwrap());
    let mut arguments = vec!["--data-dir".to_owned(), folder.path().display().to_string()];
    if size.database.kind == "postgres" {
        arguments.extend(["--database".to_owned(), size.database.url.clone()]);
    }
    let mut program = Program::start(CONTROLD, &arguments);
    let operator = Operator::set_up(&mut program);
    let tenant = tenant(&operator);
    let nodes = nodes(&database_url(folder.path(), &size.database), tenant, &size);
    let authority = program.base_url().strip_prefix("http://").unwrap();
    let (clock, measurement) = (Stopwatch::start(), Measurement::start(&operator));
    let written = written_bytes(&program);
    let (mut beats, mut calls) = thread::scope(|scope| {
        let senders: Vec<_> = (0..CONNECTIONS)
            .map(|number| {
                let mut own: Vec<_> = nodes.iter().skip(number).step_by(CONNECTIONS).collect();
                own.sort_by_key(|node| node.offset);
                let size = &size;
                scope.spawn(move || beat(&own, authority, size, clock))
            })
            .collect();
        let calls = operate(&program, operator.key(), tenant, nodes[0].id, size.time);
        let beats = senders.into_iter();
        let beats: Vec<_> = beats.flat_map(|sender| sender.join().unwrap()).collect();
        (beats, calls)
    });
    let usage = measurement.usage(&operator);
    let written = written_bytes(&program) - written;
    let stats = format!("/api/v1/projects/{}/nodes/stats", tenant.project.unwrap());
    let stats: Value = program
        .client()
        .with_bearer(operator.key())
        .get(&stats)
        .json();
    assert_eq!(stats["online"], json!(size.nodes), "{stats}");
    let each = usage.cpu / u32::try_from(beats.len()).unwrap();
    println!(
        "{} nodes on {}: {usage}; {each:?} of CPU a heartbeat, the operator's calls among them; \
         {written} bytes written to disk, {} a heartbeat",
        size.nodes,
        size.database.kind,
        written / u64::try_from(beats.len()).unwrap()
    );
    let beats = quantiles("heartbeats", &mut beats);
    let calls = quantiles("calls", &mut calls);
    if size.full {
        let limit = Duration::from_millis(50);
        assert!(beats < limit && calls < limit, "p99 is over {limit:?}");
    }
}

#[test]
fn a_heartbeat_without_news_is_seen_soon_after() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let arguments = ["--data-dir", &data, "--heartbeat-secs", "2"];
    let mut program = Program::start(CONTROLD, &arguments);
    let operator = Operator::set_up(&mut program);
    let tenant = tenant(&operator);
    let url = database_url(folder.path(), &Database::sqlite());
    let inserted = insert(&url, tenant, 1).remove(0);
    let node = SimulatedNode {
        id: inserted.id,
        key: inserted.key,
        offset: Duration::ZERO,
    };
    let client = program.client().with_bearer(operator.key());
    let path = format!(
        "/api/v1/projects/{}/nodes/{}",
        tenant.project.unwrap(),
        node.id
    );
    let seen = || client.get(&path).json()["seen_at"].clone();
    let authority = program.base_url().strip_prefix("http://").unwrap();
    let mut connection = Connection::open(authority);
    connection.heartbeat(&node);
    let first = seen();
    assert_ne!(first, Value::Null);
    connection.heartbeat(&node);
    until_every(Duration::from_millis(250), "the second one is seen", || {
        seen() != first
    });
}

#[test]
fn heartbeats_without_news_are_written_in_groups() {
    let (postgres, folder) = (Postgres::start(), tempfile::tempdir().unwrap());
    let url = postgres.create_database();
    let database = url.split(['/', '?']).nth(3).unwrap();
    let data = folder.path().display().to_string();
    let arguments = ["--data-dir", &data, "--database", &url];
    let settings = ["--heartbeat-secs", "16"];
    let mut program = Program::start(CONTROLD, &[&arguments[..], &settings].concat());
    let operator = Operator::set_up(&mut program);
    let inserted = insert(&url, tenant(&operator), QUIET_NODES).into_iter();
    let nodes: Vec<SimulatedNode> = inserted
        .map(|inserted| SimulatedNode {
            id: inserted.id,
            key: inserted.key,
            offset: Duration::ZERO,
        })
        .collect();
    let authority = program.base_url().strip_prefix("http://").unwrap();
    let mut connection = Connection::open(authority);
    let mut beat = || nodes.iter().for_each(|node| connection.heartbeat(node));
    let count = |what: &str| {
        let count = format!("SELECT {what} FROM node_heartbeats");
        postgres.psql(database, &count).parse::<usize>().unwrap()
    };
    // A row has the number of the transaction that wrote it last.
    let transactions = || count("COUNT(DISTINCT xmin::text)");
    beat();
    let first = count("MAX(seen_at)");
    assert_eq!(transactions(), QUIET_NODES, "each first one has news");
    beat();
    let seen_again = format!("COUNT(*) FILTER (WHERE seen_at > {first})");
    until("the second ones are written", || {
        count(&seen_again) == QUIET_NODES
    });
    let groups = transactions();
    assert!(groups * MIN_GROUP <= QUIET_NODES, "{groups} transactions");
}
