//! The programs to package, and one build of them.

use std::path::{Path, PathBuf};
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::workspace::Workspace;

/// A program with its files.
#[derive(Debug)]
pub(crate) struct Product {
    /// Name of the program, the package, the service and the user.
    pub(crate) name: &'static str,
    /// The first line of the package's description.
    pub(crate) summary: &'static str,
    /// Its further lines.
    pub(crate) description: &'static str,
    /// Arguments that print the completions, before the shell.
    completions: &'static [&'static str],
    /// The configuration of a first start.
    pub(crate) configuration: &'static str,
    /// The port that a container serves.
    pub(crate) port: &'static str,
    /// Rotation of the logs, if it writes files.
    pub(crate) logrotate: Option<&'static str>,
    /// Folders that exist after the installation and are removed by a purge, with their modes.
    pub(crate) folders: &'static [(&'static str, &'static str)],
    /// A shell command that replaces the running version after an upgrade of the package.
    pub(crate) take_over: &'static str,
    /// Overridden warnings of Lintian, each with its reason.
    pub(crate) lintian_overrides: Option<&'static str>,
}

/// All programs, in the order of the command line.
pub(crate) const PRODUCTS: &[Product] = &[PROXYD, CONTROLD];

const PROXYD: Product = Product {
    name: "proxyd",
    summary: "edge reverse proxy with explained routing decisions",
    description: "Accepts HTTP and HTTPS, matches each request to a route and forwards it to an\n\
        upstream, within limits of rates, connections, bodies and memory. Reloads and\n\
        upgrades without a dropped request; explains which route a request takes.",
    completions: &["completions"],
    configuration: include_str!("../files/proxyd.kdl"),
    port: "8080",
    logrotate: Some(include_str!("../files/proxyd.logrotate")),
    folders: &[("/var/lib/proxyd", "0700"), ("/var/log/proxyd", "0750")],
    // The new process takes the sockets over: no connection is refused.
    take_over: "systemctl kill --kill-whom=main --signal=USR2 proxyd.service || true",
    lintian_overrides: Some(
        "# An upgrade hands the sockets over by a signal, which deb-systemd-invoke cannot send.\n\
         proxyd: maintainer-script-calls-systemctl [postinst:*]\n",
    ),
};

const CONTROLD: Product = Product {
    name: "controld",
    summary: "control plane of a fleet of proxyd nodes",
    description: "Keeps the configuration of many proxies as signed bundles, and rolls them out\n\
        in batches behind a gate that stops a bundle which serves clients worse. State\n\
        is in SQLite or PostgreSQL.",
    completions: &["ctl", "completions"],
    configuration: include_str!("../files/controld.kdl"),
    port: "8443",
    logrotate: None,
    folders: &[("/var/lib/controld", "0700")],
    take_over: "deb-systemd-invoke try-restart controld.service || true",
    lintian_overrides: None,
};

/// A built program, with metadata from it and from the machine.
#[derive(Debug)]
pub(crate) struct Build<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) product: &'a Product,
    pub(crate) program: &'a Path,
    /// Modification time of all files, in seconds since 1970.
    pub(crate) epoch: &'a str,
    pub(crate) version: String,
    /// Debian's name of the processor.
    pub(crate) architecture: String,
    /// Completions: a path in the package, and the script.
    pub(crate) completions: Vec<(String, String)>,
}

impl<'a> Build<'a> {
    /// Runs the program to get its version, its help and its completions.
    pub(crate) fn new(
        workspace: &'a Workspace,
        product: &'a Product,
        program: &'a Path,
        epoch: &'a str,
    ) -> Result<Self, TaskError> {
        let name = product.name;
        let version = output(workspace, program, &["--version"])?;
        let version = version.split_whitespace().nth(1).unwrap_or_default();
        let architecture = command::read(workspace.command("dpkg").arg("--print-architecture"))?;
        let places = [
            (
                "bash",
                format!("usr/share/bash-completion/completions/{name}"),
            ),
            ("zsh", format!("usr/share/zsh/vendor-completions/_{name}")),
            (
                "fish",
                format!("usr/share/fish/vendor_completions.d/{name}.fish"),
            ),
        ];
        let completions = places.into_iter().map(|(shell, path)| {
            let arguments = [product.completions, &[shell]].concat();
            Ok((path, output(workspace, program, &arguments)?))
        });
        let completions = completions.collect::<Result<_, TaskError>>()?;
        Ok(Self {
            workspace,
            product,
            program,
            epoch,
            version: version.to_owned(),
            architecture: architecture.trim().to_owned(),
            completions,
        })
    }

    /// The beginning of every file's name: program, version and processor.
    pub(crate) fn stem(&self) -> String {
        let Self {
            product,
            version,
            architecture,
            ..
        } = self;
        format!("{}_{version}_{architecture}", product.name)
    }

    /// The output of the program with these arguments.
    pub(crate) fn output(&self, arguments: &[&str]) -> Result<String, TaskError> {
        output(self.workspace, self.program, arguments)
    }

    /// A file of the repository.
    pub(crate) fn source(&self, path: &str) -> PathBuf {
        self.workspace.root().join(path)
    }

    /// The systemd unit, with the program's place in a package.
    pub(crate) fn unit(&self) -> Result<String, TaskError> {
        let path = format!("examples/systemd/{}.service", self.product.name);
        let unit = crate::tree::read_text(&self.source(&path))?;
        Ok(unit.replace("/usr/local/bin/", "/usr/bin/"))
    }
}

/// The output of the program with these arguments, independent of this machine's settings.
fn output(workspace: &Workspace, program: &Path, arguments: &[&str]) -> Result<String, TaskError> {
    let program = program.to_string_lossy();
    let mut command = workspace.command(&program);
    command.args(arguments).env_clear();
    command::read(&mut command)
}
