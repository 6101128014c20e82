//! Installation of Debian packages.

use crate::setup::extra::Extra;
use rustix::process::geteuid;
use std::process::Command;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// Path of Debian's shared library, which depends on the architecture.
const LIBMODSECURITY: &str = if cfg!(target_arch = "aarch64") {
    "/usr/lib/aarch64-linux-gnu/libmodsecurity.so.3"
} else {
    "/usr/lib/x86_64-linux-gnu/libmodsecurity.so.3"
};

/// A Debian package, with a program or another file that shows that it is installed.
struct Package {
    name: &'static str,
    program: &'static str,
    reason: &'static str,
    task: Task,
}

/// Tasks that need a package.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Tests,
    Bench,
    Identity,
    Package,
}

const PACKAGES: &[Package] = &[
    Package {
        name: "git",
        program: "git",
        reason: "tidy asks it which files belong to the project",
        task: Task::Tests,
    },
    Package {
        name: "g++",
        program: "c++",
        reason: "the fuzzer's engine is C++",
        task: Task::Tests,
    },
    Package {
        name: "make",
        program: "make",
        reason: "proxyd's allocator is built by it",
        task: Task::Tests,
    },
    Package {
        name: "curl",
        program: "curl",
        reason: "tests ask over HTTP/2 with it",
        task: Task::Tests,
    },
    Package {
        name: "postgresql",
        program: "/usr/lib/postgresql/15/bin/postgres",
        reason: "the control plane's tests run on both databases",
        task: Task::Tests,
    },
    Package {
        name: "redis-server",
        program: "redis-server",
        reason: "rate limits of several proxies are tested against a real server",
        task: Task::Tests,
    },
    Package {
        name: "pebble",
        program: "pebble",
        reason: "the authority of the tests of ACME",
        task: Task::Tests,
    },
    Package {
        name: "oathtool",
        program: "oathtool",
        reason: "the authenticator of the tests of the second factor",
        task: Task::Tests,
    },
    Package {
        name: "faketime",
        program: "faketime",
        reason: "tests run nodes whose clock is an hour wrong",
        task: Task::Tests,
    },
    Package {
        name: "prometheus",
        program: "promtool",
        reason: "tests check the rules and queries of docs/operate",
        task: Task::Tests,
    },
    Package {
        name: "python3-venv",
        program: "python3",
        reason: "the S3-compatible server of the control plane's tests is a Python program",
        task: Task::Tests,
    },
    Package {
        name: "chromium",
        program: "chromium",
        reason: "tests look at every page of the control plane in it",
        task: Task::Tests,
    },
    Package {
        name: "npm",
        program: "npm",
        reason: "it installs the modules that drive the browser",
        task: Task::Tests,
    },
    Package {
        name: "libmodsecurity3",
        program: LIBMODSECURITY,
        reason: "the example of a web application firewall runs it",
        task: Task::Tests,
    },
    Package {
        name: "modsecurity-crs",
        program: "/usr/share/modsecurity-crs/rules/REQUEST-901-INITIALIZATION.conf",
        reason: "the rules of the example of a web application firewall",
        task: Task::Tests,
    },
    Package {
        name: "nginx",
        program: "nginx",
        reason: "a peer to compare and to measure with",
        task: Task::Tests,
    },
    Package {
        name: "haproxy",
        program: "haproxy",
        reason: "a peer to compare and to measure with",
        task: Task::Tests,
    },
    Package {
        name: "caddy",
        program: "caddy",
        reason: "a peer to compare with",
        task: Task::Tests,
    },
    Package {
        name: "varnish",
        program: "varnishd",
        reason: "a cache to measure against",
        task: Task::Bench,
    },
    Package {
        name: "valgrind",
        program: "valgrind",
        reason: "counts instructions, the same on every run",
        task: Task::Bench,
    },
    Package {
        name: "simplesamlphp",
        program: "/usr/share/simplesamlphp/www/saml2/idp/SSOService.php",
        reason: "an identity provider to sign in by",
        task: Task::Identity,
    },
    Package {
        name: "php-cli",
        program: "php",
        reason: "SimpleSAMLphp runs in its server",
        task: Task::Identity,
    },
    Package {
        name: "php-xml",
        program: "/usr/share/php8.2-xml/xml/dom.ini",
        reason: "SimpleSAMLphp reads XML by it",
        task: Task::Identity,
    },
    Package {
        name: "php-mbstring",
        program: "/usr/share/php8.2-mbstring/mbstring/mbstring.ini",
        reason: "SimpleSAMLphp reads text by it",
        task: Task::Identity,
    },
    Package {
        name: "xmlsec1",
        program: "xmlsec1",
        reason: "pysaml2 signs by it",
        task: Task::Identity,
    },
    Package {
        name: "lintian",
        program: "lintian",
        reason: "it checks the Debian packages",
        task: Task::Package,
    },
    Package {
        name: "debootstrap",
        program: "debootstrap",
        reason: "packages are installed in a fresh Debian",
        task: Task::Package,
    },
    Package {
        name: "buildah",
        program: "buildah",
        reason: "it makes the images",
        task: Task::Package,
    },
    Package {
        name: "podman",
        program: "podman",
        reason: "it runs the images",
        task: Task::Package,
    },
    Package {
        name: "runc",
        program: "runc",
        reason: "podman runs containers by it where control groups have two versions",
        task: Task::Package,
    },
];

