//! `proxyd init`: writes a first configuration.

use crate::cli::Init;
use crate::terminal::{print_error, print_line, print_report};
use proxy_server::Source;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// Writes the file. Exit code 1, without a file, if it already exists, an argument is invalid, or
/// the proxy would not load it.
pub(super) fn run(arguments: &Init) -> io::Result<ExitCode> {
    let path = &arguments.file;
    let name = path.display();
    let text = configuration(arguments);
    if let Err(report) = proxy_config::parse(&text, &name.to_string()) {
        print_report(&report);
        return Ok(ExitCode::FAILURE);
    }
    if let Err(error) = write_new(path, &text) {
        print_error(format_args!("cannot write {name}: {error}"));
        return Ok(ExitCode::FAILURE);
    }
    // Certificate paths are relative to the file's folder, so they can be checked only after it is
    // written.
    if let Err(report) = proxy_server::load(&Source::File(path.clone())) {
        print_report(&report);
        if let Err(error) = fs::remove_file(path) {
            print_error(format_args!("cannot remove {name}: {error}"));
        }
        return Ok(ExitCode::FAILURE);
    }
    print_line(format_args!(
        "wrote {name}\n  proxyd --test --config {name}\n  proxyd --config {name}"
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let written = File::create_new(path)?.write_all(text.as_bytes());
    if written.is_err() {
        drop(fs::remove_file(path));
    }
    written
}

fn configuration(arguments: &Init) -> String {
    let Init {
        file: _,
        targets,
        hosts,
        listen,
        cert,
        key,
        health_path,
    } = arguments;
    let (address, tls) = match (cert, key) {
        (Some(cert), Some(key)) => ("0.0.0.0:443", tls(cert, key)),
        _ => ("0.0.0.0:8080", String::new()),
    };
    let address = listen.as_deref().unwrap_or(address);
    let hosts = lines("            host ", hosts);
    let matches = if hosts.is_empty() {
        "        // Every request, since there is no `matches`.\n".to_owned()
    } else {
        format!("        matches {{\n{hosts}        }}\n")
    };
    let targets = lines("        target ", targets);
    let health_check = health_path.as_deref().map_or(String::new(), health_check);
    format!(
        r#"// Check: proxyd --test --config FILE. Apply: kill -HUP PID. Every setting: docs/reference/config.md.

listeners {{
    listener "main" {{
        address {address:?}
{tls}    }}
}}

routes {{
    route "app" {{
{matches}        upstream "app"
        // Bodies of more than 10 MiB are answered 413:
        // max-body-size "100MiB"
    }}
}}

// Requests go to the targets in turn; one that cannot be connected to is left out.
upstreams {{
    upstream "app" {{
{targets}{health_check}    }}
}}

// Health, status and metrics, for operators alone.
admin {{
    address "127.0.0.1:9090"
}}
"#
    )
}

fn tls(cert: &str, key: &str) -> String {
    format!(
        r#"        protocol "https"
        // Read again when they change. Paths are relative to this file.
        tls {{
            cert-file {cert:?}
            key-file {key:?}
        }}
"#
    )
}

fn health_check(path: &str) -> String {
    format!(
        r#"        // Asked every 10 seconds; a target with three failures in a row gets no requests.
        health-check {{
            type "http" {{
                path {path:?}
            }}
        }}
"#
    )
}

fn lines(name: &str, values: &[String]) -> String {
    let lines = values.iter().map(|value| format!("{name}{value:?}\n"));
    lines.collect()
}
