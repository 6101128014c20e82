//! Floods over HTTP/2, while one well-behaved client of each version sends requests.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests measure, and say what they found"
)]

use crate::alone::alone;
use crate::attacks::{self, Attack, End, INITIAL_WINDOW, LARGE_WINDOW};
use crate::bystander::{Visits, Waits, by_http1, by_http2};
use crate::cpu_time::foreign_time;
use crate::frames::{
    ENHANCE_YOUR_CALM, Frame, GOAWAY, RST_STREAM, SETTINGS, WINDOW_UPDATE, frame, opening,
};
use proxy_testkit::{Gate, Proxyd, Upstream, ok};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");
const ATTACKERS: usize = 4;
const MIN_ATTACK: Duration = Duration::from_millis(2500);
/// Number of requests of each well-behaved client before an attack.
const FIRST_VISITS: usize = 20;
/// Minimum number of requests of each well-behaved client.
const MIN_VISITS: usize = 50;
/// Maximum duration of an attack if these clients are slow.
const MAX_ATTACK: Duration = Duration::from_secs(20);
/// Pause between rounds, so that the attacker itself is not the bottleneck.
const ROUND_PAUSE: Duration = Duration::from_millis(4);
/// Number of attempts: a busy machine sometimes causes delays, whereas a proxy that a flood blocks
/// always does.
const ATTEMPTS: usize = 3;
const MAX_P99: Duration = Duration::from_millis(50);
/// CPU time of other processes per second of an attack, above which response times depend on the
/// machine's load.
const MAX_OTHER_CPU: Duration = Duration::from_millis(100);
const MAX_MEMORY_GROWTH: u64 = 50 << 20;

/// Ends of connections and streams that attackers observed.
#[derive(Debug, Default)]
struct Ends {
    calmed: usize,
    other: usize,
    streams: usize,
}

/// Result of one attempt.
#[derive(Debug)]
struct FloodRun {
    ends: Ends,
    http1: Waits,
    http2: Waits,
    /// Response times of an undisturbed proxy, on the same machine at the same time.
    baseline: Waits,
    grown: u64,
    /// CPU time per second that other processes and other guests of the host used meanwhile.
    other_cpu: Duration,
}

/// One attacking connection.
struct Attacker<'a> {
    attack: &'a Attack,
    stream: TcpStream,
    unsent: Vec<u8>,
    read: Vec<u8>,
    round: u32,
}

impl<'a> Attacker<'a> {
    fn new(attack: &'a Attack, to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self {
            attack,
            stream,
            unsent: [opening(attack.settings), (attack.opening)()].concat(),
            read: Vec::new(),
            round: 0,
        }
    }

    /// Sends some rounds, and reads the proxy's frames. Returns false if the connection has ended.
    fn go_on(&mut self, ends: &mut Ends) -> bool {
        if self.unsent.is_empty() {
            let end = self.attack.most.min(self.round + self.attack.at_once);
            let rounds = self.round..end;
            self.unsent = rounds.clone().flat_map(self.attack.round).collect();
            self.round = rounds.end;
        }
        let writes = self.write();
        if !self.attack.reads {
            ends.other += usize::from(!writes);
            return writes;
        }
        let open = self.read();
        while let Some(frame) = Frame::take(&mut self.read) {
            match frame.kind {
                GOAWAY if frame.code() == ENHANCE_YOUR_CALM => {
                    ends.calmed += 1;
                    return false;
                }
                RST_STREAM => ends.streams += 1,
                _ => continue,
            }
            if self.round == self.attack.most {
                return false;
            }
        }
        ends.other += usize::from(!open);
        open
    }

    fn write(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
        true
    }

    fn read(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return false,
                Ok(count) => self.read.extend_from_slice(&piece[..count]),
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}

fn start(upstream: &Upstream, stalled: &Upstream) -> Proxyd {
    let (address, stalled) = (upstream.address(), stalled.address());
    let kdl = format!(
        r#"
        listeners {{
            listener "main" {{
                address "127.0.0.1:0"
                h2c #true
                timeouts {{ write-idle-secs 1 }}
            }}
        }}
        routes {{
            route "all" {{ upstream "u" }}
            route "stalled" {{ matches {{ path "/stalled" }}; upstream "stalled" }}
            route "held" {{ matches {{ path "/hold" }}; upstream "one" }}
        }}
        upstreams {{
            upstream "u" {{ target "{address}" }}
            upstream "stalled" {{ target "{stalled}"; protocol "h2"; connection-pool {{ max-connections 1 }} }}
            upstream "one" {{ target "{address}"; connection-pool {{ max-connections 1 }} }}
        }}
        system {{ worker-threads 1 }}
        "#
    );
    Proxyd::start(BINARY, &kdl)
}