/// Installs the missing packages of tests and of extra tasks. Returns those that are still missing.
pub(super) fn install(workspace: &Workspace, extra: Extra) -> Vec<String> {
    let wanted = PACKAGES.iter().filter(|own| match own.task {
        Task::Tests => true,
        Task::Bench => extra.bench,
        Task::Package => extra.package,
        Task::Identity => false,
    });
    install_all(workspace, &wanted.collect::<Vec<_>>())
}

/// Installs the packages of `cargo xtask identity`.
pub(super) fn install_for_identity(workspace: &Workspace) -> Vec<String> {
    let wanted = PACKAGES.iter().filter(|own| own.task == Task::Identity);
    install_all(workspace, &wanted.collect::<Vec<_>>())
}

fn install_all(workspace: &Workspace, wanted: &[&Package]) -> Vec<String> {
    let absent: Vec<&Package> = wanted.iter().copied().filter(|own| !is_here(own)).collect();
    for package in wanted.iter().filter(|package| is_here(package)) {
        say(format!("setup: {} is here", package.name));
    }
    if absent.is_empty() {
        return Vec::new();
    }
    let error = apt(workspace, &absent).err();
    for package in absent.iter().filter(|package| is_here(package)) {
        say(format!(
            "setup: {} installed: {}",
            package.name, package.reason
        ));
    }
    let still = absent.into_iter().filter(|package| !is_here(package));
    let mut still: Vec<String> = still
        .map(|package| format!("{} ({})", package.name, package.reason))
        .collect();
    if let (Some(last), Some(error)) = (still.last_mut(), error) {
        *last = format!("{last}: {}", error.message());
    }
    still
}

fn is_here(package: &Package) -> bool {
    command::find(package.program).is_some()
}

fn apt(workspace: &Workspace, absent: &[&Package]) -> Result<(), TaskError> {
    command::run(as_root(workspace, "apt-get").args(["--quiet", "update"]))?;
    let mut install = as_root(workspace, "apt-get");
    // Waits for other installations; `apt-get` would fail at once.
    install.args(["--option", "DPkg::Lock::Timeout=300"]);
    install.args(["--quiet", "--yes", "--no-install-recommends", "install"]);
    command::run(install.args(absent.iter().map(|package| package.name)))
}

fn as_root(workspace: &Workspace, program: &str) -> Command {
    let mut command = if geteuid().is_root() {
        workspace.command(program)
    } else {
        let mut sudo = workspace.command("sudo");
        sudo.arg(program);
        sudo
    };
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}
