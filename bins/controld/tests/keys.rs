//! Rotation of the keys that encrypt secrets.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may stop")]

use control_auth::{MasterKey, Sealer};
use control_store::{Store, StoredSecret};
use control_testkit::{Client, Database, Program, SlowUpdates, databases, until};
use control_wire::SecretId;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, park_timeout};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

const CONTROLD: &str = env!("CARGO_BIN_EXE_controld");
/// Enough secrets to kill a rotation before it completes.
const SECRETS: u128 = 3_000;

struct World {
    folder: TempDir,
    database: Database,
    runtime: Runtime,
}

impl World {
    fn new(database: Database) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            database,
            runtime: Builder::new_current_thread().enable_all().build().unwrap(),
        }
    }

    fn arguments(&self) -> Vec<String> {
        let data = self.folder.path().display().to_string();
        let url = self.database.url.clone();
        ["--data-dir".to_owned(), data, "--database".to_owned(), url].to_vec()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(CONTROLD);
        command.args(words).args(self.arguments());
        command
    }

    fn run(&self, words: &[&str]) -> String {
        let done = self.command(words).output().unwrap();
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn keys(&self) -> Vec<String> {
        let file: PathBuf = self.folder.path().join("master.key");
        let text = fs::read_to_string(file).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn sealer(&self) -> Sealer {
        let keys = self.keys().into_iter().map(|line| {
            let bytes: Vec<u8> = (0..32)
                .map(|index| u8::from_str_radix(&line[2 * index..2 * index + 2], 16).unwrap())
                .collect();
            MasterKey::new(&bytes).unwrap()
        });
        Sealer::new(keys.collect()).unwrap()
    }

    fn store(&self) -> Store {
        self.runtime
            .block_on(Store::open(&self.database.url))
            .unwrap()
    }

    fn used(&self, store: &Store) -> BTreeSet<String> {
        self.runtime.block_on(async {
            let mut tx = store.read().await.unwrap();
            tx.master_keys_in_use().await.unwrap()
        })
    }

    fn fill(&self, store: &Store) {
        let sealer = self.sealer();
        self.runtime.block_on(async {
            let mut tx = store.begin().await.unwrap();
            for number in 0..SECRETS {
                let id = SecretId(Uuid::from_u128(number));
                let place = id.to_string();
                let secret = StoredSecret {
                    id,
                    org: None,
                    sealed: sealer.seal(&place, [1; 12], place.as_bytes()).unwrap(),
                    created_at: Timestamp::UNIX_EPOCH,
                };
                tx.insert_secret(&secret).await.unwrap();
            }
            tx.commit().await.unwrap();
        });
    }

    fn all_open(&self, store: &Store) {
        let sealer = self.sealer();
        self.runtime.block_on(async {
            let mut tx = store.read().await.unwrap();
            for number in 0..SECRETS {
                let id = SecretId(Uuid::from_u128(number));
                let found = tx.secret(id).await.unwrap().unwrap();
                let opened = sealer.open(&id.to_string(), &found.sealed).unwrap();
                assert_eq!(*opened, id.to_string().as_bytes());
            }
        });
    }

    fn rotate(&self) -> Child {
        let mut rotate = self.command(&["key", "rotate"]);
        rotate.stdout(Stdio::null()).spawn().unwrap()
    }
}

#[test]
fn a_rotation_that_is_killed_loses_no_secret() {
    for database in databases() {
        let world = World::new(database);
        world.run(&["key", "prune"]);
        let store = world.store();
        world.fill(&store);
        let old = world.used(&store);

        let slow = SlowUpdates::start(&world.database, "secrets");
        let mut rotate = world.rotate();
        until("some secrets have the new key", || {
            world.used(&store) != old
        });
        rotate.kill().unwrap();
        rotate.wait().unwrap();
        slow.end();
        assert_eq!(world.used(&store).len(), 2, "it was killed on its way");
        assert_eq!(world.keys().len(), 2);
        world.all_open(&store);
        assert_eq!(world.run(&["key", "prune"]), "0 keys dropped\n");

        let printed = world.run(&["key", "rotate"]);
        assert!(
            !printed.contains("new key"),
            "the rotation goes on: {printed}"
        );
        assert_eq!(
            world.used(&store),
            BTreeSet::from([world.sealer().current()])
        );
        world.all_open(&store);
        assert_eq!(world.run(&["key", "prune"]), "1 keys dropped\n");
        assert_eq!(world.keys().len(), 1);
        world.all_open(&store);
    }
}

#[test]
fn a_running_control_plane_takes_the_new_key() {
    for database in databases() {
        let world = World::new(database);
        let mut program = Program::start(CONTROLD, &world.arguments());
        let token = program.setup_token();
        let body = json!({
            "org_name": "acme", "email": "ann@example.com", "user_name": "Ann",
            "password": "correct horse",
        });
        let link = program.client().with_bearer(&token);
        let made = link.post("/api/v1/setup", &body);
        let session = made
            .header("set-cookie")
            .split(';')
            .next()
            .unwrap()
            .to_owned();
        world.run(&["key", "rotate"]);
        world.run(&["key", "prune"]);
        assert_eq!(world.keys().len(), 1);
        let fields = [("cookie", session.as_str())];
        let org = json!({"name": "second"});
        let made = program
            .client()
            .send("POST", "/api/v1/orgs", &fields, Some(&org));
        assert_eq!(made.status, 201, "{}", made.text);
        let used = world.used(&world.store());
        assert_eq!(used, BTreeSet::from([world.sealer().current()]));
    }
}

/// Starts a control plane, and waits until it listens; returns it with the lines of its log.
fn start_logging(world: &World) -> (Child, Receiver<String>) {
    let mut serve = world.command(&[]);
    serve.args(["--listen", "127.0.0.1:0"]);
    let serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = serve.spawn().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on "), "{line}");
    process.stdout = Some(output.into_inner());
    let log = BufReader::new(process.stderr.take().unwrap());
    let (lines, written) = mpsc::channel();
    thread::spawn(move || {
        let all = log.lines().map_while(Result::ok);
        all.map_while(|line| lines.send(line).ok()).count()
    });
    (process, written)
}

/// Repeats `cause`, which a program that is still starting may overlook, until it is logged.
fn until_logged(log: &Receiver<String>, words: &str, cause: impl Fn()) -> String {
    for _ in 0..12 {
        cause();
        while let Ok(line) = log.recv_timeout(Duration::from_secs(5)) {
            if line.contains(words) {
                return line;
            }
        }
    }
    panic!("not logged: {words}");
}

#[test]
fn a_key_file_without_a_key_in_use_is_not_taken_while_running() {
    for database in databases() {
        let world = World::new(database);
        world.run(&["key", "prune"]);
        let store = world.store();
        world.fill(&store);
        let (mut process, log) = start_logging(&world);
        let file = world.folder.path().join("master.key");
        let (own, other) = (world.keys().concat(), "ab".repeat(32));
        let replace = |text: &str| {
            let next = world.folder.path().join("next.key");
            fs::write(&next, text).unwrap();
            fs::set_permissions(&next, Permissions::from_mode(0o600)).unwrap();
            fs::rename(next, &file).unwrap();
        };
        let foreign = format!("{other}\n");
        let refused = until_logged(&log, "the key file cannot be used", || replace(&foreign));
        assert!(refused.contains("lacks the key "), "{refused}");
        let both = format!("{other}\n{own}\n");
        until_logged(&log, "the key file was read", || replace(&both));
        process.kill().unwrap();
        process.wait().unwrap();
        world.all_open(&store);
    }
}

/// Number of further signing keys that an organization may create.
const MAX_SIGNING_KEYS: usize = 15;

/// Creates signing keys, each a new secret, until `stop`. Returns the statuses of the responses.
fn seal_until(stop: &AtomicBool, client: &Client, path: &str) -> Vec<u16> {
    let mut statuses = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let answer = client.post(path, &json!({}));
        if answer.status == 429 {
            park_timeout(Duration::from_millis(100));
        } else {
            statuses.push(answer.status);
        }
    }
    statuses
}

