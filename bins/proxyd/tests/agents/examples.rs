//! The example agents in Python, behind the real proxy.

use crate::support::{Setup, reason, refusal};
use proxy_testkit::{Upstream, get, ok};
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::park_timeout;
use std::time::Duration;
use tempfile::TempDir;

/// Looks for the socket before an agent is given up.
const MAX_LOOKS: usize = 3_000;
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
const CLOSED: &str = "failure-mode \"closed\"; timeout-ms 10000";

/// A running agent, killed when dropped.
struct AgentProcess {
    child: Child,
    folder: TempDir,
}

impl AgentProcess {
    fn start(script: &str, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let agents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents");
        let mut command = Command::new("python3");
        command.arg("-B").arg(agents.join(script));
        command.arg(folder.path().join("agent.sock"));
        if !files.is_empty() {
            command.arg(folder.path());
        }
        let child = command.spawn().unwrap();
        let agent = Self { child, folder };
        let socket = agent.socket();
        let listens = (0..MAX_LOOKS).any(|_| {
            park_timeout(LOOK_INTERVAL);
            UnixStream::connect(&socket).is_ok()
        });
        assert!(listens, "no agent listens at {}", socket.display());
        agent
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("agent.sock")
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

#[test]
fn the_firewall_answers_attacks_403_and_tells_their_rules_to_the_log_alone() {
    let agent = AgentProcess::start("waf/waf.py", &[]);
    let upstream = upstream();
    let settings = format!("{CLOSED}; events \"request-body\"");
    let proxyd = Setup::to(&upstream)
        .agent_at("waf", agent.socket().to_str().unwrap(), &settings)
        .start();
    let mut client = proxyd.connect();
    let browser = [("user-agent", "Mozilla/5.0"), ("accept", "*/*")];

    let response = client.ask(get("/shop?page=2", &browser));
    assert_eq!(response.status, 200, "{}", response.text());
    for (target, rule) in [
        ("/?id=1%27%20or%20%271%27=%271", "942100"),
        ("/?q=%3Cscript%3Ealert(1)%3C/script%3E", "941110"),
        ("/?file=../../../../etc/passwd", "930100"),
    ] {
        let response = client.ask(get(target, &browser));
        let message = refusal(&response, 403, "WAF_BLOCKED");
        assert!(!message.contains(rule), "{message}");
        assert_eq!(reason(&proxyd, &response), "agent_blocked");
        let record = proxyd.error_record(&response.correlation_id());
        assert!(record.text("message").contains(rule), "{target}");
    }
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn the_list_agent_passes_on_the_country_of_the_clients_that_it_lets_in() {
    let agent = AgentProcess::start(
        "lists/lists.py",
        &[("countries.csv", "127.0.0.0,127.255.255.255,CH\n")],
    );
    let upstream = upstream();
    let proxyd = Setup::to(&upstream)
        .agent_at("lists", agent.socket().to_str().unwrap(), CLOSED)
        .start();
    let mut client = proxyd.connect();

    let forged = [("x-client-country", "US")];
    assert_eq!(client.ask(get("/", &forged)).status, 200);
    let passed = &upstream.requests()[0];
    assert_eq!(passed.fields.all("x-client-country"), ["CH"]);
}
