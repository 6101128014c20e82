//! `controld key`: rotation of the keys that encrypt the secrets in the database.

use crate::cli::StateArgs;
use crate::data_dir::DataDir;
use crate::key_file::Secrets;
use crate::standard_output::print_line;
use crate::state::{ENVIRONMENT, open_existing};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::sleep;

/// Time for running control planes to read a changed key file, which they poll every second.
const KEY_RELOAD_WAIT: Duration = Duration::from_secs(3);

/// Encrypts all secrets with a new key, or continues an interrupted run.
///
/// The new key is written to the file, and time is left for running control planes to read it,
/// before any secret is encrypted with it. Old keys stay in the file, so an interruption loses
/// nothing.
pub(crate) async fn rotate(state: StateArgs) -> Result<ExitCode, Box<dyn Error>> {
    let data_dir = DataDir::new(state);
    let app = open_existing(&data_dir, Secrets::Opened).await?;
    let current = data_dir.key_file.read()?.current();
    let used = app.master_keys_in_use().await?;
    let unfinished = used.iter().any(|id| *id != current);
    let mut printed = Ok(());
    if !unfinished {
        data_dir.key_file.add(&ENVIRONMENT)?;
        let keys = data_dir.key_file.read()?;
        printed = print_line(format_args!(
            "new key {} in {}",
            keys.current(),
            data_dir.key_file.path().display()
        ));
        app.replace_master_keys(keys);
        sleep(KEY_RELOAD_WAIT).await;
    }
    let mut sealed = 0;
    loop {
        match app.reseal_secrets().await? {
            0 => break,
            some => sealed += some,
        }
    }
    app.close().await;
    printed?;
    print_line(format_args!("{sealed} secrets sealed again"))?;
    Ok(ExitCode::SUCCESS)
}

/// Drops keys with which no secret is encrypted.
pub(crate) async fn prune(state: StateArgs) -> Result<ExitCode, Box<dyn Error>> {
    let data_dir = DataDir::new(state);
    let app = open_existing(&data_dir, Secrets::Opened).await?;
    let used = app.master_keys_in_use().await?;
    let dropped = data_dir.key_file.prune(|id| used.contains(id))?;
    app.close().await;
    print_line(format_args!("{dropped} keys dropped"))?;
    Ok(ExitCode::SUCCESS)
}
