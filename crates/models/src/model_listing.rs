//! The models that a provider offers: read from its list, in any of the usual formats, and sorted
//! by family.
//!
//! No model names are built in, only family names. A family is part of a model's name (`sonnet`).
//! The newest model of a family is found by the version in the name, then by dates.

use haft_contract::calendar::CalendarTime;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ModelError;

/// A model in a provider's list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// The id to use in requests.
    pub id: String,
    /// The human-readable name.
    #[serde(default)]
    pub display_name: String,
    /// The release time, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<i64>,
    /// The context window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The maximum number of tokens in a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u32>,
}

/// The JSON pointers at which servers report the context window.
const WINDOW_KEYS: [&str; 8] = [
    "/max_input_tokens",
    "/max_model_len",
    "/loaded_context_length",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/inputTokenLimit",
    "/meta/n_ctx",
];

/// The JSON pointers at which servers report the maximum number of tokens in a reply.
const OUTPUT_KEYS: [&str; 4] = [
    "/max_output_tokens",
    "/max_completion_tokens",
    "/top_provider/max_completion_tokens",
    "/outputTokenLimit",
];

/// The families whose newest model is the default, in order of preference.
const DEFAULT_FAMILIES: [&str; 4] = ["sonnet", "opus", "haiku", GPT];

/// The family of names that consist of this word and a version, without a suffix.
const GPT: &str = "gpt";

impl ModelInfo {
    /// Returns the models of a provider's response: `{"data": […]}`, `{"models": […]}` or a plain
    /// list. Entries that are not models are ignored. Returns `None` without a list.
    pub fn read_list(answer: &Value) -> Option<Vec<Self>> {
        let list = [&answer["data"], &answer["models"], answer];
        let list = list.into_iter().find_map(Value::as_array)?;
        Some(list.iter().filter_map(Self::read).collect())
    }

    /// Like [`read_list`](Self::read_list), but a response without a list is an error.
    pub(crate) fn expect_list(answer: &Value) -> Result<Vec<Self>, ModelError> {
        Self::read_list(answer)
            .ok_or_else(|| ModelError::protocol("the answer holds no list of models"))
    }

    fn read(entry: &Value) -> Option<Self> {
        let text = |key: &str| entry[key].as_str().map(str::to_owned);
        let number = |keys: &[&str]| {
            let numbers = keys.iter().filter_map(|key| entry.pointer(key)?.as_u64());
            numbers.into_iter().find(|number| *number > 0)
        };
        let id = entry.as_str().map(str::to_owned).or_else(|| text("id"))?;
        let written = text("created_at").and_then(|text| day(&text));
        let created = entry["created"].as_i64();
        // Anthropic's `max_tokens` is the limit of a reply; other servers mean the context window.
        let most = number(&OUTPUT_KEYS).or_else(|| {
            let is_theirs = entry["type"] == "model" || entry["max_input_tokens"].is_u64();
            number(&["/max_tokens"]).filter(|_| is_theirs)
        });
        Some(Self {
            display_name: text("display_name").unwrap_or_default(),
            created: created.or(written),
            window: number(&WINDOW_KEYS),
            max_output: most.and_then(|most| u32::try_from(most).ok()),
            id,
        })
    }
}

/// Returns the newest model of a family.
pub fn newest_of<'a>(models: &'a [ModelInfo], family: &str) -> Option<&'a ModelInfo> {
    let of_family = models.iter().filter(|model| is_of(&model.id, family));
    of_family.max_by(|one, other| {
        let (a, b) = (
            ModelVersion::from_id(&one.id),
            ModelVersion::from_id(&other.id),
        );
        a.numbers
            .cmp(&b.numbers)
            .then_with(|| a.date.is_none().cmp(&b.date.is_none()))
            .then_with(|| a.date.cmp(&b.date))
            .then_with(|| one.created.cmp(&other.created))
            // The shorter name is the one without a variant.
            .then_with(|| other.id.len().cmp(&one.id.len()))
            .then_with(|| other.id.cmp(&one.id))
    })
}

/// Returns the model to use if none is configured: the only one, or the newest of the first default
/// family that the list contains. Returns `None` if the user must choose.
pub fn default_of(models: &[ModelInfo]) -> Option<&ModelInfo> {
    match models {
        [] => None,
        [only] => Some(only),
        several => DEFAULT_FAMILIES
            .iter()
            .find_map(|family| newest_of(several, family)),
    }
}

/// Splits a name into the model's id and the context window that a suffix such as `[1m]` sets. The
/// suffix is for haft only: no provider accepts it.
pub fn split_window(name: &str) -> (&str, Option<u64>) {
    let split = || {
        let (base, rest) = name.trim_end().strip_suffix(']')?.rsplit_once('[')?;
        let digits = rest.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
        let unit = match rest[digits.len()..].to_ascii_lowercase().as_str() {
            "k" => 1_000,
            "m" => 1_000_000,
            _ => return None,
        };
        let tokens = digits.parse::<u64>().ok()?.checked_mul(unit)?;
        (tokens > 0 && !base.is_empty()).then_some((base.trim_end(), tokens))
    };
    match split() {
        Some((base, tokens)) => (base, Some(tokens)),
        None => (name, None),
    }
}

/// Returns the start of a day such as `2025-09-29` in seconds since 1970. Text after the day is
/// ignored.
fn day(text: &str) -> Option<i64> {
    let mut parts = text.get(..10)?.split('-').map(str::parse::<i64>);
    let mut part = || parts.next()?.ok();
    let day = CalendarTime {
        year: part()?,
        month: part()?,
        day: part()?,
        hour: 0,
        minute: 0,
        second: 0,
        millisecond: 0,
    };
    day.to_unix_seconds()
}

