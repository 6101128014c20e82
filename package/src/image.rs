//! An OCI image: the program, the libraries that it loads, certificates of authorities, and one user without rights.

use crate::product::Build;
use crate::tarball;
use crate::tree;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;

/// User and group in the image: the number that images without a shell use by convention.
pub(crate) const USER: u32 = 65532;
/// Certificates of public authorities on Debian.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Builds the image in `out` as a tarball of an OCI layout, and returns its file name.
pub(crate) fn make(build: &Build<'_>, out: &Path) -> Result<String, TaskError> {
    let folder = tempfile::tempdir().map_err(|source| TaskError::System {
        action: "make a temporary folder",
        source,
    })?;
    let root = folder.path().join("root");
    add_files(build, &root)?;
    tree::set_folder_modes(&root)?;
    let layout = folder.path().join("layout");
    let container = command::read(Command::new("buildah").args(["from", "scratch"]))?;
    let container = container.trim();
    let committed = commit(build, container, &root, &layout);
    command::read(Command::new("buildah").args(["rm", container]))?;
    committed?;
    let name = format!("{}.oci.tar", build.stem());
    tarball::archive(build, &layout, ".", &out.join(&name))?;
    Ok(name)
}

fn add_files(build: &Build<'_>, root: &Path) -> Result<(), TaskError> {
    let name = build.product.name;
    tree::copy_stripped(build.program, &root.join(format!("usr/bin/{name}")))?;
    for library in libraries(build.program)? {
        let to = root.join(library.strip_prefix("/").unwrap_or(&library));
        tree::write(&to, tree::read(&library)?)?;
        tree::set_mode(&to, tree::EXECUTABLE)?;
    }
    let authorities = root.join(AUTHORITIES.trim_start_matches('/'));
    tree::write(&authorities, tree::read(Path::new(AUTHORITIES))?)?;
    let configuration = root.join(format!("etc/{name}/{name}.kdl"));
    tree::write(&configuration, build.product.configuration)?;
    let user = format!("{name}:x:{USER}:{USER}::/nonexistent:/usr/sbin/nologin\n");
    tree::write(&root.join("etc/passwd"), user)?;
    tree::write(&root.join("etc/group"), format!("{name}:x:{USER}:\n"))
}

/// Paths of the libraries and of the loader.
fn libraries(program: &Path) -> Result<Vec<PathBuf>, TaskError> {
    let listed = command::read(Command::new("ldd").arg(program))?;
    Ok(library_paths(&listed).map(PathBuf::from).collect())
}

/// `libc.so.6 => /lib/libc.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
fn library_paths(listed: &str) -> impl Iterator<Item = &str> {
    let words = listed.lines().flat_map(str::split_whitespace);
    words.filter(|word| word.starts_with('/'))
}

/// Writes the files and the settings of a container as an image without history.
fn commit(build: &Build<'_>, container: &str, root: &Path, layout: &Path) -> Result<(), TaskError> {
    let product = build.product;
    let (name, owner) = (product.name, format!("{USER}:{USER}"));
    let buildah = || Command::new("buildah");
    let copy = ["copy", "--quiet", container];
    command::read(buildah().args(copy).arg(root).arg("/"))?;
    let state = root.with_file_name("state");
    tree::make_folder(&state)?;
    let owned = ["copy", "--quiet", "--chown", &owner, container];
    let home = format!("/var/lib/{name}");
    command::read(buildah().args(owned).arg(&state).arg(&home))?;
    let configuration = format!("/etc/{name}/{name}.kdl");
    let entrypoint = format!(r#"["/usr/bin/{name}"]"#);
    let variable = name.to_ascii_uppercase();
    let mut config = buildah();
    config
        .args(["config", "--user", &owner, "--entrypoint", &entrypoint])
        .args(["--env", &format!("{variable}_CONFIG={configuration}")])
        .args(["--port", product.port, "--volume", &home])
        .args(["--stop-signal", "SIGTERM"])
        .args(["--label", &format!("org.opencontainers.image.title={name}")])
        .arg("--label")
        .arg(format!(
            "org.opencontainers.image.version={}",
            build.version
        ))
        .arg("--label")
        .arg("org.opencontainers.image.licenses=MIT OR Apache-2.0");
    command::read(config.arg(container))?;
    let target = format!("oci:{}:{name}:{}", layout.display(), build.version);
    let mut commit = buildah();
    commit
        .args(["commit", "--quiet", "--format", "oci", "--omit-history"])
        .args(["--timestamp", build.epoch, container, &target]);
    command::read(&mut commit)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_paths_with_the_loader() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x0000)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007fcc)\n";
        let paths: Vec<&str> = library_paths(listed).collect();
        assert_eq!(paths, ["/lib/x/libm.so.6", "/lib64/ld-linux-x86-64.so.2"]);
    }
}
