//! The HTTP/3 client of another project, in Python.

use super::http3::Site;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The environment that `cargo xtask setup` makes in the target folder.
const PYTHON: &str = "aioquic/bin/python3";

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/http3/aioquic_client.py"
);

/// A running client, killed when dropped.
pub(crate) struct Aioquic {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Aioquic {
    /// A client of `site` that does `task`, one of those in the script.
    #[track_caller]
    pub(crate) fn start(site: &Site, task: &str) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut places = own.ancestors().map(|folder| folder.join(PYTHON));
        let python = places.find(|python| python.is_file());
        let Some(python) = python else {
            panic!("aioquic is not there: run `cargo xtask setup`");
        };
        let roots = site.authority.write(site.proxyd.folder(), "root.pem");
        let mut child = Command::new(python)
            .args(["-B", SCRIPT])
            .arg(site.proxyd.address().port().to_string())
            .arg(roots)
            .arg(task)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// The next observation; an error if the client has failed.
    #[track_caller]
    pub(crate) fn next(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| {
            panic!("the client has failed; its standard error says why: {error}")
        })
    }
}

impl Drop for Aioquic {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
