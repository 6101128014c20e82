//! Replays recorded requests against two bundles with the proxy's own code, without sending
//! anything.

use super::diff::plan;
use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_domain::Refusal;
use control_wire::{BundleId, ProjectId};
use proxy_model::Model;
use proxy_plan::diff::replay::{Recording, Replay, ReplayDifference, ReplayReport};
use std::sync::Arc;

/// Maximum number of requests per replay: it occupies a core for a second or two.
const MAX_LINES: usize = 50_000;
/// Maximum number of listed kinds of requests; further ones are only counted.
const MAX_LISTED: usize = 1_000;

/// Decisions on recorded requests before and after a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Number of replayed requests.
    pub requests: u64,
    /// Number of requests with different decisions.
    pub different: u64,
    /// Number of kinds: pairs of a decision before and one after; at most 10 000.
    pub kinds: usize,
    /// Kinds with different decisions, most frequent first.
    pub differences: Vec<KindMoved>,
    /// Number of kinds with different decisions that are not listed.
    pub omitted_differences: usize,
    /// Number of requests that were recorded with another route than the older bundle chooses now.
    pub unlike_recorded: u64,
    /// Description of the first such request.
    pub unlike_example: Option<String>,
    /// Number of lines that are not requests.
    pub skipped_lines: usize,
}

/// Requests that share a pair of different decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindMoved {
    /// Decision of the older bundle: route and service, or a refusal.
    pub before: String,
    /// Decision of the newer bundle.
    pub after: String,
    /// Number of requests of this kind.
    pub requests: u64,
    /// Method, host and path of the first request; the query is left out, because it may contain
    /// secrets.
    pub example: String,
}

impl App {
    /// Replays a recording against the bundle `id` and the older bundle `before`. `recording` has
    /// one JSON object per line; it is not stored.
    ///
    /// # Errors
    ///
    /// [`Error`]; [`Refusal::Invalid`] for the field `recording` if it has no requests, or too
    /// many.
    pub async fn replay_requests(
        &self,
        call: &Call,
        project: ProjectId,
        id: BundleId,
        before: BundleId,
        recording: String,
    ) -> Result<Replayed, Error> {
        let new = self.bundle(call, project, id).await?.value;
        let old = self.older_bundle(call, project, before).await?;
        let replayed = self.compare_contents(&old, &new, move |before, after| {
            replay([before.model, after.model], recording)
        });
        // The bundle passed the checks of the release that signed it.
        let refused = Refusal::invalid("before", "is refused by this version of the checks");
        Ok(replayed.await?.ok_or(refused)??)
    }
}

fn replay(models: [&Arc<Model>; 2], recording: String) -> Result<Replayed, Refusal> {
    let recording = Recording::new(recording.into_bytes());
    if MAX_LINES < recording.lines() {
        let reason = "has more than 50000 lines";
        return Err(Refusal::invalid("recording", reason));
    }
    let [before, after] = models.map(plan);
    let mut replay = Replay::new(&before, &after);
    let mut skipped_lines = 0;
    for head in recording.heads() {
        match head {
            Some(head) => replay.push(&head),
            None => skipped_lines += 1,
        }
    }
    let ReplayReport {
        requests,
        different,
        kinds,
        differences,
        unlike_recorded,
        unlike_example,
    } = replay.finish();
    if requests == 0 {
        let reason = "has no request: each line is a JSON object with method and path";
        return Err(Refusal::invalid("recording", reason));
    }
    Ok(Replayed {
        requests,
        different,
        kinds,
        omitted_differences: differences.len().saturating_sub(MAX_LISTED),
        differences: differences.iter().take(MAX_LISTED).map(moved).collect(),
        unlike_recorded,
        unlike_example,
        skipped_lines,
    })
}

fn moved(difference: &ReplayDifference) -> KindMoved {
    let ReplayDifference {
        before,
        after,
        requests,
        example,
    } = difference;
    KindMoved {
        before: before.to_string(),
        after: after.to_string(),
        requests: *requests,
        example: example.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::check;
    use control_bundle::{ENTRY_FILE, Files};

    fn model(route: &str) -> Arc<Model> {
        let text = format!(
            r#"listeners {{ listener "http" {{ address "0.0.0.0:8080" }} }}
            routes {{ {route} route "rest" {{ upstream "cart" }} }}
            upstreams {{ upstream "cart" {{ target "10.4.0.11:8080" }} }}"#
        );
        let files = Files::from([(ENTRY_FILE.to_owned(), text.into_bytes())]);
        check(&files).model.unwrap()
    }

    fn replayed(recording: &str) -> Result<Replayed, Refusal> {
        let new = model(r#"route "api" { matches { path-prefix "/api" }; upstream "cart" };"#);
        replay([&model(""), &new], recording.to_owned())
    }

    #[test]
    fn kinds_are_counted_and_those_decided_otherwise_are_listed() {
        let line =
            |path: &str| format!("{{\"method\":\"GET\",\"path\":\"{path}\",\"host\":\"a\"}}\n");
        let lines = ["/api/x?token=1", "/else", "/api/y"].map(line).concat();
        let found = replayed(&(lines + "not a request\n\n")).unwrap();
        let expected = Replayed {
            requests: 3,
            different: 2,
            kinds: 2,
            differences: vec![KindMoved {
                before: "rest (upstream cart)".to_owned(),
                after: "api (upstream cart)".to_owned(),
                requests: 2,
                example: "GET a/api/x".to_owned(),
            }],
            skipped_lines: 1,
            ..Replayed::default()
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_recording_without_requests_or_with_too_many_is_refused() {
        for text in [String::new(), "[]".to_owned(), "{}\n".repeat(MAX_LINES + 1)] {
            let refused = replayed(&text).unwrap_err();
            let field = "recording";
            assert!(
                matches!(refused, Refusal::Invalid { field: named, .. } if named == field),
                "{refused:?}"
            );
        }
    }
}
