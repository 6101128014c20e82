//! `controld admin create`: an administrator without the set-up link.

use crate::cli::CreateAdminArgs;
use control_app::{Call, NewInstallation};
use control_auth::{Password, Secret};
use control_domain::NewUser;
use std::error::Error;
use std::fs;
use std::process::ExitCode;

/// The name of the first organization, unless another is given.
const DEFAULT_ORG: &str = "default";

/// Makes the administrator, and prints what only the operator may know.
#[expect(
    clippy::print_stdout,
    reason = "the operator reads these lines, and so may a script"
)]
pub(crate) async fn create(args: CreateAdminArgs) -> Result<ExitCode, Box<dyn Error>> {
    let CreateAdminArgs {
        state,
        email,
        name,
        org_name,
        password_file,
        api_key_name,
    } = args;
    let app = crate::state::open(state).await?;
    let made = Secret::new(crate::state::ENVIRONMENT.random());
    let password = match &password_file {
        Some(file) => first_line(&fs::read_to_string(file)?),
        None => made.reveal().to_owned(),
    };
    let org_name = match org_name {
        Some(name) => name,
        // After a lost password, a second organization would help little.
        None => app
            .only_org_name()
            .await?
            .unwrap_or_else(|| DEFAULT_ORG.to_owned()),
    };
    let new = NewInstallation {
        org_name,
        project_name: None,
        admin: NewUser {
            email,
            name,
            password: Password::new(password),
        },
        api_key_name,
    };
    let installed = app.create_admin(&Call::system(app.now()), &new).await?;
    println!(
        "administrator {} of {}",
        installed.user.email, installed.org.name
    );
    if password_file.is_none() {
        println!("password {}", made.reveal());
    }
    if let Some((_, secret)) = installed.api_key {
        println!("api key {}", secret.reveal());
    }
    app.close().await;
    Ok(ExitCode::SUCCESS)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
