//! A database of an older version is complete and usable with the current program.
//!
//! `fixtures/control-plane/schema-0008` contains rows of every table as a program with the
//! migrations 0001 to 0008 wrote them, dated two years earlier, and the archives of its bundles.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may stop"
)]

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use control_store::{Store, StoreError};
use control_testkit::{Client, Database, Program, databases, lay_down, until_every, write_rows};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Builder;

const CONTROLD: &str = env!("CARGO_BIN_EXE_controld");
const MIGRATIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/control-store/migrations"
);
const ROWS: &str = include_str!("../../../fixtures/control-plane/schema-0008/rows.sql");
const SECRETS: &str = include_str!("../../../fixtures/control-plane/schema-0008/rows.json");
const LAST_MIGRATION: i64 = 8;
const PAUSE: Duration = Duration::from_millis(250);

/// The program on such a database.
struct World {
    folder: TempDir,
    database: Database,
    /// Secrets with hashes in the rows.
    secrets: Value,
}

impl World {
    fn new(database: Database) -> Self {
        lay_down(&database, Path::new(MIGRATIONS), LAST_MIGRATION, ROWS);
        Self::without_rows(database)
    }

    /// Keys and archives of such a database, with an empty database.
    fn without_rows(database: Database) -> Self {
        let secrets: Value = serde_json::from_str(SECRETS).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let keys = secrets["master_key"].as_str().unwrap();
        let key_file = folder.path().join("master.key");
        fs::write(&key_file, keys).unwrap();
        fs::set_permissions(key_file, fs::Permissions::from_mode(0o600)).unwrap();
        for (name, archive) in secrets["objects"].as_object().unwrap() {
            let file = folder.path().join("objects").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let archive = BASE64_STANDARD.decode(archive.as_str().unwrap());
            fs::write(file, archive.unwrap()).unwrap();
        }
        Self {
            folder,
            database,
            secrets,
        }
    }

    fn arguments(&self) -> [String; 4] {
        let data = self.folder.path().display().to_string();
        let url = self.database.url.clone();
        ["--data-dir".to_owned(), data, "--database".to_owned(), url]
    }

    fn secret(&self, name: &str) -> &str {
        self.secrets[name].as_str().unwrap()
    }

    fn operator(&self, program: &Program) -> Client {
        let client = program.client().with_bearer(self.secret("api_key"));
        client.obeying_rate_limits()
    }

    /// Replaces names in a path by the IDs of the rows.
    fn path(&self, path: &str) -> String {
        let names = [
            "org",
            "project",
            "bundle",
            "node",
            "certificate",
            "paused_rollout",
        ];
        let filled = names.iter().fold(path.to_owned(), |path, name| {
            path.replace(&format!("{{{name}}}"), self.secret(name))
        });
        format!("/api/v1{filled}")
    }

    fn get(&self, client: &Client, path: &str) -> Value {
        let answer = client.get(&self.path(path));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.json()
    }
}

/// All lists: the number of their items, and whether items have pages of their own.
const LISTS: [(&str, usize, bool); 16] = [
    ("/orgs", 1, true),
    ("/orgs/{org}/projects", 2, false),
    ("/orgs/{org}/members", 1, false),
    ("/orgs/{org}/invitations", 1, false),
    ("/orgs/{org}/signing-keys", 1, false),
    ("/api-keys", 2, true),
    ("/projects/{project}/enrolment-tokens", 1, false),
    ("/projects/{project}/nodes", 3, true),
    ("/projects/{project}/nodes/{node}/events", 1, false),
    ("/projects/{project}/drift", 2, true),
    ("/projects/{project}/bundles", 5, true),
    ("/projects/{project}/rollouts", 3, true),
    (
        "/projects/{project}/rollouts/{paused_rollout}/nodes",
        2,
        false,
    ),
    ("/projects/{project}/services", 1, true),
    ("/projects/{project}/upstreams", 1, true),
    ("/projects/{project}/certificates", 1, true),
];

/// Checks objects that operators see.
fn check_objects(world: &World, operator: &Client) {
    for (path, count, has_pages) in LISTS {
        let found = world.get(operator, path);
        let items = found["items"].as_array().unwrap();
        assert_eq!(items.len(), count, "{path}: {found}");
        for item in items.iter().filter(|_| has_pages) {
            let id = item["id"].as_str().unwrap();
            let one = world.get(operator, &format!("{path}/{id}"));
            assert_eq!(one["id"], id, "{path}");
        }
    }
    // The audit log of that time names creators of keys: at set-up, and other keys.
    let members = world.get(operator, "/orgs/{org}/members");
    for key in world.get(operator, "/api-keys")["items"]
        .as_array()
        .unwrap()
    {
        assert_eq!(key["made_by"], members["items"][0]["user"], "{key}");
        assert_eq!(key["maker_role"], "admin", "{key}");
    }
    let log = world.get(operator, "/orgs/{org}/audit?limit=200");
    let numbers = log["items"].as_array().unwrap().iter();
    let numbers: Vec<i64> = numbers
        .rev()
        .filter_map(|one| one["seq"].as_i64())
        .collect();
    let expected: Vec<i64> = (1..).take(numbers.len()).collect();
    assert_eq!(numbers, expected, "each organization counts its own");
    let keys = world.get(operator, "/orgs/{org}/jwks.json");
    assert_eq!(keys["keys"].as_array().map(Vec::len), Some(1), "{keys}");
    let verified = world.get(operator, "/projects/{project}/bundles/{bundle}/verify");
    assert_eq!(verified["valid"], true, "{verified}");
    let upstreams = world.get(operator, "/projects/{project}/upstreams");
    let targets = upstreams["items"][0]["targets"].as_array().map(Vec::len);
    assert_eq!(targets, Some(2), "{upstreams}");
}

