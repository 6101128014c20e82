//! The `basic-auth` block of a route.

use crate::decode::block::Block;
use crate::decode::decoder::Decoder;
use crate::decode::field::Field;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::Value;
use proxy_auth::{HtpasswdError, PasswordHash, PasswordHashError, is_user_name, read_htpasswd};
use proxy_model::registry::policies::basic_auth as spec;
use proxy_model::{BasicAuth, BasicUser, Place, Setting, UsersFile};
use std::collections::HashMap;

/// Maximum size of a file of users, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;
const HELP: &str = "write the output of `htpasswd -nB NAME`: bcrypt, or Argon2";

pub(super) fn basic_auth<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<BasicAuth> {
    let b = b.inner(d, &spec::BASIC_AUTH)?;
    let place = b.place(d);
    let is_present = [spec::BASIC_USER.path, spec::BASIC_USERS_FILE.path]
        .iter()
        .any(|path| b.has(path) || b.is_misread(path));
    if !is_present {
        let message = "`basic-auth` names no users";
        let fault = Diagnostic::new(DiagnosticCode::MissingSetting, place, message);
        d.push(fault.help("write `user \"NAME\" \"HASH\"`, or `users-file`"));
    }
    let auth = BasicAuth {
        place,
        realm: b.setting(d, &spec::BASIC_REALM),
        users: users(d, &b),
        users_files: files(d, &b),
        attempts: b.setting(d, &spec::BASIC_ATTEMPTS),
        forward_credentials: b.setting(d, &spec::BASIC_FORWARD),
    };
    b.close(d);
    Some(auth)
}

fn users<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Vec<Setting<BasicUser>> {
    let fields = b.take(spec::BASIC_USER.path);
    let users = fields.iter().filter_map(|field| user(d, field));
    let users: Vec<_> = users.collect();
    no_user_twice(d, &users);
    users
}

/// `user "NAME" "HASH"`, with exactly two arguments.
fn user<'t>(d: &mut Decoder<'t, '_>, field: &Field<'t>) -> Option<Setting<BasicUser>> {
    let values = field.values(d)?;
    let [
        (Value::Text(name), name_place),
        (Value::Text(hash), hash_place),
    ] = values.as_slice()
    else {
        let place = field.place(d);
        let message = "`user` takes a name and the hash of a password";
        let fault = Diagnostic::new(DiagnosticCode::MissingValue, place, message);
        d.push(fault.help(HELP));
        return None;
    };
    if !is_user_name(name) {
        let message = "a user's name is not empty, and has no colon and no white space at its ends";
        d.fault(DiagnosticCode::BadValue, *name_place, message);
        return None;
    }
    let hash = match hash.parse::<PasswordHash>() {
        Ok(hash) => hash,
        Err(error) => {
            d.push(bad_hash(error, *hash_place));
            return None;
        }
    };
    let user = BasicUser {
        name: name.to_string(),
        hash,
    };
    Some(Setting::at(user, *name_place))
}

/// The fault of a hash that is not taken. The hash itself is not shown.
fn bad_hash(error: PasswordHashError, place: Place) -> Diagnostic {
    let message = "this password hash is not supported";
    let fault = Diagnostic::new(DiagnosticCode::BadValue, place, message);
    fault.label(error.to_string()).help(HELP)
}

fn no_user_twice(d: &mut Decoder<'_, '_>, users: &[Setting<BasicUser>]) {
    let mut seen = HashMap::new();
    for user in users {
        let Some(place) = user.place() else {
            continue;
        };
        if let Some(first) = seen.insert(&user.name, place) {
            let message = format!("user \"{}\" is there twice", user.name);
            let fault = Diagnostic::new(DiagnosticCode::DuplicateName, place, message);
            d.push(fault.label("again here").related(first, "first here"));
        }
    }
}

fn files<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Vec<Setting<UsersFile>> {
    let mut files = Vec::new();
    for written in b.list(d, &spec::BASIC_USERS_FILE) {
        let Some(place) = written.place() else {
            continue;
        };
        let path = d.resolve(place, &written.value.to_string_lossy());
        let bytes = match d.read_present_file(&path, MAX_FILE_BYTES) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => {
                let users = Vec::new();
                files.push(Setting::at(UsersFile { path, users }, place));
                continue;
            }
            Err(error) => {
                let message = format!("`{}` cannot be read: {error}", path.display());
                d.fault(DiagnosticCode::MissingFile, place, message);
                continue;
            }
        };
        match read_htpasswd(&String::from_utf8_lossy(&bytes)) {
            // A file that is being written may be empty; a reload would lock all users out.
            Ok(users) if users.is_empty() => {
                let message = format!("`{}` has no users", path.display());
                let fault = Diagnostic::new(DiagnosticCode::BadValue, place, message);
                d.push(fault.help("leave the file out until it has one"));
            }
            Ok(users) => {
                let users = users.into_iter();
                let users = users.map(|(name, hash)| BasicUser { name, hash }).collect();
                files.push(Setting::at(UsersFile { path, users }, place));
            }
            // Without the line's text: the author may not have the right to read the file.
            Err(HtpasswdError { line, hash }) => {
                let message = format!("line {line} of `{}` is invalid", path.display());
                let fault = Diagnostic::new(DiagnosticCode::BadValue, place, message);
                let label = hash.map_or_else(|| "not `user:hash`".to_owned(), |it| it.to_string());
                d.push(fault.label(label).help(HELP));
            }
        }
    }
    files
}
