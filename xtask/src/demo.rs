//! `cargo xtask demo`: proxyd between you and two small upstreams.

mod addresses;
mod check;
mod curl;
mod load;
mod proxy;
mod stage;
mod upstream;
mod websocket;

use self::addresses::{Addresses, QUICKSTART};
use self::proxy::{Log, Proxy};
use crate::command;
use crate::setup;
use crate::task_error::TaskError;
use crate::terminal::say;
use crate::workspace::Workspace;
use rustix::process::Signal;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpStream;

/// The configuration that the demo shows.
const CONFIG: &str = "examples/configs/quickstart.kdl";
/// How long proxyd may take to end after Ctrl-C.
const ENDING: Duration = Duration::from_secs(35);

/// How the demo's checks ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    /// Checks that saw what they must.
    pub(crate) passed: u64,
    /// Checks that saw something else.
    pub(crate) failed: u64,
}

impl Verdict {
    /// Whether nothing failed.
    pub(crate) fn to_result(self) -> Result<(), TaskError> {
        match self.failed {
            0 => Ok(()),
            _ => Err(TaskError::AlreadyReported),
        }
    }
}

/// Builds proxyd, then shows it until Ctrl-C, or with `checked` puts it through its paces.
pub(crate) fn run(workspace: &Workspace, checked: bool, release: bool) -> Result<(), TaskError> {
    if checked {
        let verdict = check(workspace, release)?;
        let Verdict { passed, failed } = verdict;
        say(format!("{passed} passed, {failed} failed"));
        return verdict.to_result();
    }
    let binary = build(workspace, release)?;
    let [one, two] = [QUICKSTART.one, QUICKSTART.two].map(addresses::listen);
    upstream::serve("one", one?)?;
    upstream::serve("two", two?)?;
    let config = workspace.root().join(CONFIG);
    let mut proxy = Proxy::start(&binary, &config, Log::Terminal)?;
    block_on(show(&mut proxy))?
}

/// Builds proxyd and drives it, a line per check.
pub(crate) fn check(workspace: &Workspace, release: bool) -> Result<Verdict, TaskError> {
    setup::for_demo(workspace)?;
    let binary = build(workspace, release)?;
    check::run(&binary, &workspace.root().join(CONFIG))
}

/// Runs a future on a runtime of its own, on this thread.
fn block_on<T>(future: impl Future<Output = T>) -> Result<T, TaskError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| TaskError::System {
            deed: "start a runtime",
            source,
        })?;
    Ok(runtime.block_on(future))
}

fn build(workspace: &Workspace, release: bool) -> Result<PathBuf, TaskError> {
    say("demo: building proxyd");
    let mut build = workspace.cargo(&["build", "--locked", "--package", "proxyd"]);
    if release {
        build.arg("--release");
    }
    command::run(&mut build)?;
    let profile = if release { "release" } else { "debug" };
    Ok(workspace.target_dir()?.join(profile).join("proxyd"))
}

async fn show(proxy: &mut Proxy) -> Result<(), TaskError> {
    while TcpStream::connect(QUICKSTART.web).await.is_err() {
        if let Some(status) = proxy.status()? {
            return Err(TaskError::Failed(format!(
                "proxyd did not start ({status})"
            )));
        }
        stage::rest().await;
    }
    invite(&QUICKSTART, proxy);
    tokio::select! {
        status = proxy.ended() => {
            return Err(TaskError::Failed(format!("proxyd ended by itself ({})", status?)));
        }
        _ = tokio::signal::ctrl_c() => {}
    }
    // Ctrl-C reached proxyd as well, unless this task alone was signalled.
    proxy.signal(Signal::TERM)?;
    match tokio::time::timeout(ENDING, proxy.ended()).await {
        Ok(status) => {
            say(format!("demo: proxyd ended ({})", status?));
            Ok(())
        }
        Err(_) => Err(TaskError::Failed("proxyd did not end".to_owned())),
    }
}

fn invite(at: &Addresses, proxy: &Proxy) {
    let Addresses {
        web,
        admin,
        one,
        two,
    } = at;
    say(format!(
        "
demo: proxyd (process {pid}) listens on {web}; its upstreams are {one} and {two}.

  curl -i http://{web}/one                       the route to upstream one
  curl -i http://{web}/two                       the route to upstream two
  curl http://{web}/                             both in turn: ask twice
  curl -d hello http://{web}/one/echo            the body comes back
  curl -o /dev/null 'http://{web}/one/download?bytes=1000000000'
  curl -T FILE http://{web}/upload               counted; up to 2 GiB on this route
  curl -i http://{web}/nowhere                   an error, with its correlation ID
  curl http://{admin}/status                       the admin side
  curl http://{admin}/admin/upstreams
  curl http://{admin}/metrics

Edit {CONFIG}, then `kill -HUP {pid}`. Ctrl-C ends all.
",
        pid = proxy.id(),
    ));
}
