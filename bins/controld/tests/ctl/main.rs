//! `controld ctl` against the real program.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may stop"
)]

mod deploy;
mod outages;
mod repeats;
mod webhooks;

use control_testkit::{Database, Program};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use tempfile::TempDir;

const CONTROLD: &str = env!("CARGO_BIN_EXE_controld");

/// A control plane after set-up, and a folder for files of `ctl login`.
struct World {
    program: Program,
    folder: TempDir,
    key: String,
}

struct Done {
    code: i32,
    out: String,
    error: String,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data").display().to_string();
        let mut program = Program::start(CONTROLD, &["--data-dir", &data]);
        let link = program.setup_token();
        let mut world = Self {
            program,
            folder,
            key: link,
        };
        let set_up = world.ctl(&[
            "setup",
            "run",
            "--org-name",
            "acme",
            "--project-name",
            "edge",
            "--email",
            "ann@example.com",
            "--user-name",
            "Ann",
            "--password",
            "correct horse",
            "--api-key-name",
            "first",
            "-o",
            "json",
        ]);
        assert_eq!(set_up.code, 0, "{}", set_up.error);
        let made: Value = serde_json::from_str(&set_up.out).unwrap();
        made["api_key"]["secret"]
            .as_str()
            .unwrap()
            .clone_into(&mut world.key);
        world
    }

    fn command(&self) -> Command {
        let mut command = Command::new(CONTROLD);
        command
            .arg("ctl")
            .env_clear()
            .env("XDG_CONFIG_HOME", self.folder.path());
        command
    }

    /// Runs `controld ctl` with URL and key from the environment.
    fn ctl<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Done {
        let mut command = self.command();
        command
            .env("CONTROLD_URL", self.program.base_url())
            .env("CONTROLD_API_KEY", &self.key);
        done(command.args(arguments).output().unwrap())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.ctl(&[arguments, &["-o", "json"]].concat());
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.error);
        serde_json::from_str(&ran.out).unwrap()
    }
}

