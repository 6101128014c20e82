//! Reloads that change the number of workers.

use crate::support::{Config, METRICS, metric, request};
use proxy_testkit::{Gate, Proxyd, RawClient, Reload, Upstream, free_port, get};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Number of polls, at intervals of 20 ms, after which waiting fails.
const MAX_POLLS: u32 = 1_000;

/// Returns the descriptors of a worker's tick timer: in this process, and in `proxyd`.
#[track_caller]
fn timer_of_a_worker(proxyd: &Proxyd) -> OwnedFd {
    let folder = format!("/proc/{}/fd", proxyd.id());
    let mut files = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path());
    let is_timer = |file: &PathBuf| {
        fs::read_link(file).is_ok_and(|link| link == Path::new("anon_inode:[timerfd]"))
    };
    let timer = files.find(is_timer).unwrap();
    let number = timer.file_name().unwrap().to_str().unwrap().parse();
    let process = Pid::from_raw(proxyd.id().try_into().unwrap()).unwrap();
    let process = pidfd_open(process, PidfdFlags::empty()).unwrap();
    pidfd_getfd(process, number.unwrap(), PidfdGetfdFlags::empty()).unwrap()
}

#[test]
fn a_worker_that_hangs_is_reported_and_the_process_is_not_ready() {
    let ready = r#"matches { path "/ready" }; service-type "builtin"; builtin-handler "ready""#;
    let config = Config::new().route("ready", ready);
    let proxyd = config.route("metrics", METRICS).start();
    let mut client = proxyd.connect();
    assert_eq!(client.ask(get("/ready", &[])).status, 200);

    // The worker still responds, but its ticks have stopped, so the control thread considers it
    // hung.
    let timer = timer_of_a_worker(&proxyd);
    let every = |nanos| Itimerspec {
        it_interval: Timespec {
            tv_sec: 0,
            tv_nsec: nanos,
        },
        it_value: Timespec {
            tv_sec: 0,
            tv_nsec: nanos,
        },
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &every(0)).unwrap();

    let printed = proxyd.stderr().find(0, |record| {
        record.text("message") == "a worker does not respond"
    });
    assert_eq!(
        (printed.text("level"), printed.number("worker")),
        ("ERROR", Some(0.0))
    );
    let answer = loop {
        let answer = client.ask(get("/ready", &[]));
        if answer.status != 200 {
            break answer;
        }
    };
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["reasons"][0], "a worker does not respond");
    let age = metric(
        &mut client,
        "proxy_worker_heartbeat_age_seconds{worker=\"0\"}",
    );
    assert!(age >= 3.0, "{age}");

    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &every(100_000_000)).unwrap();
    let _ = proxyd.stderr().find(0, |record| {
        record.text("message") == "the worker responds again"
    });
}

fn with(workers: usize, config: Config) -> Config {
    config.top(&format!("worker-threads {workers}"))
}

#[track_caller]
fn apply(proxyd: &Proxyd, config: &Config) {
    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);
}

/// Returns the number of running workers.
fn workers(proxyd: &Proxyd) -> usize {
    let threads = fs::read_dir(format!("/proc/{}/task", proxyd.id())).unwrap();
    let names = threads.filter_map(|thread| {
        let name = thread.unwrap().path().join("comm");
        fs::read_to_string(name).ok()
    });
    names
        .filter(|name| name.starts_with("proxy-worker"))
        .count()
}

/// Waits until this number of workers run. Workers that should exit check ten times a second
/// whether they can.
#[track_caller]
fn wait_for_workers(proxyd: &Proxyd, count: usize, client: &mut RawClient) {
    for _ in 0..MAX_POLLS {
        if workers(proxyd) == count {
            return;
        }
        crate::support::pause(client, 20);
    }
    panic!("{} workers, not {count}", workers(proxyd));
}

/// Sends requests on many connections at the same time, so that each socket of the port receives
/// some.
#[track_caller]
fn request_every_worker(address: SocketAddr) {
    let mut clients: Vec<_> = (0..40).map(|_| RawClient::connect(address)).collect();
    for client in &mut clients {
        assert_eq!(client.ask(get("/", &[])).text(), "hi");
    }
}

#[test]
fn a_reload_adds_and_removes_workers() {
    let upstream = Upstream::saying("hi");
    let proxyd = with(2, Config::to(&upstream)).start();
    let mut resting = upstream_connection(&upstream);
    wait_for_workers(&proxyd, 2, &mut resting);

    for count in [4, 1, 3, 2, 1] {
        apply(&proxyd, &with(count, Config::to(&upstream)));
        request_every_worker(proxyd.address());
        wait_for_workers(&proxyd, count, &mut resting);
        request_every_worker(proxyd.address());
    }
}

/// Opens a connection without traffic, to wait on.
fn upstream_connection(upstream: &Upstream) -> RawClient {
    RawClient::connect(upstream.address())
}

const CONNECTIONS: usize = 80;

#[test]
fn no_client_notices_that_workers_go() {
    let upstream = Upstream::saying("hi");
    let proxyd = with(4, Config::to(&upstream)).start();
    // The kernel distributes connections to workers randomly. With this number, they never all
    // reach the same one.
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| proxyd.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.ask(get("/", &[])).text(), "hi");
    }

    apply(&proxyd, &with(1, Config::to(&upstream)));

    let mut sent_away = 0;
    for client in &mut clients {
        let answer = client.ask(get("/", &[]));
        assert_eq!(answer.text(), "hi");
        sent_away += usize::from(answer.fields.get("connection") == Some("close"));
    }
    assert!(
        sent_away > 0 && sent_away < CONNECTIONS,
        "{sent_away} of {CONNECTIONS} were at workers that leave"
    );
}

