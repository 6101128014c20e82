//! The demo set up to be driven: free ports, a configuration that names them, a ready proxyd.

use super::addresses::{self, Addresses};
use super::curl::{self, Answer};
use super::proxy::{Log, Proxy};
use super::upstream::{self, Upstream};
use crate::clock::Stopwatch;
use crate::task_error::TaskError;
use serde_json::Value;
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Longest that anything the checks wait for may take.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);
/// How often they look.
const TICK: Duration = Duration::from_millis(20);
/// How much of proxyd's log is shown after a failure.
const LOG_LINES: usize = 20;

/// The two upstreams, and a proxyd in front of them.
pub(super) struct Stage {
    /// Where everyone listens.
    pub(super) at: Addresses,
    /// The process under test.
    pub(super) proxy: Proxy,
    /// The second upstream, where the slow requests go.
    pub(super) two: Upstream,
    folder: TempDir,
}

impl Stage {
    /// Starts everything and waits until proxyd says that it is ready.
    pub(super) fn set(binary: &Path, quickstart: &Path) -> Result<Self, TaskError> {
        let folder = TempDir::new().map_err(|source| TaskError::System {
            deed: "make a temporary folder",
            source,
        })?;
        let [web, admin, one, two] = addresses::free()?;
        let at = Addresses {
            web: address(&web)?,
            admin: address(&admin)?,
            one: address(&one)?,
            two: address(&two)?,
        };
        upstream::serve("one", one)?;
        let two = upstream::serve("two", two)?;
        let config = folder.path().join("quickstart.kdl");
        write(&config, &at.moved(&read(quickstart)?)?)?;
        // Held until now, so that nobody else would take the ports.
        drop((web, admin));
        let log = Log::File(folder.path().join("proxyd.log"));
        let proxy = Proxy::start(binary, &config, log)?;
        let mut stage = Self {
            at,
            proxy,
            two,
            folder,
        };
        super::block_on(stage.become_ready())??;
        Ok(stage)
    }

    /// A URL on the listener for clients.
    pub(super) fn web(&self, path: &str) -> String {
        format!("http://{}{path}", self.at.web)
    }

    /// A URL on the listener for operators.
    pub(super) fn admin(&self, path: &str) -> String {
        format!("http://{}{path}", self.at.admin)
    }

    /// What `/status` says.
    pub(super) async fn status(&self) -> Result<Value, TaskError> {
        json(&ask(self.admin("/status")).await?)
    }

    /// The configuration as it stands in the file.
    pub(super) fn config(&self) -> Result<String, TaskError> {
        read(&self.config_path())
    }

    /// Replaces the configuration file; proxyd does not know yet.
    pub(super) fn configure(&self, text: &str) -> Result<(), TaskError> {
        write(&self.config_path(), text)
    }

    /// A file of this many zero bytes that takes no room on the disk.
    pub(super) fn zeros(&self, bytes: u64) -> Result<PathBuf, TaskError> {
        let path = self.folder.path().join("zeros");
        let made = fs::File::create(&path).and_then(|file| file.set_len(bytes));
        match made {
            Ok(()) => Ok(path),
            Err(source) => Err(TaskError::File { path, source }),
        }
    }

    /// The end of proxyd's log.
    pub(super) fn log(&self) -> String {
        let log = read(&self.folder.path().join("proxyd.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let first = lines.len().saturating_sub(LOG_LINES);
        lines.get(first..).unwrap_or_default().join("\n")
    }

    fn config_path(&self) -> PathBuf {
        self.folder.path().join("quickstart.kdl")
    }

    async fn become_ready(&mut self) -> Result<(), TaskError> {
        let url = self.admin("/ready");
        let watch = Stopwatch::start();
        while watch.elapsed() < DEADLINE {
            if let Some(status) = self.proxy.status()? {
                let log = self.log();
                return Err(TaskError::Failed(format!(
                    "proxyd ended ({status}):\n{log}"
                )));
            }
            let listens = tokio::net::TcpStream::connect(self.at.admin).await.is_ok();
            if listens && curl::get(&url, &[])?.status == 200 {
                return Ok(());
            }
            rest().await;
        }
        let log = self.log();
        Err(TaskError::Failed(format!(
            "proxyd did not become ready:\n{log}"
        )))
    }
}

/// Asks with curl while other tasks of the runtime go on.
pub(super) async fn ask(url: String) -> Result<Answer, TaskError> {
    let asking = tokio::task::spawn_blocking(move || curl::get(&url, &[]));
    asking.await.map_err(|source| TaskError::System {
        deed: "wait for curl",
        source: io::Error::other(source),
    })?
}

/// A short pause between two looks.
pub(super) async fn rest() {
    tokio::time::sleep(TICK).await;
}

/// Reads an answer as JSON.
pub(super) fn json(answer: &Answer) -> Result<Value, TaskError> {
    serde_json::from_str(&answer.body).map_err(|source| TaskError::Json {
        program: "proxyd",
        source,
    })
}

fn address(listener: &TcpListener) -> Result<SocketAddr, TaskError> {
    listener.local_addr().map_err(|source| TaskError::System {
        deed: "ask a listener for its address",
        source,
    })
}

fn read(path: &Path) -> Result<String, TaskError> {
    fs::read_to_string(path).map_err(|source| TaskError::File {
        path: path.to_owned(),
        source,
    })
}

fn write(path: &Path, text: &str) -> Result<(), TaskError> {
    fs::write(path, text).map_err(|source| TaskError::File {
        path: path.to_owned(),
        source,
    })
}
