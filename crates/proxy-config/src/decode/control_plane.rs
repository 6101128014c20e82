//! The `control-plane` block.

use super::block::Block;
use super::decoder::Decoder;
use proxy_model::ControlPlane;
use proxy_model::registry::control_plane as spec;

pub(super) fn control_plane<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<ControlPlane> {
    let url = b.required(d, &spec::URL);
    let project = b.optional(d, &spec::PROJECT);
    // The token is used once, and its file may be gone afterwards.
    let enrolment_token_file = b.path(d, &spec::ENROLMENT_TOKEN_FILE);
    let data_dir = b.setting(d, &spec::DATA_DIR);
    let ca_file = b.file(d, &spec::CA_FILE);
    let node_name = b.optional(d, &spec::NODE_NAME);
    let labels = b.list(d, &spec::LABELS);
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