fn done(output: Output) -> Done {
    Done {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        error: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn names_replace_ids_and_the_only_project_is_the_default() {
    let world = World::new();
    let made = world.ctl(&["project", "create", "--name", "core", "-o", "id"]);
    assert_eq!(made.code, 0, "{}", made.error);
    let id = made.out.trim();
    let found = world.json(&["project", "get", "core"]);
    assert_eq!(found["id"], id);
    let renamed = world.json(&["projects", "update", "core", "--name", "inner"]);
    assert_eq!(renamed["id"], id);
    let table = world.ctl(&["project", "list"]).out;
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("ID "), "{table}");
    let names: Vec<&str> = lines
        .map(|line| line.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(names, ["edge", "inner"], "{table}");
    let gone = world.ctl(&["project", "delete", "inner"]);
    assert_eq!((gone.code, gone.out.as_str()), (0, ""));
    let missing = world.ctl(&["project", "get", "inner"]);
    assert_eq!(missing.code, 1);
    assert!(missing.error.contains("project inner"), "{}", missing.error);
}

#[test]
fn a_list_is_sorted_and_filtered() {
    let world = World::new();
    let targets = r#"[{"address": "10.0.0.1:80"}]"#;
    world.json(&["upstream", "create", "--name", "u", "--targets", targets]);
    for name in ["b", "a", "c"] {
        let host = format!("{name}.example.com");
        let service = ["--name", name, "--host", &host, "--upstream", "u"];
        world.json(&[&["service", "create"], &service[..]].concat());
    }
    let names = |flags: &[&str]| {
        let listed = world.json(&[&["service", "list"], flags].concat());
        let items = listed["items"].as_array().unwrap().iter();
        let names: Vec<String> = items
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect();
        names.concat()
    };
    for (flags, expected) in [
        (&["--sort", "name"][..], "abc"),
        (&["--sort", "-name"], "cba"),
        (&["--sort=-created_at", "--limit", "2"], "ca"),
        (&["--name", "b*"], "b"),
    ] {
        assert_eq!(names(flags), expected, "{flags:?}");
    }
    let wrong = world.ctl(&["service", "list", "--sort", "host"]);
    assert_eq!(wrong.code, 1, "{}", wrong.error);
    assert!(wrong.error.contains("`-priority`"), "{}", wrong.error);
}

#[test]
fn a_rejected_bundle_shows_its_diagnostics_and_fails() {
    let world = World::new();
    let folder = world.folder.path().join("site");
    fs::create_dir(&folder).unwrap();
    let create = |name: &str, text: &str| {
        fs::write(folder.join("proxy.kdl"), text).unwrap();
        let folder = folder.display().to_string();
        world.ctl(&["bundle", "create", "--name", name, "-f", &folder])
    };
    let good =
        "routes { route \"all\" { service-type \"builtin\"; builtin-handler \"health\" } }\n";
    for name in ["first", "second"] {
        let made = create(name, good);
        assert_eq!(made.code, 0, "{}", made.error);
    }
    let diff = world.ctl(&["bundle", "diff", "second", "--before", "first"]);
    assert_eq!(diff.code, 0, "{}", diff.error);

    let rejected = create("third", "routes {\n    rout \"all\" { }\n}\n");
    assert_eq!(rejected.code, 1, "{}", rejected.out);
    for part in [
        "error[unknown-setting]",
        "proxy.kdl:2:5]",
        " 2 |     rout \"all\" { }\n",
        "did you mean `route`?",
        "error: bundle third: rejected",
    ] {
        assert!(rejected.error.contains(part), "{part}: {}", rejected.error);
    }
}

#[test]
fn exit_codes_distinguish_refusals_from_usage_errors() {
    let world = World::new();
    let taken = world.ctl(&["project", "create", "--name", "edge"]);
    assert_eq!(taken.code, 1);
    for part in ["CONFLICT: name is taken", "status 409", "correlation id "] {
        assert!(taken.error.contains(part), "{}", taken.error);
    }
    assert_eq!(taken.out, "", "nothing but answers on the standard output");
    let wrong = world.ctl(&["project", "create", "--name", ""]);
    assert_eq!(wrong.code, 1);
    assert!(
        wrong.error.contains("  name: needs 1 to 100"),
        "{}",
        wrong.error
    );
    for usage in [
        &["project", "create"][..],
        &["project", "fly"],
        &["api-key", "create", "--name", "x", "--scopes", "nodes:fly"],
        &["project", "list", "--limit", "many"],
        &["api-key", "create", "--name", "x", "--if-match", "1"],
        &["bundle", "create", "--name", "x", "--if-match", "1"],
        &["whoami", "--url", "ftp://example.com"],
        &["whoami", "--key-file", "/nowhere"],
    ] {
        let ran = world.ctl(usage);
        assert_eq!(ran.code, 2, "{usage:?}: {}", ran.error);
    }
    let away = world.ctl(&["whoami", "--url", "http://127.0.0.1:1"]);
    assert_eq!(away.code, 1);
    let away = world.ctl(&["ready", "--url", "http://127.0.0.1:1"]);
    assert_eq!(away.code, 1);
    let ready = ["ready", "--url", world.program.base_url()];
    let ready = world.command().args(ready).output();
    let ready = done(ready.unwrap());
    assert_eq!(
        (ready.code, ready.out.as_str()),
        (0, "ready\n"),
        "{}",
        ready.error
    );
    let stale = [
        "project",
        "update",
        "edge",
        "--name",
        "new",
        "--if-match",
        "7",
    ];
    let stale = world.ctl(&stale);
    assert_eq!(stale.code, 1);
    assert!(
        stale.error.contains("PRECONDITION_FAILED"),
        "{}",
        stale.error
    );
}

#[test]
fn a_stored_key_is_used_for_its_own_server_only() {
    let world = World::new();
    let bare = || world.command();
    let none = done(
        bare()
            .args(["login", "--url", world.program.base_url()])
            .output()
            .unwrap(),
    );
    assert_eq!(none.code, 2, "{}", none.error);
    let key_file = world.folder.path().join("key");
    fs::write(&key_file, format!("{}\n", world.key)).unwrap();
    let login = ["login", "--url", world.program.base_url(), "--key-file"];
    let wrong = world.folder.path().join("wrong");
    fs::write(&wrong, "x".repeat(43)).unwrap();
    let refused = done(bare().args(login).arg(&wrong).output().unwrap());
    assert_eq!(refused.code, 1);
    let kept = done(bare().args(login).arg(&key_file).output().unwrap());
    assert_eq!(kept.code, 0, "{}", kept.error);
    let file = world.folder.path().join("controld/login.json");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let me = done(bare().args(["whoami", "-o", "json"]).output().unwrap());
    let me: Value = serde_json::from_str(&me.out).unwrap();
    assert_eq!(me["kind"], "api_key");
    let database = Database::sqlite();
    let data = world.folder.path().join("other").display().to_string();
    let other = Program::start(
        CONTROLD,
        &["--data-dir", &data, "--database", &database.url],
    );
    let elsewhere = ["whoami", "--url", other.base_url()];
    let elsewhere = done(bare().args(elsewhere).output().unwrap());
    assert!(
        elsewhere.error.contains("AUTHENTICATION_FAILED"),
        "{}",
        elsewhere.error
    );
}

#[test]
fn a_member_is_invited_added_and_removed() {
    let world = World::new();
    let invited = world.json(&[
        "invitation",
        "create",
        "--email",
        "bob@example.com",
        "--role",
        "operator",
    ]);
    let mut accept = world.command();
    accept
        .env("CONTROLD_URL", world.program.base_url())
        .env("CONTROLD_API_KEY", invited["secret"].as_str().unwrap())
        .args([
            "invitation",
            "accept",
            "--user-name",
            "Bob",
            "--password",
            "correct horse",
        ]);
    let accepted = done(accept.output().unwrap());
    assert_eq!(accepted.code, 0, "{}", accepted.error);
    let changed = world.json(&["member", "update", "bob@example.com", "--role", "reader"]);
    assert_eq!(changed["role"], "reader");
    let removed = world.ctl(&["member", "delete", "bob@example.com"]);
    assert_eq!(removed.code, 0, "{}", removed.error);
    let last = world.ctl(&["member", "delete", "ann@example.com"]);
    assert!(
        last.error.contains("this is the only administrator"),
        "{}",
        last.error
    );
    let audit = world.json(&["audit", "list", "--action", "member.", "--limit", "1"]);
    assert_eq!(audit["items"][0]["action"], "member.removed");
    assert_eq!(audit["items"].as_array().unwrap().len(), 1);
    let export = world.folder.path().join("audit.jsonl");
    let exported = world.ctl(&["audit", "export", "-O", export.to_str().unwrap()]);
    assert_eq!(exported.code, 0, "{}", exported.error);
    let lines = fs::read_to_string(&export).unwrap();
    let last = lines.lines().last().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["action"], "member.removed");
}

#[test]
fn flags_override_the_members_of_a_body_from_a_file() {
    let world = World::new();
    let file = world.folder.path().join("key.json");
    fs::write(
        &file,
        json!({"name": "a", "scopes": ["nodes:read"]}).to_string(),
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let made = world.json(&[
        "api-key",
        "create",
        "-f",
        file,
        "--name",
        "b",
        "--project",
        "edge",
    ]);
    assert_eq!(made["name"], "b");
    assert_eq!(made["scopes"], json!(["nodes:read"]));
    assert!(made["project"].is_string());
    assert_eq!(made["secret"].as_str().unwrap().len(), 43);
    let revoked = world.json(&["api-key", "revoke", "b"]);
    assert_eq!(revoked["state"], "revoked");
    let listed = world.ctl(&["api-key", "list", "-o", "id"]).out;
    assert_eq!(listed.lines().count(), 2);
    let at_file = world.folder.path().join("name");
    fs::write(&at_file, "from a file").unwrap();
    let given = format!("@{}", at_file.display());
    let made = world.json(&["project", "create", "--name", &given]);
    assert_eq!(made["name"], "from a file");
}

#[test]
fn a_list_is_given_by_commas_or_by_a_repeated_flag() {
    let world = World::new();
    let all = json!(["bundles:read", "nodes:read", "nodes:write"]);
    for (name, flags) in [
        (
            "commas",
            &["--scopes", "nodes:read,nodes:write,bundles:read"][..],
        ),
        (
            "repeated",
            &[
                "--scopes",
                "nodes:read",
                "--scopes",
                "nodes:write",
                "--scopes",
                "bundles:read",
            ],
        ),
        (
            "both",
            &[
                "--scopes",
                "nodes:read,nodes:write",
                "--scopes=bundles:read",
            ],
        ),
    ] {
        let create = ["api-key", "create", "--name", name];
        let made = world.json(&[&create[..], flags].concat());
        let mut scopes: Vec<&str> = made["scopes"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        scopes.sort_unstable();
        assert_eq!(json!(scopes), all, "{name}");
    }
    let wrong = ["api-key", "create", "--name", "wrong"];
    let wrong = [&wrong[..], &["--scopes", "nodes:read,nodes:fly"]].concat();
    let wrong = world.ctl(&wrong);
    assert_eq!(wrong.code, 2, "{}", wrong.out);
    assert!(wrong.error.contains("nodes:fly"), "{}", wrong.error);
}

#[test]
fn a_file_is_applied() {
    let world = World::new();
    let file = world.folder.path().join("all.json");
    let wanted = json!({"projects": [{"name": "edge"}, {"name": "core"}]});
    fs::write(&file, wanted.to_string()).unwrap();
    let apply = |more: &[&str]| {
        let file = file.to_str().unwrap();
        let ran = world.ctl(&[&["apply", "-f", file], more].concat());
        assert_eq!(ran.code, 0, "{}", ran.error);
        ran.out
    };
    let planned = apply(&["--dry-run"]);
    assert_eq!(
        planned,
        "project/edge unchanged\nproject/core would be created\n"
    );
    assert_eq!(apply(&[]), "project/edge unchanged\nproject/core created\n");
    assert_eq!(
        apply(&[]),
        "project/edge unchanged\nproject/core unchanged\n"
    );
    // Objects that are missing in the file stay, unless `--prune` is given.
    fs::write(&file, json!({"projects": [{"name": "edge"}]}).to_string()).unwrap();
    assert_eq!(apply(&[]), "project/edge unchanged\n");
    assert_eq!(
        apply(&["--prune", "--dry-run"]),
        "project/edge unchanged\nproject/core would be deleted\n"
    );
    assert_eq!(
        apply(&["--prune"]),
        "project/edge unchanged\nproject/core deleted\n"
    );
    assert_eq!(apply(&["--prune"]), "project/edge unchanged\n");
    fs::write(&file, json!({"planets": []}).to_string()).unwrap();
    let unknown = world.ctl(&["apply", "-f", file.to_str().unwrap()]);
    assert_eq!(unknown.code, 2);
}

#[test]
fn a_shell_completes_nouns_and_verbs() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = world.ctl(&["completions", shell]);
        assert_eq!(script.code, 0, "{}", script.error);
        for word in ["api-key", "revoke", "dry-run"] {
            assert!(script.out.contains(word), "{shell}: {word}");
        }
    }
}
