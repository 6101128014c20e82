//! Many wrong passwords from many addresses to the real program: the owner can still sign in, and
//! memory and processor time are limited.
//!
//! `CONTROLD_GUESSES=10000` is the number of guesses of each kind; a new browser of the owner must
//! sign in within a minute. Without it, there are few.
#![expect(clippy::unwrap_used, reason = "a test may stop")]

use control_testkit::{Answer, Program, databases};
use proxy_load::clock::Stopwatch;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

const CONTROLD: &str = env!("CARGO_BIN_EXE_controld");
const EMAIL: &str = "ann@example.com";
const PASSWORD: &str = "correct horse";
const DEFAULT_GUESSES: u32 = 150;
/// Number of simultaneous guesses, each from a different network.
const AT_ONCE: u32 = 64;
const DEADLINE: Duration = Duration::from_secs(30);
/// Maximum growth: two permits of 19 MiB for unknown browsers (those of known ones are in use
/// before), connections, and the allocator.
const MAX_GROWTH_KIB: u64 = 128 * 1024;
/// Maximum wait of the owner in a known browser, while unknown ones occupy both cores.
const MAX_WAIT: Duration = Duration::from_secs(10);
const MINUTE: Duration = Duration::from_mins(1);

/// Returns the e-mail address of the account for a guess.
type AccountOfGuess = fn(u32) -> String;

/// A program with an administrator, and the cookie of a known browser.
struct Site {
    program: Program,
    browser: String,
}

/// Returns an address in `127.0.0.0/8` that no other guess uses.
fn source(number: u32) -> Ipv4Addr {
    let [_, high, middle, low] = (number + 0x1_0000).to_be_bytes();
    Ipv4Addr::new(127, high, middle, low)
}

fn attempt(
    to: SocketAddr,
    from: Ipv4Addr,
    email: &str,
    password: &str,
    cookie: &str,
) -> Option<(u16, String)> {
    let from = socket(AddressFamily::INET, SocketType::STREAM, None).and_then(|socket| {
        bind(&socket, &SocketAddr::from((from, 0)))?;
        connect(&socket, &to)?;
        Ok(socket)
    });
    let mut stream = TcpStream::from(from.ok()?);
    stream.set_read_timeout(Some(DEADLINE)).ok()?;
    let body = json!({"email": email, "password": password}).to_string();
    let head = format!(
        "POST /api/v1/sign-in HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncookie: {cookie}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer))
}

impl Site {
    fn start(arguments: &[String]) -> Self {
        let mut program = Program::start(CONTROLD, arguments);
        let token = program.setup_token();
        let body = json!({
            "org_name": "acme", "email": EMAIL, "user_name": "Ann", "password": PASSWORD,
        });
        let client = program.client().with_bearer(&token);
        let made = client.post("/api/v1/setup", &body);
        assert_eq!(made.status, 201, "{}", made.text);
        let browser = cookie_of_browser(&made);
        Self { program, browser }
    }

    fn address(&self) -> SocketAddr {
        let authority = self.program.base_url().strip_prefix("http://").unwrap();
        authority.parse().unwrap()
    }

    /// Returns a value of `/proc/PID/status`, in KiB.
    fn memory_kib(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.program.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Returns the processor time, in hundredths of a second.
    fn processor_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.program.id())).unwrap();
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        let fields = rest.split(' ').skip(11).take(2);
        fields.map(|field| field.parse::<u64>().unwrap()).sum()
    }

    /// Sends guesses from the addresses `first` and above, while the owner signs in repeatedly.
    /// Returns the number of responses by status, and the longest sign-in of the owner.
    fn flood(
        &self,
        count: u32,
        first: u32,
        account: AccountOfGuess,
    ) -> (BTreeMap<u16, u32>, Duration) {
        let (next, stop) = (AtomicU32::new(0), AtomicBool::new(false));
        let numbers = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|own| *own < count);
        thread::scope(|scope| {
            let owner = scope.spawn(|| self.sign_in_until(&stop, first));
            let guess = || {
                let guesses = std::iter::from_fn(numbers);
                let statuses = guesses.map(|number| self.guess(number, first, account));
                statuses.collect::<Vec<u16>>()
            };
            let guesses: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(guess)).collect();
            let mut all: BTreeMap<u16, u32> = BTreeMap::new();
            for status in guesses.into_iter().flat_map(|one| one.join().unwrap()) {
                *all.entry(status).or_default() += 1;
            }
            stop.store(true, Ordering::Relaxed);
            (all, owner.join().unwrap())
        })
    }

    /// Sends a wrong password; returns the status, or 0 without a response.
    fn guess(&self, number: u32, first: u32, account: AccountOfGuess) -> u16 {
        let email = account(number);
        let (from, wrong) = (source(first + number), "wrong horse battery");
        let answer = attempt(self.address(), from, &email, wrong, "");
        answer.map_or(0, |(status, _)| status)
    }

    /// Signs the owner in from the known browser repeatedly, at least once. Returns the longest
    /// duration.
    fn sign_in_until(&self, stop: &AtomicBool, first: u32) -> Duration {
        let (to, mut longest) = (self.address(), Duration::ZERO);
        for number in 0.. {
            let clock = Stopwatch::start();
            let from = source(first + 0x40_0000 + number);
            let (status, answer) = attempt(to, from, EMAIL, PASSWORD, &self.browser).unwrap();
            assert_eq!(status, 200, "{answer}");
            longest = longest.max(clock.elapsed());
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        longest
    }
}

