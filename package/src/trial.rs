//! Trials of finished packages: lintian, and a life on a fresh Debian.

use crate::machine::Machine;
use crate::product::PRODUCTS;
use rustix::process::geteuid;
use std::path::PathBuf;
use std::time::Duration;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// A listener with a certificate. Its key is readable for the group of the program.
const TLS_SITE: &str = r#"
cd /etc/proxyd
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 \
    -subj /CN=www.example.test -addext subjectAltName=DNS:www.example.test \
    -keyout site.key -out site.crt 2>/dev/null
chgrp proxyd site.key
chmod 0640 site.key
cat > proxyd.kdl <<'KDL'
listeners {
    listener "https" {
        address "127.0.0.1:443"
        protocol "https"
        tls {
            cert-file "site.crt"
            key-file "site.key"
        }
    }
}
routes {
    route "health" {
        matches {
            path "/health"
        }
        service-type "builtin"
        builtin-handler "health"
    }
}
admin {
    address "127.0.0.1:9090"
}
KDL
proxyd --test
systemctl reload proxyd
"#;
const TLS_REQUEST: &str = "curl --silent --show-error --fail --max-time 5 --output /dev/null \
    --cacert /etc/proxyd/site.crt --resolve www.example.test:443:127.0.0.1 https://www.example.test/health";
/// Clients of an upgrade.
const CLIENTS: usize = 2;
const MAX_WAIT: Duration = Duration::from_secs(30);

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

/// Installs the packages on a fresh Debian, serves over TLS, upgrades under load, removes and purges them.
pub(crate) fn install(workspace: &Workspace, packages: &[PathBuf]) -> Result<(), TaskError> {
    if command::find("debootstrap").is_none() {
        return skip(workspace, "debootstrap is not installed");
    }
    if !geteuid().is_root() {
        return skip(workspace, "a fresh Debian needs root");
    }
    let debian = Machine::start()?;
    let before = debian.files()?;
    for package in packages {
        debian.take(package)?;
    }
    debian.run("dpkg --install /tmp/*.deb")?;
    for product in PRODUCTS {
        check_installed(&debian, product.name)?;
    }
    debian.run(TLS_SITE)?;
    debian.wait_until(TLS_REQUEST, MAX_WAIT)?;
    say("package: services run under systemd; a request over TLS is answered");
    upgrade(&debian, packages)?;
    let names: Vec<&str> = PRODUCTS.iter().map(|product| product.name).collect();
    let names = names.join(" ");
    debian.run(&format!("dpkg --remove {names}"))?;
    debian.run("test ! -e /usr/bin/proxyd && test -e /etc/proxyd/proxyd.kdl")?;
    debian.run(&format!("! systemctl is-active --quiet {names}"))?;
    debian.run(&format!("dpkg --purge {names}"))?;
    let left: Vec<String> = debian.files()?.difference(&before).cloned().collect();
    if !left.is_empty() {
        let left = left.join(", ");
        return Err(TaskError::Failed(format!("a purge leaves {left}")));
    }
    debian.run("! getent passwd proxyd controld")?;
    say("package: removed and purged; nothing is left");
    Ok(())
}

/// A failure in CI, a line elsewhere.
pub(crate) fn skip(workspace: &Workspace, reason: &str) -> Result<(), TaskError> {
    if workspace.is_ci() {
        return Err(TaskError::Failed(reason.to_owned()));
    }
    say(format!("package: not tried: {reason}"));
    Ok(())
}

/// The program runs as a service, its configuration is accepted, its folders are its user's, and its unit is tight.
fn check_installed(debian: &Machine, name: &str) -> Result<(), TaskError> {
    let check = match name {
        "proxyd" => "proxyd --test --config /etc/proxyd/proxyd.kdl",
        // The check refuses a data folder in use.
        _ => {
            "systemctl stop controld && controld check --config /etc/controld/controld.kdl \
             && systemctl start controld"
        }
    };
    debian.run(&format!(
        "{check} && {name} --version && getent passwd {name} \
         && test \"$(stat -c %U /var/lib/{name})\" = {name} \
         && systemctl is-enabled {name} && systemd-analyze verify /usr/lib/systemd/system/{name}.service"
    ))?;
    let serves = match name {
        "proxyd" => "proxyd health",
        _ => "controld ctl ready",
    };
    debian.wait_until(serves, MAX_WAIT)?;
    let user = debian.read(&format!(
        "stat -c %U /proc/$(systemctl show --property MainPID --value {name})"
    ))?;
    if user.trim() != name {
        return Err(TaskError::Failed(format!("{name} runs as {}", user.trim())));
    }
    let exposure = debian.read(&format!(
        "systemd-analyze security --no-pager {name}.service | tail -n 1"
    ))?;
    say(format!("package: {}", exposure.trim()));
    Ok(())
}

/// Installs the same files as a later version over a changed configuration, while clients send requests.
fn upgrade(debian: &Machine, packages: &[PathBuf]) -> Result<(), TaskError> {
    for package in packages {
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        debian.run(&format!(
            "cd /tmp && dpkg-deb --raw-extract {name} later && rm {name} \
             && sed -i 's/^Version: .*/&+later/' later/DEBIAN/control \
             && dpkg-deb --root-owner-group -Zgzip --build later later-{name} && rm -r later"
        ))?;
    }
    let former = debian.read("systemctl show --property MainPID --value proxyd")?;
    let client = format!(
        "while test ! -e /tmp/stop; do {TLS_REQUEST} || echo >> /tmp/failed; echo >> /tmp/sent; done"
    );
    let clients = (0..CLIENTS).map(|_| debian.start_line(&client));
    let mut clients = clients.collect::<Result<Vec<_>, _>>()?;
    debian.run("dpkg --install /tmp/later-*.deb")?;
    let another = format!(
        "pid=$(systemctl show --property MainPID --value proxyd) && test $pid -ne {} -a $pid -ne 0",
        former.trim()
    );
    debian.wait_until(&another, MAX_WAIT)?;
    debian.wait_until(&format!("! test -e /proc/{}", former.trim()), MAX_WAIT)?;
    debian.run("touch /tmp/stop")?;
    for client in &mut clients {
        client.wait().map_err(|source| TaskError::System {
            action: "wait for a client",
            source,
        })?;
    }
    debian.run(
        "grep -q site.key /etc/proxyd/proxyd.kdl && ! test -e /tmp/failed \
         && dpkg-query --show --showformat '${Version}' proxyd | grep -q later \
         && systemctl is-active proxyd controld",
    )?;
    let sent = debian.read("wc -l < /tmp/sent")?;
    say(format!(
        "package: upgraded under load: {} requests over TLS, none failed; the changed configuration is kept",
        sent.trim()
    ));
    Ok(())
}
