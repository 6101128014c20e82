//! The `control-plane` block.

use super::block::Block;
use super::decoder::Decoder;
use super::values::{repeated, there_twice};
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::control_plane as spec;
use proxy_model::{Allow, ControlPlane, Label, Setting, is_plain_off_loopback};

pub(super) fn control_plane<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<ControlPlane> {
    let url = b.required(d, &spec::URL);
    let allow_plain_http = b.setting(d, &spec::ALLOW_PLAIN_HTTP);
    if let Some(url) = &url {
        check_url(d, url, allow_plain_http.value);
    }
    let project = b.optional(d, &spec::PROJECT);
    // The token is used once; its file may be deleted afterwards.
    let enrolment_token_file = b.path(d, &spec::ENROLMENT_TOKEN_FILE);
    let data_dir = b.setting(d, &spec::DATA_DIR);
    // Read when keys are sealed, so that the node starts without it.
    let machine_key_file = b.path(d, &spec::MACHINE_KEY_FILE);
    let ca_file = b.file(d, &spec::CA_FILE);
    let node_name = b.optional(d, &spec::NODE_NAME);
    let labels = b.values(d, &spec::LABELS);
    no_name_twice(d, &labels);
    let allow = allow(d, b);
    Some(ControlPlane {
        place: b.place(d),
        url: url?,
        allow_plain_http,
        project,
        enrolment_token_file,
        data_dir,
        machine_key_file,
        ca_file,
        node_name,
        labels,
        allow,
    })
}

fn allow<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Allow {
    let b = b.inner(d, &spec::ALLOW).unwrap_or_else(Block::empty);
    let allow = Allow {
        static_roots: b.list(d, &spec::STATIC_ROOTS),
        agents: b.list(d, &spec::AGENTS),
        listeners: b.list(d, &spec::LISTENERS),
        rate_limit_stores: b.list(d, &spec::RATE_LIMIT_STORES),
        acme_storages: b.list(d, &spec::ACME_STORAGES),
        dns_commands: b.list(d, &spec::DNS_COMMANDS),
        upstreams_on_loopback: b.setting(d, &spec::UPSTREAMS_ON_LOOPBACK),
    };
    let lists = [
        &allow.static_roots,
        &allow.agents,
        &allow.acme_storages,
        &allow.dns_commands,
    ];
    for paths in lists {
        let names = paths.iter();
        let names = names.filter_map(|path| Some(Setting::at(&path.name, path.place()?)));
        for (first, again) in repeated(&names.collect::<Vec<_>>()) {
            d.push(there_twice(first, again, "a path of this name"));
        }
    }
    b.close(d);
    allow
}

/// Reports a URL over which keys would pass in the clear.
fn check_url(d: &mut Decoder<'_, '_>, url: &Setting<String>, allow_plain_http: bool) {
    let Some(place) = url.place() else { return };
    if allow_plain_http || !is_plain_off_loopback(&url.value) {
        return;
    }
    let message = "node keys and private keys would pass in the clear";
    let fault = Diagnostic::new(DiagnosticCode::PlainControlPlane, place, message);
    let fault = fault.label("neither `https` nor loopback");
    d.push(
        fault.help(
            "write `https://…`, or add `allow-plain-http #true` for a network that is trusted",
        ),
    );
}

/// Reports labels with the same name: a node has one value per name.
fn no_name_twice(d: &mut Decoder<'_, '_>, labels: &[Setting<Label>]) {
    let names = labels.iter();
    let names = names.filter_map(|label| Some(Setting::at(&label.name, label.place()?)));
    for (first, again) in repeated(&names.collect::<Vec<_>>()) {
        d.push(there_twice(first, again, "a label of this name"));
    }
}
