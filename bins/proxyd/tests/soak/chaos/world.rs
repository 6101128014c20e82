//! The proxy with everything that it depends on, and the faults of that.

use super::random::Random;
use super::target::{Condition, FAULTS, Protocol, Target};
use agent_protocol::{ErrorCode, ProxyMessage, Wants};
use proxy_testkit::{
    AgentProcess, AgentReply, DnsReply, DnsServer, FakeAgent, Gate, Journal, RedisServer,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The name with addresses that change.
pub(crate) const NAME: &str = "app.test";
/// A time within which an agent must have answered.
pub(crate) const AGENT_TIMEOUT: Duration = Duration::from_millis(300);

const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The dependencies of the proxy.
pub(crate) struct World {
    /// Targets of the upstream `app`.
    pub(crate) app: Vec<Target>,
    /// Targets of the upstream `http2`.
    pub(crate) http2: Vec<Target>,
    /// Targets of one name, with one port: 127.0.0.2, 127.0.0.3, …
    pub(crate) named: Vec<Target>,
    /// A target that is always well.
    pub(crate) steady: Target,
    pub(crate) dns: DnsServer,
    pub(crate) redis: RedisServer,
    pub(crate) agent: FakeAgent,
    /// Index in [`AGENT_FAULTS`], or beyond.
    agent_fault: Arc<AtomicUsize>,
    pub(crate) process: AgentProcess,
    process_state: ProcessState,
    redis_state: ProcessState,
    /// IDs of requests that were read by targets and may not be sent twice.
    pub(crate) once: Journal<String>,
    /// Number of faults of each kind.
    pub(crate) faults: BTreeMap<String, usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessState {
    Running,
    Paused,
    Stopped,
}

/// The agent's fault.
#[derive(Clone, Copy, Debug)]
enum AgentFault {
    Silence,
    HangUp,
    Late,
    Garbage,
    HalfFrame,
    EmptyFrame,
    WrongId,
    WrongEvent,
    Failure,
    Overload,
}

const AGENT_FAULTS: [AgentFault; 10] = [
    AgentFault::Silence,
    AgentFault::HangUp,
    AgentFault::Late,
    AgentFault::Garbage,
    AgentFault::HalfFrame,
    AgentFault::EmptyFrame,
    AgentFault::WrongId,
    AgentFault::WrongEvent,
    AgentFault::Failure,
    AgentFault::Overload,
];

impl World {
    pub(crate) fn start() -> Self {
        let once = Journal::default();
        let target = |protocol| Target::start(LOOPBACK, 0, protocol, &once).unwrap();
        let agent_fault = Arc::new(AtomicUsize::new(usize::MAX));
        let fault = Arc::clone(&agent_fault);
        let agent = FakeAgent::start(Wants::default(), move |event| {
            let fault = AGENT_FAULTS.get(fault.load(Ordering::Relaxed));
            reply(event, fault.copied())
        });
        let mut world = Self {
            app: (0..3).map(|_| target(Protocol::Http1)).collect(),
            http2: (0..2).map(|_| target(Protocol::Http2)).collect(),
            named: named(&once),
            steady: target(Protocol::Http1),
            dns: DnsServer::start(),
            redis: RedisServer::start(),
            agent,
            agent_fault,
            process: AgentProcess::example("python/minimal.py", &[]),
            process_state: ProcessState::Running,
            redis_state: ProcessState::Running,
            once,
            faults: BTreeMap::new(),
        };
        world.restore();
        world
    }

    /// Ends all faults.
    pub(crate) fn restore(&mut self) {
        for target in self.app.iter().chain(&self.http2).chain(&self.named) {
            target.set(Condition::Well);
        }
        self.agent_fault.store(usize::MAX, Ordering::Relaxed);
        self.set_process(ProcessState::Running);
        self.set_redis(ProcessState::Running);
        self.dns.set_addresses(NAME, &addresses(&self.named));
    }

    /// Ends all connections to agents.
    pub(crate) fn restart_agents(&mut self) {
        self.agent.hang_up();
        self.set_process(ProcessState::Stopped);
        self.set_process(ProcessState::Running);
    }

    /// Changes one thing: to a fault, or back.
    pub(crate) fn disturb(&mut self, random: &mut Random) {
        let well = random.once_in(2);
        let fault = match random.below(11) {
            choice @ 0..=5 => {
                let target = match choice {
                    0..=2 => &self.app[choice],
                    3 => &self.http2[random.below(self.http2.len())],
                    _ => &self.named[random.below(self.named.len())],
                };
                let fault = random.pick(&FAULTS);
                let condition = if well { Condition::Well } else { fault };
                target.set(condition);
                format!("target {condition:?}")
            }
            6 | 7 => {
                let number = random.below(AGENT_FAULTS.len());
                let number = if well { usize::MAX } else { number };
                self.agent_fault.store(number, Ordering::Relaxed);
                let fault = AGENT_FAULTS.get(number);
                fault.map_or("agent Well".to_owned(), |fault| format!("agent {fault:?}"))
            }
            8 => {
                let state = process_state(well, random);
                self.set_process(state);
                format!("agent process {state:?}")
            }
            9 => {
                let state = process_state(well, random);
                self.set_redis(state);
                format!("store {state:?}")
            }
            _ => self.change_name(random),
        };
        *self.faults.entry(fault).or_default() += 1;
    }

    fn change_name(&self, random: &mut Random) -> String {
        let mut all = addresses(&self.named);
        let reply = match random.below(6) {
            0 => DnsReply::Failure,
            1 => DnsReply::Silence,
            2 => DnsReply::Garbage,
            3 => {
                self.dns.remove(NAME);
                return "name removed".to_owned();
            }
            _ => {
                all.swap_remove(random.below(all.len()));
                DnsReply::Addresses(1, all)
            }
        };
        let reported = match reply {
            DnsReply::Addresses(..) => "name with other addresses".to_owned(),
            DnsReply::Services(..)
            | DnsReply::TextsIn(_)
            | DnsReply::AfterForgeries(..)
            | DnsReply::Failure
            | DnsReply::Silence
            | DnsReply::Garbage
            | DnsReply::OnlyIpv4(_) => format!("name server's {reply:?}"),
        };
        self.dns.set(NAME, reply);
        reported
    }

    fn set_process(&mut self, state: ProcessState) {
        let before = std::mem::replace(&mut self.process_state, state);
        if before == ProcessState::Stopped && state != before {
            self.process.start_again();
        }
        match state {
            ProcessState::Stopped if before != state => self.process.stop(),
            ProcessState::Stopped => {}
            ProcessState::Paused => self.process.pause(),
            ProcessState::Running => self.process.resume(),
        }
    }

    fn set_redis(&mut self, state: ProcessState) {
        let before = std::mem::replace(&mut self.redis_state, state);
        if before == ProcessState::Stopped && state != before {
            self.redis.start_again();
        }
        match state {
            ProcessState::Stopped if before != state => self.redis.stop(),
            ProcessState::Stopped => {}
            ProcessState::Paused => self.redis.pause(),
            ProcessState::Running => self.redis.resume(),
        }
    }
}

fn process_state(well: bool, random: &mut Random) -> ProcessState {
    if well {
        return ProcessState::Running;
    }
    random.pick(&[ProcessState::Paused, ProcessState::Stopped])
}

fn addresses(targets: &[Target]) -> Vec<IpAddr> {
    targets.iter().map(|target| target.address().ip()).collect()
}

/// Targets with one port at addresses of their own.
fn named(once: &Journal<String>) -> Vec<Target> {
    let start = |number, port| {
        let ip = Ipv4Addr::new(127, 0, 0, number);
        Target::start(ip, port, Protocol::Http1, once)
    };
    loop {
        let first = start(2, 0).unwrap();
        let port = first.address().port();
        if let Ok(rest) = (3..5)
            .map(|number| start(number, port))
            .collect::<Result<Vec<_>, _>>()
        {
            return std::iter::once(first).chain(rest).collect();
        }
    }
}

/// The agent's answer: paths that end in `deny` are refused.
fn reply(event: &ProxyMessage<'_>, fault: Option<AgentFault>) -> AgentReply {
    let ProxyMessage::RequestHeaders(head) = event else {
        return AgentReply::Silence;
    };
    let answer = if head.target.as_bytes().ends_with(b"deny") {
        AgentReply::block()
    } else {
        AgentReply::allow()
    };
    match fault {
        None => answer,
        Some(AgentFault::Silence) => AgentReply::Silence,
        Some(AgentFault::HangUp) => AgentReply::HangUp,
        Some(AgentFault::Late) => {
            Gate::new().opens_within(AGENT_TIMEOUT * 2);
            answer
        }
        Some(AgentFault::Garbage) => AgentReply::Bytes(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        Some(AgentFault::HalfFrame) => AgentReply::Bytes(vec![0, 0, 0, 9, 0x20, b'{']),
        Some(AgentFault::EmptyFrame) => AgentReply::Bytes(vec![0; 4]),
        Some(AgentFault::WrongId) => AgentReply::misnumbered(1 << 40, head.seq),
        Some(AgentFault::WrongEvent) => AgentReply::misnumbered(head.id.get(), head.seq + 7),
        Some(AgentFault::Failure) => AgentReply::Fail(ErrorCode::Internal),
        Some(AgentFault::Overload) => AgentReply::Fail(ErrorCode::Overloaded),
    }
}
