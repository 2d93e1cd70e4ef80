//! Every key of `config.json` with its type, range and default: one struct a section. The JSON Schema, the list of known keys
//! and `config show` all come from these types; a key exists nowhere else.
//!
//! Sections of features that are not built yet are here too, so that a file written for them loads and is checked.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::values::{
    Bounded, Decimal, DecisionProviderId, HttpUrl, ImageDigest, LARGEST, VariableName, WordOrObject,
};

/// Makes a struct readable from an object and from nothing else: left alone, serde would also take a list of its values in order.
macro_rules! only_objects {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                // The inherent function that `remote = "Self"` makes.
                Self::serialize(self, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Object;
                impl<'de> Visitor<'de> for Object {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<$name, A::Error> {
                        $name::deserialize(MapAccessDeserializer::new(map))
                    }
                }
                deserializer.deserialize_map(Object)
            }
        }
    };
}

/// Declares a section: a struct whose absent keys take the default written beside them.
macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, rename_all = "camelCase", remote = "Self")]
        #[schemars(deny_unknown_fields)]
        pub struct $name { $($(#[$attribute])* pub $field: $type,)* }

        only_objects!($name);

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}

/// Declares a choice between words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $case:literal { $($(#[$attribute:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = $case)]
        #[schemars(inline)]
        pub enum $name { $($(#[$attribute])* $variant,)* }
    };
}

section! {
    /// Alisio's configuration.
    Config {
        /// Where the JSON Schema of this file is, for editors; not used by Alisio.
        #[serde(rename = "$schema")]
        schema: Option<String> = None,
        /// Version of the file format.
        schema_version: Bounded<1, 1> = Bounded::of(1),
        /// The model service.
        provider: Provider = Provider::default(),
        /// Limits of one run.
        limits: Limits = Limits::default(),
        /// Instruction files.
        context: Context = Context::default(),
        /// Directories outside the workspace that tools may use; relative to this file.
        additional_directories: Vec<PathBuf> = Vec::new(),
        /// Compaction of long conversations.
        compaction: Compaction = Compaction::default(),
        /// Time limits of plugin hooks.
        plugin_hooks: PluginHooks = PluginHooks::default(),
        /// Web search.
        websearch: WebSearch = WebSearch::default(),
        /// The main agent.
        agents: Agents = Agents::default(),
        /// Plans.
        plan: Plan = Plan::default(),
        /// Goals that are worked on over several runs.
        goal: Goal = Goal::default(),
        /// Background tasks.
        tasks: Tasks = Tasks::default(),
        /// Decision providers.
        decisions: Decisions = Decisions::default(),
        /// Python analysis, artifacts and data.
        analysis: Analysis = Analysis::default(),
        /// Plugins: paths relative to this file, or package names.
        plugins: Vec<String> = Vec::new(),
        /// Settings of single plugins, by id.
        plugin_overrides: BTreeMap<String, PluginOverride> = BTreeMap::new(),
        /// Settings of the plugins that come with Alisio.
        builtin_plugins: BuiltinPlugins = BuiltinPlugins::default(),
        /// Further folders with skills; relative to this file.
        skills: Vec<PathBuf> = Vec::new(),
        /// Settings of single skills, by name.
        skill_overrides: BTreeMap<String, SkillOverride> = BTreeMap::new(),
        /// MCP servers.
        mcp: Mcp = Mcp::default(),
        /// MCP servers, in the place where other programs have them; the same as `mcp.servers`.
        mcp_servers: BTreeMap<String, McpServer> = BTreeMap::new(),
        /// The terminal interface.
        tui: Tui = Tui::default(),
        /// Semantic search.
        semantic: Semantic = Semantic::default(),
        /// The permission policy: `auto`, `ask`, `readonly`, or an object.
        permissions: Option<WordOrObject> = None,
        /// How child processes are confined.
        sandbox: Option<WordOrObject> = None,
    }
}

section! {
    /// The model service.
    Provider {
        /// Address of the service, `/v1` included where it is needed; http or https, no user name or password.
        #[serde(rename = "baseURL")]
        base_url: HttpUrl = HttpUrl::new("https://api.openai.com/v1").expect("the default address is well formed"),
        /// Name of the environment variable that holds the key; never the key.
        api_key_env: VariableName = VariableName::new("OPENAI_API_KEY").expect("the default name is well formed"),
        /// The model; needed for a run. `YOUR_MODEL_ID` counts as not set.
        model: String = String::new(),
        /// Which API the service speaks.
        api_mode: ApiMode = ApiMode::Chat,
        /// Whether the key is sent; `none` sends no Authorization header.
        auth: Auth = Auth::Bearer,
        /// How the output limit is called; chat mode only.
        token_parameter: TokenParameter = TokenParameter::MaxTokens,
        /// Asks for token counts while streaming; chat mode only.
        stream_usage: bool = false,
        /// Context window of the model in tokens, where Alisio does not know it.
        context_window: Option<Bounded<1>> = None,
    }
}

words! {
    /// Which API a model service speaks.
    ApiMode, "lowercase" {
        /// Chat Completions.
        Chat,
        /// Responses.
        Responses,
    }
}

words! {
    /// Whether requests carry the key.
    Auth, "lowercase" {
        /// In an Authorization header.
        Bearer,
        /// No header.
        None,
    }
}

words! {
    /// How the output limit is called in a chat request.
    TokenParameter, "snake_case" {
        /// `max_tokens`.
        MaxTokens,
        /// `max_completion_tokens`.
        MaxCompletionTokens,
        /// Not sent.
        Omit,
    }
}

section! {
    /// Limits of one run.
    Limits {
        /// Model responses per run.
        max_turns: Bounded<1, 100> = Bounded::of(100),
        /// Active time of a run in milliseconds; waiting for a person does not count.
        timeout_ms: Bounded<100> = Bounded::of(600_000),
        /// How long a model request may stay silent at first, in milliseconds; 0 is for ever.
        first_token_timeout_ms: Bounded<0> = Bounded::of(90_000),
        /// How often a silent request is sent again.
        first_token_retries: Bounded<0, 3> = Bounded::of(1),
        /// How often a turn that the output limit cut off is asked for again.
        truncation_recoveries: Bounded<0, 5> = Bounded::of(2),
        /// Characters of context at which a conversation is compacted where the window is unknown.
        max_context_chars: Bounded<1> = Bounded::of(800_000),
        /// Output tokens of one model request; unset: the model's maximum up to 65536, else 16384.
        max_output_tokens: Option<Bounded<1>> = None,
        /// Reported tokens per run; unset: in proportion to the context window.
        max_tokens: Option<Bounded<1>> = None,
    }
}

section! {
    /// Instruction files.
    Context {
        /// Uses `CLAUDE.md` where a directory has no `AGENTS.md`.
        claude_md_fallback: bool = false,
        /// Bytes of all instruction files together.
        max_bytes: Bounded<1024, 1_048_576> = Bounded::of(32_768),
    }
}

section! {
    /// Compaction of long conversations.
    Compaction {
        /// Compacts by itself.
        auto: bool = true,
        /// Fraction of a known window at which it begins.
        threshold: Decimal<100, 990> = Decimal::of(0.85),
        /// Recent turns that are kept word for word.
        keep_turns: Bounded<0, 20> = Bounded::of(2),
        /// Output tokens of the summary.
        max_output_tokens: Bounded<1> = Bounded::of(16_000),
    }
}

section! {
    /// Time limits of plugin hooks.
    PluginHooks {
        /// Compaction and session-start hooks, in milliseconds.
        timeout_ms: Bounded<100, 120_000> = Bounded::of(15_000),
        /// Session-end hooks, in milliseconds.
        session_end_timeout_ms: Bounded<100, 120_000> = Bounded::of(10_000),
        /// The end of one plugin, in milliseconds.
        dispose_timeout_ms: Bounded<100, 10_000> = Bounded::of(2_000),
    }
}

section! {
    /// Web search.
    WebSearch {
        /// The search service.
        provider: Option<SearchService> = None,
        /// Address of a SearXNG instance; https unless it is on this machine.
        searxng_url: Option<HttpUrl> = None,
        /// Name of the environment variable that holds the key of the service.
        api_key_env: Option<VariableName> = None,
        /// Name of the model service's own search tool; only with `native`.
        native_tool_type: String = "web_search".to_owned(),
    }
}

words! {
    /// A search service.
    SearchService, "kebab-case" {
        /// SearXNG.
        Searxng,
        /// DuckDuckGo's instant answers.
        DuckduckgoInstant,
        /// DuckDuckGo's result page.
        DuckduckgoHtml,
        /// Tavily.
        Tavily,
        /// Brave.
        Brave,
        /// SerpApi.
        Serpapi,
        /// The model service's own search.
        Native,
    }
}

section! {
    /// The main agent.
    Agents {
        /// Its id.
        active: String = "build".to_owned(),
        /// Reasoning effort, one of the model's levels.
        effort: Option<String> = None,
    }
}

section! {
    /// Plans.
    Plan {
        /// Offers diagrams.
        diagrams: bool = true,
        /// Diagrams in one plan; 0 is none.
        max_diagrams: Bounded<0, 8> = Bounded::of(5),
    }
}

section! {
    /// Goals that are worked on over several runs.
    Goal {
        /// Whether goals are taken.
        enabled: bool = true,
        /// Runs per goal.
        max_turns: Bounded<1, 1000> = Bounded::of(50),
        /// Active minutes per goal.
        max_minutes: Bounded<1, 1440> = Bounded::of(120),
        /// The same reply in a row that ends a goal.
        repeated_reply_limit: Bounded<2, 20> = Bounded::of(3),
        /// Turns without a tool call in a row that end a goal.
        no_tool_turns_limit: Bounded<2, 20> = Bounded::of(3),
        /// The same blocker in a row that ends a goal.
        blocked_repeats: Bounded<1, 10> = Bounded::of(2),
    }
}

section! {
    /// Background tasks.
    Tasks {
        /// Whether they are offered.
        enabled: bool = true,
        /// Live tasks per session.
        max_per_session: Bounded<1, 32> = Bounded::of(4),
        /// Longest life of a task in milliseconds.
        max_run_ms: Bounded<1000, 86_400_000> = Bounded::of(3_600_000),
        /// Bytes of log that are kept from the start.
        max_output_bytes: Bounded<65_536, 104_857_600> = Bounded::of(2_097_152),
        /// Days that logs are kept; 0 is for ever. User file only.
        retention_days: Bounded<0, 3650> = Bounded::of(7),
    }
}

section! {
    /// Decision providers.
    Decisions {
        /// Whether they are asked.
        enabled: bool = true,
        /// The one that is asked. User file only.
        provider: Option<DecisionProviderId> = None,
        /// Time of one decision in milliseconds.
        timeout_ms: Bounded<50, 10_000> = Bounded::of(1_500),
        /// Confidence below which an answer is refused.
        min_confidence: Decimal<0, 1000> = Decimal::of(0.6),
        /// Keeps decision events. User file only.
        telemetry: bool = true,
    }
}

section! {
    /// Python analysis, artifacts and data.
    Analysis {
        /// Whether it is offered.
        enabled: bool = true,
        /// Offers dashboards; a `false` of the user file stands.
        smart_dashboard: bool = true,
        /// Where Python runs. User file only.
        runtime: AnalysisRuntime = AnalysisRuntime::Managed,
        /// The container. User file only.
        oci: AnalysisContainer = AnalysisContainer::default(),
        /// How long things are kept. User file only.
        retention: AnalysisRetention = AnalysisRetention::default(),
        /// Limits of one execution.
        limits: AnalysisLimits = AnalysisLimits::default(),
        /// Limits of datasets.
        data: AnalysisData = AnalysisData::default(),
    }
}

words! {
    /// Where Python runs.
    AnalysisRuntime, "lowercase" {
        /// On this machine.
        Managed,
        /// In a container.
        Oci,
    }
}

words! {
    /// A container engine.
    ContainerEngine, "lowercase" {
        /// Docker.
        Docker,
        /// Podman.
        Podman,
    }
}

section! {
    /// The container of Python analysis.
    AnalysisContainer {
        /// The engine.
        engine: ContainerEngine = ContainerEngine::Docker,
        /// The image, by digest.
        image: Option<ImageDigest> = None,
        /// Memory in MiB.
        memory_mb: Bounded<256, 65_536> = Bounded::of(2048),
        /// Processors.
        cpus: Decimal<500, 64_000> = Decimal::of(2.0),
    }
}

section! {
    /// How long the things of an analysis are kept, in days; 0 is for ever.
    AnalysisRetention {
        /// Logs, scripts and unused datasets.
        jobs_days: Bounded<0, 3650> = Bounded::of(30),
        /// The scratch folder.
        intermediate_days: Bounded<0, 3650> = Bounded::of(7),
        /// Files of artifacts.
        artifacts_days: Bounded<0, 3650> = Bounded::of(0),
    }
}

section! {
    /// Limits of one execution.
    AnalysisLimits {
        /// Time in milliseconds.
        timeout_ms: Bounded<1000, 900_000> = Bounded::of(120_000),
        /// Files published.
        max_files: Bounded<1> = Bounded::of(200),
        /// Bytes of one file.
        max_file_bytes: Bounded<1> = Bounded::of(104_857_600),
        /// Bytes of all files.
        max_output_bytes: Bounded<1> = Bounded::of(524_288_000),
        /// Bytes of one log.
        max_log_bytes: Bounded<1> = Bounded::of(10_485_760),
    }
}

section! {
    /// Limits of datasets.
    AnalysisData {
        /// Bytes of an upload.
        max_upload_bytes: Bounded<1> = Bounded::of(209_715_200),
        /// Rows of a sheet.
        max_rows: Bounded<1> = Bounded::of(5_000_000),
        /// Time of a query in milliseconds.
        query_timeout_ms: Bounded<100, 60_000> = Bounded::of(5_000),
        /// Rows above which the table can no longer be sorted.
        max_interactive_rows: Bounded<1> = Bounded::of(1_000_000),
    }
}

section! {
    /// Settings of one plugin.
    PluginOverride {
        /// Whether it is loaded.
        enabled: Option<bool> = None,
        /// Its own options; no secrets. User file only.
        options: BTreeMap<String, serde_json::Value> = BTreeMap::new(),
    }
}

section! {
    /// Settings of one skill.
    SkillOverride {
        /// Whether it is offered.
        enabled: Option<bool> = None,
    }
}

section! {
    /// Settings of the plugins that come with Alisio.
    BuiltinPlugins {
        /// Model services that speak OpenAI's API.
        #[serde(rename = "openai-compatible")]
        openai_compatible: BuiltinPlugin = BuiltinPlugin::default(),
        /// Memory.
        memory: Memory = Memory::default(),
        /// Sub-agents.
        subagents: Subagents = Subagents::default(),
        /// Known from older files.
        deepseek: BuiltinPlugin = BuiltinPlugin::default(),
        /// Known from older files.
        opencode: BuiltinPlugin = BuiltinPlugin::default(),
        /// Known from older files.
        #[serde(rename = "opencode-go")]
        opencode_go: BuiltinPlugin = BuiltinPlugin::default(),
    }
}

section! {
    /// A plugin that comes with Alisio.
    BuiltinPlugin {
        /// Whether it is loaded.
        enabled: bool = true,
    }
}

section! {
    /// Memory across sessions.
    Memory {
        /// Whether it is loaded.
        enabled: bool = true,
        /// Its database; relative to this file. Unset: in the state folder.
        db_path: Option<PathBuf> = None,
        /// Tokens given to the model at the start.
        inject_budget_tokens: Bounded<100, 20_000> = Bounded::of(1_500),
        /// Entries recalled at once.
        recall_limit: Bounded<0, 20> = Bounded::of(8),
        /// Writes a summary at the end.
        auto_summary: bool = true,
        /// Where new entries belong.
        default_scope: MemoryScope = MemoryScope::Project,
    }
}

words! {
    /// Where a memory entry belongs.
    MemoryScope, "lowercase" {
        /// To the project.
        Project,
        /// To the person.
        Personal,
    }
}

section! {
    /// Sub-agents.
    Subagents {
        /// Whether they are offered.
        enabled: bool = true,
        /// How deep they may nest.
        max_depth: Bounded<1, 8> = Bounded::of(3),
        /// How many of one parent run at once.
        max_concurrent_per_parent: Bounded<1, 32> = Bounded::of(4),
        /// How many run at once.
        max_concurrent_total: Bounded<1, 64> = Bounded::of(8),
        /// How many wait.
        max_queued: Bounded<0, 256> = Bounded::of(16),
        /// Model responses of a child.
        max_turns: Bounded<1, 500> = Bounded::of(50),
        /// Active time of a child in milliseconds.
        timeout_ms: Bounded<1000> = Bounded::of(600_000),
        /// Reported tokens of a child.
        max_tokens_per_child: Option<Bounded<1>> = None,
        /// Output tokens of one request of a child.
        max_output_tokens_per_child: Bounded<1> = Bounded::of(16_384),
        /// What happens when two children want to write.
        parallel_writes: ParallelWrites = ParallelWrites::Ask,
        /// Longest wait for a child in milliseconds.
        wait_max_ms: Bounded<100> = Bounded::of(600_000),
        /// Bytes of a child's answer.
        result_max_bytes: Bounded<1000, 1_000_000> = Bounded::of(50_000),
        /// Further agents, by name.
        agents: BTreeMap<String, AgentDefinition> = BTreeMap::new(),
        /// Where work trees are made; relative to this file. Unset: in the state folder.
        worktree_dir: Option<PathBuf> = None,
    }
}

words! {
    /// What happens when two children want to write.
    ParallelWrites, "lowercase" {
        /// A person says.
        Ask,
        /// Each gets a work tree.
        Worktree,
        /// One after the other.
        Serial,
        /// All in the same tree.
        Shared,
    }
}

/// An agent defined in the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", remote = "Self")]
#[schemars(deny_unknown_fields)]
pub struct AgentDefinition {
    /// What it is for.
    pub description: String,
    /// What it is told.
    pub prompt: String,
    /// The tools it has; absent: all of its parent's.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Its model.
    #[serde(default)]
    pub model: Option<String>,
    /// Where it may be used.
    #[serde(default)]
    pub mode: Option<AgentMode>,
}

only_objects!(AgentDefinition);

words! {
    /// Where an agent may be used.
    AgentMode, "lowercase" {
        /// As the main agent.
        Primary,
        /// As a sub-agent.
        Subagent,
        /// As both.
        All,
    }
}

section! {
    /// MCP servers.
    Mcp {
        /// Lets enabled servers connect at every start. User file only.
        allow: Option<bool> = None,
        /// The servers, by name.
        servers: BTreeMap<String, McpServer> = BTreeMap::new(),
    }
}

section! {
    /// An MCP server: a program (`command`) or an address (`url`).
    McpServer {
        /// How it is reached; follows from `command` or `url`.
        transport: Option<McpTransport> = None,
        /// Whether it may be connected.
        enabled: bool = true,
        /// The program; a path that starts with `./` or `../` is relative to this file.
        command: Option<String> = None,
        /// Its arguments.
        args: Vec<String> = Vec::new(),
        /// The address.
        url: Option<HttpUrl> = None,
        /// Names of environment variables that it is given.
        env_allow: Vec<VariableName> = Vec::new(),
        /// Environment variables with their values, for this program only.
        env: BTreeMap<String, String> = BTreeMap::new(),
        /// Name of the environment variable that holds its bearer token.
        bearer_token_env: Option<VariableName> = None,
    }
}

words! {
    /// How an MCP server is reached.
    McpTransport, "lowercase" {
        /// Over its standard input and output.
        Stdio,
        /// Over Streamable HTTP.
        Http,
    }
}

section! {
    /// The terminal interface.
    Tui {
        /// Columns beside the editor.
        padding_x: Option<Bounded<0, 64>> = None,
        /// Columns beside the transcript.
        content_padding_x: Option<Bounded<0, 64>> = None,
        /// Completes skills as slash commands.
        skill_slash_commands: bool = true,
    }
}

section! {
    /// Semantic search.
    Semantic {
        /// What makes embeddings. User file only.
        embedding: Option<WordOrObject> = None,
        /// What keeps them. User file only.
        store: Option<WordOrObject> = None,
        /// Time of one embedding in milliseconds.
        embed_timeout_ms: Option<Bounded<1, LARGEST>> = None,
        /// Time of one query in milliseconds.
        query_timeout_ms: Option<Bounded<1, LARGEST>> = None,
    }
}

/// What `setup` writes where a person has to put a model's name.
pub const MODEL_PLACEHOLDER: &str = "YOUR_MODEL_ID";

impl Provider {
    /// Returns the model, unless it is empty or still the placeholder.
    pub fn model(&self) -> Option<&str> {
        Some(self.model.trim()).filter(|model| !model.is_empty() && *model != MODEL_PLACEHOLDER)
    }

    /// Names the service in stored sessions: two spellings of one address give the same name.
    pub fn identity(&self) -> String {
        let mode = match self.api_mode {
            ApiMode::Chat => "chat",
            ApiMode::Responses => "responses",
        };
        format!("openai-compatible:{mode}:{}", self.base_url.normalized())
    }
}
