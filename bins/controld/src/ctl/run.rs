//! Runs a parsed command: builds the request, sends it, and prints the response.

use crate::ctl::apply;
use crate::ctl::client::{Call, Client, Repetition, next_frame};
use crate::ctl::deploy;
use crate::ctl::error::CtlError;
use crate::ctl::grammar::{self, path_id};
use crate::ctl::lookup::{Lookup, text};
use crate::ctl::operation::{Operation, RequestBody};
use crate::ctl::output::escape::inline;
use crate::ctl::output::{Output, diagnostics, manual, print, report};
use crate::ctl::rollout;
use crate::ctl::settings::{KEY_VARIABLE, Login, Settings, bytes_of};
use crate::ctl::value::{fields, parameters};
use bytes::Bytes;
use clap::{ArgMatches, Command};
use clap_complete::Shell;
use hyper::body::Incoming;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Runs a command of `ctl`.
pub(crate) async fn run(
    operations: &[Operation],
    matches: &ArgMatches,
    command: &mut Command,
) -> Result<(), CtlError> {
    let (noun, inner) = matches.subcommand().ok_or_else(no_command)?;
    match noun {
        "completions" => return completions(inner, command),
        "manual" => return print(&manual::page(&grammar::command(operations))),
        _ => {}
    }
    let settings = Settings::read(inner)?;
    let client = Client::new(&settings)?;
    let output = output(inner);
    let lookup = Lookup {
        client: &client,
        operations,
    };
    match noun {
        "login" => return login(&client, settings).await,
        "whoami" => return whoami(&client, output).await,
        "ready" => return ready(&client).await,
        "apply" => return apply::run(&lookup, inner).await,
        "plan" => return deploy::plan(&lookup, inner, output).await,
        "deploy" => return deploy::run(&lookup, inner, output).await,
        _ => {}
    }
    let (verb, inner) = inner.subcommand().ok_or_else(no_command)?;
    if (noun, verb) == ("rollout", "status") {
        return rollout::status(&lookup, inner, output).await;
    }
    let mut all = operations.iter();
    let operation = all.find(|one| one.noun == noun && one.verb == verb);
    let operation = operation.ok_or_else(no_command)?;
    grammar::check_url(operation, inner)?;
    if operation.by_link && settings.key.is_none() {
        return Err(CtlError::usage(format!(
            "--key-file or {KEY_VARIABLE} must give the secret of the link"
        )));
    }
    perform(&lookup, operation, inner, output).await
}

async fn perform(
    lookup: &Lookup<'_>,
    operation: &Operation,
    matches: &ArgMatches,
    output: Output,
) -> Result<(), CtlError> {
    let given = |name: &str| matches.get_one::<String>(&path_id(name)).cloned();
    let mut path = lookup.path(operation, given).await?;
    let query = query(lookup, operation, matches, &path).await?;
    if operation.is_paged() {
        let limit = query.iter().find(|(name, _)| name == "limit");
        let limit = limit.and_then(|(_, text)| text.parse().ok());
        append(&mut path, query.iter().filter(|(name, _)| name != "limit"));
        let items = lookup.all(&path, limit).await?;
        return print(&output.list(&operation.noun, &items));
    }
    append(&mut path, query.iter());
    let mut call = Call::new(operation.method.clone(), path);
    if operation.by_link {
        call.repetition = Repetition::Forbidden;
    }
    call.if_match = matches
        .try_get_one::<String>("if-match")
        .ok()
        .flatten()
        .map(|version| format!("\"{}\"", version.trim_matches('"')));
    let call = with_body(lookup, operation, matches, call).await?;
    if operation.is_raw {
        let response = lookup.client.send(&call).await?;
        let to = matches.get_one::<PathBuf>("to");
        return write_out(response.into_body(), to).await;
    }
    let answer = lookup.client.json(&call).await?;
    match answer.get("items").and_then(Value::as_array) {
        Some(items) => print(&output.list(&operation.noun, items)),
        None => print(&output.resource(&answer)),
    }?;
    if operation.noun == "bundle" && operation.verb == "create" {
        return report_diagnostics(&answer, &call);
    }
    Ok(())
}

/// Prints the diagnostics of a new bundle. Fails if it was rejected.
fn report_diagnostics(bundle: &Value, call: &Call) -> Result<(), CtlError> {
    let body = call.body.as_ref();
    let body = body.and_then(|(_, bytes)| serde_json::from_slice::<Value>(bytes).ok());
    let shown = diagnostics::render(bundle, body.as_ref().and_then(|body| body.get("files")));
    if !shown.is_empty() {
        report(&shown);
    }
    if text(bundle, "state") == "rejected" {
        let name = format!("bundle {}", inline(text(bundle, "name")));
        return Err(CtlError::failed(name, "rejected, no node gets it"));
    }
    Ok(())
}