fn cookie_of_browser(answer: &Answer) -> String {
    let mut fields = answer.headers.iter().map(|(_, value)| value);
    let field = fields.find(|value| value.starts_with("browser=")).unwrap();
    field.split(';').next().unwrap().to_owned()
}

#[test]
fn wrong_passwords_from_many_addresses_leave_the_owner_in_and_memory_bounded() {
    let full = std::env::var("CONTROLD_GUESSES").ok();
    let count = full.as_ref();
    let count = count.map_or(DEFAULT_GUESSES, |text| text.parse().unwrap());
    for database in databases() {
        let folder = tempfile::tempdir().unwrap();
        let mut arguments = vec!["--data-dir".to_owned(), folder.path().display().to_string()];
        if database.kind == "postgres" {
            arguments.extend(["--database".to_owned(), database.url.clone()]);
        }
        let site = Site::start(&arguments);
        let once = AtomicBool::new(true);
        site.sign_in_until(&once, 0);
        let before = site.memory_kib("VmRSS:");
        let kinds: [(&str, AccountOfGuess); 2] = [
            ("the owner's account", |_| EMAIL.to_owned()),
            ("as many accounts", |number| {
                format!("user-{number}@example.com")
            }),
        ];
        for (place, (name, account)) in (1..).zip(kinds) {
            let (clock, ticks) = (Stopwatch::start(), site.processor_ticks());
            let (statuses, longest) = site.flood(count, place * 0x10_0000, account);
            let (took, ticks) = (clock.elapsed(), site.processor_ticks() - ticks);
            let grown = site.memory_kib("VmHWM:").saturating_sub(before);
            println!(
                "{}: {count} guesses at {name} in {took:?}: {statuses:?}; the owner in at most {longest:?}; {}.{:02} s \
                 of processor, {} MiB more at most",
                database.kind,
                ticks / 100,
                ticks % 100,
                grown / 1024
            );
            assert!(longest < MAX_WAIT, "{longest:?}");
            assert!(grown < MAX_GROWTH_KIB, "{grown} KiB");
            let known = [401, 429, 503];
            let is_known = statuses.keys().all(|status| known.contains(status));
            assert!(is_known, "{statuses:?}");
            if place == 1 {
                // An account permits ten attempts, and one more per minute.
                let compared = statuses.get(&401).copied().unwrap_or_default();
                let minutes = u32::try_from(took.as_secs() / 60).unwrap();
                assert!((1..=12 + minutes).contains(&compared), "{statuses:?}");
            }
        }
        if full.is_some() {
            let clock = Stopwatch::start();
            let (status, answer) = loop {
                let from = source(0x60_0000);
                let (status, answer) = attempt(site.address(), from, EMAIL, PASSWORD, "").unwrap();
                let wait = answer
                    .lines()
                    .find_map(|line| line.strip_prefix("retry-after: "));
                match wait.filter(|_| status == 429 && clock.elapsed() < MINUTE) {
                    Some(seconds) => {
                        thread::park_timeout(Duration::from_secs(seconds.trim().parse().unwrap()));
                    }
                    None => break (status, answer),
                }
            };
            assert_eq!(status, 200, "{answer}");
            println!(
                "{}: a new browser of the owner in {:?}",
                database.kind,
                clock.elapsed()
            );
            assert!(clock.elapsed() <= MINUTE + Duration::from_secs(1));
        }
    }
}
