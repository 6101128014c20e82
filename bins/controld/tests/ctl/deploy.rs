//! `ctl plan` and `ctl deploy`, as the pipelines of docs/operate/deploy.md run them.

use crate::{Done, World, done};
use control_testkit::{Behaviour, NodeFleet};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/operate/deploy.md");
const LISTENER: &str = "listeners { listener \"main\" { address \"127.0.0.1:8080\" } }\n";
const UPSTREAMS: &str = "upstreams {\n    upstream \"back\" { target \"127.0.0.1:3000\" }\n    \
                         upstream \"front\" { target \"127.0.0.1:3001\" }\n}\n";
const ADMIN: &str = "route \"admin\" { matches { path-prefix \"/admin\" }; upstream \"back\" }";
/// Skips the gate: nodes of the test have no traffic to compare.
const QUICK: &str = "--soak-secs 1 --batch-percent 50 --skip-gate true";

/// A repository with the folder `edge` and a pipeline of the documentation.
struct Checkout<'a> {
    world: &'a World,
    project: String,
    plan_key: String,
    deploy_key: String,
    /// Commands of the pipeline: for a proposed change, and for an accepted one.
    pipeline: [String; 2],
}

impl<'a> Checkout<'a> {
    fn new(world: &'a World, begin: &str) -> Self {
        fs::create_dir_all(world.folder.path().join("edge")).unwrap();
        let [plan_key, deploy_key] = keys(world).try_into().unwrap();
        let project = world.json(&["project", "get", "edge"])["id"].clone();
        Self {
            world,
            project: project.as_str().unwrap().to_owned(),
            plan_key,
            deploy_key,
            pipeline: pipeline(begin),
        }
    }

    fn commit(&self, routes: &str) {
        let text = format!("{LISTENER}routes {{\n    {routes}\n}}\n{UPSTREAMS}");
        fs::write(self.world.folder.path().join("edge/proxy.kdl"), text).unwrap();
    }

    fn plan(&self) -> Done {
        self.run(&self.pipeline[0], &self.plan_key, "")
    }

    fn deploy(&self, commit: &str) -> Done {
        let command = format!("{} {QUICK}", self.pipeline[1]);
        self.run(&command, &self.deploy_key, commit)
    }

    /// Runs a command in the repository, with the environment variables of a pipeline.
    fn run(&self, command: &str, key: &str, commit: &str) -> Done {
        let program = Path::new(crate::CONTROLD).parent().unwrap().display();
        let path = format!("{program}:{}", std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(self.world.folder.path())
            .env_clear()
            .env("PATH", path)
            .env("CONTROLD_URL", self.world.program.base_url())
            .env("CONTROLD_PROJECT", &self.project)
            .env("CONTROLD_API_KEY", key)
            .env("GITHUB_SHA", commit)
            .env("CI_COMMIT_SHA", commit);
        done(shell.output().unwrap())
    }
}

/// Runs the page's commands that create keys; returns the secrets.
fn keys(world: &World) -> Vec<String> {
    let lines = PAGE.lines();
    let lines = lines.filter_map(|line| line.strip_prefix("controld ctl api-key create "));
    let made = lines.map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let made = world.json(&[&["api-key", "create"], &words[..]].concat());
        made["secret"].as_str().unwrap().to_owned()
    });
    made.collect()
}

/// Returns the commands of the page's pipeline, in lines that start with `begin`.
fn pipeline(begin: &str) -> [String; 2] {
    let lines = PAGE.lines().map(str::trim);
    let commands = lines.filter_map(|line| line.strip_prefix(begin));
    let commands = commands.filter(|command| command.starts_with("controld "));
    let commands: Vec<String> = commands.map(str::to_owned).collect();
    commands.try_into().unwrap()
}

fn rollouts(world: &World) -> Vec<Value> {
    let listed = world.json(&["rollout", "list"]);
    listed["items"].as_array().unwrap().clone()
}

