//! The proxy under test, and the operations on it.

use crate::backend::Backend;
use proxy_testkit::{Gate, Proxyd, Reload, Upgrade};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

/// The number of operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) reloads: usize,
    pub(crate) upgrades: usize,
    /// Pause after each, so that the next one finds the load restored.
    pub(crate) pause: Duration,
}

/// Resources of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) files: usize,
    pub(crate) rss_bytes: u64,
}

/// Resources of a process after its first reload and after its last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub(crate) begun: Figures,
    pub(crate) last: Figures,
}

impl Figures {
    pub(crate) fn measure(proxyd: &Proxyd) -> Self {
        Self {
            files: proxyd.open_files(),
            rss_bytes: proxyd.rss_bytes(),
        }
    }
}

impl Lifetime {
    pub(crate) fn new(figures: &[Figures]) -> Self {
        let [begun, .., last] = *figures else {
            panic!("two reloads at least for each process");
        };
        Self { begun, last }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, rss_bytes } = self;
        write!(f, "{files} files, {} MiB", rss_bytes / (1 << 20))
    }
}

/// A proxyd in front of a [`Backend`].
pub(crate) struct Stage {
    backend: Backend,
    proxyd: Proxyd,
    over: Gate,
    /// For waiting.
    never: Gate,
}

/// Resources of a process without clients.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    /// Open files by kind, from `/proc`.
    pub(crate) files: BTreeMap<String, usize>,
    pub(crate) rss_bytes: u64,
}

impl Size {
    /// From the environment; small numbers by default.
    pub(crate) fn from_environment() -> Self {
        let text = std::env::var("PROXYD_SOAK").unwrap_or_else(|_| "6 2 150".to_owned());
        let numbers: Vec<usize> = text.split(' ').map(|word| word.parse().unwrap()).collect();
        let [reloads, upgrades, millis] = numbers[..] else {
            panic!("three numbers: reloads, upgrades, milliseconds; not {text}");
        };
        Self {
            reloads,
            upgrades,
            pause: Duration::from_millis(millis as u64),
        }
    }

    /// Number of reloads in the process of this generation.
    pub(crate) fn reloads_of(self, generation: usize) -> Range<usize> {
        let until = |generation: usize| self.reloads * generation / (self.upgrades + 1);
        until(generation)..until(generation + 1)
    }
}

impl Stage {
    pub(crate) fn set() -> Self {
        let over = Gate::new();
        let backend = Backend::start(&over);
        let proxyd = Proxyd::start(env!("CARGO_BIN_EXE_proxyd"), &config(&backend, 0));
        Self {
            backend,
            proxyd,
            over,
            never: Gate::new(),
        }
    }

    /// Address for clients, over HTTP/1.x or HTTP/2.
    pub(crate) fn address(&self) -> SocketAddr {
        self.proxyd.address()
    }

    /// Open when the test has ended.
    pub(crate) fn over(&self) -> &Gate {
        &self.over
    }

    /// Changes routes, listeners, backlog and workers.
    #[track_caller]
    pub(crate) fn reload(&mut self, number: usize) {
        let kdl = config(&self.backend, number);
        assert_eq!(self.proxyd.reload(&kdl), Reload::Applied);
    }

    #[track_caller]
    pub(crate) fn upgrade(&mut self) {
        assert_eq!(self.proxyd.upgrade(), Upgrade::Done);
    }

    #[track_caller]
    pub(crate) fn wait_for_former(&mut self) {
        self.proxyd.wait_for_former();
    }

    /// Resources without clients, under the first configuration, after everything that any
    /// configuration needs has been opened. Waits until its files are `expected`, or returns the
    /// actual ones.
    #[track_caller]
    pub(crate) fn figures_at_rest(&mut self, expected: Option<&Rest>) -> Rest {
        const MAX_POLLS: usize = 400;
        for number in [0, 1, 2, 0] {
            self.reload(number);
        }
        let mut files = BTreeMap::new();
        let mut same = 0;
        for _ in 0..MAX_POLLS {
            let found = self.proxyd.files_by_kind();
            same = if found == files { same + 1 } else { 0 };
            files = found;
            // Closing workers check ten times a second whether they may exit.
            if same > 40 && expected.is_none_or(|expected| expected.files == files) {
                break;
            }
            self.never.opens_within(Duration::from_millis(25));
        }
        Rest {
            files,
            rss_bytes: self.proxyd.rss_bytes(),
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures::measure(&self.proxyd)
    }
}

/// Prints the results.
pub(crate) fn print_summary(
    size: Size,
    served: &[(&'static str, u64)],
    seen: &[Lifetime],
    rest: [&Rest; 2],
) {
    let Size {
        reloads, upgrades, ..
    } = size;
    let mut text = format!("soak: {reloads} reloads, {upgrades} upgrades\n");
    for (what, count) in served {
        writeln!(text, "  {count:>9} {what}, 0 failed").unwrap();
    }
    for (generation, Lifetime { begun, last }) in seen.iter().enumerate() {
        writeln!(text, "  process {generation}: {begun}; at its end {last}").unwrap();
    }
    for (when, Rest { files, rss_bytes }) in ["before", "after"].into_iter().zip(rest) {
        let mebibytes = rss_bytes / (1 << 20);
        writeln!(text, "  at rest {when}: {mebibytes} MiB, {files:?}").unwrap();
    }
    std::io::stdout().lock().write_all(text.as_bytes()).unwrap();
}

fn config(backend: &Backend, number: usize) -> String {
    let workers = [2, 3, 1][number % 3];
    let backlog = 1000 + number % 7;
    let extra = match number % 2 {
        0 => "",
        _ => r#"listener "extra" { address "127.0.0.1:0" }"#,
    };
    let (http, sockets) = (backend.http.address(), backend.sockets.address());
    format!(
        r#"
        listeners {{
            listener "main" {{ address "127.0.0.1:0"; h2c #true; backlog {backlog} }}
            {extra}
        }}
        routes {{
            route "ws" {{ upstream "sockets"; matches {{ path "/ws" }} }}
            route "all" {{
                upstream "http"
                response-headers {{ set "X-Number" "{number}" }}
            }}
        }}
        upstreams {{
            upstream "http" {{ target "{http}"; connection-pool {{ idle-timeout-secs 2 }} }}
            upstream "sockets" {{ target "{sockets}" }}
        }}
        system {{ worker-threads {workers} }}
        limits {{ max-connections-per-client 100000; max-connections-per-route 100000 }}
        observability {{ access-log {{ enabled #false }} }}
        "#
    )
}
