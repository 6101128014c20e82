//! The `admin` block.

use super::block::Block;
use super::decoder::Decoder;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::Admin;
use proxy_model::registry::admin as spec;

pub(super) fn admin<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Admin {
    let has_token = b.has(spec::TOKEN_FILE.path);
    let admin = Admin {
        address: b.setting(d, &spec::ADDRESS),
        token_file: b.file(d, &spec::TOKEN_FILE),
        unix_socket: b.path(d, &spec::UNIX_SOCKET),
    };
    let open = admin.address.filter(|address| !address.ip().is_loopback());
    if let Some((address, place)) = open.zip(admin.address.place())
        && !has_token
    {
        let message = format!("the admin interface at {address} can be reached by others");
        let fault = Diagnostic::new(DiagnosticCode::AdminWithoutToken, place, message);
        d.push(
            fault
                .label("not loopback")
                .help("add `token-file \"…\"`, or listen on 127.0.0.1"),
        );
    }
    admin
}
