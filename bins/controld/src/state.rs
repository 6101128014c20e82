//! The application on its state, with the real clock and real random bytes.

use crate::cli::StateArgs;
use crate::data_dir::DataDir;
use control_app::{App, Environment};
use control_store::Store;
use jiff::Timestamp;
use std::error::Error;
use std::time::SystemTime;

pub(crate) const ENVIRONMENT: Environment = Environment {
    now: Timestamp::now,
    fill,
};

/// The current time, for certificates.
pub(crate) fn now() -> SystemTime {
    Timestamp::now().into()
}

/// The application on the state that the command line names.
pub(crate) async fn open(state: StateArgs) -> Result<App, Box<dyn Error>> {
    open_in(&DataDir::new(state)).await
}

/// The application on the state of a data directory.
pub(crate) async fn open_in(data_dir: &DataDir) -> Result<App, Box<dyn Error>> {
    data_dir.make()?;
    let sealer = data_dir.key_file.open(&ENVIRONMENT)?;
    let store = Store::open(&data_dir.database_url).await?;
    let objects = data_dir.objects()?;
    Ok(App::new(store, objects, sealer, ENVIRONMENT))
}

#[expect(
    clippy::expect_used,
    reason = "nothing safe can be done without random bytes"
)]
fn fill(bytes: &mut [u8]) {
    aws_lc_rs::rand::fill(bytes).expect("the system has random bytes");
}
