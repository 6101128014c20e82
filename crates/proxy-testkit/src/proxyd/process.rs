//! A process of proxyd: a child of this process or of such a child.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, getpid, getrlimit, kill_process,
    pidfd_open, pidfd_send_signal, prlimit, set_child_subreaper, waitpid,
};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, ExitStatus};
use std::time::Duration;

/// A process, killed when dropped.
#[derive(Debug)]
pub(crate) struct Process(ProcessKind);

#[derive(Debug)]
enum ProcessKind {
    Child(Child),
    /// Started by another process; it becomes this process's child when that one ends.
    Adopted(Pid, OwnedFd),
}

/// Makes this process the parent of orphaned processes among its descendants, so that it can wait
/// for them.
pub(crate) fn adopt_orphans() {
    set_child_subreaper(Some(getpid())).expect("this process becomes the reaper of orphans");
}

impl From<Child> for Process {
    fn from(child: Child) -> Self {
        Self(ProcessKind::Child(child))
    }
}

impl Process {
    /// The process with this id, which a child has started. [`adopt_orphans`] must be called before
    /// its parent can end.
    pub(crate) fn adopted(id: f64) -> Self {
        let id: i32 = format!("{id:.0}")
            .parse()
            .expect("a process id is an integer");
        let id = Pid::from_raw(id).expect("process ids are not 0");
        let handle = pidfd_open(id, PidfdFlags::empty()).expect("the process runs");
        Self(ProcessKind::Adopted(id, handle))
    }

    pub(crate) fn take_stdout(&mut self) -> Option<ChildStdout> {
        match &mut self.0 {
            ProcessKind::Child(child) => child.stdout.take(),
            ProcessKind::Adopted(..) => None,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        match &self.0 {
            ProcessKind::Child(child) => child.id(),
            ProcessKind::Adopted(id, _) => id.as_raw_nonzero().get().unsigned_abs(),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let sent = match &self.0 {
            // The id cannot be reused: the process has not been waited for.
            ProcessKind::Child(_) => kill_process(self.pid(), signal),
            ProcessKind::Adopted(_, handle) => pidfd_send_signal(handle, signal),
        };
        sent.expect("a process can be signalled");
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let pid = self.pid();
        match &mut self.0 {
            ProcessKind::Child(child) => child.wait().expect("a child can be waited for"),
            ProcessKind::Adopted(..) => {
                let waited = waitpid(Some(pid), WaitOptions::empty());
                let (_, status) = waited
                    .expect("an orphan can be waited for")
                    .expect("the orphan ends");
                ExitStatus::from_raw(status.as_raw())
            }
        }
    }

    pub(crate) fn has_ended_within(&self, time: Duration) -> bool {
        let Ok(handle) = pidfd_open(self.pid(), PidfdFlags::empty()) else {
            return true;
        };
        let time = Timespec::try_from(time).expect("the time fits a timespec");
        let mut ended = [PollFd::new(&handle, PollFlags::IN)];
        poll(&mut ended, Some(&time)).expect("a process can be waited for") > 0
    }

    /// A value of its `/proc` status, in bytes.
    pub(crate) fn memory(&self, line: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.expect("the process runs");
        let value = status.lines().find_map(|text| text.strip_prefix(line));
        let kibibytes = value.and_then(|value| value.trim().strip_suffix("kB"));
        let kibibytes = kibibytes.and_then(|value| value.trim().parse::<u64>().ok());
        kibibytes.expect("the kernel reports the value in kB") * 1024
    }

    pub(crate) fn open_files(&self) -> usize {
        let folder = fs::read_dir(format!("/proc/{}/fd", self.id()));
        folder.expect("the process runs").count()
    }

    pub(crate) fn files_by_kind(&self) -> BTreeMap<String, usize> {
        let folder = fs::read_dir(format!("/proc/{}/fd", self.id()));
        let mut kinds = BTreeMap::new();
        for entry in folder.expect("the process runs").flatten() {
            // A descriptor may be closed meanwhile.
            let Ok(leads_to) = fs::read_link(entry.path()) else {
                continue;
            };
            let name = leads_to.to_string_lossy().into_owned();
            let kind = match name.split_once(":[") {
                Some((kind @ ("socket" | "pipe"), _)) => kind.to_owned(),
                None if name.starts_with('/') && !name.starts_with("/dev/") => "file".to_owned(),
                Some(_) | None => name,
            };
            *kinds.entry(kind).or_default() += 1;
        }
        kinds
    }

    pub(crate) fn limit_open_files(&self, max: u64) {
        let now = getrlimit(Resource::Nofile);
        let limit = Rlimit {
            current: Some(max),
            maximum: now.maximum,
        };
        prlimit(Some(self.pid()), Resource::Nofile, limit).expect("a limit can be set");
    }

    fn pid(&self) -> Pid {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        id.expect("process ids are not 0")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = self.pid();
        // All of them fail only if the process has already ended, which is the goal.
        match &mut self.0 {
            ProcessKind::Child(child) => {
                drop(child.kill());
                drop(child.wait());
            }
            ProcessKind::Adopted(_, handle) => {
                pidfd_send_signal(handle, Signal::KILL).unwrap_or_default();
                waitpid(Some(pid), WaitOptions::NOHANG).unwrap_or_default();
            }
        }
    }
}
