//! Failed upgrades: the old process still serves, and logs the reason.

use crate::installed::{Installed, failed_upgrade, upgrade};
use crate::support::{Busy, Config, METRICS, metric};
use proxy_testkit::{Gate, Launch, Proxyd, RawClient, Reload, Upstream, get, ok};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

#[test]
fn a_program_that_ends_at_once_changes_nothing() {
    let installed = Installed::new();
    let upstream = Upstream::saying("hi");
    let config = Config::to(&upstream).route("metrics", METRICS);
    let mut proxyd = Launch::new(installed.path(), &config.kdl()).start();
    let mut client = proxyd.connect();
    let _ = client.ask(get("/", &[]));

    installed.replace("exit 3");
    let reason = failed_upgrade(&mut proxyd);

    assert!(reason.contains("exit status: 3"), "{reason}");
    assert_eq!(client.ask(get("/", &[])).text(), "hi");
    let failures = r#"proxy_upgrades_total{result="failure"}"#;
    assert!(metric(&mut proxyd.connect(), failures) > 0.5);
    let files = proxyd.open_files();
    let _ = failed_upgrade(&mut proxyd);
    assert!(proxyd.open_files() <= files + 2);

    // The path is resolved when the signal arrives, through symbolic links.
    installed.restore();
    upgrade(&mut proxyd);
    // Until it has exited, the old process may still accept clients.
    drop(client);
    proxyd.wait_for_former();
    let successes = r#"proxy_upgrades_total{result="success"}"#;
    assert!(metric(&mut proxyd.connect(), successes) > 0.5);
}

#[test]
fn a_program_that_hangs_is_ended() {
    let installed = Installed::new();
    let upstream = Upstream::saying("hi");
    let mut proxyd = Launch::new(installed.path(), &Config::to(&upstream).kdl())
        .env("PROXYD_UPGRADE_TIMEOUT_MS", "300")
        .start();

    installed.replace("exec sleep 30");
    let since = proxyd.stderr().len();
    let reason = failed_upgrade(&mut proxyd);

    assert!(reason.contains("did not serve within 300ms"), "{reason}");
    let begun = proxyd
        .stderr()
        .find(since, |record| record.text("message") == "upgrade begins");
    let id = begun.number("id").unwrap();
    assert!(!Path::new(&format!("/proc/{id}")).exists(), "it is reaped");
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
}

type Breaks = fn(&Installed, &Proxyd);

/// Defects of the new program or its configuration, with the expected error.
const BROKEN: &[(Breaks, &str)] = &[
    (
        |installed, _| fs::remove_file(installed.path()).unwrap(),
        "No such file",
    ),
    (
        |installed, _| {
            installed.replace("exit 0");
            fs::set_permissions(installed.path(), Permissions::from_mode(0o644)).unwrap();
        },
        "Permission denied",
    ),
    (
        |installed, _| {
            installed.replace("");
            fs::write(installed.path(), [0; 64]).unwrap();
        },
        "Exec format error",
    ),
    (|installed, _| installed.replace("exit 0"), "exit status: 0"),
    (
        |installed, _| installed.replace("kill -SEGV $$"),
        "signal: 11",
    ),
    (
        |installed, _| installed.replace("printf x >&0; exec sleep 30"),
        "signal: 9",
    ),
    (
        |installed, _| installed.replace("exec sleep 30 </dev/null"),
        "signal: 9",
    ),
    (
        |_, proxyd| fs::write(proxyd.config(), "routes {").unwrap(),
        "exit status: 1",
    ),
    (
        |_, proxyd| fs::remove_file(proxyd.config()).unwrap(),
        "exit status: 1",
    ),
];

