//! A running control plane, and nodes that follow it.

use control_testkit::{Answer, Client, Program, until, until_every};
use proxy_testkit::{Launch, Proxyd, RawClient, free_port};
use serde_json::{Value, json};
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// An operator's key may send five requests per second.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(250);
pub(crate) const PROXYD: &str = env!("CARGO_BIN_EXE_proxyd");

/// A control plane with a project, an operator and an enrolment token for ten nodes.
pub(crate) struct World {
    /// Arguments of `controld`, without its address.
    arguments: Vec<String>,
    pub(crate) folder: TempDir,
    pub(crate) controld: Option<Program>,
    pub(crate) operator: Client,
    /// API key of an operator.
    pub(crate) key: String,
    pub(crate) org: String,
    pub(crate) project: String,
    pub(crate) url: String,
    pub(crate) token: PathBuf,
}

/// `controld` is next to `proxyd`, as built by `cargo build --workspace`.
fn program() -> String {
    let program = Path::new(PROXYD).with_file_name("controld");
    assert!(program.is_file(), "build controld too: --workspace");
    program.display().to_string()
}

/// A client with the key, at the control plane at `url`. A control plane that was killed has lost the tokens
/// that it held in memory, so that the rate limit may refuse the next request.
pub(crate) fn operator(url: &str, key: &str) -> Client {
    Client::new(url).with_bearer(key).obeying_rate_limits()
}

/// Polls the control plane until the condition is true, as often as a key's rate permits.
pub(crate) fn poll_until(what: &str, is_so: impl FnMut() -> bool) {
    until_every(LOOK_INTERVAL, what, is_so);
}

impl World {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further arguments of `controld`.
    pub(crate) fn start_with(further: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("controld");
        let mut arguments = vec!["--data-dir".to_owned(), data.display().to_string()];
        arguments.extend(further.iter().map(|&argument| argument.to_owned()));
        // A port that stays free while the control plane is down.
        let address = format!("127.0.0.1:{}", free_port());
        let listen = ["--listen".to_owned(), address];
        let mut controld = Program::start_on(&program(), &[&listen[..], &arguments].concat());
        let token = controld.setup_token();
        let body = json!({
            "org_name": "acme", "project_name": "edge", "api_key_name": "first",
            "email": "ann@example.com", "user_name": "Ann", "password": "correct horse battery",
        });
        let url = controld.base_url().to_owned();
        let made = Client::new(&url)
            .with_bearer(&token)
            .post("/api/v1/setup", &body)
            .json();
        let text = |value: &Value| {
            value
                .as_str()
                .unwrap_or_else(|| panic!("{made}"))
                .to_owned()
        };
        let key = text(&made["api_key"]["secret"]);
        let operator = operator(&url, &key);
        let (org, project) = (text(&made["org"]["id"]), text(&made["project"]["id"]));
        let path = format!("/api/v1/projects/{project}/enrolment-tokens");
        let made = operator
            .post(&path, &json!({"name": "nodes", "max_uses": 10}))
            .json();
        let secret = made["secret"].as_str();
        let token = folder.path().join("enrolment.token");
        fs::write(&token, secret.unwrap_or_else(|| panic!("{made}"))).unwrap();
        Self {
            arguments,
            folder,
            controld: Some(controld),
            operator,
            key,
            org,
            project,
            url,
            token,
        }
    }

    /// Restarts the control plane, on the same port and data.
    pub(crate) fn restart(&mut self) {
        drop(self.controld.take());
        let address = self.url.strip_prefix("http://").unwrap();
        let mut arguments = vec!["--listen".to_owned(), address.to_owned()];
        arguments.extend_from_slice(&self.arguments);
        self.controld = Some(Program::start_on(&program(), &arguments));
    }

    /// A second control plane on the same state.
    pub(crate) fn replica(&self) -> Program {
        Program::start(&program(), &self.arguments)
    }

    pub(crate) fn kill(&mut self) {
        self.controld.take().unwrap().kill();
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/v1/projects/{}/{rest}", self.project)
    }

    pub(crate) fn post(&self, rest: &str, body: &Value) -> Answer {
        let answer = self.operator.post(&self.path(rest), body);
        assert!(answer.status < 300, "{rest}: {}", answer.text);
        answer
    }

    pub(crate) fn get(&self, rest: &str) -> Value {
        self.operator.get(&self.path(rest)).json()
    }

    /// A node's own file, with this data folder below the world's. Bundles may have targets on loopback.
    pub(crate) fn own(&self, data: &str, url: &str) -> String {
        let (project, token) = (&self.project, self.token.display());
        let data = self.folder.path().join(data);
        format!(
            "worker-threads 1\ncontrol-plane {{\n    url \"{url}\"\n    project \"{project}\"\n    \
             enrolment-token-file \"{token}\"\n    data-dir \"{}\"\n    node-name \"{}\"\n    \
             allow {{ upstreams-on-loopback #true; }}\n}}\n",
            data.display(),
            data.file_name().unwrap().to_str().unwrap(),
        )
    }

    /// A node that follows the control plane itself.
    pub(crate) fn node(&self, data: &str) -> Proxyd {
        Launch::new(PROXYD, &self.own(data, &self.url)).start()
    }

    /// The only node of the project, after its enrolment.
    pub(crate) fn node_id(&self) -> String {
        let mut id = String::new();
        poll_until("a node has enrolled", || {
            let nodes = self.get("nodes");
            let found = nodes["items"][0]["id"].as_str();
            found.unwrap_or_default().clone_into(&mut id);
            !id.is_empty()
        });
        id
    }

