//! Layers, precedence, messages, origins and the writer of the configuration, on real files.
#![expect(clippy::disallowed_methods, reason = "tests lay out their own files")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use alisio_store::config::{
    self, ApiMode, ConfigError, FileOwner, Loaded, NoticeKind, Origin, Overrides, ProjectFile, Sources,
};
use alisio_store::dirs::{Dirs, Env};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A folder with a user's and a project's file.
struct Place {
    folder: tempfile::TempDir,
    env: Env,
    flags: Overrides,
}

impl Place {
    fn new(global: &str, project: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = Self { folder, env: Env::fixed([("HOME", "/nowhere")]), flags: Overrides::default() };
        for (path, text) in [(place.global(), global), (place.project(), project)] {
            fs::create_dir_all(path.parent().expect("it has a folder")).expect("made");
            if !text.is_empty() {
                fs::write(path, text).expect("written");
            }
        }
        place
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("it is there")
    }

    fn global(&self) -> PathBuf {
        self.root().join("home/config.json")
    }

    fn project(&self) -> PathBuf {
        self.root().join("repo/.alisio/config.json")
    }

    fn load_with(&self, explicit: Option<&Path>) -> Result<Loaded, ConfigError> {
        let path = self.project();
        config::load(&Sources {
            global: self.global(),
            project: fs::read(&path).ok().map(|bytes| ProjectFile { path, bytes }),
            explicit: explicit.map(Path::to_owned),
            env: &self.env,
            flags: self.flags.clone(),
        })
    }

    fn load(&self) -> Loaded {
        self.load_with(None).expect("the files are right")
    }

    /// The message of a refusal, without the folder.
    fn refusal(&self) -> String {
        let error = self.load_with(None).expect_err("the files are wrong");
        self.plain(&error.to_string())
    }

    fn plain(&self, text: &str) -> String {
        text.replace(self.root().to_str().expect("a plain path"), "/r")
    }

    fn notices(&self) -> Vec<String> {
        self.load().notices.iter().map(|notice| self.plain(&notice.to_string())).collect()
    }
}

fn explained(loaded: &Loaded, path: &str) -> (Value, Origin) {
    let all = loaded.explain();
    let found = all.iter().find(|explained| explained.path == path);
    let found = found.unwrap_or_else(|| panic!("`{path}` is not among {all:#?}"));
    (found.value.clone(), found.origin.clone())
}

#[test]
fn no_file_gives_the_documented_defaults() {
    let loaded = Place::new("", "").load();
    let config = &loaded.config;
    assert_eq!(config.provider.base_url.as_str(), "https://api.openai.com/v1");
    assert_eq!(config.provider.api_key_env.as_str(), "OPENAI_API_KEY");
    assert_eq!(config.provider.model(), None);
    assert_eq!(config.provider.api_mode, ApiMode::Chat);
    let limits = &config.limits;
    let numbers = [limits.max_turns.get(), limits.timeout_ms.get(), limits.first_token_timeout_ms.get()];
    assert_eq!(numbers, [100, 600_000, 90_000]);
    assert_eq!((limits.max_output_tokens, limits.max_tokens), (None, None));
    assert_eq!((config.context.claude_md_fallback, config.context.max_bytes.get()), (false, 32_768));
    assert!(loaded.notices.is_empty() && loaded.files.is_empty());
    assert!(loaded.explain().iter().all(|explained| explained.origin == Origin::Default));
}

#[test]
fn a_section_replaces_the_lower_one_as_a_whole() {
    let place = Place::new(
        r#"{"limits": {"maxTurns": 5, "timeoutMs": 1000}, "context": {"maxBytes": 2048}}"#,
        r#"{"limits": {"maxTurns": 7}}"#,
    );
    let loaded = place.load();
    // What the project's section leaves out takes the default, not the user's value.
    assert_eq!(loaded.config.limits.max_turns.get(), 7);
    assert_eq!(loaded.config.limits.timeout_ms.get(), 600_000);
    assert_eq!(loaded.config.context.max_bytes.get(), 2048);
    assert_eq!(explained(&loaded, "limits.maxTurns"), (json!(7), Origin::File(place.project())));
    assert_eq!(explained(&loaded, "limits.timeoutMs"), (json!(600_000), Origin::Default));
    assert_eq!(explained(&loaded, "context.maxBytes"), (json!(2048), Origin::File(place.global())));
    assert_eq!(loaded.files, [place.global(), place.project()]);
}

