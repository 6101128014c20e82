//! Reading of files: size, encoding, includes, and the two versions of KDL.

pub(crate) mod environment;
mod faults;
pub(crate) mod foreign_format;
pub(crate) mod lines;
mod reader;
mod texts;

pub(crate) use faults::{forbidden_fault, foreign_format_fault, outside, syntax_error};
pub(crate) use reader::relative_to;
pub(crate) use texts::{BundleFiles, Texts};

use crate::aliases;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::files::Files;
use proxy_model::registry::{system, top};
use reader::Reader;

/// Reads `name` and its includes.
pub(crate) fn read(files: Files<'_>, name: &str) -> Texts {
    read_into(Texts::default(), files, name)
}

/// Reads `name` and its includes after the files of `texts`.
fn read_into(texts: Texts, files: Files<'_>, name: &str) -> Texts {
    let mut texts = Reader::new(files, texts).read(name);
    let nodes = std::mem::take(&mut texts.nodes);
    let (nodes, aliases) = aliases::replace_in(nodes, |file, span| texts.place(file, span));
    texts.nodes = nodes;
    texts.warnings.extend(aliases);
    texts
}

/// Reads `bundle` and its includes, over the file `own` of the node: the node's blocks are taken
/// from `own`, all other blocks from the bundle.
pub(crate) fn read_over(files: Files<'_>, bundle: &str, own: &str) -> Texts {
    let mut texts = read_bundle(files, bundle);
    let bundled = std::mem::take(&mut texts.nodes);
    // The includes of the node's own file may be anywhere.
    let bundle = texts.bundle.take();
    let mut texts = read_into(texts, files, own);
    texts.bundle = bundle.map(|bundle| BundleFiles {
        is_on_node: true,
        ..bundle
    });
    texts
        .nodes
        .retain(|(_, node)| is_node_block(&node.name.text));
    texts.nodes.extend(bundled);
    texts
}

/// Reads `name` and its includes as a bundle: blocks of the node's own file are faults.
pub(crate) fn read_bundle(files: Files<'_>, name: &str) -> Texts {
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let texts = Texts {
        bundle: Some(BundleFiles {
            folder: folder.to_owned(),
            is_on_node: false,
        }),
        ..Texts::default()
    };
    let mut texts = read_into(texts, files, name);
    let nodes = std::mem::take(&mut texts.nodes);
    for (file, node) in nodes {
        if is_node_block(&node.name.text) {
            let place = texts.place(file, node.name.span);
            let message = format!("`{}` belongs in the node's own file", node.name.text);
            let fault = Diagnostic::new(DiagnosticCode::NodeSetting, place, message);
            let help = "the machine decides about it; leave it out of the bundle";
            texts.faults.push(fault.label("not in a bundle").help(help));
        } else {
            texts.nodes.push((file, node));
        }
    }
    texts
}

/// Returns true if a block of this name configures the machine and not the service.
fn is_node_block(name: &str) -> bool {
    [
        top::ADMIN.name(),
        top::CONTROL_PLANE.name(),
        top::OBSERVABILITY.name(),
        top::SYSTEM.name(),
        "server",
        system::WORKER_THREADS.name(),
    ]
    .contains(&name)
}
