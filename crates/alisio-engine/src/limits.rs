//! How much one run may use.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How much one run may use.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Responses of the model; a soft end.
    pub max_turns: u32,
    /// Active time: model responses and tool calls, not the time in which a person is awaited.
    pub timeout: Duration,
    /// Silence allowed before the first delta of a response; zero for no limit.
    pub first_token_timeout: Duration,
    /// How often a silent request is sent again.
    pub first_token_retries: u32,
    /// Silence allowed between two events of a response.
    pub idle_timeout: Duration,
    /// How often a turn that the output limit made useless is asked for again.
    pub truncation_recoveries: u32,
    /// Output limit of one request in tokens, and where it comes from.
    pub max_output_tokens: Option<OutputLimit>,
    /// Tokens that a run may use, input and output together, as reported.
    pub max_tokens: u64,
    /// Characters of conversation that are sent at most; older tool results are shortened beyond it.
    pub max_context_chars: usize,
    /// How a request that failed before its first delta is sent again.
    pub retry: RetryPolicy,
}

/// An output limit and its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimit {
    /// Tokens.
    pub tokens: u64,
    /// Who set it.
    pub source: OutputLimitSource,
}

/// Who set the output limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputLimitSource {
    /// The configuration.
    User,
    /// The model's entry in the service's catalogue.
    Model,
    /// Nobody.
    Default,
}

impl OutputLimitSource {
    /// The wire word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Model => "model",
            Self::Default => "default",
        }
    }
}

/// Bounded exponential back-off with jitter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// How often a request is sent again at most.
    pub retries: u32,
    /// The first pause.
    pub first_pause: Duration,
    /// The longest pause of our own making.
    pub longest_pause: Duration,
    /// The longest pause that a service may ask for; a longer one ends the run with a sentence that says so.
    pub longest_asked_pause: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 4,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(20),
            longest_asked_pause: Duration::from_secs(60),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 100,
            timeout: Duration::from_secs(600),
            first_token_timeout: Duration::from_secs(90),
            first_token_retries: 1,
            idle_timeout: Duration::from_secs(120),
            truncation_recoveries: 2,
            max_output_tokens: None,
            max_tokens: 1_000_000,
            max_context_chars: 800_000,
            retry: RetryPolicy::default(),
        }
    }
}