#[test]
fn an_explicit_file_takes_the_place_of_the_projects() {
    let place = Place::new(r#"{"limits": {"maxTurns": 5}}"#, r#"{"context": {"maxBytes": 4096}}"#);
    let explicit = place.root().join("other.json");
    fs::write(&explicit, r#"{"limits": {"maxTurns": 9}}"#).expect("written");
    let loaded = place.load_with(Some(&explicit)).expect("right");
    assert_eq!((loaded.config.limits.max_turns.get(), loaded.config.context.max_bytes.get()), (9, 32_768));
    let missing = place.load_with(Some(Path::new("/nowhere/x.json"))).expect_err("no such file");
    assert_eq!(missing.to_string(), "cannot read `/nowhere/x.json`: there is no such file");
}

#[test]
fn environment_beats_files_and_flags_beat_the_environment() {
    let mut place =
        Place::new(r#"{"provider": {"model": "file", "baseURL": "http://file/v1", "auth": "none"}}"#, "");
    place.env = Env::fixed([
        ("OPENAI_BASE_URL", "http://env:8080/v1"),
        ("ALISIO_MODEL", "env"),
        ("ALISIO_API_MODE", "responses"),
    ]);
    let loaded = place.load();
    let provider = &loaded.config.provider;
    assert_eq!((provider.model(), provider.base_url.as_str()), (Some("env"), "http://env:8080/v1"));
    assert_eq!((provider.api_mode, provider.auth), (ApiMode::Responses, config::Auth::None));
    assert_eq!(explained(&loaded, "provider.model").1, Origin::Variable("ALISIO_MODEL"));
    place.flags.model = Some("flag".to_owned());
    place.flags.api_mode = Some("chat".to_owned());
    place.flags.max_turns = Some(3);
    let loaded = place.load();
    assert_eq!(loaded.config.provider.identity(), "openai-compatible:chat:http://env:8080/v1");
    assert_eq!(loaded.config.limits.max_turns.get(), 3);
    assert_eq!(explained(&loaded, "provider.model"), (json!("flag"), Origin::Flag("--model")));
    // An empty variable counts as unset.
    place.env = Env::fixed([("ALISIO_MODEL", ""), ("OPENAI_BASE_URL", "")]);
    place.flags = Overrides::default();
    assert_eq!(place.load().config.provider.model(), Some("file"));
}

#[test]
fn wrong_variables_and_flags_are_named() {
    let check = |env: &[(&str, &str)], flags: Overrides, expected: &str| {
        let mut place = Place::new("", "");
        place.env = Env::fixed(env.iter().copied());
        place.flags = flags;
        assert_eq!(place.refusal(), expected);
    };
    let flags = Overrides::default;
    check(
        &[("OPENAI_BASE_URL", "ftp://x")],
        flags(),
        "`OPENAI_BASE_URL`: found `ftp://x`, allowed is an http or https URL without user name, password or `#`",
    );
    check(
        &[("OPENAI_BASE_URL", "https://me:hunter2@x/v1")],
        flags(),
        "`OPENAI_BASE_URL`: found a URL with a user name or password (not shown), allowed is an http or https URL \
         without user name, password or `#`",
    );
    check(
        &[("ALISIO_API_MODE", "soap")],
        flags(),
        "`ALISIO_API_MODE`: found \"soap\", allowed is `chat` or `responses`",
    );
    check(
        &[],
        Overrides { max_turns: Some(0), ..flags() },
        "`--max-turns`: found 0, allowed is a whole number from 1 to 100",
    );
    check(
        &[],
        Overrides { add_directories: vec!["/nowhere/at/all".into()], ..flags() },
        "`--add-dir`: there is no directory `/nowhere/at/all`",
    );
}

#[test]
fn every_refusal_names_the_file_the_key_and_what_is_allowed() {
    let cases = [
        r#"{"provider": {"modle": "x"}, "limit": {}, "context": {"claudeMdFallback": 1, "maxbytes": 5}, "maxTurns": 4}"#,
        r#"{"limits": {"maxTurns": 101, "timeoutMs": 99, "firstTokenRetries": -1, "maxTokens": "many"}}"#,
        r#"{"limits": {"maxTurns": 1.5}, "compaction": {"threshold": 2}}"#,
        r#"{"provider": {"apiMode": "grpc", "baseURL": "https://u:p@host/v1", "apiKeyEnv": "sk-1234567890"}}"#,
        r#"{"provider": []}"#,
        r#"{"schemaVersion": 2}"#,
        r#"{"additionalDirectories": ["a", 3]}"#,
        r#"{"permissions": 3, "analysis": {"oci": {"image": "python:3"}}}"#,
        r#"{"mcp": {"servers": {"a": {"command": "x", "url": "http://h"}, "b": {}, "c d": {"command": "x"}}}}"#,
        r#"{"mcp": {"servers": {"a": {"command": "x"}}}, "mcpServers": {"a": {"command": "y"}}}"#,
        r#"{"mcp": {"servers": {"a": {"command": "x", "env": {"TOKEN": 12345}}}}}"#,
        r#"{"builtinPlugins": {"subagents": {"agents": {"x": {"description": "d"}}}}}"#,
        r#"{"websearch": {"searxngUrl": "http://example.org"}}"#,
        r#"{"sp\u001b[31mam": 1}"#,
        "[]",
        "{\n  \"limits\": {},\n  \"limits\": {}\n}",
        "{\"a\": {\"b\": 1, \"b\": 2}}",
        "{\n  // a comment\n}",
        "{\"limits\": {},}",
        "",
    ];
    let shown: Vec<String> = cases
        .iter()
        .map(|case| {
            format!("{case}\n→ {}\n", Place::new(if case.is_empty() { " " } else { case }, "").refusal())
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn lists_add_up_and_records_merge_by_key() {
    let place = Place::new(
        r#"{"plugins": ["left", "./own"], "skills": ["s"],
            "skillOverrides": {"a": {"enabled": false}, "b": {"enabled": false}},
            "mcp": {"allow": true, "servers": {"one": {"command": "./run"}, "two": {"command": "two"}}}}"#,
        r#"{"plugins": ["left", "right", "./own"], "skills": [],
            "skillOverrides": {"b": {"enabled": true}},
            "mcpServers": {"two": {"url": "https://example.org/mcp"}}}"#,
    );
    let loaded = place.load();
    let config = &loaded.config;
    let (home, work) = (place.root().join("home"), place.root().join("repo/.alisio"));
    let text = |path: PathBuf| path.to_str().expect("plain").to_owned();
    assert_eq!(
        config.plugins,
        ["left".to_owned(), text(home.join("own")), "right".to_owned(), text(work.join("own"))]
    );
    assert_eq!(config.skills, [home.join("s")]);
    let enabled: Vec<_> =
        config.skill_overrides.iter().map(|(name, skill)| (name.as_str(), skill.enabled)).collect();
    assert_eq!(enabled, [("a", Some(false)), ("b", Some(true))]);
    assert_eq!(config.mcp.allow, Some(true));
    assert_eq!(config.mcp.servers["one"].command, Some(text(home.join("run"))));
    assert_eq!(config.mcp.servers["two"].command, None);
    assert_eq!(explained(&loaded, "mcp.servers.two.url").1, Origin::File(place.project()));
    assert_eq!(explained(&loaded, "plugins[2]").1, Origin::File(place.project()));
    let features: Vec<&str> = loaded.notices.iter().map(|notice| notice.path.as_str()).collect();
    assert_eq!(features, ["mcp", "plugins", "skillOverrides"], "one notice a feature");
}

#[test]
fn only_the_user_may_set_some_keys_and_a_replaced_section_keeps_them() {
    let place = Place::new(
        r#"{"tasks": {"retentionDays": 3, "maxPerSession": 9}, "analysis": {"smartDashboard": false, "runtime": "oci"},
            "pluginOverrides": {"p": {"enabled": true, "options": {"level": 2}}}, "mcp": {"allow": false}}"#,
        r#"{"tasks": {"retentionDays": 0, "maxRunMs": 5000}, "analysis": {"smartDashboard": true, "runtime": "managed"},
            "pluginOverrides": {"p": {"enabled": false, "options": {"level": 9}}}, "mcp": {"allow": true},
            "decisions": {"telemetry": false}}"#,
    );
    let loaded = place.load();
    let config = &loaded.config;
    let tasks = [
        config.tasks.retention_days.get(),
        config.tasks.max_per_session.get(),
        config.tasks.max_run_ms.get(),
    ];
    assert_eq!(tasks, [3, 4, 5000]);
    assert_eq!(explained(&loaded, "tasks.retentionDays"), (json!(3), Origin::File(place.global())));
    assert_eq!(config.analysis.runtime, config::AnalysisRuntime::Oci);
    assert!(!config.analysis.smart_dashboard);
    assert_eq!(config.plugin_overrides["p"].enabled, Some(false));
    assert_eq!(config.plugin_overrides["p"].options["level"], json!(2));
    assert_eq!(config.mcp.allow, Some(false));
    assert!(config.decisions.telemetry, "an emptied section replaces nothing");
    let of =
        |kind| loaded.notices.iter().filter(|n| n.kind == kind).map(|n| n.path.as_str()).collect::<Vec<_>>();
    assert_eq!(
        of(NoticeKind::UserOnly),
        [
            "tasks.retentionDays",
            "decisions.telemetry",
            "analysis.runtime",
            "pluginOverrides.p.options",
            "mcp.allow"
        ]
    );
    assert_eq!(of(NoticeKind::Sticky), ["analysis.smartDashboard"]);
}

#[test]
fn a_placeholder_provider_does_not_hide_a_working_one_unless_the_run_names_a_model() {
    let mut place = Place::new(
        r#"{"provider": {"model": "mine", "baseURL": "http://mine/v1"}}"#,
        r#"{"provider": {"model": "YOUR_MODEL_ID", "baseURL": "http://project/v1"}}"#,
    );
    assert_eq!(place.load().config.provider.base_url.as_str(), "http://mine/v1");
    assert_eq!(
        place.notices(),
        [
            "`provider` in `/r/repo/.alisio/config.json` was ignored: it names no model, and the user's own file does"
        ]
    );
    place.env = Env::fixed([("ALISIO_MODEL", "other")]);
    let loaded = place.load();
    assert_eq!(loaded.config.provider.base_url.as_str(), "http://project/v1");
    assert_eq!(loaded.config.provider.model(), Some("other"));
}

#[test]
fn additional_directories_belong_to_their_file_and_close_under_read_only() {
    let mut place = Place::new(
        r#"{"additionalDirectories": ["../shared", "missing"]}"#,
        r#"{"additionalDirectories": ["../../link", "../../other"]}"#,
    );
    let root = place.root();
    for folder in ["shared", "other", "flag"] {
        fs::create_dir(root.join(folder)).expect("made");
    }
    symlink(root.join("shared"), root.join("link")).expect("made");
    place.flags.add_directories = vec![root.join("flag")];
    let loaded = place.load();
    assert_eq!(
        loaded.config.additional_directories,
        [root.join("shared"), root.join("other"), root.join("flag")]
    );
    assert_eq!(explained(&loaded, "additionalDirectories[1]").1, Origin::File(place.project()));
    assert_eq!(explained(&loaded, "additionalDirectories[2]").1, Origin::Flag("--add-dir"));
    assert_eq!(
        place.notices(),
        ["`/r/home/missing` from `/r/home/config.json` was ignored: there is no such directory"]
    );
    place.flags.read_only = true;
    let loaded = place.load();
    assert!(loaded.config.additional_directories.is_empty());
    assert_eq!(loaded.notices.iter().filter(|notice| notice.kind == NoticeKind::ReadOnly).count(), 5);
}

#[test]
fn no_secret_is_shown() {
    let place = Place::new(
        r#"{"mcp": {"servers": {
              "a": {"command": "x", "args": ["--verbose", "--api-key=s3cret"], "env": {"TOKEN": "s3cret", "PLAIN": "s3cret"}},
              "b": {"url": "https://h/mcp?key=s3cret", "bearerTokenEnv": "B_TOKEN"}}},
            "pluginOverrides": {"p": {"options": {"anything": "s3cret"}}}}"#,
        "",
    );
    let loaded = place.load();
    let shown = format!("{:?}", loaded.explain());
    assert!(!shown.contains("s3cret"), "{shown}");
    assert_eq!(explained(&loaded, "mcp.servers.a.args[0]").0, json!("--verbose"));
    assert_eq!(explained(&loaded, "mcp.servers.a.env.TOKEN").0, json!("(hidden)"));
    assert_eq!(explained(&loaded, "mcp.servers.b.bearerTokenEnv").0, json!("B_TOKEN"));
}

