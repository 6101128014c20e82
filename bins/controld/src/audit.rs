//! `controld audit verify`: whether the audit log is as it was written.

use crate::cli::StateArgs;
use crate::data_dir::DataDir;
use crate::key_file::Secrets;
use crate::state::open_existing;
use std::error::Error;
use std::process::ExitCode;

/// Prints the first entry that does not fit the chain.
#[expect(
    clippy::print_stdout,
    reason = "the operator reads these lines, and so may a script"
)]
pub(crate) async fn verify(state: StateArgs) -> Result<ExitCode, Box<dyn Error>> {
    let app = open_existing(&DataDir::new(state), Secrets::Untouched).await?;
    let fault = app.verify_audit().await?;
    app.close().await;
    Ok(match fault {
        None => {
            println!("the audit log is whole");
            ExitCode::SUCCESS
        }
        Some(seq) => {
            println!("entry {seq} of the audit log was changed, or is missing");
            ExitCode::FAILURE
        }
    })
}
