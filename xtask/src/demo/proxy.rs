//! The proxyd process: started, signalled, measured, and never left behind.

use crate::task_error::TaskError;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How often a process is asked whether it has ended.
const TICK: Duration = Duration::from_millis(20);

/// Where proxyd's log goes.
pub(super) enum Log {
    /// To whoever runs the demo.
    Terminal,
    /// To this file.
    File(PathBuf),
}

/// A running proxyd, killed when dropped.
pub(super) struct Proxy {
    child: Child,
}

impl Proxy {
    /// Starts it; it is not ready yet.
    pub(super) fn start(binary: &Path, config: &Path, log: Log) -> Result<Self, TaskError> {
        let mut command = Command::new(binary);
        command.arg("--config").arg(config).stdin(Stdio::null());
        if let Log::File(path) = log {
            let created = File::create(&path).and_then(|out| Ok((out.try_clone()?, out)));
            let (out, err) = created.map_err(|source| TaskError::File { path, source })?;
            command.stdout(out).stderr(err);
        }
        let child = command.spawn().map_err(|source| TaskError::Start {
            program: binary.display().to_string(),
            source,
        })?;
        Ok(Self { child })
    }

    /// The process's number.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal; to a process that has ended it means nothing.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), TaskError> {
        let Some(pid) = i32::try_from(self.id()).ok().and_then(Pid::from_raw) else {
            return Ok(());
        };
        match kill_process(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(errno) => Err(TaskError::System {
                deed: "signal proxyd",
                source: errno.into(),
            }),
        }
    }

    /// Whether it has ended, and how.
    pub(super) fn status(&mut self) -> Result<Option<ExitStatus>, TaskError> {
        self.child.try_wait().map_err(|source| TaskError::System {
            deed: "ask how proxyd is",
            source,
        })
    }

    /// Waits for it to end.
    pub(super) async fn ended(&mut self) -> Result<ExitStatus, TaskError> {
        loop {
            if let Some(status) = self.status()? {
                return Ok(status);
            }
            tokio::time::sleep(TICK).await;
        }
    }

    /// The most memory it ever held, in bytes of RSS.
    pub(super) fn peak_rss_bytes(&self) -> Result<u64, TaskError> {
        let path = PathBuf::from(format!("/proc/{}/status", self.id()));
        let status =
            fs::read_to_string(&path).map_err(|source| TaskError::File { path, source })?;
        peak_rss_bytes(&status).ok_or_else(|| TaskError::System {
            deed: "read VmHWM",
            source: io::ErrorKind::NotFound.into(),
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Both fail only if the process has ended already, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn peak_rss_bytes(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::super::block_on;
    use super::*;

    #[test]
    fn the_peak_is_read_in_bytes() {
        let status = "Name:\tproxyd\nVmHWM:\t   12345 kB\nVmRSS:\t    9000 kB\n";
        assert_eq!(peak_rss_bytes(status), Some(12_345 * 1024));
        assert_eq!(peak_rss_bytes("Name:\tproxyd\n"), None);
    }

    #[test]
    fn a_process_is_started_with_its_configuration_and_its_end_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let config = folder.path().join("a.kdl");
        let mut proxy =
            Proxy::start(Path::new("/bin/echo"), &config, Log::File(log.clone())).unwrap();

        let status = block_on(proxy.ended()).unwrap().unwrap();
        assert!(status.success());
        proxy.signal(Signal::TERM).unwrap();
        let printed = fs::read_to_string(log).unwrap();
        assert_eq!(printed, format!("--config {}\n", config.display()));
    }
}