/// Checks a node's token, order, and bundle with the private key of its certificate.
fn check_node(world: &World, program: &Program) {
    let key = [("x-service-node-key", world.secret("node_key"))];
    let client = program.client();
    let token = client.send("POST", &world.path("/nodes/{node}/token"), &key, None);
    assert_eq!(token.status, 200, "{}", token.text);
    let node = client.with_bearer(token.json()["token"].as_str().unwrap());
    let body = json!({"health": {"cpu_percent": 1.0}});
    let beat = node.post(&world.path("/nodes/{node}/heartbeat"), &body);
    assert_eq!((beat.status, &beat.json()["order"]), (200, &json!(2)));
    let desired = world.get(&node, "/nodes/{node}/desired");
    let order = &desired["order"];
    assert_eq!(order["bundle"], world.secret("bundle"), "{desired}");
    let served = world.get(&node, "/nodes/{node}/certificates/{certificate}");
    let private = served["private_key_pem"].as_str().unwrap();
    assert_eq!(private.trim(), world.secret("private_key_pem").trim());
}

fn verify_audit(world: &World) {
    let mut verify = Command::new(CONTROLD);
    let done = verify.args(["audit", "verify"]).args(world.arguments());
    let done = done.output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn a_database_of_the_eighth_migration_is_served() {
    for database in databases() {
        let world = World::new(database);
        // Ended long ago: the retention would delete most of it.
        let kept = ["rollout", "bundle", "drift", "token", "audit"]
            .map(|noun| format!("--{noun}-retention-days=0"));
        let mut arguments = [&world.arguments()[..], &kept].concat();
        // Silence of nodes counts three heartbeats after the start.
        arguments.push("--heartbeat-secs=1".to_owned());
        let mut program = Program::start(CONTROLD, &arguments);
        let operator = world.operator(&program);
        check_objects(&world, &operator);
        check_node(&world, &program);
        // An interrupted rollout has passed its deadline, and pauses as configured.
        let rollout = "/projects/{project}/rollouts/{paused_rollout}";
        let mut found = Value::Null;
        until_every(PAUSE, "the rollout pauses", || {
            found = world.get(&operator, rollout);
            found["state"] == "paused"
        });
        let reason = found["reason"].as_str().unwrap();
        assert!(reason.contains("did not switch in time"), "{found}");
        // The audit log continues that of the older version.
        let projects = world.path("/orgs/{org}/projects");
        let made = operator.post(&projects, &json!({"name": "third"}));
        assert_eq!(made.status, 201, "{}", made.text);
        assert!(program.terminate().success());
        verify_audit(&world);
    }
}

/// While replicas are upgraded one by one, older ones write into the newer schema: no migration
/// removes a column, or adds one without a default. The statements are in the fixture; a second
/// program would have to be built from an older source.
#[test]
fn rows_that_an_older_replica_writes_into_the_newest_schema_are_served() {
    for database in databases() {
        let world = World::without_rows(database);
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let newest = Store::open(&world.database.url).await.unwrap();
            newest.close().await;
        });
        write_rows(&world.database.url, ROWS);
        let kept = ["rollout", "bundle", "drift", "token", "audit"]
            .map(|noun| format!("--{noun}-retention-days=0"));
        let arguments = [&world.arguments()[..], &kept].concat();
        let mut program = Program::start(CONTROLD, &arguments);
        let operator = world.operator(&program);
        for (path, count, _) in LISTS {
            let found = world.get(&operator, path);
            let items = found["items"].as_array().map(Vec::len);
            assert_eq!(items, Some(count), "{path}: {found}");
        }
        check_node(&world, &program);
        let projects = world.path("/orgs/{org}/projects");
        let made = operator.post(&projects, &json!({"name": "third"}));
        assert_eq!(made.status, 201, "{}", made.text);
        assert!(program.terminate().success());
    }
}

#[test]
fn a_verification_of_a_log_without_a_key_names_the_command_that_adds_one() {
    let world = World::new(Database::sqlite());
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        let newest = Store::open(&world.database.url).await.unwrap();
        newest.close().await;
    });
    let mut verify = Command::new(CONTROLD);
    let done = verify.args(["audit", "verify"]).args(world.arguments());
    let done = done.output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let printed = String::from_utf8_lossy(&done.stdout);
    let expected = "has a key: start `controld` once to add one";
    assert!(printed.contains(expected), "{done:?}");
}

#[test]
fn a_backup_and_a_verification_do_not_migrate_the_schema() {
    let world = World::new(Database::sqlite());
    let to = world.folder.path().join("copy.db").display().to_string();
    let run = |words: &[&str]| {
        let mut command = Command::new(CONTROLD);
        command
            .args(words)
            .args(world.arguments())
            .output()
            .unwrap()
    };
    let done = run(&["backup", "--to", &to]);
    assert!(done.status.success(), "{done:?}");
    let verified = run(&["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
    let printed = String::from_utf8_lossy(&verified.stderr);
    assert!(
        printed.contains("is older than this version needs"),
        "{printed}"
    );
    let runtime = Builder::new_current_thread().enable_all().build();
    let checked = runtime.unwrap().block_on(async {
        let store = Store::open_as_is(&world.database.url).await.unwrap();
        store.check_schema().await
    });
    assert!(matches!(checked, Err(StoreError::Older(_))), "{checked:?}");
}
