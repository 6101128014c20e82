//! Command-line grammar of `controld ctl`, generated from the operations.

use crate::ctl::error::CtlError;
use crate::ctl::operation::{Field, Kind, Operation, RequestBody};
use clap::builder::PossibleValuesParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use clap_complete::Shell;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 refused or failed, with the reason on the standard error output; 2 a wrong \
command line.

A value `@FILE` is read from the file, `@-` from the standard input. Names are accepted instead \
of ids.";

/// Builds `ctl` with all its commands.
pub(crate) fn command(operations: &[Operation]) -> Command {
    let mut ctl = Command::new("ctl")
        .about("Client of a control plane: its complete interface as commands")
        .after_help(EXIT_CODES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(common())
        .subcommands([login(), whoami(), ready(), apply(), completions(), manual()])
        .subcommands([plan(operations), deploy(operations)]);
    for noun in nouns(operations) {
        let own = operations.iter().filter(|operation| operation.noun == noun);
        let plural = own.clone().next().map(|one| one.tag.clone());
        let mut group = Command::new(noun.clone())
            .about(format!(
                "Commands of {}",
                plural.as_deref().unwrap_or(&noun)
            ))
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(own.map(verb));
        if noun == "rollout" {
            group = group.subcommand(rollout_status());
        }
        if let Some(plural) = plural.filter(|plural| *plural != noun) {
            group = group.alias(plural);
        }
        ctl = ctl.subcommand(group);
    }
    ctl
}

/// Returns every noun once.
fn nouns(operations: &[Operation]) -> Vec<String> {
    let mut nouns: Vec<String> = Vec::new();
    for operation in operations {
        if !nouns.contains(&operation.noun) {
            nouns.push(operation.noun.clone());
        }
    }
    nouns
}

fn common() -> [Arg; 5] {
    let file = || value_parser!(PathBuf);
    [
        Arg::new("url")
            .long("url")
            .env("CONTROLD_URL")
            .global(true)
            .help("The control plane's URL [default: http://127.0.0.1:8443]"),
        Arg::new("allow-plain-http")
            .long("allow-plain-http")
            .env("CONTROLD_ALLOW_PLAIN_HTTP")
            .action(ArgAction::SetTrue)
            .global(true)
            .help("Sends the key over http:// off loopback, where the network can read it"),
        Arg::new("key-file")
            .long("key-file")
            .value_parser(file())
            .value_hint(ValueHint::FilePath)
            .global(true)
            .help("A file with the API key in its first line; else CONTROLD_API_KEY has the key"),
        Arg::new("ca-file")
            .long("ca-file")
            .env("CONTROLD_CA_FILE")
            .value_parser(file())
            .value_hint(ValueHint::FilePath)
            .global(true)
            .help("Certificates to trust instead of the system's, in PEM"),
        Arg::new("output")
            .long("output")
            .short('o')
            .value_parser(["table", "json", "id"])
            .default_value("table")
            .global(true)
            .help("How answers are printed"),
    ]
}

fn login() -> Command {
    Command::new("login").about(
        "Keeps the URL and the key for later commands, after the server has accepted the key",
    )
}

fn whoami() -> Command {
    Command::new("whoami").about("The identity of the key, and what it may do")
}

fn ready() -> Command {
    Command::new("ready").about(
        "Checks that the control plane takes requests, for health checks of containers; needs no key",
    )
}

fn apply() -> Command {
    Command::new("apply")
        .about("Applies a file: creates what is missing, updates what differs")
        .args([
            Arg::new("file")
                .long("file")
                .short('f')
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("JSON: an object with a list for each noun, such as \"services\""),
            scope_id("org"),
            scope_id("project"),
            Arg::new("dry-run")
                .long("dry-run")
                .action(ArgAction::SetTrue)
                .help("Only prints the changes"),
            Arg::new("prune")
                .long("prune")
                .action(ArgAction::SetTrue)
                .help(
                    "Deletes items of the file's lists that the file does not name, such as services; \
                     exit code 1 if some are in use",
                ),
        ])
}

fn plan(operations: &[Operation]) -> Command {
    Command::new("plan")
        .about(
            "Shows the effect of a folder on the nodes: differences from what they are ordered to run, \
             risks, and what the project's policy says; exit code 1 if it would be refused",
        )
        .arg(folder())
        .arg(scope_id("project"))
        .args(rollout_flags(operations).filter(|flag| flag.get_long() == Some("labels")))
}

fn deploy(operations: &[Operation]) -> Command {
    Command::new("deploy")
        .about(
            "Deploys a folder to the nodes: shows the plan, creates a bundle and a rollout, and starts it; \
             does nothing if all nodes run the same bytes, and follows a rollout of them that is under way",
        )
        .arg(folder())
        .arg(scope_id("project"))
        .arg(
            Arg::new("name")
                .long("name")
                .value_name("TEXT")
                .help("The bundle's name, such as a commit [default: the beginning of its digest]"),
        )
        .args(wait())
        .args(rollout_flags(operations))
}

fn folder() -> Arg {
    Arg::new("folder")
        .required(true)
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::DirPath)
        .help("The folder with `proxy.kdl`")
}

/// Builds a flag for each field of a rollout, except its bundle.
fn rollout_flags(operations: &[Operation]) -> impl Iterator<Item = Arg> {
    let fields = rollout_fields(operations);
    fields.map(|field| flag(field, body_id(&field.name)))
}

/// Returns the fields of a new rollout, except its bundle.
pub(crate) fn rollout_fields(operations: &[Operation]) -> impl Iterator<Item = &Field> {
    let mut all = operations.iter();
    let create = all.find(|one| one.noun == "rollout" && one.verb == "create");
    let fields = create.into_iter().flat_map(Operation::fields);
    fields.filter(|field| field.name != "bundle")
}