#[test]
fn after_any_failure_the_old_process_serves_and_a_later_upgrade_succeeds() {
    let installed = Installed::new();
    let upstream = Upstream::saying("hi");
    let kdl = Config::to(&upstream).kdl();
    let mut proxyd = Launch::new(installed.path(), &kdl).start();
    let good = fs::read(proxyd.config()).unwrap();

    for (number, (breaks, words)) in BROKEN.iter().enumerate() {
        let mut kept = proxyd.connect();
        assert_eq!(kept.ask(get("/", &[])).text(), "hi");
        breaks(&installed, &proxyd);

        let reason = failed_upgrade(&mut proxyd);

        assert!(reason.contains(words), "{number}: {reason}");
        assert_eq!(kept.ask(get("/", &[])).text(), "hi");
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
        installed.restore();
        fs::write(proxyd.config(), &good).unwrap();
        upgrade(&mut proxyd);
        drop(kept);
        proxyd.wait_for_former();
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    }
}

#[test]
fn faults_of_the_new_process_are_in_the_log() {
    let upstream = Upstream::saying("hi");
    let mut proxyd = Config::to(&upstream).start();

    fs::write(proxyd.config(), "routes {").unwrap();
    let _ = failed_upgrade(&mut proxyd);

    let lines = proxyd.stderr().lines().join("\n");
    assert!(lines.contains("proxyd.kdl"), "{lines}");
}

/// Sends requests on new connections until `over` opens; returns their number.
fn request_until(address: SocketAddr, over: &Gate) -> usize {
    let ask = || RawClient::connect(address).ask(get("/", &[])).text();
    let mut answers = 0;
    while answers == 0 || !over.is_open() {
        assert_eq!(ask(), "fine");
        answers += 1;
    }
    answers
}

#[test]
fn a_new_process_that_fails_late_has_disconnected_no_client() {
    let upstream = Upstream::answering(ok("fine"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let in_use = taken.local_addr().unwrap();
    let config = |workers: usize, more: &str| {
        let system = format!("system {{ worker-threads {workers} }}\n{more}");
        Config::to(&upstream).top(&system).kdl()
    };
    let free = "admin { address \"127.0.0.1:0\" }";
    let mut proxyd = Launch::new(crate::support::BINARY, &config(2, free)).start();
    let address = proxyd.address();
    let over = Gate::new();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let over = over.clone();
            thread::spawn(move || request_until(address, &over))
        })
        .collect();

    // The listener and further sockets for it can be bound; the next step fails.
    let admin = format!("admin {{ address \"{in_use}\" }}");
    let second = format!("listeners {{ listener \"x\" {{ address \"{in_use}\" }} }}\n{free}");
    for late in [&admin, &second, &admin, &second] {
        fs::write(proxyd.config(), config(5, late)).unwrap();
        let reason = failed_upgrade(&mut proxyd);
        assert!(reason.contains("exit status: 1"), "{reason}");
        let Reload::Refused(why) = proxyd.reload(&config(5, late)) else {
            panic!("it was applied");
        };
        assert!(why.contains(&format!("listen on {in_use}")), "{why}");
        assert!(why.contains("in use by another process"), "{why}");
    }
    over.open();

    for client in clients {
        assert!(client.join().unwrap() > 0);
    }
}

#[test]
fn a_reload_asked_for_during_an_upgrade_that_fails_is_done_afterwards() {
    let installed = Installed::new();
    let upstream = Upstream::saying("hi");
    let mut proxyd = Launch::new(installed.path(), &Config::to(&upstream).kdl()).start();
    installed.replace("head -c 1 go >/dev/null; exit 7");
    let go = proxyd.folder().join("go");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &go, mode).unwrap();
    let logged = |what: &'static str| {
        let is_it = move |record: &proxy_testkit::Record| record.text("message") == what;
        proxyd.stderr().find(0, is_it)
    };

    proxyd.signal(Signal::USR2);
    let _ = logged("upgrade begins");
    proxyd.signal(Signal::HUP);
    let _ = logged("the reload waits for the upgrade");
    fs::write(go, "!").unwrap();

    let failed = logged("not handed over; this process serves on");
    assert!(failed.text("reason").contains("exit status: 7"));
    let _ = logged("configuration reloaded");
    installed.restore();
    upgrade(&mut proxyd);
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
}

