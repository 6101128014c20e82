//! The `control-plane` block.

use super::block::Block;
use super::decoder::Decoder;
use super::values::{repeated, there_twice};
use proxy_model::registry::control_plane as spec;
use proxy_model::{ControlPlane, Label, Setting};

pub(super) fn control_plane<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<ControlPlane> {
    let url = b.required(d, &spec::URL);
    let project = b.optional(d, &spec::PROJECT);
    // The token is used once, and its file may be gone afterwards.
    let enrolment_token_file = b.path(d, &spec::ENROLMENT_TOKEN_FILE);
    let data_dir = b.setting(d, &spec::DATA_DIR);
    let ca_file = b.file(d, &spec::CA_FILE);
    let node_name = b.optional(d, &spec::NODE_NAME);
    let labels = b.values(d, &spec::LABELS);
    no_name_twice(d, &labels);
    Some(ControlPlane {
        place: b.place(d),
        url: url?,
        project,
        enrolment_token_file,
        data_dir,
        ca_file,
        node_name,
        labels,
    })
}

/// Reports labels of one name: a node has one value for it.
fn no_name_twice(d: &mut Decoder<'_, '_>, labels: &[Setting<Label>]) {
    let names = labels.iter();
    let names = names.filter_map(|label| Some(Setting::at(&label.name, label.place()?)));
    for (first, again) in repeated(&names.collect::<Vec<_>>()) {
        d.push(there_twice(first, again, "a label of this name"));
    }
}