#[test]
fn a_byte_order_mark_and_a_schema_reference_are_accepted() {
    let place = Place::new("\u{feff}{\"$schema\": \"https://example.org/s.json\", \"schemaVersion\": 1}", "");
    assert!(place.load().notices.is_empty());
}

#[test]
fn addresses_have_one_spelling() {
    let identity = |url: &str| {
        let provider =
            config::Provider { base_url: config::HttpUrl::new(url).expect("right"), ..Default::default() };
        provider.identity()
    };
    for url in
        ["https://api.example.org/v1", "HTTPS://API.example.org:443/v1/", "https://api.example.org/v1//"]
    {
        assert_eq!(identity(url), "openai-compatible:chat:https://api.example.org/v1");
    }
    assert_ne!(identity("http://h:8080/v1"), identity("http://h/v1"));
    for url in [
        "",
        "h",
        "http://",
        "http:///x",
        "http://h:99999/",
        "http://h h/",
        "http://h/#x",
        "file:///x",
        "http://a@b",
    ] {
        assert!(config::HttpUrl::new(url).is_err(), "{url}");
    }
    assert!(config::HttpUrl::new("http://[::1]:8080/v1?api-version=1").is_ok());
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.schema.json");
    let made = serde_json::to_string_pretty(&config::schema()).expect("JSON") + "\n";
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        fs::write(&path, &made).expect("written");
    }
    let published = fs::read_to_string(&path).expect("`docs/config.schema.json` is there");
    assert!(
        published == made,
        "`docs/config.schema.json` is old; UPDATE_SCHEMA=1 with this test writes it anew"
    );
    let limits = &config::schema()["$defs"]["Limits"];
    assert_eq!(limits["additionalProperties"], json!(false));
    let turns = &limits["properties"]["maxTurns"];
    assert_eq!(
        (&turns["minimum"], &turns["maximum"], &turns["default"]),
        (&json!(1), &json!(100), &json!(100))
    );
}