#[test]
fn a_pipeline_plans_deploys_and_repeats_without_harm() {
    for begin in ["- run: ", "- "] {
        let world = World::new();
        let checkout = Checkout::new(&world, begin);
        let url = world.program.base_url();
        let fleet = NodeFleet::enrol(url, &world.key, &checkout.project, 2);
        checkout.commit(ADMIN);
        let first = checkout.plan();
        assert_eq!(first.code, 0, "{}", first.error);
        assert!(
            first.out.contains("2 nodes have no bundle yet"),
            "{}",
            first.out
        );
        let refused = checkout.run(&checkout.pipeline[1], &checkout.plan_key, "none");
        assert_eq!(refused.code, 1, "a key that reads does not deploy");
        assert!(refused.error.contains("bundles:write"), "{}", refused.error);

        let deployed = checkout.deploy("commit-1");
        assert_eq!(deployed.code, 0, "{}\n{}", deployed.out, deployed.error);
        assert!(deployed.out.contains("completed"), "{}", deployed.out);
        let bundle = world.json(&["bundle", "get", "commit-1"])["id"].clone();
        let bundle = Some(bundle.as_str().unwrap().to_owned());
        assert_eq!(fleet.active(), [bundle.clone(), bundle]);
        let again = checkout.deploy("commit-1");
        assert_eq!(again.code, 0, "{}", again.error);
        assert!(
            again.out.starts_with("the same bytes as bundle commit-1"),
            "{}",
            again.out
        );
        assert_eq!(rollouts(&world).len(), 1);

        let site = "route \"site\" { priority \"high\"; matches { path-prefix \"/\" }; upstream \"front\" }";
        checkout.commit(&format!("{ADMIN}\n    {site}"));
        let plan = checkout.plan();
        assert_eq!(plan.code, 0, "{}", plan.error);
        for part in [
            "compared with bundle commit-1",
            "assigned to 2 nodes",
            "risks\n",
            "admin (upstream back) -> site (upstream front)",
        ] {
            assert!(plan.out.contains(part), "{part}: {}", plan.out);
        }
        assert_eq!(rollouts(&world).len(), 1, "a plan changes nothing");
    }
}

#[test]
fn an_exit_code_fails_the_pipeline_of_a_bad_change() {
    let world = World::new();
    let checkout = Checkout::new(&world, "- run: ");
    let url = world.program.base_url();
    checkout.commit(ADMIN);
    let alone = checkout.deploy("commit-0");
    assert_eq!(alone.code, 1);
    assert!(alone.error.contains("no node"), "{}", alone.error);
    let fleet = NodeFleet::enrol(url, &world.key, &checkout.project, 2);
    assert_eq!(checkout.deploy("commit-1").code, 0);

    checkout.commit(&ADMIN.replace("\"back\"", "\"bakc\""));
    for refused in [checkout.plan(), checkout.deploy("commit-2")] {
        assert_eq!(refused.code, 1, "{}", refused.out);
        assert!(refused.error.contains("proxy.kdl:3:"), "{}", refused.error);
        assert!(
            refused.error.contains("error: folder: has errors"),
            "{}",
            refused.error
        );
    }
    // The bundle with this name and contents is reused.
    checkout.commit(&ADMIN.replace("/admin", "/office"));
    let made = world.json(&[
        "bundle",
        "create",
        "--name",
        "commit-3",
        "-f",
        &edge(&world),
    ]);
    fleet.behave(made["id"].as_str().unwrap(), Behaviour::Rejecting);
    let rejected = checkout.deploy("commit-3");
    assert_eq!(rejected.code, 1, "{}", rejected.out);
    assert!(
        rejected.error.contains("rolled_back: node "),
        "{}",
        rejected.error
    );
    let bundles = world.json(&["bundle", "list", "--name", "commit-3"]);
    assert_eq!(bundles["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_policy_binds_pipelines() {
    let world = World::new();
    let checkout = Checkout::new(&world, "- ");
    let url = world.program.base_url();
    let _fleet = NodeFleet::enrol(url, &world.key, &checkout.project, 1);
    checkout.commit(ADMIN);
    let policy = |flags: &[&str]| {
        let set = world.ctl(&[&["project", "set-policy", "edge"], flags].concat());
        assert_eq!(set.code, 0, "{}", set.error);
    };
    // The upstream `front` is unused.
    policy(&["--refuse-warnings", "true"]);
    for refused in [checkout.plan(), checkout.deploy("commit-1")] {
        assert_eq!(refused.code, 1, "{}", refused.out);
        assert!(
            refused.error.contains("refuses bundles with warnings"),
            "{}",
            refused.error
        );
    }
    let always = "Mon 00:00-Thu 00:00,Thu 00:00-Mon 00:00";
    policy(&["--refuse-warnings", "false", "--freeze", always]);
    let plan = checkout.plan();
    assert_eq!(plan.code, 0, "{}", plan.error);
    assert!(plan.out.contains("allows no change until"), "{}", plan.out);
    let frozen = checkout.deploy("commit-1");
    assert_eq!(frozen.code, 1, "{}", frozen.out);
    assert!(
        frozen.error.contains("allows no change until"),
        "{}",
        frozen.error
    );
    assert_eq!(rollouts(&world).len(), 0);
    // Runs the commands on the page.
    let commands = PAGE
        .lines()
        .filter(|line| line.starts_with("controld ctl project "));
    for command in commands {
        let ran = checkout.run(command, &world.key, "");
        assert_eq!(ran.code, 0, "{command}: {}", ran.error);
    }
    let set = world.json(&["project", "get", "edge"]);
    assert_eq!(set["policy"]["freeze"][0], "Fri 16:00-Mon 08:00");
}

fn edge(world: &World) -> String {
    world.folder.path().join("edge").display().to_string()
}