#[test]
fn a_worker_that_leaves_finishes_what_it_has_begun_under_each_plan_to_come() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let tunnels = Upstream::websocket();
    let target = format!("target \"{}\"", tunnels.address());
    let config = |workers: usize, log: &str| {
        let route = r#"upstream "w"; matches { path "/ws" }"#;
        let config = Config::to(&upstream)
            .route("ws", route)
            .upstream("w", &target);
        with(workers, config).top(log)
    };
    let proxyd = config(4, "").start();
    let mut requests: Vec<_> = (0..12).map(|_| proxyd.connect()).collect();
    for client in &mut requests {
        client.send(get("/", &[]));
    }
    upstream.wait_for_requests(12);
    let asks = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let mut tunnels: Vec<_> = (0..12).map(|_| proxyd.connect()).collect();
    for tunnel in &mut tunnels {
        assert_eq!(tunnel.ask(request("GET /ws", asks, "")).status, 101);
    }

    apply(&proxyd, &config(1, ""));
    // Changed log settings also apply to workers that are about to exit.
    let log = r#"observability { access-log { path "access.log" } }"#;
    apply(&proxyd, &config(2, log));
    gate.open();

    for client in &mut requests {
        assert_eq!(client.response().status, 200);
    }
    for tunnel in &mut tunnels {
        tunnel.send("ping");
        assert_eq!(tunnel.exactly(4).unwrap(), b"ping");
    }
    drop((requests, tunnels));
    proxyd.terminate();
    let mut proxyd = proxyd;
    assert!(proxyd.wait().success());
    let written = fs::read_to_string(proxyd.folder().join("access.log")).unwrap();
    assert_eq!(written.lines().count(), 24, "{written}");
}

#[test]
fn many_changes_of_the_number_of_workers_leak_nothing() {
    let upstream = Upstream::saying("hi");
    let config = |count: usize| {
        let config = Config::to(&upstream).route("metrics", METRICS);
        with(1 + count % 4, config)
    };
    let proxyd = config(0).start();
    let mut resting = upstream_connection(&upstream);
    for count in 0..8 {
        apply(&proxyd, &config(count));
    }
    wait_for_workers(&proxyd, 4, &mut resting);
    let files = proxyd.open_files();

    for count in 0..40 {
        apply(&proxyd, &config(count));
    }

    wait_for_workers(&proxyd, 4, &mut resting);
    for _ in 0..MAX_POLLS {
        if proxyd.open_files() <= files + 2 {
            break;
        }
        crate::support::pause(&mut resting, 20);
    }
    assert!(
        proxyd.open_files() <= files + 2,
        "{} after {files}",
        proxyd.open_files()
    );
    request_every_worker(proxyd.address());
    let active = metric(&mut proxyd.connect(), "proxy_connections_active");
    assert!(active < 60.0, "{active}");
}

/// Waits until the process has these numbers of open files, by kind.
#[track_caller]
fn wait_for_files(proxyd: &Proxyd, files: &BTreeMap<String, usize>, client: &mut RawClient) {
    for _ in 0..MAX_POLLS {
        if proxyd.files_by_kind() == *files {
            return;
        }
        crate::support::pause(client, 20);
    }
    assert_eq!(proxyd.files_by_kind(), *files);
}

#[test]
fn three_hundred_reloads_leave_no_file_open() {
    let upstream = Upstream::saying("hi");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.sock");
    let config = |count: usize| {
        let more = match count % 3 {
            0 => String::new(),
            1 => "listeners { listener \"x\" { address \"127.0.0.1:0\" } }".to_owned(),
            _ => format!(
                "listeners {{ listener \"x\" {{ address \"unix:{}\" }} }}\n\
                 observability {{ access-log {{ path \"{count}.log\" }} }}",
                file.display()
            ),
        };
        let target = crate::support::target(&upstream);
        let config = Config::new()
            .route("all", "upstream \"u\"")
            .upstream("u", &format!("{target}; connection-pool {{ max-idle 0 }}"))
            .listener(&format!("backlog {}", 100 + count % 5));
        with(1 + count % 4, config.top(&more))
    };
    let proxyd = config(0).start();
    let mut resting = upstream_connection(&upstream);
    // There are no more sockets than the maximum number of workers so far.
    for count in [3, 0] {
        apply(&proxyd, &config(count));
    }
    wait_for_workers(&proxyd, 1, &mut resting);
    let files = proxyd.files_by_kind();

    for count in 1..=300 {
        apply(&proxyd, &config(count));
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    }

    apply(&proxyd, &config(0));
    wait_for_workers(&proxyd, 1, &mut resting);
    wait_for_files(&proxyd, &files, &mut resting);
}

#[test]
fn a_backlog_changes_while_clients_wait() {
    let upstream = Upstream::saying("hi");
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let config = |backlog: usize| {
        let config = Config::to(&upstream).at(address);
        with(3, config.listener(&format!("backlog {backlog}")))
    };
    let proxyd = config(64).start();

    for backlog in 65..75 {
        let mut waiting: Vec<_> = (0..20).map(|_| RawClient::connect(address)).collect();
        apply(&proxyd, &config(backlog));
        for client in &mut waiting {
            assert_eq!(client.ask(get("/", &[])).text(), "hi");
        }
    }
}