/// Starts an upstream that sends a large response for `/large`, one in chunks of a byte for `/chunks`, and
/// neither reads nor answers `/hold` and `/unread` before `held` opens.
fn upstream(held: &Gate) -> Upstream {
    let held = held.clone();
    let large = ok("x".repeat(256 * 1024));
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = [head, &"1\r\nx\r\n".repeat(128 * 1024), "0\r\n\r\n"].concat();
    let small = ok("ok");
    Upstream::start(move |served| {
        while let Some(mut request) = served.head() {
            if ["/hold", "/unread"].contains(&&*request.target) {
                return held.wait();
            }
            if served.body(&mut request).is_none() {
                return;
            }
            let response: &[u8] = match &*request.target {
                "/large" => &large,
                "/chunks" => chunks.as_bytes(),
                _ => &small,
            };
            if !served.send(response) {
                return;
            }
        }
    })
}

/// Starts an HTTP/2 target that grants large windows, and reads nothing before `held` opens.
fn stalled(held: &Gate) -> Upstream {
    let held = held.clone();
    let settings = [
        &INITIAL_WINDOW.to_be_bytes()[..],
        &LARGE_WINDOW.to_be_bytes(),
    ]
    .concat();
    let granted = [
        frame(SETTINGS, 0, 0, &settings),
        frame(WINDOW_UPDATE, 0, 0, &LARGE_WINDOW.to_be_bytes()),
    ];
    let granted = granted.concat();
    Upstream::start(move |served| {
        served.send(&granted);
        held.wait();
    })
}

fn run_attack(attack: &Attack) -> FloodRun {
    let held = Gate::new();
    let upstream = upstream(&held);
    let stalled = stalled(&held);
    let proxyd = start(&upstream, &stalled);
    // A proxy without an attack: delays of its clients are caused by the machine and the attackers'
    // load.
    let undisturbed = start(&upstream, &stalled);
    let visits: [Visits; 3] = Default::default();
    let [over_http1, over_http2, elsewhere] = &visits;
    let own = [&proxyd, &undisturbed].map(|proxyd| proxyd.id().to_string());
    let own = [&own[..], &["self".to_owned()]].concat();
    let (begun, other_cpu_before) = (Instant::now(), foreign_time(&own));
    thread::scope(|scope| {
        let http1 = scope.spawn(|| by_http1(&proxyd, over_http1));
        let http2 = scope.spawn(|| by_http2(&proxyd, over_http2));
        let baseline = scope.spawn(|| by_http1(&undisturbed, elsewhere));
        let (ends, grown) = assault(attack, &proxyd, &visits);
        for visits in &visits {
            visits.over.store(true, Ordering::Relaxed);
        }
        held.open();
        let other_cpu = foreign_time(&own).saturating_sub(other_cpu_before);
        FloodRun {
            ends,
            http1: http1.join().unwrap(),
            http2: http2.join().unwrap(),
            baseline: baseline.join().unwrap(),
            grown,
            other_cpu: other_cpu.div_f64(begun.elapsed().as_secs_f64()),
        }
    })
}

/// Runs the attacks, with new connections in place of closed ones. Returns the maximum growth of
/// the proxy's memory.
fn assault(attack: &Attack, proxyd: &Proxyd, visits: &[Visits]) -> (Ends, u64) {
    let all_have = |count: usize| {
        let mut answered = visits
            .iter()
            .map(|one| one.answered.load(Ordering::Relaxed));
        answered.all(|answered| count <= answered)
    };
    // Well-behaved clients start first, so that their memory does not count as growth.
    while !all_have(FIRST_VISITS) {
        thread::park_timeout(ROUND_PAUSE);
    }
    let before = proxyd.rss_bytes();
    let begun = Instant::now();
    let (mut ends, mut most) = (Ends::default(), before);
    let new = || Attacker::new(attack, proxyd.address());
    let mut attackers: Vec<Attacker<'_>> = (0..ATTACKERS).map(|_| new()).collect();
    while begun.elapsed() < MIN_ATTACK || !all_have(MIN_VISITS) && begun.elapsed() < MAX_ATTACK {
        for attacker in &mut attackers {
            if !attacker.go_on(&mut ends) {
                *attacker = new();
            }
        }
        most = most.max(proxyd.rss_bytes());
        thread::park_timeout(ROUND_PAUSE);
    }
    (ends, most - before)
}

