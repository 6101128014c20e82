//! Networks of clients, of a listener and of a route.

use crate::decode::block::Block;
use crate::decode::decoder::Decoder;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use ipnet::IpNet;
use proxy_model::registry::policies::access as spec;
use proxy_model::registry::{Raw, Repeatable, Spec, Text};
use proxy_model::{Access, NetworkFile, Setting};
use std::path::PathBuf;

/// Maximum size of a file of networks, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The rows of a block with networks.
pub(in crate::decode) struct Rows {
    allow: &'static Spec<Text<IpNet>, Repeatable>,
    allow_file: &'static Spec<Text<PathBuf>, Repeatable>,
    deny: &'static Spec<Text<IpNet>, Repeatable>,
    deny_file: &'static Spec<Text<PathBuf>, Repeatable>,
}

pub(in crate::decode) const LISTENER: Rows = Rows {
    allow: &spec::LISTENER_ALLOW,
    allow_file: &spec::LISTENER_ALLOW_FILE,
    deny: &spec::LISTENER_DENY,
    deny_file: &spec::LISTENER_DENY_FILE,
};

pub(in crate::decode) const ROUTE: Rows = Rows {
    allow: &spec::ALLOW,
    allow_file: &spec::ALLOW_FILE,
    deny: &spec::DENY,
    deny_file: &spec::DENY_FILE,
};

pub(in crate::decode) fn access<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>, rows: &Rows) -> Access {
    let Rows {
        allow,
        allow_file,
        deny,
        deny_file,
    } = rows;
    Access {
        allow: b.list(d, allow),
        allow_files: files(d, b, allow_file, allow),
        deny: b.list(d, deny),
        deny_files: files(d, b, deny_file, deny),
    }
}

fn files<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    row: &Spec<Text<PathBuf>, Repeatable>,
    network: &Spec<Text<IpNet>, Repeatable>,
) -> Vec<Setting<NetworkFile>> {
    let mut files = Vec::new();
    for written in b.list(d, row) {
        let Some(place) = written.place() else {
            continue;
        };
        let path = d.resolve(place, &written.value.to_string_lossy());
        let bytes = match d.read_file(&path, MAX_FILE_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => {
                let message = format!("`{}` cannot be read: {error}", path.display());
                d.fault(DiagnosticCode::MissingFile, place, message);
                continue;
            }
        };
        match networks(&bytes, network) {
            Ok(networks) => {
                let file = NetworkFile { path, networks };
                files.push(Setting::at(file, place));
            }
            Err(line) => {
                // The message omits the text of the line: the author may not have the right to read
                // the file.
                let message = format!("line {line} of `{}` is not a network", path.display());
                let fault = Diagnostic::new(DiagnosticCode::BadValue, place, message);
                d.push(fault.help("write one address or network a line, as `10.0.0.0/8`"));
            }
        }
    }
    files
}

/// The networks of a file, or the number of its first invalid line.
fn networks(bytes: &[u8], row: &Spec<Text<IpNet>, Repeatable>) -> Result<Vec<IpNet>, usize> {
    let text = String::from_utf8_lossy(bytes);
    let mut networks = Vec::new();
    for (number, line) in (1_usize..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let network = row.read(row.name(), Raw::Text(line)).map_err(|_| number)?;
        networks.push(network);
    }
    Ok(networks)
}
