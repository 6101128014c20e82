//! Commands in docs/operate/control-plane.md, run as written.
#![expect(clippy::unwrap_used, reason = "a test may stop")]

use control_testkit::Database;
use proxy_testkit::free_port;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/operate/control-plane.md");
const UNIT: &str = include_str!("../../../examples/systemd/controld.service");
const PROXYD_UNIT: &str = include_str!("../../../examples/systemd/proxyd.service");
/// Replacement of systemd: starts the unit's command, and waits until it listens.
const SYSTEMD: &str = r#"
set -eu
systemctl() {
  case $1 in
    start)
      EXEC_START >> "$ROOT/journal" 2> "$ROOT/errors" &
      echo $! > "$ROOT/pid"
      for _ in $(seq 300); do
        if controld ctl whoami --key-file "$ROOT/none" 2>&1 | grep -q AUTHENTICATION_FAILED; then
          return 0
        fi
        kill -0 "$(cat "$ROOT/pid")"
        sleep 0.1
      done
      return 1 ;;
    stop)
      kill -TERM "$(cat "$ROOT/pid")"
      wait "$(cat "$ROOT/pid")" || true ;;
  esac
}
journalctl() { cat "$ROOT/journal"; }
trap 'kill -KILL "$(cat "$ROOT/pid")" 2> /dev/null || true' EXIT
"#;

/// Returns all `sh` blocks of the page, in order.
fn commands(page: &str) -> String {
    let blocks = page.split("```sh\n").skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

/// Returns the folder with PostgreSQL's programs.
fn postgres_programs() -> String {
    let versions = fs::read_dir("/usr/lib/postgresql").unwrap();
    let mut folders: Vec<_> = versions
        .map(|entry| entry.unwrap().path().join("bin").display().to_string())
        .collect();
    folders.sort();
    folders.pop().unwrap()
}

/// Returns the names of settings that restrict a unit's program.
fn protections(unit: &str) -> BTreeSet<&str> {
    let kinds = [
        "Protect",
        "Private",
        "Restrict",
        "NoNew",
        "Lock",
        "SystemCall",
        "Capability",
    ];
    let settings = unit.lines().filter_map(|line| line.split_once('='));
    let settings = settings.map(|(name, _)| name);
    let is_one = |name: &&str| kinds.iter().any(|kind| name.starts_with(kind));
    settings.filter(is_one).collect()
}

#[test]
fn the_unit_is_as_tight_as_the_proxys() {
    let own = protections(UNIT);
    let missing: Vec<_> = protections(PROXYD_UNIT).difference(&own).copied().collect();
    assert_eq!(missing, [""; 0]);
    assert!(
        UNIT.contains("\nCapabilityBoundingSet=\n"),
        "it needs no capability"
    );
}

#[test]
fn every_command_of_the_page_works() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().display().to_string();
    for made in [
        "etc/controld",
        "var/lib",
        "var/backups",
        "srv/operator",
        "root",
    ] {
        fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    fs::write(folder.path().join("none"), "x".repeat(43)).unwrap();
    let database = Database::postgres();
    let start = UNIT
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="));
    let start = start
        .unwrap()
        .replace("/usr/local/bin/controld", "controld");
    let port = free_port();
    let script = format!(
        "{}\n{}",
        SYSTEMD.replace("EXEC_START", &start),
        commands(PAGE)
    )
    .replace("127.0.0.1:8443", &format!("127.0.0.1:{port}"))
    .replace("postgres://control@db/control", &database.url)
    .replace("/etc/", &format!("{root}/etc/"))
    .replace("/var/", &format!("{root}/var/"))
    .replace("/srv/", &format!("{root}/srv/"));
    let program = Path::new(env!("CARGO_BIN_EXE_controld"));
    let path = format!(
        "{}:{}:{}",
        program.parent().unwrap().display(),
        postgres_programs(),
        std::env::var("PATH").unwrap()
    );
    let done = Command::new("sh")
        .args(["-xc", &script])
        .env("PATH", path)
        .env("ROOT", &root)
        .env("XDG_CONFIG_HOME", folder.path().join("root"))
        .env("CONTROLD_URL", format!("http://127.0.0.1:{port}"))
        .output()
        .unwrap();
    let (out, error) = (
        String::from_utf8_lossy(&done.stdout).into_owned(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    );
    let daemon = fs::read_to_string(folder.path().join("errors")).unwrap_or_default();
    assert!(done.status.success(), "{error}\n{out}\n{daemon}");
    // The restored state has the first project, and not the one created after the backup.
    let listed = |name: &str| {
        let rows = out.lines().filter(|line| line.matches('-').count() > 4);
        rows.filter(|row| row.contains(&format!(" {name} ")))
            .count()
    };
    assert_eq!((listed("edge"), listed("lost")), (2, 0), "{out}");
    assert!(out.contains("secrets sealed again"), "{out}");
    assert!(out.contains("1 keys dropped"), "{out}");
}
