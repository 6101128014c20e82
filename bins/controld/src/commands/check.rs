//! `controld check`, and the same checks at the start: all faults of the settings and of the files
//! that they name.

use crate::cli::{ServeArgs, StateArgs};
use crate::config::{ConfigError, ConfigFile};
use crate::data_dir::DataDir;
use crate::standard_output::print_line;
use crate::tls::Tls;
use control_app::AcmeAuthorities;
use control_store::{Store, StoreError};
use miette::{GraphicalReportHandler, GraphicalTheme};
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

const MASTER_KEY_FILE: &str = "master-key-file";

/// A setting that cannot be used, and the reason.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Name of the flag.
    setting: &'static str,
    message: String,
}

/// Parsed values of the settings.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) data_dir: DataDir,
    pub(crate) tls: Option<Arc<Tls>>,
}

/// Runs `controld check`: prints all faults, and nothing else.
///
/// # Errors
///
/// Standard output cannot be written.
pub(crate) async fn run(
    args: &ServeArgs,
    file: Option<&ConfigFile>,
    now: SystemTime,
) -> io::Result<ExitCode> {
    let prepared = match prepare(args, now) {
        Ok(prepared) => check_database(prepared).await,
        faults => faults,
    };
    match prepared {
        Err(faults) => {
            print_faults(&faults, file);
            Ok(ExitCode::FAILURE)
        }
        Ok(prepared) => {
            let warnings = prepared.tls.iter().flat_map(|tls| tls.warnings(now));
            for warning in warnings {
                print_line(format_args!("warning: {warning}"))?;
            }
            print_line(format_args!("settings are valid"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Checks an existing database file: not in use by another process, no damaged pages, no newer
/// schema.
async fn check_database(prepared: Prepared) -> Result<Prepared, Vec<Fault>> {
    let data_dir = &prepared.data_dir;
    if !data_dir.has_database_file() {
        return Ok(prepared);
    }
    let checked = async {
        let _lock = data_dir.lock()?;
        let at_database = |error: StoreError| data_dir.at_database(&error);
        let store = Store::open_as_is(&data_dir.database_url).await;
        let store = store.map_err(at_database)?;
        let schema = store.check_schema().await;
        let used = match schema {
            Ok(()) => keys_in_use(&store).await,
            // The start updates an older schema, and checks the keys then.
            Err(StoreError::Older(_)) => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        };
        store.close().await;
        let used = used.map_err(at_database)?;
        let key_file = &data_dir.key_file;
        let at_key_file =
            |error| format!("{MASTER_KEY_FILE}: {}: {error}", key_file.path().display());
        key_file.check(&used).map_err(at_key_file)
    };
    let message: Result<(), String> = checked.await;
    let Err(message) = message else {
        return Ok(prepared);
    };
    let of_keys = message.strip_prefix(MASTER_KEY_FILE);
    let of_keys = of_keys.and_then(|message| message.strip_prefix(": "));
    let (setting, message) = if let Some(message) = of_keys {
        (MASTER_KEY_FILE, message)
    } else {
        let message_of_folder = message.strip_prefix("--data-dir ");
        ("data-dir", message_of_folder.unwrap_or(&message))
    };
    let message = message.to_owned();
    Err(vec![Fault { setting, message }])
}

async fn keys_in_use(store: &Store) -> Result<BTreeSet<String>, StoreError> {
    store.read().await?.master_keys_in_use().await
}

/// Parses the settings, and reads the files that they name. Files that the first start creates may
/// be missing.
pub(crate) fn prepare(args: &ServeArgs, now: SystemTime) -> Result<Prepared, Vec<Fault>> {
    let ServeArgs {
        state,
        listen,
        tls_cert,
        tls_key,
        trusted_proxies,
        metrics_listen,
        heartbeat_secs: _,  // The flag has bounds.
        max_connections: _, // Its range is checked where it is read.
        quotas: _,
        retention: _,
        public_url: _, // Its form, too.
        sso_private_addresses: _,
        acme,
    } = args;
    let mut faults = Vec::new();
    let mut fault = |setting, message: String| faults.push(Fault { setting, message });
    if tls_cert.is_some() != tls_key.is_some() {
        let has = if tls_cert.is_some() {
            "tls-cert"
        } else {
            "tls-key"
        };
        fault(has, "--tls-cert and --tls-key go together".to_owned());
    }
    let certificate = tls_cert.clone().zip(tls_key.clone());
    let tls = certificate.map(|(cert, key)| Tls::load(cert, key, now));
    let tls = tls.transpose().unwrap_or_else(|message| {
        fault("tls-cert", message);
        None
    });
    let is_plain = tls_cert.is_none() && trusted_proxies.is_empty();
    if is_plain && !listen.ip().is_loopback() {
        let message = "keys would be sent in clear: --tls-cert and --tls-key are needed off \
                       loopback, or --trusted-proxies with the balancer that speaks TLS";
        fault("listen", message.to_owned());
    }
    if *metrics_listen == Some(*listen) && listen.port() != 0 {
        let message = "is the address of --listen: choose another one".to_owned();
        fault("metrics-listen", message);
    }
    if let Err(message) = AcmeAuthorities::from(acme.clone()).check_roots() {
        fault("acme-ca-file", message);
    }
    check_state(state, &mut fault);
    if faults.is_empty() {
        Ok(Prepared {
            data_dir: DataDir::new(state.clone()),
            tls: tls.map(Arc::new),
        })
    } else {
        Err(faults)
    }
}

fn check_state(state: &StateArgs, fault: &mut impl FnMut(&'static str, String)) {
    let database = state.database.as_deref().unwrap_or("sqlite:");
    let known = ["postgres://", "postgresql://", "sqlite:"];
    let known = known.iter().any(|scheme| database.starts_with(scheme));
    if !known {
        // The message omits the URL, which may contain a password.
        let message = "begins neither with postgres:// nor with sqlite://";
        fault("database", message.to_owned());
    }
    let data_dir = DataDir::new(state.clone());
    if let Err(error) = data_dir.objects_by_url() {
        fault("object-store", error.to_string());
    }
    let key_file = data_dir.key_file;
    if key_file.stamp().is_some()
        && let Err(error) = key_file.read()
    {
        fault(
            MASTER_KEY_FILE,
            format!("{}: {error}", key_file.path().display()),
        );
    }
    if state.data_dir.exists() && !state.data_dir.is_dir() {
        let message = format!("{}: is not a folder", state.data_dir.display());
        fault("data-dir", message);
    }
}

/// Prints each fault to standard error, with its line if the setting is in the configuration file.
#[expect(clippy::print_stderr, reason = "the operator reads it")]
pub(crate) fn print_faults(faults: &[Fault], file: Option<&ConfigFile>) {
    for Fault { setting, message } in faults {
        match file.and_then(|file| file.fault(setting, message.clone())) {
            Some(placed) => show(&placed),
            None => eprintln!("error: --{setting}: {message}"),
        }
    }
}

/// Prints the faults of a configuration file to standard error, with their lines.
#[expect(clippy::print_stderr, reason = "the operator reads it")]
pub(crate) fn show(error: &ConfigError) {
    let theme = if io::stderr().is_terminal() {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(theme);
    match handler.render_report(&mut text, error) {
        Ok(()) => eprintln!("{text}"),
        Err(_) => eprintln!("error: {error}"),
    }
}
