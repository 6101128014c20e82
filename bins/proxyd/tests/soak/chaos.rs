//! Faults of everything that the proxy depends on, under load: every response is right, and
//! everything is free again afterwards.
//!
//! `PROXYD_CHAOS="60 7"` disturbs for 60 s, with seed 7; `cargo xtask chaos` sets it.
#![expect(clippy::disallowed_methods, reason = "the test measures the recovery")]

mod client_http1;
mod client_http2;
mod configuration;
mod exchange;
mod idle_state;
mod random;
mod target;
mod target_http1;
mod target_http2;
mod verdict;
mod wait;
mod world;

use crate::stage::Figures;
use exchange::Exchange;
use proxy_testkit::{Gate, Journal, Proxyd};
use random::Random;
use std::fmt::Write as _;
use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant};
use verdict::Verdict;
use world::World;

const HTTP1_CLIENTS: usize = 6;
const HTTP2_CLIENTS: usize = 3;

/// Interval between two changes of the world, in milliseconds.
const MAX_INTERVAL_MS: usize = 120;

/// Memory that an allocator may keep after a load, in bytes.
const KEPT_BYTES: u64 = 24 << 20;

/// Faults that are printed.
const MAX_PRINTED: usize = 12;

#[test]
fn every_response_is_right_while_all_that_the_proxy_depends_on_fails() {
    let (duration, seed) = size();
    let mut world = World::start();
    let proxyd = Proxyd::start(env!("CARGO_BIN_EXE_proxyd"), &configuration::kdl(&world));
    let files = wait_until_quiescent(&proxyd, &mut world);
    let before = Figures::measure(&proxyd);

    let exchanges = load(&proxyd, &mut world, duration, seed);

    world.restore();
    let restored = Instant::now();
    idle_state::wait_until_served(&proxyd);
    let recovery = restored.elapsed();
    idle_state::take_all_permits(&proxyd, &world);
    wait_until_quiescent(&proxyd, &mut world);
    idle_state::wait_for_files(&proxyd, &files);
    let after = Figures::measure(&proxyd);
    let verdict = judge(proxyd, &exchanges, &world);
    print(&world, &verdict, duration, seed, [before, after]);
    write_line(&format!(
        "  every route was served {recovery:.1?} after the last fault"
    ));
    assert!(
        verdict.faults.is_empty(),
        "seed {seed}: {} faults; the first:\n{}",
        verdict.faults.len(),
        verdict.faults[..verdict.faults.len().min(MAX_PRINTED)].join("\n")
    );
    assert!(
        verdict.counts.get("200").is_some_and(|served| *served > 0),
        "seed {seed}"
    );
    let grown = after.rss_bytes.saturating_sub(before.rss_bytes);
    assert!(grown <= KEPT_BYTES, "seed {seed}: {after} after {before}");
}

/// The proxy's open files after each worker was used, without requests in flight.
fn wait_until_quiescent(proxyd: &Proxyd, world: &mut World) -> idle_state::Files {
    // A worker that was busy may have several connections to an agent.
    world.restart_agents();
    idle_state::wait_until_served(proxyd);
    idle_state::wait_until_idle(proxyd);
    idle_state::files_without_pool(proxyd)
}

/// The duration and the seed.
fn size() -> (Duration, u64) {
    let text = std::env::var("PROXYD_CHAOS").unwrap_or_else(|_| "4 1".to_owned());
    let numbers: Vec<u64> = text.split(' ').map(|word| word.parse().unwrap()).collect();
    let [seconds, seed] = numbers[..] else {
        panic!("two numbers: seconds, seed; not {text}");
    };
    (Duration::from_secs(seconds), seed)
}

/// Runs all clients while the world is disturbed.
fn load(proxyd: &Proxyd, world: &mut World, duration: Duration, seed: u64) -> Vec<Exchange> {
    let (over, exchanges, address) = (Gate::new(), Journal::default(), proxyd.address());
    let clients: Vec<_> = (0..HTTP1_CLIENTS + HTTP2_CLIENTS)
        .map(|number| {
            let (over, exchanges) = (over.clone(), exchanges.clone());
            let random = Random::new(seed, number as u64 + 1);
            thread::spawn(move || {
                if number < HTTP1_CLIENTS {
                    client_http1::run(address, number, random, &over, &exchanges);
                } else {
                    // Each of its streams has a number of its own.
                    client_http2::run(address, number, &random, &over, &exchanges);
                }
            })
        })
        .collect();
    let mut random = Random::new(seed, 0);
    let mut left = duration;
    while left > Duration::ZERO {
        let interval = Duration::from_millis(random.below(MAX_INTERVAL_MS) as u64);
        over.opens_within(interval.min(left));
        left = left.saturating_sub(interval);
        world.disturb(&mut random);
    }
    over.open();
    for client in clients {
        client.join().unwrap();
    }
    exchanges.entries()
}

/// Ends the proxy, so that its log is whole.
fn judge(mut proxyd: Proxyd, exchanges: &[Exchange], world: &World) -> Verdict {
    let lost = idle_state::admin(&proxyd, "/metrics");
    let lost: Vec<&str> = lost
        .lines()
        .filter(|line| line.starts_with("proxy_log_lines_lost_total") && !line.ends_with(" 0"))
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
    proxyd.terminate();
    assert!(proxyd.wait().success());
    let lines = proxyd.stdout().to_the_end();
    verdict::judge(exchanges, &lines, &world.once.entries())
}

fn print(
    world: &World,
    verdict: &Verdict,
    duration: Duration,
    seed: u64,
    [before, after]: [Figures; 2],
) {
    let seconds = duration.as_secs();
    let mut text =
        format!("chaos: {seconds} s, seed {seed}; to repeat: --seconds {seconds} --seed {seed}\n");
    for (what, count) in &world.faults {
        writeln!(text, "  {count:>9} {what}").unwrap();
    }
    text.push_str("  outcomes:\n");
    for (what, count) in &verdict.counts {
        writeln!(text, "  {count:>9} {what}").unwrap();
    }
    writeln!(text, "  at rest before: {before}; after: {after}").unwrap();
    write_line(text.trim_end());
}

fn write_line(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").unwrap();
}
