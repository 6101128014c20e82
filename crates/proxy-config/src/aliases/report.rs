//! Messages about aliases: diagnostics of a configuration, notes of a migration.

use super::alias::{Alias, Change};
use super::document::replace;
use super::replace::{Found, Mode, Outcome};
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::{Name, Node, Span};
use proxy_model::{FileId, Place};

/// The nodes of all files with aliases replaced, and a diagnostic for each alias.
pub(crate) fn replace_in(
    nodes: Vec<(FileId, Node)>,
    place: impl Fn(FileId, Span) -> Place,
) -> (Vec<(FileId, Node)>, Vec<Diagnostic>) {
    let mut replaced = Vec::with_capacity(nodes.len());
    let mut diagnostics = Vec::new();
    let mut nodes = nodes.into_iter().peekable();
    while let Some((file, first)) = nodes.next() {
        let mut file_nodes = vec![first];
        while let Some((_, node)) = nodes.next_if(|(next, _)| *next == file) {
            file_nodes.push(node);
        }
        let mut root = root(file_nodes);
        let found = replace(&mut root, Mode::Load);
        diagnostics.extend(found.iter().map(|it| diagnostic(it, place(file, it.at))));
        let file_nodes = root.children.unwrap_or_default();
        replaced.extend(file_nodes.into_iter().map(|node| (file, node)));
    }
    (replaced, diagnostics)
}

/// A node that holds the nodes of a file.
pub(crate) fn root(nodes: Vec<Node>) -> Node {
    Node {
        annotation: None,
        name: Name {
            text: "".into(),
            span: Span::default(),
        },
        entries: Vec::new(),
        children: Some(nodes),
        head: Span::default(),
        block: Span::default(),
    }
}

fn diagnostic(found: &Found, place: Place) -> Diagnostic {
    let Found {
        alias,
        name,
        at: _,
        outcome,
    } = found;
    let warning = |message: String| Diagnostic::new(DiagnosticCode::Alias, place, message);
    let with_remark = |then: &str| match alias.remark {
        "" => then.to_owned(),
        remark => format!("{remark}; {then}"),
    };
    match outcome {
        Outcome::Replaced => warning(format!("`{name}` is {} here", instead(alias)))
            .label("an alias")
            .help(with_remark("`config migrate` rewrites it")),
        Outcome::Removed => warning(format!("`{name}` states the default here"))
            .label("no setting here")
            .help(with_remark("`config migrate` removes it")),
        Outcome::Completed => warning(format!("`{name}` also sets {} here", instead(alias)))
            .label("taken as if it were written")
            .help("`config migrate` writes it"),
        Outcome::Reworded(entries) => {
            warning(format!("`{name}` is written `{name}{entries}` here"))
                .label("an alias")
                .help(with_remark("`config migrate` rewrites it"))
        }
        Outcome::Refused(remedy) => refused(&format!("`{name}`"), remedy, place),
        Outcome::RefusedValue(entries, remedy) => {
            refused(&format!("`{name}{entries}`"), remedy, place)
        }
    }
}

fn refused(setting: &str, remedy: &str, place: Place) -> Diagnostic {
    let message = format!("{setting} has no counterpart here");
    Diagnostic::new(DiagnosticCode::NoCounterpart, place, message)
        .label("cannot be taken over")
        .help(remedy)
}

pub(crate) fn note(found: &Found) -> String {
    let Found { alias, name, .. } = found;
    match &found.outcome {
        Outcome::Replaced => format!("`{name}` became {}", instead(alias)),
        Outcome::Removed => format!("`{name}` is removed: it states the default"),
        Outcome::Completed => format!("`{name}` has {} now", instead(alias)),
        Outcome::Reworded(entries) => format!("`{name}` became `{name}{entries}`"),
        Outcome::Refused(remedy) => format!("`{name}` is left, and has no counterpart: {remedy}"),
        Outcome::RefusedValue(entries, remedy) => {
            format!("`{name}{entries}` is left, and has no counterpart: {remedy}")
        }
    }
}

/// The note where the text could not be edited.
pub(crate) fn by_hand(found: &Found) -> String {
    let name = &found.name;
    match &found.outcome {
        Outcome::Replaced | Outcome::Completed => {
            format!("`{name}` is left; write {} instead", instead(found.alias))
        }
        Outcome::Reworded(entries) => format!("`{name}` is left; write `{name}{entries}` instead"),
        Outcome::Removed => format!("`{name}` is left; it can go"),
        Outcome::Refused(_) | Outcome::RefusedValue(..) => note(found),
    }
}

fn instead(alias: &Alias) -> String {
    alias.target().unwrap_or_else(|| match alias.change {
        Change::Group => "several settings".to_owned(),
        Change::Moved(..) | Change::Completed(..) | Change::Spread(_) | Change::Missing => {
            "nothing".to_owned()
        }
    })
}