/// More readings than any read of a file takes.
const MAX_READINGS: usize = 10_000;

/// Open files by kind, once the process reads none: it opens one of `/proc` for each measurement of its memory.
fn files_at_rest(proxyd: &Proxyd) -> BTreeMap<String, usize> {
    for _ in 0..MAX_READINGS {
        let files = proxyd.files_by_kind();
        if !files.contains_key("file") {
            return files;
        }
        thread::yield_now();
    }
    proxyd.files_by_kind()
}

#[test]
fn a_process_without_file_descriptors_serves_on_until_it_has_some() {
    let upstream = Upstream::saying("hi");
    let config = |workers: usize| Config::to(&upstream).top(&format!("worker-threads {workers}"));
    let mut proxyd = config(1).start();
    let before = files_at_rest(&proxyd);
    let few = before.values().sum::<usize>() as u64;

    // Enough descriptors to read the configuration.
    proxyd.limit_open_files(few + 3);
    let Reload::Refused(why) = proxyd.reload(&config(8).kdl()) else {
        panic!("it was applied");
    };
    assert!(why.contains("Too many open files"), "{why}");
    proxyd.limit_open_files(few);
    let reason = failed_upgrade(&mut proxyd);
    assert!(reason.contains("Too many open files"), "{reason}");
    proxyd.limit_open_files(1024);

    assert_eq!(files_at_rest(&proxyd), before);
    assert_eq!(proxyd.reload(&config(8).kdl()), Reload::Applied);
    upgrade(&mut proxyd);
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
}

#[test]
fn a_draining_process_refuses_other_commands() {
    let mut busy = Busy::with("");
    let logged = |what: &'static str| {
        let is_it = move |record: &proxy_testkit::Record| record.text("message").starts_with(what);
        busy.proxyd.stderr().find(0, is_it)
    };

    busy.proxyd.drain();
    busy.proxyd.signal(Signal::USR2);
    let _ = logged("draining: this process neither reloads nor hands over");
    busy.proxyd.terminate();
    let _ = logged("draining already");
    busy.gate.open();

    assert_eq!(busy.client.response().status, 200);
    assert!(busy.proxyd.wait().success());
}

#[test]
fn logs_are_opened_again_while_a_process_drains() {
    let log = r#"observability { access-log { path "access.log" } }"#;
    let mut busy = Busy::with(log);
    let [path, moved] = ["access.log", "moved.log"].map(|name| busy.proxyd.folder().join(name));
    let mut resting = RawClient::connect(busy.upstream.address());

    busy.proxyd.drain();
    fs::rename(&path, &moved).unwrap();
    busy.proxyd.signal(Signal::USR1);
    for _ in 0..1_000 {
        if path.exists() {
            break;
        }
        crate::support::pause(&mut resting, 20);
    }
    busy.gate.open();

    assert_eq!(busy.client.response().status, 200);
    assert!(busy.proxyd.wait().success());
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
    assert_eq!(fs::read_to_string(&moved).unwrap(), "");
}

#[test]
fn a_process_after_its_handover_ignores_later_commands() {
    let upstream = Upstream::saying("hi");
    let mut proxyd = Config::to(&upstream).start();
    let mut kept = proxyd.connect();
    assert_eq!(kept.ask(get("/", &[])).text(), "hi");
    upgrade(&mut proxyd);

    for signal in [Signal::USR2, Signal::HUP] {
        let since = proxyd.stderr().len();
        proxyd.signal_former(signal);
        let _ = proxyd.stderr().find(since, |record| {
            record.text("message").starts_with("handed over already")
        });
    }

    assert_eq!(kept.ask(get("/", &[])).text(), "hi");
    proxyd.wait_for_former();
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
}
