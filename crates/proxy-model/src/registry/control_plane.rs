//! The `control-plane` block.

use super::spec::{Given, Many, Required, Unset};
use super::table::{file, settings, text, written};
use super::text::{Text, Written};
use crate::control_plane::Label;
use std::path::PathBuf;

const MAX_NAME_CHARS: usize = 100;

/// Parses a base URL: what follows the host is the prefix of every path.
fn url(text: &str) -> Result<String, String> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .ok_or("it begins with https:// or http://")?;
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.is_empty() {
        return Err("there is no host".to_owned());
    }
    if authority.contains('@') {
        return Err("a credential does not belong in it".to_owned());
    }
    if rest.contains(['?', '#', ' ']) {
        return Err("it is a base URL, without a query".to_owned());
    }
    Ok(text.to_owned())
}

fn project(text: &str) -> Result<String, String> {
    let is_id = text.len() == 36 && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    is_id
        .then(|| text.to_owned())
        .ok_or_else(|| "it is a UUID".to_owned())
}

fn node_name(text: &str) -> Result<String, String> {
    let good = (1..=MAX_NAME_CHARS).contains(&text.chars().count());
    let good = good && !text.chars().any(char::is_control);
    good.then(|| text.to_owned())
        .ok_or_else(|| "it has 1 to 100 characters".to_owned())
}

fn label(text: &str) -> Result<Label, String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("a label is written name=value")?;
    let (name, value) = (name.to_owned(), value.to_owned());
    Ok(Label { name, value })
}

settings! {
    /// Base URL of the control plane. Off loopback it should be `https`: node keys and private keys of
    /// certificates pass over it.
    URL: Text<String>, Required =
        text("control-plane.url", "a URL", "https://control.example.com", url)
            .enforced("control-client", "a_node_enrols_and_runs_the_bundle_of_its_order");
    /// The project to enrol in. Not read once the node has an identity in `data-dir`.
    PROJECT: Text<String>, Unset =
        text("control-plane.project", "a project's id", "01890a5d-ac96-774b-bcce-b302099a8057", project)
            .optional("the node has an identity already")
            .enforced("control-client", "a_node_enrols_and_runs_the_bundle_of_its_order");
    /// The file with an enrolment token. Not read once the node has an identity in `data-dir`.
    ENROLMENT_TOKEN_FILE: Text<PathBuf>, Unset =
        file("control-plane.enrolment-token-file", "a file", "enrolment.token")
            .optional("the node has an identity already")
            .enforced("control-client", "a_node_enrols_and_runs_the_bundle_of_its_order");
    /// The folder in which the node stores its identity, its signing keys and its last good bundle.
    /// It is made if it is missing, and readable by its owner only.
    DATA_DIR: Text<PathBuf>, Given<Written<PathBuf>> =
        file("control-plane.data-dir", "a folder", "/var/lib/proxyd")
            .or(written("/var/lib/proxyd", || "/var/lib/proxyd".into()))
            .enforced("control-client", "a_node_starts_from_its_last_good_bundle_while_the_control_plane_is_away");
    /// Roots for the control plane's certificate.
    CA_FILE: Text<PathBuf>, Unset = file("control-plane.ca-file", "a file", "ca.pem")
        .optional("the roots of the system")
        .enforced("control-client", "a_node_trusts_only_the_roots_of_its_ca_file");
    /// The node's name, unique in its project; given at the enrolment.
    NODE_NAME: Text<String>, Unset =
        text("control-plane.node-name", "a name", "edge-1", node_name)
            .optional("the name of the host")
            .enforced("control-client", "a_node_enrols_with_its_name_and_labels");
    /// Labels of the node, as `name=value`; given at the enrolment.
    LABELS: Text<Label>, Many = text("control-plane.labels", "a label", "region=eu", label)
        .many()
        .enforced("control-client", "a_node_enrols_with_its_name_and_labels");
}
