//! Credentials that a route asks for.

use crate::effective::list::{List, path, plain, text};
use crate::policies::{BasicAuth, UsersFile};
use crate::registry::policies::basic_auth as basic_spec;

/// Users by their names, without their hashes.
pub(super) fn basic_auth(list: &mut List, auth: &BasicAuth) {
    let BasicAuth {
        place: _,
        realm,
        users,
        users_files,
        attempts,
        forward_credentials,
    } = auth;
    list.put(&basic_spec::BASIC_REALM, realm, text);
    list.put_all(&basic_spec::BASIC_USER, users, text);
    list.put_all(
        &basic_spec::BASIC_USERS_FILE,
        users_files,
        |file: &UsersFile| path(&file.path),
    );
    list.put(&basic_spec::BASIC_ATTEMPTS, attempts, text);
    list.put(&basic_spec::BASIC_FORWARD, forward_credentials, plain);
}
