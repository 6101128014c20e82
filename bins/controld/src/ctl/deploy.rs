//! `ctl plan` and `ctl deploy`: preview and rollout of a folder with configuration.

mod preview;

use crate::ctl::client::{Call, Repetition};
use crate::ctl::error::CtlError;
use crate::ctl::files::from_folder;
use crate::ctl::grammar::{path_id, rollout_fields};
use crate::ctl::lookup::{Lookup, text};
use crate::ctl::operation::Operation;
use crate::ctl::output::{Output, diagnostics, print, report};
use crate::ctl::rollout::{Follow, timeout};
use crate::ctl::value::flags;
use clap::ArgMatches;
use http::Method;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Length of the name that a bundle has by default: characters of its digest.
const NAME_CHARS: usize = 12;

/// A folder, and the rollout of its contents.
struct Deployment<'a> {
    lookup: &'a Lookup<'a>,
    /// Path of the project.
    project: String,
    /// The bundle's fields `files` and `assets`.
    contents: Map<String, Value>,
    /// Fields of the rollout that the command line sets.
    rollout: Map<String, Value>,
    preview: Value,
}

/// Prints the effect of deploying a folder. Fails if the deployment would be refused.
pub(crate) async fn plan(
    lookup: &Lookup<'_>,
    matches: &ArgMatches,
    output: Output,
) -> Result<(), CtlError> {
    let labels = rollout_fields(lookup.operations).filter(|field| field.name == "labels");
    let given = flags(labels, matches)?;
    let deployment = Deployment::read(lookup, matches, given).await?;
    if output == Output::Table {
        print(&preview::text(&deployment.preview))?;
    } else {
        print(&output.resource(&deployment.preview))?;
    }
    deployment.check()
}

/// Creates a bundle of a folder and starts its rollout, unless all nodes already have these bytes
/// as their target.
pub(crate) async fn run(
    lookup: &Lookup<'_>,
    matches: &ArgMatches,
    output: Output,
) -> Result<(), CtlError> {
    let given = flags(rollout_fields(lookup.operations), matches)?;
    let deployment = Deployment::read(lookup, matches, given).await?;
    let prints_steps = output == Output::Table;
    if prints_steps {
        print(&preview::text(&deployment.preview))?;
    }
    deployment.check()?;
    deployment.check_time()?;
    if preview::is_in_force(&deployment.preview) {
        let done = json!({"state": "unchanged"});
        return if prints_steps {
            Ok(())
        } else {
            print(&output.resource(&done))
        };
    }
    if preview::has_no_nodes(&deployment.preview) {
        return Err(CtlError::failed(
            "deploy",
            "there is no node to roll out to",
        ));
    }
    let name = matches.get_one::<String>("name").cloned();
    let bundle = deployment.bundle(name).await?;
    let rollout = deployment.start(&bundle).await?;
    if prints_steps {
        let (name, bundle) = (text(&bundle, "name"), text(&bundle, "id"));
        print(&format!("bundle  {name} ({bundle})\nrollout {rollout}\n"))?;
    }
    let follow = Follow {
        path: format!("{}/rollouts/{rollout}", deployment.project),
        timeout: timeout(matches),
        output,
    };
    follow.run(lookup).await
}

impl<'a> Deployment<'a> {
    async fn read(
        lookup: &'a Lookup<'a>,
        matches: &ArgMatches,
        rollout: Map<String, Value>,
    ) -> Result<Self, CtlError> {
        let folder = matches.get_one::<PathBuf>("folder").cloned();
        let folder = folder.unwrap_or_default();
        let contents = from_folder(operation(lookup, "bundle", "create")?, &folder)?;
        let given = matches.get_one::<String>(&path_id("project")).cloned();
        let project = lookup.scope_id("project", given.as_deref()).await?;
        let project = format!("/api/v1/projects/{project}");
        let mut body = contents.clone();
        let labels = rollout.get("labels").cloned();
        body.extend(labels.map(|labels| ("labels".to_owned(), labels)));
        let mut call = Call::new(Method::POST, format!("{project}/bundles/preview"));
        call.repetition = Repetition::Harmless;
        let preview = lookup.client.json(&call.json(&body.into())).await?;
        Ok(Self {
            lookup,
            project,
            contents,
            rollout,
            preview,
        })
    }

    /// Prints the diagnostics. Fails for errors, and for warnings if the policy refuses them.
    fn check(&self) -> Result<(), CtlError> {
        let shown = diagnostics::render(&self.preview, self.contents.get("files"));
        if !shown.is_empty() {
            report(&shown);
        }
        if text(&self.preview, "digest").is_empty() {
            return Err(CtlError::failed("folder", "has errors, no node gets it"));
        }
        let is_refused = self.preview.get("refused").and_then(Value::as_bool);
        if is_refused == Some(true) {
            let cause = "the project's policy refuses bundles with warnings";
            return Err(CtlError::failed("folder", cause));
        }
        Ok(())
    }

    fn check_time(&self) -> Result<(), CtlError> {
        let until = text(&self.preview, "frozen_until");
        if until.is_empty() {
            return Ok(());
        }
        let cause = format!("the project's policy allows no change until {until}");
        Err(CtlError::failed("deploy", cause))
    }

    /// Returns the bundle with the folder's contents: an existing one with the same name and
    /// contents, or a new one.
    async fn bundle(&self, name: Option<String>) -> Result<Value, CtlError> {
        let digest = text(&self.preview, "digest");
        let name = name.unwrap_or_else(|| digest.chars().take(NAME_CHARS).collect());
        let list = format!("{}/bundles", self.project);
        let query = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("state", "signed"), ("name", name.as_str())])
            .finish();
        let found = self.lookup.all(&format!("{list}?{query}"), None).await?;
        let is_it =
            |bundle: &&Value| text(bundle, "digest") == digest && text(bundle, "name") == name;
        if let Some(bundle) = found.iter().find(is_it) {
            return Ok(bundle.clone());
        }
        let mut body = self.contents.clone();
        body.insert("name".to_owned(), name.into());
        let call = Call::new(Method::POST, list).json(&body.into());
        let made = self.lookup.client.json(&call).await?;
        if text(&made, "state") != "signed" {
            return Err(CtlError::failed("bundle", "rejected, no node gets it"));
        }
        Ok(made)
    }

    /// Creates and starts a rollout; returns its ID.
    async fn start(&self, bundle: &Value) -> Result<String, CtlError> {
        let list = format!("{}/rollouts", self.project);
        let mut body = self.rollout.clone();
        body.insert("bundle".to_owned(), text(bundle, "id").into());
        let create = operation(self.lookup, "rollout", "create")?;
        self.lookup.fields(create, &mut body, &list).await?;
        let create = Call::new(Method::POST, list.clone()).json(&body.into());
        let made = self.lookup.client.json(&create).await?;
        let id = text(&made, "id").to_owned();
        let start = Call::new(Method::POST, format!("{list}/{id}/start"));
        self.lookup.client.json(&start).await?;
        Ok(id)
    }
}

fn operation<'a>(lookup: &Lookup<'a>, noun: &str, verb: &str) -> Result<&'a Operation, CtlError> {
    let mut all = lookup.operations.iter();
    let found = all.find(|one| one.noun == noun && one.verb == verb);
    found.ok_or_else(|| CtlError::failed(noun, "no such operation"))
}
