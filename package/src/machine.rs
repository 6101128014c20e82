//! A fresh Debian with a running systemd, in namespaces of its own: processes, mounts and network.

use crate::tree;
use crate::wait;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;

/// Packages beyond the minimum: the init system, and the tools of the trial.
const PACKAGES: &str =
    "--include=systemd,systemd-sysv,dbus,init-system-helpers,procps,curl,openssl,iproute2";
/// Mounts what systemd expects of a container, and becomes it. `$1` is the root; a process in a mere chroot may make no user
/// namespace, which units have.
const BOOT: &str = r#"
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t tmpfs tmpfs "$1/sys/fs/cgroup"
if grep -q '^1:name=systemd' /proc/self/cgroup; then
    mkdir "$1/sys/fs/cgroup/systemd"
    mount -t cgroup -o none,name=systemd cgroup "$1/sys/fs/cgroup/systemd"
else
    mount -t cgroup2 cgroup "$1/sys/fs/cgroup"
fi
for folder in run tmp dev; do mount -t tmpfs tmpfs "$1/$folder"; done
for device in null zero full random urandom tty; do
    touch "$1/dev/$device"
    mount --bind "/dev/$device" "$1/dev/$device"
done
mkdir "$1/dev/pts" "$1/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
ln -s pts/ptmx "$1/dev/ptmx"
ip link set lo up
cd "$1"
pivot_root . .
umount --lazy .
exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /sbin/init
"#;
const MAX_BOOT: Duration = Duration::from_mins(1);
/// Folders that the package manager, the init system and their tools write to.
const NOT_OURS: [&str; 8] = [
    "/var/lib/dpkg",
    "/var/lib/systemd",
    "/var/cache",
    "/var/log/dpkg.log",
    "/var/log/journal",
    "/var/tmp",
    "/tmp",
    "/run",
];

/// The machine; it ends when dropped.
pub(crate) struct Machine {
    _root: TempDir,
    /// `unshare`, the parent of the init system.
    parent: Child,
    /// Process number of the init system, outside.
    init: String,
}

impl Machine {
    /// Installs the running Debian's release into a folder and starts it.
    pub(crate) fn start() -> Result<Self, TaskError> {
        let root = tempfile::tempdir().map_err(|source| TaskError::System {
            action: "make a temporary folder",
            source,
        })?;
        say("package: making a fresh Debian");
        let release = tree::read_text(Path::new("/etc/os-release"))?;
        let codename = release
            .lines()
            .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let mut bootstrap = Command::new("debootstrap");
        bootstrap
            .args(["--variant=minbase", PACKAGES])
            .arg(codename.unwrap_or("stable"))
            .arg(root.path());
        command::read(&mut bootstrap)?;
        let parent = boot(root.path())?;
        let machine = Self {
            init: child_of(parent.id())?,
            parent,
            _root: root,
        };
        machine.wait_until("systemctl is-system-running | grep -q running", MAX_BOOT)?;
        Ok(machine)
    }

    /// Copies a package to `/tmp`.
    pub(crate) fn take(&self, package: &Path) -> Result<(), TaskError> {
        let name = package.file_name().unwrap_or_default();
        // `/tmp` is a mount of the machine.
        let to = Path::new("/proc")
            .join(&self.init)
            .join("root/tmp")
            .join(name);
        tree::write(&to, tree::read(package)?)
    }

    /// Runs a line of the shell inside.
    pub(crate) fn run(&self, line: &str) -> Result<(), TaskError> {
        command::run(&mut self.command(line))
    }

    /// The output of a line of the shell.
    pub(crate) fn read(&self, line: &str) -> Result<String, TaskError> {
        command::read(&mut self.command(line))
    }

    /// Repeats a line until it succeeds.
    pub(crate) fn wait_until(&self, line: &str, time: Duration) -> Result<(), TaskError> {
        let attempt = || {
            let has_succeeded = command::works(&mut self.command(line));
            let failed = || TaskError::Failed(line.to_owned());
            has_succeeded.then_some(()).ok_or_else(failed)
        };
        // The last attempt shows its errors.
        wait::until(time, attempt).or_else(|_| self.run(line))
    }

    /// Starts a line of the shell that continues beside other lines.
    pub(crate) fn start_line(&self, line: &str) -> Result<Child, TaskError> {
        let started = self.command(line).stdin(Stdio::null()).spawn();
        started.map_err(|source| TaskError::System {
            action: "start a command of the machine",
            source,
        })
    }

    /// All files, except those of the package manager and of the init system.
    pub(crate) fn files(&self) -> Result<BTreeSet<String>, TaskError> {
        let listed = self.read("find / -xdev")?;
        let lines = listed.lines();
        let own = lines.filter(|line| !NOT_OURS.iter().any(|folder| line.starts_with(folder)));
        Ok(own.map(str::to_owned).collect())
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.init])
            .args(["--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup"])
            .args(["--root", "--wd=/", "/bin/sh", "-ec", line])
            .env_clear()
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The init system is killed with its parent, and its namespaces end with it.
        drop(self.parent.kill());
        drop(self.parent.wait());
    }
}

fn boot(root: &Path) -> Result<Child, TaskError> {
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--mount", "--pid", "--uts", "--ipc", "--cgroup", "--net"])
        .args(["--fork", "--kill-child", "sh", "-ec", BOOT, "boot"])
        .arg(root)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    unshare.spawn().map_err(|source| TaskError::System {
        action: "start the fresh Debian",
        source,
    })
}

/// The only child of a process.
fn child_of(parent: u32) -> Result<String, TaskError> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    wait::until(MAX_BOOT, || {
        let children = fs::read_to_string(&path).unwrap_or_default();
        let child = children.split_whitespace().next().map(str::to_owned);
        child.ok_or_else(|| TaskError::Failed("the fresh Debian does not start".to_owned()))
    })
}
