//! Crashes, a full disk and replicas: acknowledged writes survive.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop, and prints what it measured"
)]

use control_testkit::{Answer, Client, Database, Postgres, Program, databases, until};
use proxy_load::clock::Stopwatch;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Write, stderr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use tempfile::TempDir;

const CONTROLD: &str = env!("CARGO_BIN_EXE_controld");
const WRITERS: usize = 4;
/// More keys than any test needs for its writes, in spite of the rate limit of each.
const KEYS: usize = 8;
/// Refused writes after which every connection that writes was replaced.
const REFUSALS: usize = 20;

/// Number of kills: `CONTROLD_KILLS` as set by `cargo xtask chaos --kills`, else a few.
fn kills() -> usize {
    let kills = std::env::var("CONTROLD_KILLS").ok();
    kills.map_or(3, |text| text.parse().unwrap())
}

/// An installation with an organization and keys; each test starts its programs.
struct Installation {
    folder: TempDir,
    url: String,
    keys: Vec<String>,
    /// Number of responses to writers other than 201, 503, or 429 by the rate limit.
    failures: AtomicUsize,
}

impl Installation {
    fn new(url: &str) -> Self {
        Self::made_by(CONTROLD, url)
    }

    /// Creates the database with `program`, which may have an older schema.
    fn made_by(program: &str, url: &str) -> Self {
        let mut made = Self {
            folder: tempfile::tempdir().unwrap(),
            url: url.to_owned(),
            keys: Vec::new(),
            failures: AtomicUsize::new(0),
        };
        for number in 0..KEYS {
            let email = format!("admin-{number}@example.com");
            let create = [
                "admin",
                "create",
                "--api-key-name",
                "test",
                "--email",
                &email,
            ];
            let printed = made.run_by(program, &create);
            let key = printed
                .lines()
                .find_map(|line| line.strip_prefix("api key "));
            made.keys.push(key.unwrap().to_owned());
        }
        made
    }

    fn arguments(&self, replica: &str) -> Vec<String> {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let mut arguments = vec!["--data-dir".to_owned(), path(replica)];
        arguments.extend(["--master-key-file".to_owned(), path("master.key")]);
        arguments.extend(["--database".to_owned(), self.url.clone()]);
        arguments
    }

    fn start(&self, program: &str, replica: &str) -> Program {
        let mut arguments = self.arguments(replica);
        // A hundred kills write more than the default permits.
        arguments.extend(["--max-projects-per-org", "100000"].map(str::to_owned));
        Program::start(program, &arguments)
    }