    pub(crate) fn view(&self, node: &str) -> Value {
        self.get(&format!("nodes/{node}"))
    }

    /// A signed bundle of these files.
    pub(crate) fn bundle(&self, files: &Value) -> String {
        let made = self
            .post("bundles", &json!({"name": "edge", "files": files}))
            .json();
        assert_eq!(made["state"], "signed", "{made}");
        made["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn assign(&self, bundle: &str, node: &str) {
        self.post(
            &format!("bundles/{bundle}/assign"),
            &json!({"nodes": [node]}),
        );
    }

    /// Waits until the node has answered its newest order, for `bundle`.
    pub(crate) fn verdict(&self, node: &str, bundle: &str) -> Value {
        let mut view = Value::Null;
        poll_until("the node has answered", || {
            view = self.view(node);
            let (desired, status) = (&view["desired"], &view["status"]);
            desired["bundle"] == bundle
                && status["verdict"] != Value::Null
                && status["order"] == desired["order"]
        });
        report_of(&view)
    }
}

/// A node that runs a first bundle, with the page `one`.
pub(crate) struct Running {
    pub(crate) world: World,
    pub(crate) proxyd: Proxyd,
    pub(crate) node: String,
    pub(crate) page: Page,
    /// The identifier of the first bundle.
    pub(crate) one: String,
}

impl Running {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further arguments of `controld`.
    pub(crate) fn start_with(further: &[&str]) -> Self {
        let world = World::start_with(further);
        let own = world.own("node", &world.url);
        Self::launch(world, Launch::new(PROXYD, &own))
    }

    /// The node is the first of `world`.
    pub(crate) fn launch(world: World, launch: Launch) -> Self {
        let proxyd = launch.start();
        let node = world.node_id();
        let page = Page::new("one");
        let one = world.bundle(&page.files);
        world.assign(&one, &node);
        wait_for_page(page.address, "one");
        let status = world.verdict(&node, &one);
        assert_eq!(status["verdict"], "accepted", "{status}");
        Self {
            world,
            proxyd,
            node,
            page,
            one,
        }
    }

    /// Orders a bundle with the page `word`.
    pub(crate) fn order(&self, word: &str) -> String {
        let page = Page::on(self.page.address, word);
        let bundle = self.world.bundle(&page.files);
        self.world.assign(&bundle, &self.node);
        bundle
    }

    /// Orders a bundle with the page `word`, and waits until it is active.
    pub(crate) fn run(&self, word: &str) -> String {
        let bundle = self.order(word);
        wait_for_page(self.page.address, word);
        let status = self.world.verdict(&self.node, &bundle);
        assert_eq!(status["active"], json!(bundle), "{status}");
        bundle
    }

    /// The text of the page.
    pub(crate) fn page_text(&self) -> String {
        page_text(self.page.address)
    }

    /// Ends the node, and starts it again with its folder.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.proxyd = self.world.node("node");
    }

    pub(crate) fn stop(&mut self) {
        self.proxyd.terminate();
        self.proxyd.wait();
    }

    /// The value of a series in the node's metrics; `None` without it.
    pub(crate) fn metric(&self, series: &str) -> Option<u64> {
        let mut client = RawClient::connect(self.proxyd.admin_address());
        let page = client
            .ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .text();
        let mut values = page.lines().filter_map(|line| line.strip_prefix(series));
        values.find_map(|value| value.trim().parse().ok())
    }
}

/// The report of a node, with its diagnostics.
pub(crate) fn report_of(view: &Value) -> Value {
    let mut status = view["status"].clone();
    status["diagnostics"] = view["diagnostics"].clone();
    status
}

/// A bundle with a page `word` on its own port.
pub(crate) struct Page {
    pub(crate) address: SocketAddr,
    pub(crate) files: Value,
}

impl Page {
    pub(crate) fn new(word: &str) -> Self {
        let port = free_port();
        Self::on(SocketAddr::from(([127, 0, 0, 1], port)), word)
    }

    pub(crate) fn on(address: SocketAddr, word: &str) -> Self {
        let config = format!(
            "listeners {{ listener \"main\" {{ address \"{address}\" }} }}\n\
             routes {{ route \"page\" {{ service-type \"static\"; static-files {{ root \"www\" }} }} }}\n"
        );
        Self {
            address,
            files: json!({"proxy.kdl": config, "www/index.html": word}),
        }
    }
}

/// The text of the page at `address`; empty while there is none.
pub(crate) fn page_text(address: SocketAddr) -> String {
    let Ok(mut client) = RawClient::try_connect(address) else {
        return String::new();
    };
    client.send(proxy_testkit::get("/", &[]));
    client
        .try_response()
        .map(|response| response.text())
        .unwrap_or_default()
}

pub(crate) fn wait_for_page(address: SocketAddr, word: &str) {
    until(&format!("{address} says {word}"), || {
        page_text(address) == word
    });
}

/// A program that runs proxyd with files of at most `kibibytes`, as on a disk that is full.
pub(crate) fn on_a_full_disk(folder: &Path, kibibytes: u32) -> PathBuf {
    // A shell counts in blocks of 512 or 1024 bytes.
    let script = format!("trap '' XFSZ\nulimit -f {kibibytes}\nexec {PROXYD} \"$@\"");
    wrapper(folder, "limited", &script)
}

/// A program in `folder` that a shell runs.
pub(crate) fn wrapper(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = folder.join(format!("{name}.sh"));
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}
