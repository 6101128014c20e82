//! Opens the application's state, with the system's clock and random numbers.

use crate::cli::StateArgs;
use crate::data_dir::DataDir;
use crate::error_text::error_text;
use crate::key_file::Secrets;
use control_app::{App, Environment};
use control_store::{Store, StoreError};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::error::Error;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

/// Time without a response from the database, after which the wait is logged.
const SILENT_WAIT: Duration = Duration::from_secs(2);

pub(crate) const ENVIRONMENT: Environment = Environment {
    now: Timestamp::now,
    fill,
};

/// Current time, for the validity of certificates.
pub(crate) fn now() -> SystemTime {
    Timestamp::now().into()
}

/// Opens the state that the command line names; creates it if it is missing.
pub(crate) async fn open(state: StateArgs) -> Result<App, Box<dyn Error>> {
    open_in(&DataDir::new(state)).await
}

/// Opens the state in a data directory; creates it if it is missing.
pub(crate) async fn open_in(data_dir: &DataDir) -> Result<App, Box<dyn Error>> {
    let made = data_dir.create();
    made.map_err(|error| data_dir.at_folder(&*error))?;
    open_with(data_dir, Secrets::Opened).await
}

/// Opens existing state. A command about past actions must not succeed on new, empty state if the
/// path is mistyped.
pub(crate) async fn open_existing(
    data_dir: &DataDir,
    secrets: Secrets,
) -> Result<App, Box<dyn Error>> {
    if let Some(file) = data_dir.missing_database() {
        let file = file.display();
        let remedy = "name the folder of the control plane with --data-dir or --config";
        return Err(format!("--data-dir: there is no {file}; {remedy}").into());
    }
    open_with(data_dir, secrets).await
}

async fn open_with(data_dir: &DataDir, secrets: Secrets) -> Result<App, Box<dyn Error>> {
    let store = open_store(&data_dir.database_url, secrets).await;
    let store = store.map_err(|error| data_dir.at_database(&error))?;
    let used = if secrets == Secrets::Opened {
        store.read().await?.master_keys_in_use().await?
    } else {
        BTreeSet::new()
    };
    let at_key_file = |error: &dyn Error| {
        let file = data_dir.key_file.path().display();
        format!("--master-key-file {file}: {}", error_text(error))
    };
    let sealer = data_dir.key_file.sealer(&ENVIRONMENT, secrets, &used);
    let sealer = sealer.map_err(|error| at_key_file(&*error))?;
    let objects = data_dir.objects();
    let objects = objects.map_err(|error| data_dir.at_objects(&error))?;
    Ok(App::new(store, objects, sealer, ENVIRONMENT))
}

/// Connects to the database, and waits until it responds. The schema is updated only for commands
/// that decrypt secrets.
async fn open_store(url: &str, secrets: Secrets) -> Result<Store, StoreError> {
    let opening = async {
        match secrets {
            Secrets::Opened => Store::open(url).await,
            Secrets::Untouched => Store::open_as_is(url).await,
        }
    };
    let mut opening = std::pin::pin!(opening);
    if let Ok(opened) = timeout(SILENT_WAIT, &mut opening).await {
        return opened;
    }
    tracing::warn!("the database does not answer; still waiting");
    opening.await
}

#[expect(
    clippy::expect_used,
    reason = "nothing safe can be done without random bytes"
)]
fn fill(bytes: &mut [u8]) {
    aws_lc_rs::rand::fill(bytes).expect("the system has random bytes");
}