fn completions() -> Command {
    Command::new("completions")
        .about("Prints a script that completes `controld` in a shell")
        .arg(
            Arg::new("shell")
                .required(true)
                .value_parser(value_parser!(Shell)),
        )
}

fn manual() -> Command {
    Command::new("manual")
        .about("Prints the page of all commands")
        .hide(true)
}

fn rollout_status() -> Command {
    Command::new("status")
        .about("The state of a rollout: progress, figures of the gate, reason of a stop")
        .args([
            scope_id("project"),
            Arg::new(path_id("rollout"))
                .required(true)
                .value_name("ROLLOUT")
                .help("The rollout's id"),
        ])
        .args(wait())
}

/// Builds `--wait` and its timeout.
fn wait() -> [Arg; 2] {
    [
        Arg::new("wait")
            .long("wait")
            .action(ArgAction::SetTrue)
            .help("Waits for an end or a pause, through outages; exit code 0 only if it completes"),
        Arg::new("timeout")
            .long("timeout")
            .value_name("SECONDS")
            .value_parser(value_parser!(u64))
            .default_value("3600")
            .help("How long --wait waits, for an approval too; then exit code 1 [default: 3600]")
            .hide_default_value(true),
    ]
}

fn verb(operation: &Operation) -> Command {
    let mut verb = Command::new(operation.verb.clone()).about(operation.about.clone());
    for name in &operation.path_fields {
        verb = verb.arg(if is_flag(operation, name) {
            scope_id(name)
        } else {
            Arg::new(path_id(name))
                .required(true)
                .value_name(name.to_uppercase())
                .help(format!("The {}'s id or name", name.replace('_', " ")))
        });
    }
    let query = operation
        .query
        .iter()
        .filter(|field| field.name != "cursor");
    for field in query {
        let flag = flag(field, query_id(&field.name));
        // `--sort -name` sorts in descending order.
        verb = verb.arg(flag.allow_hyphen_values(field.name == "sort"));
    }
    for field in operation.fields() {
        verb = verb.arg(flag(field, body_id(&field.name)));
    }
    verb.args(further(operation))
}

/// Builds the arguments that depend on the operation's kind of request and response.
fn further(operation: &Operation) -> Vec<Arg> {
    let mut further = Vec::new();
    let file = |id: &'static str, short| {
        Arg::new(id)
            .long(id)
            .short(short)
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::AnyPath)
    };
    match &operation.body {
        RequestBody::None => {}
        RequestBody::Json(_) => further.push(file("file", 'f').help(
            "The fields as JSON (`-`: standard input), or a folder of files; flags add to them",
        )),
        RequestBody::Bytes(kind) => {
            let help = format!("What to send ({kind}); `-`: standard input");
            further.push(file("file", 'f').required(true).help(help));
        }
    }
    if operation.is_raw {
        further.push(file("to", 'O').help("Where to write it [default: standard output]"));
    }
    if operation.is_versioned {
        let help = "Only if it has this version, as `ETag` gives it";
        further.push(Arg::new("if-match").long("if-match").help(help));
    }
    further
}

/// Returns true if a path parameter is a flag: `{org}` in the path of a project's list, for
/// example. In commands on organizations themselves, `{org}` is a positional argument.
pub(crate) fn is_flag(operation: &Operation, name: &str) -> bool {
    matches!(name, "org" | "project") && operation.noun != name
}

fn scope_id(name: &str) -> Arg {
    let variable = format!("CONTROLD_{}", name.to_uppercase());
    Arg::new(path_id(name))
        .long(name.to_owned())
        .env(variable)
        .help(format!(
            "The {name}'s id or name; not needed where there is one"
        ))
}

/// Flags of every command. A request field with such a name has a flag with the prefix `request-`.
const GLOBAL_FLAGS: [&str; 5] = ["url", "allow-plain-http", "key-file", "ca-file", "output"];

fn flag(field: &Field, id: String) -> Arg {
    let mut long = field.name.replace('_', "-");
    if GLOBAL_FLAGS.contains(&long.as_str()) {
        long.insert_str(0, "request-");
    }
    let value = match field.kind {
        Kind::Text | Kind::Texts => "TEXT",
        Kind::Integer | Kind::Number => "NUMBER",
        Kind::Boolean => "true|false",
        Kind::Json => "JSON",
    };
    let mut flag = Arg::new(id)
        .long(long)
        .value_name(value)
        .help(field.about.clone());
    if field.kind == Kind::Texts {
        flag = flag.action(ArgAction::Append).value_delimiter(',');
    }
    if !field.values.is_empty() {
        flag = flag.value_parser(PossibleValuesParser::new(field.values.clone()));
    }
    flag
}

/// Refuses `--url` for requests with a field `url`, unless `--request-url` is given too. The flag
/// sets the address of the control plane: if the field was meant, the API key would be sent to the
/// field's address.
pub(crate) fn check_url(operation: &Operation, matches: &ArgMatches) -> Result<(), CtlError> {
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let Some(field) = operation.fields().iter().find(|field| field.name == "url") else {
        return Ok(());
    };
    if !is_given("url") || is_given(&body_id(&field.name)) {
        return Ok(());
    }
    Err(CtlError::usage(format!(
        "`--url` is the control plane's URL, and gets the key; the field `url` of `{} {}` is `--request-url`. With the \
         field from a file, CONTROLD_URL gives the control plane's",
        operation.noun, operation.verb
    )))
}

/// ID of a path parameter among the parsed arguments.
pub(crate) fn path_id(name: &str) -> String {
    format!("path {name}")
}

pub(crate) fn query_id(name: &str) -> String {
    format!("query {name}")
}

pub(crate) fn body_id(name: &str) -> String {
    format!("body {name}")
}
