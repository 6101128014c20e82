//! The `control-plane` block.

use super::block::Block;
use super::decoder::Decoder;
use proxy_model::ControlPlane;
use proxy_model::registry::control_plane as spec;

pub(super) fn control_plane<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<ControlPlane> {
    let url = b.required(d, &spec::URL);
    let node_id = b.optional(d, &spec::NODE_ID);
    let node_key_file = b.file(d, &spec::NODE_KEY_FILE);
    let enrolment_token_file = b.file(d, &spec::ENROLMENT_TOKEN_FILE);
    let data_dir = b.setting(d, &spec::DATA_DIR);
    let heartbeat_interval = b.setting(d, &spec::HEARTBEAT_INTERVAL);
    Some(ControlPlane {
        place: b.place(d),
        url: url?,
        node_id,
        node_key_file,
        enrolment_token_file,
        data_dir,
        heartbeat_interval,
    })
}