fn check_run(attack: &Attack, run: &FloodRun) -> Result<(), String> {
    for (name, waits) in [("HTTP/1.1", &run.http1), ("HTTP/2", &run.http2)] {
        // If other programs use the processors, requests also wait for a processor. Then the
        // proxy's CPU time before a response is measured, instead of the response time.
        let (p99, measure) = if run.other_cpu < MAX_OTHER_CPU {
            (waits.p99(), "time")
        } else {
            (waits.work_p99(), "work")
        };
        let most = MAX_P99 + 2 * run.baseline.p99();
        if waits.count() < MIN_VISITS || most <= p99 {
            let count = waits.count();
            return Err(format!(
                "p99 of the {measure} of {count} requests by {name}: {p99:?}, over {most:?}"
            ));
        }
    }
    if MAX_MEMORY_GROWTH <= run.grown {
        return Err(format!("resident memory grew by {} bytes", run.grown));
    }
    let Ends {
        calmed,
        other,
        streams,
    } = run.ends;
    let ended = match attack.end {
        End::Calmed => 0 < calmed && other == 0,
        End::Closed => 0 < calmed + other,
        End::StreamsReset => 0 < streams,
        End::Optional => true,
    };
    if ended {
        Ok(())
    } else {
        Err(format!("ended otherwise: {:?}", run.ends))
    }
}

#[track_caller]
fn assert_other_clients_are_served(attack: &Attack) {
    let _turn = alone();
    let mut faults = Vec::new();
    for _ in 0..ATTEMPTS {
        let run = run_attack(attack);
        println!(
            "{:?}, p99 {:?} without attacks, {:?} (work {:?}) by HTTP/1.1 and {:?} ({:?}) by HTTP/2, {} KiB more, \
             {:?} of CPU a second by others",
            run.ends,
            run.baseline.p99(),
            run.http1.p99(),
            run.http1.work_p99(),
            run.http2.p99(),
            run.http2.work_p99(),
            run.grown >> 10,
            run.other_cpu
        );
        match check_run(attack, &run) {
            Ok(()) => return,
            Err(fault) => faults.push(fault),
        }
    }
    panic!("{}", faults.join("\n"));
}

#[test]
fn requests_reset_at_once_block_no_client() {
    assert_other_clients_are_served(&attacks::rapid_reset());
}

#[test]
fn requests_that_the_proxy_must_reset_block_no_client() {
    assert_other_clients_are_served(&attacks::made_reset());
}

#[test]
fn an_endless_head_blocks_no_client() {
    assert_other_clients_are_served(&attacks::endless_head());
}

#[test]
fn an_endless_head_of_nothing_blocks_no_client() {
    assert_other_clients_are_served(&attacks::endless_empty_head());
}

#[test]
fn heads_of_nothing_block_no_client() {
    assert_other_clients_are_served(&attacks::empty_heads());
}

#[test]
fn settings_without_end_block_no_client() {
    assert_other_clients_are_served(&attacks::settings());
}

#[test]
fn pings_without_end_block_no_client() {
    assert_other_clients_are_served(&attacks::pings());
}

#[test]
fn window_updates_of_one_byte_block_no_client() {
    assert_other_clients_are_served(&attacks::window_updates_of_one());
}

#[test]
fn priorities_without_end_block_no_client() {
    assert_other_clients_are_served(&attacks::priorities());
}

#[test]
fn data_frames_without_data_block_no_client() {
    assert_other_clients_are_served(&attacks::empty_data());
}

#[test]
fn data_frames_full_of_padding_block_no_client() {
    assert_other_clients_are_served(&attacks::padded_data());
}

#[test]
fn data_frames_of_one_byte_block_no_client() {
    assert_other_clients_are_served(&attacks::one_byte_data());
}

#[test]
fn data_frames_of_one_byte_that_are_forwarded_block_no_client() {
    assert_other_clients_are_served(&attacks::forwarded_one_byte_data());
}

#[test]
fn data_frames_of_one_byte_to_a_target_that_reads_nothing_block_no_client() {
    assert_other_clients_are_served(&attacks::stalled_one_byte_data());
}

#[test]
fn responses_in_chunks_of_one_byte_block_no_client() {
    assert_other_clients_are_served(&attacks::one_byte_chunks());
}

#[test]
fn heads_that_decompress_block_no_client() {
    assert_other_clients_are_served(&attacks::unfolding_heads());
}

#[test]
fn windows_that_stay_closed_block_no_client() {
    assert_other_clients_are_served(&attacks::closed_windows());
}

#[test]
fn a_socket_that_is_never_read_blocks_no_client() {
    assert_other_clients_are_served(&attacks::deaf());
}
