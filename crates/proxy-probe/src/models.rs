//! The models that a model server has.

use crate::error::CheckError;
use serde_json::Value;

/// Checks that a list of models, in the format of `OpenAI` or Ollama, contains all `expected` ones.
pub(crate) fn check(body: &[u8], expected: &[String]) -> Result<(), CheckError> {
    let document: Value = serde_json::from_slice(body).map_err(|_| CheckError::NotModels)?;
    let names = names(&document).ok_or(CheckError::NotModels)?;
    let is_there = |model: &&String| names.iter().any(|name| name.starts_with(model.as_str()));
    match expected.iter().find(|model| !is_there(model)) {
        None => Ok(()),
        Some(missing) => Err(CheckError::MissingModel(missing.clone())),
    }
}

/// `{"data": [{"id": …}]}` of `OpenAI`, or `{"models": [{"name": …}]}` of Ollama.
fn names(document: &Value) -> Option<Vec<&str>> {
    let (list, key) = match (document.get("data"), document.get("models")) {
        (Some(list), _) => (list, "id"),
        (None, Some(list)) => (list, "name"),
        (None, None) => return None,
    };
    let models = list.as_array()?.iter();
    Some(
        models
            .filter_map(|model| model.get(key)?.as_str())
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(body: &str, expected: &[&str]) -> Result<(), String> {
        let expected: Vec<_> = expected.iter().map(|name| (*name).to_owned()).collect();
        check(body.as_bytes(), &expected).map_err(|error| error.to_string())
    }

    #[test]
    fn both_kinds_of_lists_are_read_and_names_stand_for_longer_ones() {
        let openai = r#"{"object":"list","data":[{"id":"llama3-70b"},{"id":"phi"}]}"#;
        let ollama = r#"{"models":[{"name":"llama3:latest"},{"name":"phi:3"}]}"#;
        for list in [openai, ollama] {
            assert_eq!(outcome(list, &["llama3", "phi"]), Ok(()));
            assert_eq!(outcome(list, &[]), Ok(()));
            let missing = Err("the model llama3-8b is missing".to_owned());
            assert_eq!(outcome(list, &["phi", "llama3-8b"]), missing);
        }
    }

    #[test]
    fn an_invalid_list_of_models_fails() {
        for wrong in ["", "{}", "[]", r#"{"data":3}"#, "<html>"] {
            let failed = Err("the list of models is not understood".to_owned());
            assert_eq!(outcome(wrong, &[]), failed, "{wrong}");
        }
    }
}