async fn query(
    lookup: &Lookup<'_>,
    operation: &Operation,
    matches: &ArgMatches,
    path: &str,
) -> Result<Vec<(String, String)>, CtlError> {
    let mut query = parameters(operation, matches)?;
    for (name, value) in &mut query {
        let mut fields = operation.query.iter();
        if !fields.any(|field| field.is_id && field.name == *name) {
            continue;
        }
        // `before` of a bundle refers to another bundle.
        let noun = if name == "before" {
            &operation.noun
        } else {
            &*name
        };
        if let Some(id) = lookup.field(noun, Some(value), path).await? {
            *value = id;
        }
    }
    Ok(query)
}

async fn with_body(
    lookup: &Lookup<'_>,
    operation: &Operation,
    matches: &ArgMatches,
    mut call: Call,
) -> Result<Call, CtlError> {
    match &operation.body {
        RequestBody::None => Ok(call),
        RequestBody::Bytes(kind) => {
            let file = matches.get_one::<PathBuf>("file");
            let bytes = bytes_of(file.ok_or_else(no_command)?)?;
            operation.check_size(bytes.len())?;
            call.body = Some((kind.clone(), Bytes::from(bytes)));
            Ok(call)
        }
        RequestBody::Json(_) => {
            let mut body = fields(operation, matches)?;
            lookup.fields(operation, &mut body, &call.path).await?;
            let call = call.json(&Value::Object(body));
            operation.check_size(call.body.as_ref().map_or(0, |(_, body)| body.len()))?;
            Ok(call)
        }
    }
}

fn append<'a>(path: &mut String, query: impl Iterator<Item = &'a (String, String)>) {
    let mut text = form_urlencoded::Serializer::new(String::new());
    text.extend_pairs(query.map(|(name, value)| (name, value)));
    let text = text.finish();
    if !text.is_empty() {
        path.push('?');
        path.push_str(&text);
    }
}

/// Writes a response body to a file or standard output, without holding it in memory.
async fn write_out(mut body: Incoming, to: Option<&PathBuf>) -> Result<(), CtlError> {
    let place = to.map_or("standard output".to_owned(), |to| to.display().to_string());
    let failed = |error: io::Error| CtlError::failed(&place, error);
    let mut out: Box<dyn Write> = match to {
        Some(to) => Box::new(File::create(to).map_err(failed)?),
        None => Box::new(io::stdout()),
    };
    while let Some(frame) = next_frame(&mut body).await? {
        if let Some(bytes) = frame.data_ref() {
            match out.write_all(bytes) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                written => written.map_err(failed)?,
            }
        }
    }
    match out.flush() {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        flushed => flushed.map_err(failed),
    }
}

async fn login(client: &Client, settings: Settings) -> Result<(), CtlError> {
    let Settings {
        url,
        key,
        ca_file,
        allow_plain_http: _, // It is said with each command.
    } = settings;
    let key = key.ok_or_else(|| {
        CtlError::usage(format!(
            "--key-file or {KEY_VARIABLE} must give the API key"
        ))
    })?;
    client.json(&Call::get("/api/v1/users/me")).await?;
    let login = Login { url, key, ca_file };
    let kept = login.keep()?;
    print(&format!(
        "logged in to {}; kept in {}\n",
        login.url,
        kept.display()
    ))
}

async fn whoami(client: &Client, output: Output) -> Result<(), CtlError> {
    let identity = client.json(&Call::get("/api/v1/users/me")).await?;
    print(&output.resource(&identity))
}

/// Requests `/ready`, which needs no API key.
async fn ready(client: &Client) -> Result<(), CtlError> {
    client.json(&Call::get("/ready")).await?;
    print("ready\n")
}

fn completions(matches: &ArgMatches, command: &mut Command) -> Result<(), CtlError> {
    let shell = matches.get_one::<Shell>("shell").ok_or_else(no_command)?;
    let mut script = Vec::new();
    clap_complete::generate(*shell, command, "controld", &mut script);
    print(&String::from_utf8_lossy(&script))
}

fn output(matches: &ArgMatches) -> Output {
    let name = matches.get_one::<String>("output");
    Output::named(name.map_or("", String::as_str))
}

fn no_command() -> CtlError {
    CtlError::usage("no such command")
}
