//! `ctl plan` and `ctl deploy`: preview and rollout of a folder with configuration.

mod preview;
mod standing;

use crate::ctl::client::{Call, Repetition};
use crate::ctl::error::CtlError;
use crate::ctl::files::from_folder;
use crate::ctl::grammar::{path_id, rollout_fields};
use crate::ctl::lookup::{Lookup, text};
use crate::ctl::operation::Operation;
use crate::ctl::output::escape::inline;
use crate::ctl::output::{Output, diagnostics, print, report};
use crate::ctl::rollout::{Follow, has_failed, outcome, timeout};
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

/// Creates a bundle of a folder and starts its rollout, unless all nodes run these bytes already.
/// Follows a rollout of these bytes that is under way.
pub(crate) async fn run(
    lookup: &Lookup<'_>,
    matches: &ArgMatches,
    output: Output,
) -> Result<(), CtlError> {
    let given = flags(rollout_fields(lookup.operations), matches)?;
    let mut deployment = Deployment::read(lookup, matches, given).await?;
    let prints_steps = output == Output::Table;
    if prints_steps {
        print(&preview::text(&deployment.preview))?;
    }
    deployment.check()?;
    if preview::nodes(&deployment.preview) == 0 {
        return Err(CtlError::failed(
            "deploy",
            "there is no node to roll out to",
        ));
    }
    deployment.resolve().await?;
    let mut found = deployment.rollout_of_ordered().await?;
    if found.is_none() && deployment.is_in_force().await? {
        let done = json!({"state": "unchanged"});
        return if prints_steps {
            Ok(())
        } else {
            print(&output.resource(&done))
        };
    }
    if found.is_none() {
        deployment.check_time()?;
        let name = matches.get_one::<String>("name").cloned();
        let bundle = deployment.bundle(name).await?;
        let (name, id) = (text(&bundle, "name"), text(&bundle, "id"));
        if prints_steps {
            print(&format!("bundle  {} ({})\n", inline(name), inline(id)))?;
        }
        found = deployment.under_way(id).await?;
        if found.is_none() {
            found = Some(deployment.start(id).await?);
        }
    }
    let rollout = found.unwrap_or_default();
    let id = inline(text(&rollout, "id"));
    if prints_steps {
        print(&format!("rollout {id}\n"))?;
    }
    let follow = Follow {
        path: format!("{}/rollouts/{id}", deployment.project),
        timeout: timeout(matches),
        output,
    };
    // Another operator may have ended it since it was found or started.
    let last = follow.run(lookup).await?;
    if has_failed(text(&last, "state")) {
        return outcome(&last);
    }
    Ok(())
}

impl<'a> Deployment<'a> {
    async fn read(
        lookup: &'a Lookup<'a>,
        matches: &ArgMatches,
        rollout: Map<String, Value>,
    ) -> Result<Self, CtlError> {
        let folder = matches.get_one::<PathBuf>("folder").cloned();
        let folder = folder.unwrap_or_default();
        let create = operation(lookup, "bundle", "create")?;
        let contents = from_folder(create, &folder)?;
        let given = matches.get_one::<String>(&path_id("project")).cloned();
        let project = lookup.scope_id("project", given.as_deref()).await?;
        let project = format!("/api/v1/projects/{project}");
        let mut body = contents.clone();
        let labels = rollout.get("labels").cloned();
        body.extend(labels.map(|labels| ("labels".to_owned(), labels)));
        let mut call = Call::new(Method::POST, format!("{project}/bundles/preview"));
        call.repetition = Repetition::Harmless;
        let call = call.json(&body.into());
        create.check_size(call.body.as_ref().map_or(0, |(_, body)| body.len()))?;
        let preview = lookup.client.json(&call).await?;
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
        let until = inline(until);
        let cause = format!("the project's policy allows no change until {until}");
        Err(CtlError::failed("deploy", cause))
    }

    /// Replaces names of nodes by IDs.
    async fn resolve(&mut self) -> Result<(), CtlError> {
        let list = format!("{}/rollouts", self.project);
        let create = operation(self.lookup, "rollout", "create")?;
        self.lookup.fields(create, &mut self.rollout, &list).await
    }

    /// Returns the bundle with the folder's contents: an existing one with the same name and
    /// contents, or a new one. Fails if that bundle was revoked.
    async fn bundle(&self, name: Option<String>) -> Result<Value, CtlError> {
        let digest = text(&self.preview, "digest");
        let name = name.unwrap_or_else(|| digest.chars().take(NAME_CHARS).collect());
        let list = format!("{}/bundles", self.project);
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("name", &name)
            .finish();
        let mut found = self.lookup.all(&format!("{list}?{query}"), None).await?;
        found.retain(|bundle| text(bundle, "digest") == digest && text(bundle, "name") == name);
        let in_state = |state: &str| found.iter().find(|bundle| text(bundle, "state") == state);
        if let Some(bundle) = in_state("signed") {
            return Ok(bundle.clone());
        }
        if let Some(bundle) = in_state("revoked") {
            let cause = "with the same bytes was revoked; use another --name to deploy them";
            let what = format!("bundle {} ({})", inline(&name), inline(text(bundle, "id")));
            return Err(CtlError::failed(what, cause));
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

    /// Creates and starts a rollout.
    async fn start(&self, bundle: &str) -> Result<Value, CtlError> {
        let list = format!("{}/rollouts", self.project);
        let mut body = self.rollout.clone();
        body.insert("bundle".to_owned(), bundle.into());
        let create = Call::new(Method::POST, list.clone()).json(&body.into());
        let made = self.lookup.client.json(&create).await;
        let made = made.map_err(|error| {
            if !error.is_transient() {
                return error;
            }
            let hint = "`controld ctl rollout list --state planned` shows whether it was created";
            CtlError::failed("rollout", format!("{error}; {hint}"))
        })?;
        let path = format!("{list}/{}", text(&made, "id"));
        let start = Call::new(Method::POST, format!("{path}/start"));
        match self.lookup.client.json(&start).await {
            Ok(started) => Ok(started),
            Err(error) => self.cancel(&path, &made, error).await,
        }
    }

    /// Cancels a planned rollout after its start failed: it would stay planned. Returns it if it is
    /// not planned any more: it has started and only the response was lost, or another operator has
    /// cancelled it.
    async fn cancel(&self, path: &str, made: &Value, error: CtlError) -> Result<Value, CtlError> {
        let found = self.lookup.client.json(&Call::get(path)).await;
        let state = found.as_ref().map(|found| text(found, "state"));
        if state.is_ok_and(|state| state != "planned") {
            return found;
        }
        let id = inline(text(made, "id"));
        let cancel = Call::new(Method::POST, format!("{path}/cancel"));
        let end = match self.lookup.client.json(&cancel).await {
            Ok(_) => "it was cancelled".to_owned(),
            Err(error) => format!(
                "its cancellation failed too: {error}; `controld ctl rollout status {id}` shows \
                 its state"
            ),
        };
        Err(CtlError::failed(
            format!("rollout {id}"),
            format!("was not started: {error}; {end}"),
        ))
    }
}

fn operation<'a>(lookup: &Lookup<'a>, noun: &str, verb: &str) -> Result<&'a Operation, CtlError> {
    let mut all = lookup.operations.iter();
    let found = all.find(|one| one.noun == noun && one.verb == verb);
    found.ok_or_else(|| CtlError::failed(noun, "no such operation"))
}
