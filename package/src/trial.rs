//! Trials of finished packages: lintian, and a life in a fresh Debian.

use crate::product::PRODUCTS;
use crate::tree;
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// Folders that the package manager and its tools write to.
const NOT_OURS: [&str; 6] = [
    "/var/lib/dpkg",
    "/var/cache",
    "/var/log/dpkg.log",
    "/tmp",
    "/proc",
    "/dev",
];

/// Runs lintian; errors and warnings are failures.
pub(crate) fn lint(workspace: &Workspace, packages: &[PathBuf]) -> Result<(), TaskError> {
    if command::find("lintian").is_none() {
        return skip(workspace, "lintian is not installed");
    }
    let mut lintian = workspace.command("lintian");
    lintian.args(["--fail-on", "error,warning", "--allow-root"]);
    command::run(lintian.args(packages))?;
    say("package: lintian finds no error and no warning");
    Ok(())
}

/// Installs the packages in a fresh Debian, upgrades, removes and purges them.
pub(crate) fn install(workspace: &Workspace, packages: &[PathBuf]) -> Result<(), TaskError> {
    if command::find("debootstrap").is_none() {
        return skip(workspace, "debootstrap is not installed");
    }
    if !geteuid().is_root() {
        return skip(workspace, "a fresh Debian needs root");
    }
    let debian = Debian::bootstrap()?;
    let before = debian.files()?;
    for package in packages {
        debian.take(package)?;
    }
    debian.run("dpkg --install /tmp/*.deb")?;
    for product in PRODUCTS {
        debian.check_installed(product.name)?;
    }
    debian.upgrade(packages)?;
    let names: Vec<&str> = PRODUCTS.iter().map(|product| product.name).collect();
    let names = names.join(" ");
    debian.run(&format!("dpkg --remove {names}"))?;
    debian.run("test ! -e /usr/bin/proxyd && test -e /etc/proxyd/proxyd.kdl")?;
    debian.run(&format!("dpkg --purge {names}"))?;
    let left: Vec<String> = debian.files()?.difference(&before).cloned().collect();
    if !left.is_empty() {
        let left = left.join(", ");
        return Err(TaskError::Failed(format!("a purge leaves {left}")));
    }
    debian.run("! getent passwd proxyd controld")?;
    say("package: installed, upgraded, removed and purged in a fresh Debian; nothing is left");
    Ok(())
}

/// A failure in CI, a line elsewhere.
fn skip(workspace: &Workspace, reason: &str) -> Result<(), TaskError> {
    if workspace.is_ci() {
        return Err(TaskError::Failed(reason.to_owned()));
    }
    say(format!("package: not tried: {reason}"));
    Ok(())
}

/// A minimal Debian in a folder.
struct Debian(TempDir);

impl Debian {
    fn bootstrap() -> Result<Self, TaskError> {
        let folder = tempfile::tempdir().map_err(|source| TaskError::System {
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
            .args(["--variant=minbase", "--include=init-system-helpers"])
            .arg(codename.unwrap_or("stable"))
            .arg(folder.path());
        command::read(&mut bootstrap)?;
        Ok(Self(folder))
    }

    fn take(&self, package: &Path) -> Result<(), TaskError> {
        let name = package.file_name().unwrap_or_default();
        let to = self.0.path().join("tmp").join(name);
        tree::write(&to, tree::read(package)?)
    }

    /// Runs a line of the shell inside.
    fn run(&self, line: &str) -> Result<(), TaskError> {
        command::run(&mut self.command(line))
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("chroot");
        command.arg(self.0.path()).args(["/bin/sh", "-ec", line]);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    /// The program runs, its configuration is accepted, and its folders are its user's.
    fn check_installed(&self, name: &str) -> Result<(), TaskError> {
        let check = match name {
            "proxyd" => "proxyd --test --config /etc/proxyd/proxyd.kdl",
            _ => "controld --version",
        };
        self.run(&format!(
            "{check} && {name} --version && getent passwd {name} \
             && test \"$(stat -c %U /var/lib/{name})\" = {name} \
             && test -e /usr/lib/systemd/system/{name}.service \
             && test -L /etc/systemd/system/multi-user.target.wants/{name}.service"
        ))
    }

    /// Installs the same files as a later version over a configuration that was changed.
    fn upgrade(&self, packages: &[PathBuf]) -> Result<(), TaskError> {
        for package in packages {
            let name = package.file_name().unwrap_or_default().to_string_lossy();
            self.run(&format!(
                "cd /tmp && dpkg-deb --raw-extract {name} later && rm {name} \
                 && sed -i 's/^Version: .*/&+later/' later/DEBIAN/control \
                 && dpkg-deb --root-owner-group -Zgzip --build later later-{name} && rm -r later"
            ))?;
        }
        self.run(
            "echo '// changed' >> /etc/proxyd/proxyd.kdl && dpkg --install /tmp/later-*.deb \
             && tail -n 1 /etc/proxyd/proxyd.kdl | grep -q changed \
             && dpkg-query --show --showformat '${Version}' proxyd | grep -q later",
        )
    }

    /// All files, except the package manager's.
    fn files(&self) -> Result<BTreeSet<String>, TaskError> {
        let listed = command::read(&mut self.command("find / -xdev"))?;
        let lines = listed.lines();
        let ours = lines.filter(|line| !NOT_OURS.iter().any(|folder| line.starts_with(folder)));
        Ok(ours.map(str::to_owned).collect())
    }
}
