//! The control files of a Debian package: its description, dependencies and maintainer scripts.

use crate::product::{Build, Product};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;

pub(crate) const MAINTAINER: &str = "The proxyd authors <packages@proxyd.invalid>";

/// The file `control`. `installed_kib` is the size of the installed files.
pub(crate) fn control(build: &Build<'_>, installed_kib: u64) -> Result<String, TaskError> {
    let Build {
        product,
        version,
        architecture,
        ..
    } = build;
    let description = product.description.replace('\n', "\n ");
    let depends = depends(build.program)?;
    let suggests = product.logrotate.map_or("", |_| "Suggests: logrotate\n");
    Ok(format!(
        "Package: {}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {installed_kib}\nDepends: {depends}\n{suggests}Section: net\nPriority: optional\n\
         Description: {}\n {description}\n",
        product.name, product.summary
    ))
}

/// The packages of the libraries that the program loads, and of the commands of the scripts.
fn depends(program: &Path) -> Result<String, TaskError> {
    let dynamic = command::read(Command::new("objdump").args(["-p", "-T"]).arg(program))?;
    let mut depends: BTreeSet<String> = BTreeSet::new();
    for library in needed(&dynamic) {
        depends.insert(match library {
            "libc.so.6" | "libm.so.6" | "ld-linux-x86-64.so.2" | "ld-linux-aarch64.so.1" => {
                format!("libc6 (>= {})", newest_glibc(&dynamic))
            }
            "libgcc_s.so.1" => "libgcc-s1".to_owned(),
            other => {
                let what = format!("{} loads {other}, of no known package", program.display());
                return Err(TaskError::Failed(what));
            }
        });
    }
    // `kill` of the units' reload is in procps.
    depends.extend(["init-system-helpers (>= 1.54~)", "passwd", "procps"].map(str::to_owned));
    Ok(Vec::from_iter(depends).join(", "))
}

fn needed(dynamic: &str) -> impl Iterator<Item = &str> {
    let lines = dynamic.lines();
    lines.filter_map(|line| line.trim().strip_prefix("NEEDED").map(str::trim))
}

/// The newest version of the C library required by a symbol.
fn newest_glibc(dynamic: &str) -> String {
    let versions = dynamic.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let version = rest.get(..end.unwrap_or(rest.len()))?;
        let numbers: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
        numbers
    });
    let newest = versions.max().unwrap_or_default();
    let parts: Vec<String> = newest.iter().map(ToString::to_string).collect();
    parts.join(".")
}

/// The scripts of a package, by name.
pub(crate) fn scripts(product: &Product) -> [(&'static str, String); 3] {
    [
        ("postinst", postinst(product)),
        ("prerm", prerm(product)),
        ("postrm", postrm(product)),
    ]
}

fn postinst(product: &Product) -> String {
    let Product {
        name, take_over, ..
    } = product;
    let folders = product
        .folders
        .iter()
        .map(|(folder, mode)| format!("    install -d -m {mode} -o {name} -g {name} {folder}\n"));
    let folders: String = folders.collect();
    format!(
        r#"#!/bin/sh
set -e
if [ "$1" = configure ]; then
    if ! getent passwd {name} >/dev/null; then
        useradd --system --user-group --no-create-home --home-dir /nonexistent \
            --shell /usr/sbin/nologin {name}
    fi
{folders}fi
if [ "$1" = configure ] || [ "$1" = abort-upgrade ] || [ "$1" = abort-remove ]; then
    deb-systemd-helper unmask {name}.service >/dev/null || true
    if deb-systemd-helper --quiet was-enabled {name}.service; then
        deb-systemd-helper enable {name}.service >/dev/null || true
    else
        deb-systemd-helper update-state {name}.service >/dev/null || true
    fi
    if [ -d /run/systemd/system ]; then
        systemctl --system daemon-reload >/dev/null || true
        if [ -n "$2" ]; then
            {take_over}
        else
            deb-systemd-invoke start {name}.service >/dev/null || true
        fi
    fi
fi
"#
    )
}

fn prerm(product: &Product) -> String {
    let name = product.name;
    format!(
        r#"#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    deb-systemd-invoke stop {name}.service >/dev/null || true
fi
"#
    )
}

fn postrm(product: &Product) -> String {
    let name = product.name;
    let folders: Vec<&str> = product.folders.iter().map(|(folder, _)| *folder).collect();
    let folders = folders.join(" ");
    format!(
        r#"#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" = purge ]; then
    if command -v deb-systemd-helper >/dev/null; then
        deb-systemd-helper purge {name}.service >/dev/null || true
    fi
    rm -rf /etc/{name} {folders}
    if getent passwd {name} >/dev/null; then
        userdel {name} || true
    fi
fi
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const DYNAMIC: &str = "  NEEDED               libgcc_s.so.1\n  NEEDED               libc.so.6\n\
        0000 DF *UND* 0000 (GLIBC_2.4)   poll\n0000 DF *UND* 0000 (GLIBC_2.34) dlsym\n";

    #[test]
    fn libraries_and_the_newest_symbol_are_found() {
        assert_eq!(
            needed(DYNAMIC).collect::<Vec<_>>(),
            ["libgcc_s.so.1", "libc.so.6"]
        );
        assert_eq!(newest_glibc(DYNAMIC), "2.34");
    }
}
