//! Figures of the response cache, and purges.

use crate::json_body::parse_members;
use crate::state::AdminState;
use proxy_cache::{CacheStore, Figures, KeyTarget, Purge, Purged};
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::Plan;
use serde_json::{Value, json};

/// Figures of the cache for `/admin/cache` and `/admin/stats`; all 0 if no route caches.
pub(crate) fn document(state: &AdminState) -> Value {
    let documents = state.plan.load();
    let store = documents.plan.cache();
    figures(&store.map_or_else(Figures::default, |store| store.figures()))
}

/// Removes the cached responses that `body` selects.
pub(crate) fn purge(state: &AdminState, body: &[u8]) -> Result<Value, Problem> {
    let documents = state.plan.load();
    let store = documents.plan.cache();
    let store = store.ok_or_else(|| {
        let detail = Detail::text("no route stores responses; add `cache` to a route");
        Problem::new(Reason::AdminTargetUnknown, detail)
    })?;
    let purge =
        read(body).map_err(|wrong| Problem::new(Reason::AdminBodyInvalid, Detail::text(wrong)))?;
    let Purged { objects, bytes } = match &purge {
        Purge::Url(url) => purge_url(&documents.plan, store, url),
        Purge::Prefix(_) | Purge::Tag(_) | Purge::All => store.purge(&purge),
    };
    Ok(json!({ "purged": objects, "bytes": bytes }))
}

/// Removes the responses of `url` on all routes: some leave query parameters out of their keys.
fn purge_url(plan: &Plan, store: &CacheStore, url: &str) -> Purged {
    let mut purged = Purged::default();
    let target = KeyTarget::from_url(url);
    for url in target.map_or_else(Vec::new, |target| plan.cache_urls(target)) {
        let Purged { objects, bytes } = store.purge(&Purge::Url(url));
        purged.objects += objects;
        purged.bytes += bytes;
    }
    purged
}

fn figures(figures: &Figures) -> Value {
    let Figures {
        objects,
        bytes,
        max_bytes,
        stored,
        evicted,
        not_admitted,
        purged,
    } = *figures;
    json!({
        "objects": objects,
        "bytes": bytes,
        "max_bytes": max_bytes,
        "stored_total": stored,
        "evicted_total": evicted,
        "not_admitted_total": not_admitted,
        "purged_total": purged,
    })
}

/// Parses one of `{"url": "https://…"}`, `{"prefix": "https://…"}`, `{"tag": "…"}` and
/// `{"all": true}`.
fn read(body: &[u8]) -> Result<Purge, String> {
    let members = parse_members(body)?;
    let mut all = members.iter();
    let (Some((name, value)), None) = (all.next(), all.next()) else {
        return Err(ONE_OF.to_owned());
    };
    match (name.as_str(), value) {
        ("url", Value::String(url)) => Ok(Purge::Url(absolute(url)?)),
        ("prefix", Value::String(url)) => Ok(Purge::Prefix(absolute(url)?)),
        ("tag", Value::String(tag)) if is_tag(tag) => Ok(Purge::Tag(tag.clone())),
        ("tag", Value::String(_)) => Err("a tag is one word, without commas".to_owned()),
        ("all", Value::Bool(true)) => Ok(Purge::All),
        ("url" | "prefix" | "tag" | "all", _) => {
            Err(format!("`{name}` has another type; {ONE_OF}"))
        }
        (unknown, _) => Err(format!("`{unknown}` is not known; {ONE_OF}")),
    }
}

const ONE_OF: &str = "write one of `url`, `prefix`, `tag` and `\"all\": true`";

/// Normalizes a URL to the form of cache keys: absolute, with a normal host and a path.
fn absolute(url: &str) -> Result<String, String> {
    let target = KeyTarget::from_url(url).filter(KeyTarget::is_usable);
    let target = target.ok_or("write an absolute URL, such as `https://www.example.com/news`")?;
    Ok(target.url(&[]))
}

fn is_tag(tag: &str) -> bool {
    !tag.is_empty()
        && tag
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_names_one_kind_of_purge() {
        let read = |body: &str| read(body.as_bytes()).ok();
        assert_eq!(
            read(r#"{"url":"HTTPS://A.example"}"#),
            Some(Purge::Url("https://a.example/".to_owned()))
        );
        assert_eq!(
            read(r#"{"prefix":"http://a.example:81/News/"}"#),
            Some(Purge::Prefix("http://a.example:81/News/".to_owned()))
        );
        assert_eq!(
            read(r#"{"url":"https://a.example:443?page=2#top"}"#),
            Some(Purge::Url("https://a.example/?page=2".to_owned()))
        );
        assert_eq!(
            read(r#"{"prefix":"http://a.example:80/News/"}"#),
            Some(Purge::Prefix("http://a.example/News/".to_owned()))
        );
        assert_eq!(
            read(r#"{"tag":"home"}"#),
            Some(Purge::Tag("home".to_owned()))
        );
        assert_eq!(read(r#"{"all":true}"#), Some(Purge::All));
        for wrong in [
            "",
            "{}",
            r#"{"all":false}"#,
            r#"{"url":"/a"}"#,
            r#"{"url":"ftp://a/"}"#,
            r#"{"url":"https://u@a.example/"}"#,
            r#"{"tag":"a b"}"#,
            r#"{"tag":""}"#,
            r#"{"tag":"a","url":"http://a/"}"#,
            r#"{"path":"/a"}"#,
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
