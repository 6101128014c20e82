//! Build information for `--version` and `/admin/version`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo::rerun-if-changed=build.rs");
    // Changed by a commit, a checkout or a reset. Uncommitted edits do not change commit and build
    // time.
    for name in ["HEAD", "logs/HEAD"] {
        let arguments = ["rev-parse", "--path-format=absolute", "--git-path", name];
        let file = output("git", &arguments);
        // A missing file would count as changed, and cause a rebuild each time.
        if Path::new(&file).is_file() {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"]);
    let rustc = output("rustc", &["--version"]);
    let built_at = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => output(
            "date",
            &["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%SZ"],
        ),
        Err(_) => output("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
    };
    println!("cargo::rustc-env=PROXYD_COMMIT={commit}");
    println!("cargo::rustc-env=PROXYD_RUSTC={rustc}");
    println!("cargo::rustc-env=PROXYD_BUILT_AT={built_at}");
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.ok().filter(|output| output.status.success());
    let text = text.and_then(|output| String::from_utf8(output.stdout).ok());
    text.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
