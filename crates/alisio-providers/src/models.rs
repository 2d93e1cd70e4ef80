//! The list of models, in the shapes that services give it.

use alisio_sdk::{ProviderError, ProviderErrorKind};
use serde_json::Value;

use crate::fault::{Told, fault, quoted};
use crate::loose::count;

/// A model that a service offers. What the service does not say stays unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The name to ask for.
    pub id: String,
    /// Tokens that a conversation and its answer may hold.
    pub context_window: Option<u64>,
    /// Tokens that an answer may hold.
    pub max_output_tokens: Option<u64>,
}

/// Reads `{data: […]}`, `{models: […]}` or a bare list.
pub(crate) fn read_models(body: &[u8]) -> Result<Vec<ModelInfo>, ProviderError> {
    let wrong = |why: &str| {
        let text = quoted(String::from_utf8_lossy(body));
        fault(ProviderErrorKind::Protocol, format!("the service's list of models {why}: `{text}`"))
    };
    let value: Value = serde_json::from_slice(body).map_err(|_| wrong("is not JSON"))?;
    let list = ["data", "models"].into_iter().find_map(|key| value.get(key)).unwrap_or(&value);
    let Some(list) = list.as_array() else {
        return Err(Told::read(&value).map_or_else(|| wrong("is no list"), |told| told.in_stream()));
    };
    Ok(list.iter().filter_map(model).collect())
}

fn model(value: &Value) -> Option<ModelInfo> {
    let id = value
        .as_str()
        .or_else(|| ["id", "name", "model"].into_iter().find_map(|key| value.get(key)?.as_str()));
    let find = |paths: &[&str]| paths.iter().find_map(|path| count(value.pointer(path)?).filter(|n| *n > 0));
    Some(ModelInfo {
        id: id.filter(|id| !id.is_empty())?.to_owned(),
        context_window: find(&[
            "/context_window",
            "/context_length",
            "/max_context_length",
            "/max_model_len",
            "/top_provider/context_length",
            "/meta/n_ctx",
            "/meta/n_ctx_train",
            "/limits/max_context_window_tokens",
        ]),
        max_output_tokens: find(&[
            "/max_output_tokens",
            "/max_completion_tokens",
            "/max_output_length",
            "/top_provider/max_completion_tokens",
            "/limits/max_output_tokens",
        ]),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_read_in_every_shape() {
        let info = |id: &str, context_window, max_output_tokens| ModelInfo {
            id: id.to_owned(),
            context_window,
            max_output_tokens,
        };
        for (body, expected) in [
            (
                json!({"object": "list", "data": [{"id": "a"}, {"id": "b", "context_window": 8192, "max_output_tokens": "1024"}]}),
                vec![info("a", None, None), info("b", Some(8192), Some(1024))],
            ),
            (
                json!({"data": [{"id": "a", "top_provider": {"context_length": 5, "max_completion_tokens": null}}]}),
                vec![info("a", Some(5), None)],
            ),
            (
                json!({"models": [{"name": "a", "meta": {"n_ctx_train": 4096}}]}),
                vec![info("a", Some(4096), None)],
            ),
            (
                json!([{"id": "a", "max_model_len": 0}, "b", {"id": ""}, 7]),
                vec![info("a", None, None), info("b", None, None)],
            ),
            (json!({"data": []}), vec![]),
        ] {
            assert_eq!(read_models(body.to_string().as_bytes()).unwrap(), expected, "{body}");
        }
    }

    #[test]
    fn what_is_no_list_is_named() {
        for (body, expected) in [
            ("nothing here", "the service's list of models is not JSON: `nothing here`"),
            ("{\"a\":1}", "the service's list of models is no list: `{\"a\":1}`"),
            ("{\"error\":{\"message\":\"no\"}}", "the service reported an error in its answer: no"),
        ] {
            assert_eq!(read_models(body.as_bytes()).unwrap_err().message, expected);
        }
    }
}
