//! `controld admin`: creates administrators without the set-up link, and restores access for
//! locked-out users.

use crate::cli::{CreateAdminArgs, OrgArgs, SetPasswordArgs, StateArgs, UserArgs};
use crate::data_dir::DataDir;
use crate::key_file::Secrets;
use crate::standard_output::print_line;
use control_app::{App, Call, NewInstallation};
use control_auth::{Password, Secret};
use control_domain::NewUser;
use std::error::Error;
use std::fs;
use std::process::ExitCode;

/// Name of a new organization, unless another is given.
const DEFAULT_ORG: &str = "default";

/// Creates an administrator; prints the generated password and API key, if any.
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
        // Repeating the command with another organization would not recover a lost password.
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
    app.close().await;
    print_line(format_args!(
        "administrator {} of {}",
        installed.user.email, installed.org.name
    ))?;
    if password_file.is_none() {
        print_line(format_args!("password {}", made.reveal()))?;
    }
    if let Some((_, secret)) = installed.api_key {
        print_line(format_args!("api key {}", secret.reveal()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Sets a user's password, and prints it if it was generated.
pub(crate) async fn set_password(args: SetPasswordArgs) -> Result<ExitCode, Box<dyn Error>> {
    let SetPasswordArgs {
        user: UserArgs { state, email },
        password_file,
    } = args;
    let app = open(state).await?;
    let made = Secret::new(crate::state::ENVIRONMENT.random());
    let password = match &password_file {
        Some(file) => first_line(&fs::read_to_string(file)?),
        None => made.reveal().to_owned(),
    };
    let (call, password) = (Call::system(app.now()), Password::new(password));
    app.set_password(&call, &email, &password).await?;
    app.close().await;
    if password_file.is_none() {
        print_line(format_args!("password {}", made.reveal()))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn reset_second_factor(args: UserArgs) -> Result<ExitCode, Box<dyn Error>> {
    let UserArgs { state, email } = args;
    let app = open(state).await?;
    let call = Call::system(app.now());
    app.clear_second_factor(&call, &email).await?;
    app.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Switches an organization's single sign-on off. Restores access if the identity provider admits
/// no users.
pub(crate) async fn delete_sso(args: OrgArgs) -> Result<ExitCode, Box<dyn Error>> {
    let OrgArgs { state, org } = args;
    let app = open(state).await?;
    let id = app.org_of_sign_in(&org).await?;
    app.delete_sso(&Call::system(app.now()), id).await?;
    app.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Ends all sessions, and prints their number.
pub(crate) async fn end_sessions(state: StateArgs) -> Result<ExitCode, Box<dyn Error>> {
    let app = open(state).await?;
    let ended = app.end_all_sessions(&Call::system(app.now())).await?;
    app.close().await;
    print_line(format_args!("sessions ended {ended}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Ends all sessions, keys, tokens, invitations and links, and prints their numbers.
pub(crate) async fn end_credentials(state: StateArgs) -> Result<ExitCode, Box<dyn Error>> {
    let app = open(state).await?;
    let call = Call::system(app.now());
    let (sessions, others) = app.end_all_credentials(&call).await?;
    app.close().await;
    print_line(format_args!("sessions ended {sessions}"))?;
    for (noun, action) in [
        ("API keys", "api_key.revoked"),
        ("enrolment tokens", "enrolment_token.revoked"),
        ("invitations", "invitation.deleted"),
    ] {
        let ended = others.iter().filter(|ended| ended.action == action);
        print_line(format_args!("{noun} ended {}", ended.count()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens existing state. Creating it would be useless: new state has no users.
async fn open(state: StateArgs) -> Result<App, Box<dyn Error>> {
    crate::state::open_existing(&DataDir::new(state), Secrets::Opened).await
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