/// The version and the date in a model's name.
struct ModelVersion {
    numbers: Vec<u32>,
    /// The release date. A name without a date means the newest release.
    date: Option<u32>,
}

impl ModelVersion {
    fn from_id(id: &str) -> Self {
        let mut version = Self {
            numbers: Vec::new(),
            date: None,
        };
        let mut words = name_words(id);
        while let Some(word) = words.next() {
            // A suffix such as `-v1:0` is not part of the model's version, and neither is anything
            // after it.
            if word.len() > 1 && word.starts_with('v') && word[1..].parse::<u32>().is_ok() {
                break;
            }
            match (word.parse::<u32>(), word.len()) {
                (Ok(date), 8) => version.date = Some(date),
                (Ok(year @ 2000..2100), 4) => {
                    let mut part = || words.next()?.parse::<u32>().ok();
                    let (month, day) = (part().unwrap_or_default(), part().unwrap_or_default());
                    version.date = Some(year * 10_000 + month * 100 + day);
                }
                (Ok(number), ..=2) if version.date.is_none() => version.numbers.push(number),
                _ => {}
            }
        }
        version
    }
}

/// Returns all words and numbers of a name, without the path before it.
fn name_words(id: &str) -> impl Iterator<Item = &str> {
    let name = id.rsplit('/').next().unwrap_or(id);
    let words = name.split(|mark: char| !mark.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty())
}

fn is_of(id: &str, family: &str) -> bool {
    let mut words = name_words(id);
    if family != GPT {
        return words.any(|word| word.eq_ignore_ascii_case(family));
    }
    words.next() == Some(GPT) && words.all(|word| word.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn models(ids: &[&str]) -> Vec<ModelInfo> {
        let model = |id: &&str| ModelInfo {
            id: (*id).to_owned(),
            ..ModelInfo::default()
        };
        ids.iter().map(model).collect()
    }

    #[test]
    fn the_newest_of_a_family_is_found_by_version_then_date() {
        let cases = [
            // (what it shows, names, family, newest)
            (
                "both ways of writing a version",
                &["claude-3-7-sonnet-20250219", "claude-sonnet-4-20250514"][..],
                "sonnet",
                Some("claude-sonnet-4-20250514"),
            ),
            (
                "4.5 is newer than 4 with a later date",
                &["claude-sonnet-4-20260101", "claude-sonnet-4-5-20250929"],
                "sonnet",
                Some("claude-sonnet-4-5-20250929"),
            ),
            (
                "the name without a variant",
                &["claude-opus-5-thinking", "claude-opus-5"],
                "opus",
                Some("claude-opus-5"),
            ),
            (
                "names of gateways",
                &[
                    "us.anthropic.claude-haiku-4-5-20251001-v1:0",
                    "anthropic/claude-haiku-3-5",
                ],
                "haiku",
                Some("us.anthropic.claude-haiku-4-5-20251001-v1:0"),
            ),
            (
                "only plain names",
                &["gpt-5.4-mini", "gpt-5.4", "gpt-4o", "gpt-5-2025-08-07"],
                "gpt",
                Some("gpt-5.4"),
            ),
            ("none", &["qwen3-coder"], "sonnet", None),
        ];
        for (what, names, family, newest) in cases {
            let list = models(names);
            let found = newest_of(&list, family).map(|model| model.id.as_str());
            assert_eq!(found, newest, "{what}");
        }
    }

    #[test]
    fn the_only_model_is_the_default_and_strangers_have_none() {
        let default = |names: &[&str]| default_of(&models(names)).map(|model| model.id.clone());
        assert_eq!(default(&["qwen3"]).as_deref(), Some("qwen3"));
        assert_eq!(default(&["qwen3", "llama4"]), None);
        assert_eq!(default(&[]), None);
        let claude = ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"];
        assert_eq!(default(&claude).as_deref(), Some("claude-sonnet-5-5"));
    }

    #[test]
    fn lists_of_all_shapes_are_read() {
        let theirs = json!({"data": [{"type": "model", "id": "m-1", "display_name": "M 1",
            "created_at": "2025-09-29T00:00:00Z", "max_input_tokens": 200_000, "max_tokens": 64_000}]});
        let read = ModelInfo::read_list(&theirs).unwrap();
        assert_eq!(
            (read[0].created, read[0].window, read[0].max_output),
            (Some(1_759_104_000), Some(200_000), Some(64_000))
        );
        let cases = [
            json!({"data": [{"id": "m", "object": "model", "created": 1, "max_model_len": 32_768}]}),
            json!({"data": [{"id": "m", "context_length": 32_768}]}),
            json!({"data": [{"id": "m", "context_window": 32_768}]}),
            json!({"models": [{"id": "m", "max_context_length": 32_768}]}),
        ];
        for case in cases {
            assert_eq!(
                ModelInfo::read_list(&case).unwrap()[0].window,
                Some(32_768),
                "{case}"
            );
        }
        // What llama.cpp's model was trained with says nothing of what the server can read.
        let trained = json!({"data": [{"id": "m", "meta": {"n_ctx_train": 131_072}}]});
        assert_eq!(ModelInfo::read_list(&trained).unwrap()[0].window, None);
        assert_eq!(ModelInfo::read_list(&json!({"error": "no"})), None);
    }

    #[test]
    fn a_suffix_says_how_much_is_read() {
        assert_eq!(split_window("sonnet[1m]"), ("sonnet", Some(1_000_000)));
        assert_eq!(split_window("m-1[200K]"), ("m-1", Some(200_000)));
        for name in ["m-1", "m[beta]", "[1m]", "m[0k]", "m[]"] {
            assert_eq!(split_window(name), (name, None));
        }
    }
}
