//! URL and API key of the control plane, from the command line, the environment, or the file of
//! `ctl login`.

use crate::ctl::error::CtlError;
use clap::ArgMatches;
use serde::{Deserialize, Serialize};
use std::env;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Default address of a local `controld`.
const DEFAULT_URL: &str = "http://127.0.0.1:8443";
/// Environment variable with the API key.
pub(crate) const KEY_VARIABLE: &str = "CONTROLD_API_KEY";

/// Connection settings of one run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) url: String,
    pub(crate) key: Option<String>,
    /// Root certificates, PEM; `None` for the platform's.
    pub(crate) ca_file: Option<PathBuf>,
    /// Whether the API key may be sent without TLS to hosts other than loopback.
    pub(crate) allow_plain_http: bool,
}

/// Settings that `ctl login` stores.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    pub(crate) url: String,
    pub(crate) key: String,
    pub(crate) ca_file: Option<PathBuf>,
}

impl Settings {
    /// Reads the settings: the command line overrides the environment, and both override the file
    /// of `ctl login`.
    pub(crate) fn read(matches: &ArgMatches) -> Result<Self, CtlError> {
        let login = Login::read()?;
        let url = matches.get_one::<String>("url").cloned();
        let key = match matches.get_one::<PathBuf>("key-file") {
            Some(file) => Some(key_of(file)?),
            None => env::var(KEY_VARIABLE).ok().filter(|key| !key.is_empty()),
        };
        let ca_file = matches.get_one::<PathBuf>("ca-file").cloned();
        // A stored key is used only for its own server.
        let kept = login.filter(|login| url.as_ref().is_none_or(|url| *url == login.url));
        let (kept_url, kept_key, kept_ca) = match kept {
            Some(Login { url, key, ca_file }) => (Some(url), Some(key), ca_file),
            None => (None, None, None),
        };
        Ok(Self {
            url: url.or(kept_url).unwrap_or_else(|| DEFAULT_URL.to_owned()),
            key: key.or(kept_key),
            ca_file: ca_file.or(kept_ca),
            allow_plain_http: matches.get_flag("allow-plain-http"),
        })
    }
}

impl Login {
    /// Stores the settings in a file that only its owner can read; returns its path.
    pub(crate) fn store(&self) -> Result<PathBuf, CtlError> {
        let path =
            path().ok_or_else(|| CtlError::usage("neither XDG_CONFIG_HOME nor HOME is set"))?;
        let text = serde_json::to_string_pretty(self).unwrap_or_default();
        let written = (|| {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&path)?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            writeln!(file, "{text}")
        })();
        written.map_err(|error| CtlError::failed(path.display().to_string(), error))?;
        Ok(path)
    }

    fn read() -> Result<Option<Self>, CtlError> {
        let Some(path) = path() else { return Ok(None) };
        let place = path.display().to_string();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(CtlError::failed(place, error)),
        };
        let login = serde_json::from_str(&text).map_err(|error| CtlError::failed(place, error))?;
        Ok(Some(login))
    }
}

/// Returns `$XDG_CONFIG_HOME/controld/login.json`, or the same file in `~/.config`.
fn path() -> Option<PathBuf> {
    let named = |name| env::var_os(name).filter(|value| !value.is_empty());
    let config = named("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(Path::new(&named("HOME")?).join(".config")))?;
    Some(config.join("controld/login.json"))
}

/// Reads the first line of a file; `-` is standard input.
fn key_of(file: &Path) -> Result<String, CtlError> {
    let text = text_of(file)?;
    let key = text.lines().next().unwrap_or_default().trim();
    if key.is_empty() {
        let place = file.display();
        return Err(CtlError::usage(format!("--key-file {place}: holds no key")));
    }
    Ok(key.to_owned())
}

/// Reads a text file; `-` is standard input.
pub(crate) fn text_of(file: &Path) -> Result<String, CtlError> {
    let bytes = bytes_of(file)?;
    let place = file.display().to_string();
    String::from_utf8(bytes).map_err(|_| CtlError::usage(format!("{place}: is not UTF-8")))
}

/// Reads a file; `-` is standard input.
pub(crate) fn bytes_of(file: &Path) -> Result<Vec<u8>, CtlError> {
    let read = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(file)
    };
    read.map_err(|error| CtlError::usage(format!("{}: {error}", file.display())))
}
