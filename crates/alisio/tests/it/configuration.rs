//! Mistakes in configuration end the start with a place and a way out; what is in force can be seen, secrets can't.

use std::fs;

use serde_json::{Value, json};

use crate::rig::{Rig, finish};

#[test]
fn mistakes_are_named_with_their_place() {
    for (what, text, words) in [
        ("an unknown key", r#"{"limits": {"maxTurn": 3}}"#, &["limits.maxTurn", "maxTurns"][..]),
        ("an unknown section", r#"{"provder": {}}"#, &["provder", "provider"]),
        ("a wrong type", r#"{"limits": {"maxTurns": "three"}}"#, &["limits.maxTurns"]),
        ("out of range", r#"{"limits": {"maxTurns": 101}}"#, &["limits.maxTurns", "100"]),
        (
            "a word that is none of those",
            r#"{"provider": {"apiMode": "grpc"}}"#,
            &["provider.apiMode", "responses"],
        ),
        ("not a web address", r#"{"provider": {"baseURL": "ftp://x"}}"#, &["provider.baseURL"]),
        (
            "credentials in the address",
            r#"{"provider": {"baseURL": "http://u:sk-pass@x/v1"}}"#,
            &["provider.baseURL"],
        ),
        ("a key twice", "{\"limits\": {\"maxTurns\": 3,\n \"maxTurns\": 4}}", &["maxTurns", "line 2"]),
        ("a comma too many", "{\n  \"limits\": {},\n}", &["line 3", "column"]),
        ("no object", "[]", &["config.json"]),
        ("nothing", "", &["config.json", "line 1"]),
    ] {
        let rig = Rig::saying("ok");
        fs::write(rig.config_file(), text).expect("the folder is there");
        let ran = rig.alisio(&["run", "--base-url", &rig.server.base_url(), "--model", "m", "hello"]);
        assert_eq!(ran.code, 2, "{what}: {}", ran.stderr);
        for word in words {
            assert!(ran.stderr.contains(word), "{what}: `{word}` is missing in {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("sk-pass"), "{what}: {}", ran.stderr);
        assert_eq!(rig.server.request_count(), 0, "{what}");
    }
}

#[test]
fn keys_of_later_features_load_with_one_notice() {
    let rig = Rig::saying("ok");
    rig.configure(json!({"goal": {"enabled": true, "maxTurns": 3}, "$schema": "https://example.invalid/x.json", "schemaVersion": 1}));
    let ran = rig.alisio(&["run", "hello"]).expect(0);
    assert_eq!(ran.stderr.lines().filter(|line| line.contains("goal")).count(), 1, "{}", ran.stderr);
    assert!(!rig.alisio(&["run", "--quiet", "hello"]).stderr.contains("goal"));
}

#[test]
fn show_has_every_key_with_its_origin() {
    let rig = Rig::saying("ok");
    rig.configure(json!({"limits": {"maxTurns": 7}}));
    let mut command = rig.command(&["config", "show", "--model", "flagged"]);
    command.env("OPENAI_BASE_URL", "http://env.invalid/v1");
    let ran = finish(command.spawn().expect("the binary starts")).expect(0).stdout;
    for (key, words) in [
        ("limits.maxTurns = 7", "config.json"),
        ("provider.model = \"flagged\"", "--model"),
        ("provider.baseURL = \"http://env.invalid/v1\"", "OPENAI_BASE_URL"),
        ("context.maxBytes = 32768", "default"),
    ] {
        let line = ran.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}:\n{ran}"));
        assert!(line.contains(words), "{line}");
    }
    let shown = rig.alisio(&["config", "show", "--json"]).expect(0);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("it is JSON");
    let keys: Vec<_> =
        shown["keys"].as_array().expect("a list").iter().filter_map(|k| k["key"].as_str()).collect();
    let schema: Value = serde_json::from_str(&rig.alisio(&["config", "schema"]).stdout).expect("it is JSON");
    for section in ["provider", "limits", "context", "agents"] {
        let properties = &schema["properties"][section];
        let name = properties["$ref"].as_str().and_then(|r| r.rsplit('/').next());
        let object = name.map_or(properties, |name| &schema["$defs"][name]);
        for key in object["properties"].as_object().expect("a section has keys").keys() {
            let path = format!("{section}.{key}");
            assert!(keys.iter().any(|shown| *shown == path), "{path} in {keys:?}");
        }
    }
}

#[test]
fn show_and_doctor_never_tell_a_secret() {
    let rig = Rig::saying("ok");
    rig.configure(json!({
        "provider": {"baseURL": rig.server.base_url(), "model": "scripted", "apiKeyEnv": "MY_KEY"},
        "mcp": {"servers": {"one": {
            "transport": "stdio", "command": "true", "args": [], "env": {"TOKEN": "sk-in-mcp"},
        }}},
    }));
    for args in [
        &["config", "show"][..],
        &["config", "show", "--json"],
        &["doctor"],
        &["run", "hello"],
        &["run", "--json", "hello"],
    ] {
        let mut command = rig.command(args);
        command.env("MY_KEY", "sk-in-env").env("OPENAI_API_KEY", "sk-other");
        let ran = finish(command.spawn().expect("the binary starts")).expect(0);
        for secret in ["sk-in-env", "sk-in-mcp", "sk-other"] {
            assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{args:?}: {secret}");
        }
    }
}

#[test]
fn the_schema_is_the_published_one() {
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.schema.json");
    let published: Value =
        serde_json::from_str(&fs::read_to_string(published).expect("it is there")).expect("it is JSON");
    let printed = Rig::saying("").alisio(&["config", "schema"]).expect(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&printed).expect("it is JSON"), published);
}

#[test]
fn no_model_is_explained() {
    let rig = Rig::saying("ok");
    fs::remove_file(rig.config_file()).expect("it was there");
    rig.alisio(&["run", "hello"]).expect(2).says(&["no model is configured", "alisio setup", "--model"]);
}

#[test]
fn the_folders_of_the_desktop_s_standard_are_used_where_ours_are_not_named() {
    let rig = Rig::saying("ok");
    let text = fs::read(rig.config_file()).expect("it is there");
    for (variables, config, state) in [
        (&[][..], "home/.config/alisio", "home/.local/state/alisio"),
        (&[("XDG_CONFIG_HOME", "xdg/c"), ("XDG_STATE_HOME", "xdg/s")], "xdg/c/alisio", "xdg/s/alisio"),
    ] {
        fs::create_dir_all(rig.path(config)).expect("the folder is writable");
        fs::write(rig.path(config).join("config.json"), &text).expect("the folder is writable");
        let mut command = rig.command(&["run", "hello"]);
        command.env_remove("ALISIO_CONFIG_HOME").env_remove("ALISIO_STATE_HOME");
        command.envs(variables.iter().map(|(name, value)| (name, rig.path(value))));
        finish(command.spawn().expect("the binary starts")).expect(0);
        assert!(rig.path(state).join("sessions.sqlite").is_file(), "{state}");
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(rig.path(state)).expect("it is there").permissions(),
        );
        assert_eq!(mode & 0o077, 0, "only the owner reads the state");
    }
}