#[test]
fn the_documentation_has_every_key_in_force_with_its_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = fs::read_to_string(path).expect("`docs/configuration.md` is there");
    let loaded = Place::new("", "").load();
    let in_force = ["provider.", "limits.", "context.", "additionalDirectories"];
    for key in
        loaded.explain().iter().filter(|key| in_force.iter().any(|section| key.path.starts_with(section)))
    {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{}` |", key.path)));
        let row = row.unwrap_or_else(|| panic!("`{}` has no row", key.path));
        let default = if key.value.is_null() { "unset".to_owned() } else { format!("`{}`", key.value) };
        assert!(row.contains(&format!("| {default} |")), "`{}` has the default {default}: {row}", key.path);
    }
}

#[test]
fn folders_come_from_the_environment() {
    let check = |variables: &[(&str, &str)], expected: Result<(&str, &str), &str>| {
        let dirs = Dirs::resolve(&Env::fixed(variables.iter().copied()));
        let dirs = dirs.map(|dirs| (dirs.config_home, dirs.state_home)).map_err(|error| error.to_string());
        let expected = expected.map(|(a, b)| (PathBuf::from(a), PathBuf::from(b))).map_err(str::to_owned);
        assert_eq!(dirs, expected, "{variables:?}");
    };
    check(&[("HOME", "/h")], Ok(("/h/.config/alisio", "/h/.local/state/alisio")));
    check(
        &[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "relative")],
        Ok(("/c/alisio", "/h/.local/state/alisio")),
    );
    check(
        &[("ALISIO_CONFIG_HOME", "/own"), ("XDG_CONFIG_HOME", "/c"), ("ALISIO_STATE_HOME", "/s")],
        Ok(("/own", "/s")),
    );
    check(
        &[("HOME", "")],
        Err(
            "no place for Alisio's configuration: neither `ALISIO_CONFIG_HOME` nor `XDG_CONFIG_HOME` nor `HOME` is set",
        ),
    );
}

#[test]
fn the_writer_keeps_what_it_was_not_asked_to_change() {
    let before = "{\n    \"limits\": { \"timeoutMs\":1000,   \"maxTurns\": 5 },\n  \"provider\": {\"stream\\u0055sage\": true, \
                  \"model\": \"old\"},\n  \"context\": {}\n}";
    let place = Place::new(before, "");
    let patch =
        json!({"provider": {"model": "new", "baseURL": "http://127.0.0.1:8080/v1"}, "goal": {"maxTurns": 3}});
    config::write(&place.global(), FileOwner::User, &patch).expect("written");
    insta::assert_snapshot!(fs::read_to_string(place.global()).expect("there"), @r#"
    {
      "limits": { "timeoutMs":1000,   "maxTurns": 5 },
      "provider": {
        "streamUsage": true,
        "model": "new",
        "baseURL": "http://127.0.0.1:8080/v1"
      },
      "context": {},
      "goal": {
        "maxTurns": 3
      }
    }
    "#);
    assert_eq!(fs::metadata(place.global()).expect("there").permissions().mode() & 0o777, 0o600);
    config::write(&place.global(), FileOwner::User, &json!({"goal": null, "provider": null}))
        .expect("written");
    let left: Value = serde_json::from_slice(&fs::read(place.global()).expect("there")).expect("JSON");
    assert_eq!(left, json!({"limits": {"timeoutMs": 1000, "maxTurns": 5}, "context": {}}));
}

#[test]
fn the_writer_refuses_what_would_not_load_and_leaves_the_file() {
    let place = Place::new(r#"{"limits": {"maxTurns": 5}}"#, "");
    for patch in
        [json!({"provider": {"apiKey": "sk-1"}}), json!({"limits": {"maxTurns": 0}}), json!({"x": 1})]
    {
        config::write(&place.global(), FileOwner::User, &patch).expect_err("wrong");
    }
    assert_eq!(fs::read_to_string(place.global()).expect("there"), r#"{"limits": {"maxTurns": 5}}"#);
    fs::write(place.global(), "{ not json").expect("written");
    config::write(&place.global(), FileOwner::User, &json!({"context": {}}))
        .expect_err("it was wrong before");
    assert_eq!(fs::read_to_string(place.global()).expect("there"), "{ not json");
    let entries = fs::read_dir(place.root().join("home")).expect("there").count();
    assert_eq!(entries, 1, "no temporary file is left");
}

#[test]
fn the_writer_makes_folders_follows_the_users_link_and_refuses_the_projects() {
    let place = Place::new("", "");
    let new = place.root().join("fresh/alisio/config.json");
    config::write(&new, FileOwner::User, &json!({"provider": {"model": "m"}})).expect("written");
    let folder = new.parent().expect("it has one");
    assert_eq!(fs::metadata(folder).expect("there").permissions().mode() & 0o777, 0o700);
    let linked = place.root().join("linked.json");
    symlink(&new, &linked).expect("made");
    config::write(&linked, FileOwner::User, &json!({"provider": {"model": "n"}})).expect("written");
    assert!(fs::symlink_metadata(&linked).expect("there").is_symlink());
    assert!(fs::read_to_string(&new).expect("there").contains("\"n\""));
    symlink(&new, place.project()).expect("made");
    config::write(&place.project(), FileOwner::Project, &json!({"context": {}})).expect_err("a link");
}

#[test]
fn writers_at_once_lose_nothing() {
    let place = Place::new("{}", "");
    let path = place.global();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let patch = json!({"skillOverrides": {format!("s{number}"): {"enabled": true}}});
                config::write(path, FileOwner::User, &patch).expect("written");
            });
        }
    });
    assert_eq!(place.load().config.skill_overrides.len(), 8);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a file holds, it loads or is refused with a sentence.
    #[test]
    fn no_file_can_stop_us_otherwise(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let env = Env::fixed([("HOME", "/nowhere")]);
        let project = Some(ProjectFile { path: "/p/config.json".into(), bytes });
        let sources = Sources { global: "/nowhere/x".into(), project, explicit: None, env: &env, flags: Overrides::default() };
        if let Err(error) = config::load(&sources) {
            prop_assert!(error.to_string().starts_with("`/p/config.json`"));
        }
    }

    /// Of any two values for one key, the project's is in force, and `config show` says so.
    #[test]
    fn the_higher_layer_is_in_force(user in proptest::option::of(1u64..=100), project in proptest::option::of(1u64..=100)) {
        let text = |turns: Option<u64>| turns.map_or("{}".to_owned(), |turns| json!({"limits": {"maxTurns": turns}}).to_string());
        let place = Place::new(&text(user), &text(project));
        let loaded = place.load();
        prop_assert_eq!(loaded.config.limits.max_turns.get(), project.or(user).unwrap_or(100));
        let origin = match (project, user) {
            (Some(_), _) => Origin::File(place.project()),
            (None, Some(_)) => Origin::File(place.global()),
            (None, None) => Origin::Default,
        };
        prop_assert_eq!(explained(&loaded, "limits.maxTurns").1, origin);
    }
}
