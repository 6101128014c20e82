//! Credentials required by a route.

use crate::effective::list::{List, path, plain, text};
use crate::model::Model;
use crate::policies::{BasicAuth, JwtAuth, JwtKeySource, RemoteKeySet, TokenCarrier, UsersFile};
use crate::registry::policies::{basic_auth as basic_spec, jwt as jwt_spec};

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

pub(super) fn jwt(list: &mut List, model: &Model, auth: &JwtAuth) {
    let JwtAuth {
        place: _,
        issuer,
        audiences,
        keys,
        algorithms,
        carrier,
        claim_headers,
        required_claims,
        required_scopes,
        clock_skew,
        max_token_bytes,
        forward_token,
        realm,
    } = auth;
    list.put(&jwt_spec::JWT_ISSUER, issuer, text);
    list.put_all(&jwt_spec::JWT_AUDIENCE, audiences, text);
    match keys {
        JwtKeySource::File(file) => list.put(&jwt_spec::JWKS_FILE, file, |file| path(&file.path)),
        JwtKeySource::Secret(file) => list.put(&jwt_spec::HMAC_FILE, file, |file| path(&file.path)),
        JwtKeySource::Remote(remote) => remote_keys(list, model, remote),
    }
    list.put_all(&jwt_spec::JWT_ALGORITHMS, algorithms, text);
    match carrier {
        TokenCarrier::Header(name) => list.put(&jwt_spec::JWT_HEADER, name, text),
        TokenCarrier::Cookie(name) => list.put(&jwt_spec::JWT_COOKIE, name, text),
    }
    list.put_all(&jwt_spec::JWT_CLAIM_HEADER, claim_headers, text);
    list.put_all(&jwt_spec::JWT_REQUIRE_CLAIM, required_claims, text);
    list.put_all(&jwt_spec::JWT_REQUIRE_SCOPE, required_scopes, text);
    list.time(&jwt_spec::JWT_CLOCK_SKEW, clock_skew);
    list.put(&jwt_spec::JWT_MAX_TOKEN, max_token_bytes, plain);
    list.put(&jwt_spec::JWT_FORWARD, forward_token, plain);
    list.put(&jwt_spec::JWT_REALM, realm, text);
}

fn remote_keys(list: &mut List, model: &Model, remote: &RemoteKeySet) {
    let RemoteKeySet {
        url,
        upstream,
        min_interval,
        max_interval,
        max_age,
    } = remote;
    list.put(&jwt_spec::JWKS_URL, url, text);
    list.put(&jwt_spec::JWKS_UPSTREAM, upstream, |index| {
        let upstream = model.upstream(*index);
        upstream.map(|upstream| upstream.name.clone()).into()
    });
    list.time(&jwt_spec::JWKS_MIN_INTERVAL, min_interval);
    list.time(&jwt_spec::JWKS_MAX_INTERVAL, max_interval);
    list.time(&jwt_spec::JWKS_MAX_AGE, max_age);
}