    /// Writes a script that starts the program; returns its path.
    fn wrapper(&self, script: &str) -> String {
        let path = self.folder.path().join("wrapper");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    fn run(&self, words: &[&str]) -> String {
        self.run_by(CONTROLD, words)
    }

    fn run_by(&self, program: &str, words: &[&str]) -> String {
        let mut command = Command::new(program);
        let done = command.args(words).args(self.arguments("one")).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn client(&self, program: &Program, number: usize) -> Client {
        program.client().with_bearer(&self.keys[number % KEYS])
    }

    /// Client for checks after writers have exhausted the rate limits of all keys.
    fn patient_client(&self, program: &Program, number: usize) -> Client {
        self.client(program, number).obeying_rate_limits()
    }

    fn projects(&self, program: &Program) -> String {
        let client = self.patient_client(program, 0);
        let orgs = client.get("/api/v1/orgs").json();
        let org = orgs["items"][0]["id"].as_str().unwrap().to_owned();
        format!("/api/v1/orgs/{org}/projects")
    }

    fn names(&self, program: &Program) -> BTreeSet<String> {
        let path = self.projects(program);
        let mut names = BTreeSet::new();
        let mut cursor = String::new();
        loop {
            let page = format!("{path}?limit=200{cursor}");
            let page = self.patient_client(program, 1).get(&page).json();
            let items = page["items"].as_array().unwrap().iter();
            names.extend(items.map(|item| item["name"].as_str().unwrap().to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return names,
            }
        }
    }

    /// Writes from several threads until `disturb` has returned and some more responses have
    /// arrived. Returns the names of the projects with an acknowledged creation.
    fn write_while(
        &self,
        programs: &[&Program],
        round: usize,
        disturb: impl FnOnce(&AtomicUsize),
    ) -> BTreeSet<String> {
        let path = self.projects(programs[0]);
        let (stop, count) = (AtomicBool::new(false), AtomicUsize::new(0));
        let write = |writer: usize| {
            let mut acknowledged = Vec::new();
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let client = self.client(programs[number % programs.len()], writer + number);
                let name = format!("{round}-{writer}-{number}");
                let body = json!({ "name": name });
                let answer = client.attempt("POST", &path, &[], Some(&body));
                match answer.map(|answer| answer.status) {
                    Ok(201) => {
                        acknowledged.push(name);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(429 | 503) | Err(_) => {}
                    Ok(_) => {
                        self.failures.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            acknowledged
        };
        thread::scope(|scope| {
            let write = &write;
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| scope.spawn(move || write(writer)))
                .collect();
            until("some writes are acknowledged", || {
                20 <= count.load(Ordering::Relaxed)
            });
            disturb(&count);
            stop.store(true, Ordering::Relaxed);
            writers
                .into_iter()
                .flat_map(|writer| writer.join().unwrap())
                .collect()
        })
    }

    /// Checks that one replica verifies and revokes a bundle that another one signed.
    fn has_a_bundle_in_common(&self, made_by: &Program, read_by: &Program) {
        let projects = self.projects(made_by);
        let client = self.patient_client(made_by, 3);
        let project = client.get(&projects).json()["items"][0]["id"].clone();
        let bundles = format!("/api/v1/projects/{}/bundles", project.as_str().unwrap());
        let text = r#"listeners { listener "web" { address "127.0.0.1:8080" } }"#;
        let new = json!({"name": "common", "files": {"proxy.kdl": text}});
        let made = client.post(&bundles, &new);
        assert_eq!(made.status, 201, "{}", made.text);
        let bundle = format!("{bundles}/{}", made.json()["id"].as_str().unwrap());
        let client = self.patient_client(read_by, 4);
        let verified = client.get(&format!("{bundle}/verify"));
        assert_eq!(verified.status, 200, "{}", verified.text);
        let revoked = client.post(&format!("{bundle}/revoke"), &Value::Null);
        assert_eq!(revoked.status, 200, "{}", revoked.text);
    }

    /// Writes until the disk accepts no writes, which `lock` brings about, and again after
    /// `unlock`. Returns the acknowledged writes.
    fn refuse_writes(
        &self,
        program: &Program,
        lock: impl FnOnce(),
        unlock: impl FnOnce(),
    ) -> BTreeSet<String> {
        let path = self.projects(program);
        let is_refused = |answer: &Answer| {
            let is_refused = answer.status == 503;
            assert!(
                !is_refused || !answer.header("retry-after").is_empty(),
                "{}",
                answer.text
            );
            is_refused
        };
        let acknowledged = self.write_while(&[program], 0, |_| {
            lock();
            let mut refusals = 0;
            until("writes are refused", || {
                let body = json!({ "name": "probe" });
                let answer = self.client(program, 0).post(&path, &body);
                refusals += usize::from(is_refused(&answer));
                REFUSALS <= refusals
            });
        });
        assert_eq!(program.client().get("/health").status, 200);
        assert_eq!(self.failures.load(Ordering::Relaxed), 0, "503 alone");
        until("the balancer sees it", || {
            program.client().get("/ready").status == 503
        });
        until("the metrics show it", || {
            let metrics = program.client().get("/metrics").text;
            metrics.contains("\ncontrol_database_up 0\n")
        });
        unlock();
        let body = json!({"name": "room"});
        let client = self.client(program, 0);
        until("writes are accepted again", || {
            client.post(&path, &body).status == 201
        });
        until("it is ready again", || {
            program.client().get("/ready").status == 200
        });
        acknowledged
    }

    /// Checks that a replacement of the killed program has all acknowledged writes.
    fn holds_after_a_kill(&self, mut program: Program, acknowledged: &BTreeSet<String>) {
        program.kill();
        let program = self.start(CONTROLD, "one");
        self.holds(&program, acknowledged);
        let body = json!({"name": "after"});
        let client = self.patient_client(&program, 0);
        let made = client.post(&self.projects(&program), &body);
        assert_eq!(made.status, 201, "{}", made.text);
    }

    fn holds(&self, program: &Program, acknowledged: &BTreeSet<String>) {
        let names = self.names(program);
        let lost: Vec<_> = acknowledged.difference(&names).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let verified = self.run(&["audit", "verify"]);
        assert!(
            verified.starts_with("the audit log is complete: "),
            "{verified}"
        );
    }
}

#[test]
fn a_control_plane_that_is_killed_under_writes_loses_nothing() {
    for database in databases() {
        let installation = Installation::new(&database.url);
        let mut acknowledged = BTreeSet::new();
        for round in 0..kills() {
            let mut program = installation.start(CONTROLD, "one");
            let pid = program.id();
            let kill = |_: &AtomicUsize| control_testkit::kill(pid);
            acknowledged.extend(installation.write_while(&[&program], round, kill));
            program.kill();
        }
        let program = installation.start(CONTROLD, "one");
        assert!(20 * kills() <= acknowledged.len());
        installation.holds(&program, &acknowledged);
        println!(
            "{} kills on {}: {} acknowledged writes, none lost",
            kills(),
            database.kind,
            acknowledged.len()
        );
    }
}

#[test]
fn a_database_that_is_killed_under_writes_loses_nothing() {
    let mut postgres = Postgres::start();
    let durable = "&options=-c%20synchronous_commit%3Don";
    let installation = Installation::new(&(postgres.create_database() + durable));
    let program = installation.start(CONTROLD, "one");
    let mut acknowledged = BTreeSet::new();
    for round in 0..2 {
        acknowledged.extend(installation.write_while(&[&program], round, |_| postgres.crash()));
        until("the crash is noticed", || {
            program.client().get("/ready").status == 503
        });
        let client = installation.patient_client(&program, 0);
        let away = client.get("/api/v1/orgs");
        assert_eq!(away.status, 503, "{}", away.text);
        postgres.restart();
        until("the database is used again", || {
            program.client().get("/ready").status == 200
        });
    }
    installation.holds(&program, &acknowledged);
    assert_eq!(installation.failures.load(Ordering::Relaxed), 0);
}

#[test]
fn a_database_that_becomes_read_only_is_reported_and_used_again() {
    let postgres = Postgres::start();
    let installation = Installation::new(&postgres.create_database());
    let log = installation.folder.path().join("log");
    let logging = installation.wrapper(&format!("exec {CONTROLD} \"$@\" 2> {}", log.display()));
    let program = installation.start(&logging, "one");
    let path = installation.projects(&program);
    let read_only = |word: &str| {
        let set = format!("ALTER SYSTEM SET default_transaction_read_only = {word}");
        postgres.psql("postgres", &set);
        postgres.psql("postgres", "SELECT pg_reload_conf()");
    };
    let acknowledged = installation.write_while(&[&program], 0, |_| {
        read_only("on");
        until("a write is refused", || {
            let body = json!({ "name": "probe" });
            let answer = installation.client(&program, 0).post(&path, &body);
            answer.status == 503 && !answer.header("retry-after").is_empty()
        });
        until("the balancer sees it", || {
            program.client().get("/ready").status == 503
        });
        until("the metrics show it", || {
            let metrics = program.client().get("/metrics").text;
            metrics.contains("\ncontrol_database_up 0\n")
        });
    });
    assert_eq!(program.client().get("/health").status, 200);
    assert_eq!(
        installation.failures.load(Ordering::Relaxed),
        0,
        "503 alone"
    );
    read_only("off");
    until("it is ready again", || {
        program.client().get("/ready").status == 200
    });
    let lines = fs::read_to_string(&log).unwrap();
    assert_eq!(lines.matches("\"not ready\"").count(), 1, "{lines}");
    installation.holds(&program, &acknowledged);
    let client = installation.patient_client(&program, 0);
    let made = client.post(&path, &json!({"name": "after"}));
    assert_eq!(made.status, 201, "{}", made.text);
}

#[test]
fn a_replica_whose_clock_differs_from_the_databases_is_not_ready() {
    let postgres = Postgres::start();
    let url = postgres.create_database();
    let database = url.split(['/', '?']).nth(3).unwrap();
    for statement in [
        "CREATE TABLE public.clock (ahead INTERVAL)",
        "INSERT INTO public.clock VALUES ('0 s')",
        "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql
         AS 'SELECT pg_catalog.clock_timestamp() + ahead FROM public.clock'",
    ] {
        postgres.psql(database, statement);
    }
    // This function replaces the one of PostgreSQL, which is looked up first by default.
    let first = "&options=-c%20search_path%3Dpublic%2Cpg_catalog";
    let installation = Installation::new(&format!("{url}{first}"));
    let program = installation.start(CONTROLD, "one");
    let ready = || program.client().get("/ready");
    until("it is ready", || ready().status == 200);
    let set = |ahead: &str| {
        let set = format!("UPDATE public.clock SET ahead = '{ahead}'");
        postgres.psql(database, &set);
    };
    for ahead in ["1 hour", "-1 hour"] {
        set(ahead);
        until("the balancer sees it", || {
            ready().json()["reasons"] == json!(["clock"])
        });
        let answer = ready();
        assert_eq!(answer.status, 503, "{}", answer.text);
        assert_eq!(answer.header("retry-after"), "5", "{}", answer.text);
        assert_eq!(program.client().get("/health").status, 200);
        set("0 s");
        until("it is ready again", || ready().status == 200);
    }
}

/// The first replica of an upgrade migrates the schema while older replicas run.
#[test]
fn a_running_replica_works_with_a_newer_schema_and_does_not_start_on_it() {
    let postgres = Postgres::start();
    let url = postgres.create_database();
    let installation = Installation::new(&url);
    let program = installation.start(CONTROLD, "one");
    let database = url.split(['/', '?']).nth(3).unwrap();
    let mut acknowledged = installation.write_while(&[&program], 0, |count| {
        for newer in [
            "ALTER TABLE projects ADD COLUMN of_a_newer_version TEXT",
            "CREATE TABLE of_a_newer_version (id TEXT PRIMARY KEY)",
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             SELECT 9999, 'newer', success, checksum, 0 FROM _sqlx_migrations WHERE version = 1",
        ] {
            postgres.psql(database, newer);
        }
        let before = count.load(Ordering::Relaxed);
        until("it goes on", || {
            before + 20 <= count.load(Ordering::Relaxed)
        });
    });
    assert_eq!(installation.failures.load(Ordering::Relaxed), 0);
    assert_eq!(program.client().get("/ready").status, 200);
    let mut start = Command::new(CONTROLD);
    let refused = start.args(installation.arguments("two")).output().unwrap();
    let printed_text = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success());
    assert!(
        printed_text.contains("is newer than this version knows"),
        "{printed_text}"
    );
    let names = installation.names(&program);
    acknowledged.retain(|name| !names.contains(name));
    assert!(
        acknowledged.is_empty(),
        "acknowledged and lost: {acknowledged:?}"
    );
}

/// `CONTROLD_OLDER` is the path of an earlier release, as set by `cargo xtask chaos
/// --upgrade-from`. Without it, both versions are the same.
#[test]
fn an_installation_is_upgraded_replica_by_replica_under_writes() {
    let older = std::env::var("CONTROLD_OLDER").unwrap_or_else(|_| CONTROLD.to_owned());
    let installation = Installation::made_by(&older, &Database::postgres().url);
    let mut old_one = installation.start(&older, "one");
    let mut old_two = installation.start(&older, "two");
    let further = |count: &AtomicUsize| {
        let before = count.load(Ordering::Relaxed);
        until("writes go on", || {
            before + 20 <= count.load(Ordering::Relaxed)
        });
    };
    let mut acknowledged = installation.write_while(&[&old_one, &old_two], 0, further);
    old_two.kill();
    let mut two = None;
    acknowledged.extend(installation.write_while(&[&old_one], 1, |count| {
        two = Some(installation.start(CONTROLD, "two"));
        further(count);
    }));
    let two = two.unwrap();
    let both = [&old_one, &two];
    acknowledged.extend(installation.write_while(&both, 2, further));
    assert_eq!(installation.names(&old_one), installation.names(&two));
    for (made_by, read_by) in [(&old_one, &two), (&two, &old_one)] {
        installation.has_a_bundle_in_common(made_by, read_by);
    }
    assert_eq!(installation.failures.load(Ordering::Relaxed), 0);
    let pid = old_one.id();
    acknowledged.extend(installation.write_while(&both, 3, |count| {
        control_testkit::kill(pid);
        further(count);
    }));
    old_one.kill();
    let one = installation.start(CONTROLD, "one");
    acknowledged.extend(installation.write_while(&[&one, &two], 4, further));
    installation.holds(&one, &acknowledged);
}

#[test]
fn a_full_disk_loses_nothing_and_is_reported() {
    let database = Database::sqlite();
    let installation = Installation::new(&database.url);
    // Limits files to 2 MiB (4 MiB if the shell counts in KiB).
    let limited = format!("trap '' XFSZ\nulimit -S -f 4096\nexec {CONTROLD} \"$@\"");
    let limited = installation.wrapper(&limited);
    let program = installation.start(&limited, "one");
    let lift = || control_testkit::lift_file_limit(program.id());
    let acknowledged = installation.refuse_writes(&program, || {}, lift);
    installation.holds_after_a_kill(program, &acknowledged);
}

/// Runs `mount` among the mounts of the program alone.
fn mount(program: &Program, arguments: &[&str]) {
    let id = program.id().to_string();
    let mut command = Command::new("nsenter");
    command.args(["--target", &id, "--mount", "mount"]);
    let done = command.args(arguments).output().unwrap();
    assert!(done.status.success(), "{arguments:?}: {done:?}");
}

/// Every write to a file fails, and every file is opened for reading alone.
#[test]
fn a_folder_that_becomes_read_only_is_reported_and_used_again() {
    let may = Command::new("unshare").args(["--mount", "true"]).output();
    if !may.is_ok_and(|tried| tried.status.success()) {
        let reported = b"skipped: it mounts a file system of its own\n";
        stderr().lock().write_all(reported).unwrap();
        return;
    }
    let database = Database::sqlite();
    let file = database.url.strip_prefix("sqlite://").unwrap();
    let folder = Path::new(file).parent().unwrap().to_str().unwrap();
    let installation = Installation::new(&database.url);
    let mounting = format!("trap '' XFSZ\nexec unshare --mount {CONTROLD} \"$@\"");
    let mounting = installation.wrapper(&mounting);
    let program = installation.start(&mounting, "one");
    let lock = || {
        mount(&program, &["--options", "bind,ro", folder, folder]);
        control_testkit::refuse_file_writes(program.id());
    };
    let unlock = || {
        mount(&program, &["--options", "remount,bind,rw", folder]);
        control_testkit::lift_file_limit(program.id());
    };
    let acknowledged = installation.refuse_writes(&program, lock, unlock);
    installation.holds_after_a_kill(program, &acknowledged);
}

#[test]
fn killing_one_of_two_replicas_loses_nothing() {
    let installation = Installation::new(&Database::postgres().url);
    let mut one = installation.start(CONTROLD, "one");
    let two = installation.start(CONTROLD, "two");
    let pid = one.id();
    let acknowledged = installation.write_while(&[&one, &two], 0, |count| {
        control_testkit::kill(pid);
        let before = count.load(Ordering::Relaxed);
        until("the other one goes on", || {
            before + 20 <= count.load(Ordering::Relaxed)
        });
    });
    one.kill();
    installation.holds(&two, &acknowledged);
}

#[test]
fn replicas_share_rates_and_repetitions() {
    let installation = Installation::new(&Database::postgres().url);
    let one = installation.start(CONTROLD, "one");
    let two = installation.start(CONTROLD, "two");
    let path = installation.projects(&one);
    let (left, right) = (installation.client(&one, 2), installation.client(&two, 2));
    for round in 0..5 {
        let body = json!({"name": format!("once-{round}")});
        let key = format!("the same {round}");
        let fields = [("idempotency-key", key.as_str())];
        let (first, second) = thread::scope(|scope| {
            let other = scope.spawn(|| left.send("POST", &path, &fields, Some(&body)));
            let own = right.send("POST", &path, &fields, Some(&body));
            (other.join().unwrap(), own)
        });
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        // The second request has the same response, or the message that the first one is pending.
        assert_eq!(statuses[0], 201, "{} {}", first.text, second.text);
        assert!(
            [201, 409].contains(&statuses[1]),
            "{} {}",
            first.text,
            second.text
        );
        let again = left.send("POST", &path, &fields, Some(&body));
        let made: Vec<Value> = [&first, &second, &again]
            .iter()
            .filter(|answer| answer.status == 201)
            .map(|answer| answer.json()["id"].clone())
            .collect();
        assert!(2 <= made.len());
        assert!(made.iter().all(|id| *id == made[0]), "{made:?}");
    }
    // The replicas share a bucket of 60 requests, which refills by five a second. Each replica may
    // exceed it by ten.
    let (left, right) = (installation.client(&one, 3), installation.client(&two, 3));
    let (clock, mut admitted) = (Stopwatch::start(), 0);
    let mut refused = [false, false];
    until("both know that the bucket is empty", || {
        for (client, refused) in [&left, &right].into_iter().zip(&mut refused) {
            match client.get("/api/v1/users/me").status {
                200 => admitted += 1,
                status => {
                    assert_eq!(status, 429);
                    *refused = true;
                }
            }
        }
        refused == [true, true]
    });
    let most = 60 + 20 + 5 * (clock.elapsed().as_secs() + 1);
    assert!((60..=most).contains(&admitted), "{admitted} of {most}");
}