#[test]
fn a_key_is_rotated_under_load_while_a_node_is_offline() {
    for database in databases() {
        let world = World::new(database);
        let mut program = Program::start(CONTROLD, &world.arguments());
        let token = program.setup_token();
        let body = json!({
            "org_name": "acme", "project_name": "edge", "api_key_name": "first",
            "email": "ann@example.com", "user_name": "Ann", "password": "correct horse",
        });
        let link = program.client().with_bearer(&token);
        let made = link.post("/api/v1/setup", &body).json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let operator = program.client();
        let operator = operator.with_bearer(made["api_key"]["secret"].as_str().unwrap());
        let project = format!("/api/v1/projects/{}", text(&made["project"]["id"]));
        let token = json!({"name": "fleet", "max_uses": 1});
        let token = operator.post(&format!("{project}/enrolment-tokens"), &token);
        let enrolment = program.client();
        let enrolment = enrolment.with_bearer(token.json()["secret"].as_str().unwrap());
        let node = enrolment.post(&format!("{project}/nodes/register"), &json!({"name": "a"}));
        assert_eq!(node.status, 201, "{}", node.text);
        let node = node.json();
        let path = format!("/api/v1/nodes/{}", text(&node["node_id"]));
        let key = text(&node["node_key"]);
        let fields = [("x-service-node-key", key.as_str())];
        let issue = || {
            program
                .client()
                .send("POST", &format!("{path}/token"), &fields, None)
        };
        let before = issue();
        assert_eq!(before.status, 200, "{}", before.text);
        // The node is offline from here on.
        let stop = AtomicBool::new(false);
        let signing_keys = format!("/api/v1/orgs/{}/signing-keys", text(&made["org"]["id"]));
        let statuses = thread::scope(|scope| {
            let load = scope.spawn(|| seal_until(&stop, &operator, &signing_keys));
            world.run(&["key", "rotate"]);
            world.run(&["key", "prune"]);
            stop.store(true, Ordering::Relaxed);
            load.join().unwrap()
        });
        // An organization has at most 15 signing keys.
        let (made, refused) = statuses.split_at(statuses.len().min(MAX_SIGNING_KEYS));
        assert!(made.iter().all(|status| *status == 201), "{statuses:?}");
        assert!(refused.iter().all(|status| *status == 409), "{statuses:?}");
        assert_eq!(world.keys().len(), 1);
        // The node reconnects with its old token, and gets a new one from the decrypted signing
        // key.
        let own = program
            .client()
            .with_bearer(before.json()["token"].as_str().unwrap());
        assert_eq!(own.get(&format!("{path}/desired")).status, 200);
        let after = issue();
        assert_eq!(after.status, 200, "{}", after.text);
        let used = world.used(&world.store());
        assert_eq!(used, BTreeSet::from([world.sealer().current()]));
    }
}
