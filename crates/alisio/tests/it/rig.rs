//! One private world for a test: a home, a git repository as workspace, a scripted model, and the binary.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use alisio_conformance::{Scenario, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

/// After this long a command counts as hung.
const HUNG: Duration = Duration::from_secs(90);

/// A private world. Everything in it goes with it.
pub(crate) struct Rig {
    folder: TempDir,
    pub(crate) server: Server,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Rig {
    /// A world whose model says these turns.
    pub(crate) fn new(turns: Value) -> Self {
        Self::with(serde_json::from_value(json!({ "turns": turns })).expect("the scenario is valid"))
    }

    /// A world whose model says one text to everything.
    pub(crate) fn saying(text: &str) -> Self {
        Self::with(
            serde_json::from_value(json!({"turns": [{"text": text}], "then": "last"})).expect("it is valid"),
        )
    }

    /// A world whose model calls one tool and then ends.
    pub(crate) fn calling(tool: &str, arguments: Value) -> Self {
        Self::new(json!([{"calls": [{"name": tool, "arguments": arguments}]}, {"text": "done"}]))
    }

    /// A world with this scenario.
    pub(crate) fn with(scenario: Scenario) -> Self {
        let folder =
            tempfile::Builder::new().prefix("alisio-it-").tempdir().expect("a temporary folder can be made");
        let server = Server::start_blocking(scenario).expect("loopback can be listened on");
        let rig = Self { folder, server };
        for path in [rig.home(), rig.workspace(), rig.path("config"), rig.path("tmp"), rig.path("outside")] {
            fs::create_dir(path).expect("the folder is new");
        }
        fs::write(rig.workspace().join("notes.txt"), "The answer is 41.\n")
            .expect("the workspace is writable");
        rig.git(&["init", "-q"]);
        rig.git(&["add", "."]);
        rig.git(&["-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-qm", "notes"]);
        rig.configure(json!({}));
        rig
    }

    fn git(&self, args: &[&str]) {
        let status = Command::new("git")
            .args(args)
            .current_dir(self.workspace())
            .env("HOME", self.home())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .status()
            .expect("git is there");
        assert!(status.success(), "git {args:?}");
    }

    /// Writes the user's file: the scripted model, and these sections over it.
    pub(crate) fn configure(&self, sections: Value) {
        let mut file =
            json!({"provider": {"baseURL": self.server.base_url(), "model": "scripted", "auth": "none"}});
        for (key, value) in sections.as_object().expect("sections are an object") {
            file[key] = value.clone();
        }
        fs::write(self.config_file(), file.to_string()).expect("the folder is there");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder is there").join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.path("config").join("config.json")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path("state").join("sessions.sqlite")
    }

    /// Writes a file of the workspace, and the folders above it.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("the workspace is writable");
        fs::write(&path, content).expect("the workspace is writable");
        path
    }

    /// Reads a file of the workspace.
    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.workspace().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The binary with a small environment of its own, in the workspace.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_alisio"));
        command
            .args(args)
            .current_dir(self.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("TMPDIR", self.path("tmp"))
            .env("ALISIO_CONFIG_HOME", self.path("config"))
            .env("ALISIO_STATE_HOME", self.path("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the binary to its end.
    pub(crate) fn alisio(&self, args: &[&str]) -> Ran {
        finish(self.command(args).spawn().expect("the binary starts"))
    }

    /// Runs the binary to its end with something on standard input.
    pub(crate) fn piped(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().expect("the binary starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        // A command that does not read its input closes it.
        let _ = stdin.write_all(input);
        drop(stdin);
        finish(child)
    }

    /// Runs a prompt that must end well, and gives the id of its session.
    pub(crate) fn session(&self, prompt: &str) -> String {
        let ran = self.alisio(&["run", "--json", prompt]).expect(0);
        ran.events()[0]["sessionId"].as_str().expect("events name their session").to_owned()
    }

    /// What the n-th request to the model held.
    pub(crate) fn request(&self, n: usize) -> Value {
        let requests = self.server.requests();
        requests.get(n).unwrap_or_else(|| panic!("request {n} of {}", requests.len())).body.clone()
    }

    /// The names of the tools that the n-th request offered.
    pub(crate) fn offered(&self, n: usize) -> Vec<String> {
        let request = self.request(n);
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).map(ToOwned::to_owned).collect()
    }

    /// The results of tools that the last request told the model, in order.
    pub(crate) fn results(&self) -> Vec<String> {
        let request = self.request(self.server.request_count().checked_sub(1).expect("there was a request"));
        let messages = request["messages"].as_array().expect("a request has messages");
        messages.iter().filter(|m| m["role"] == "tool").map(|m| text_of(&m["content"])).collect()
    }

    /// The system message of the n-th request.
    pub(crate) fn system(&self, n: usize) -> String {
        text_of(&self.request(n)["messages"][0]["content"])
    }
}

impl Ran {
    /// Insists on an exit code.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Insists on words on standard error.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is missing:\n{}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// Insists on words on standard output.
    #[track_caller]
    pub(crate) fn prints(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.stdout.contains(word), "`{word}` is missing:\n{}", self.stdout);
        }
        self
    }

    /// Standard output as JSON Lines; anything else there is a fault.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        let lines = self.stdout.lines().map(|line| match serde_json::from_str(line) {
            Ok(value @ Value::Object(_)) => value,
            _ => panic!("not a JSON object: {line}"),
        });
        lines.collect()
    }

    /// The events of one type.
    #[track_caller]
    pub(crate) fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["type"] == kind).collect()
    }
}

/// The text of a message, however it is written.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Waits for the end of a command; one that does not end is killed and fails the test.
#[track_caller]
pub(crate) fn finish(mut child: Child) -> Ran {
    let mut out = child.stdout.take().expect("it is piped");
    let mut err = child.stderr.take().expect("it is piped");
    let out = thread::spawn(move || read_all(&mut out));
    let err = thread::spawn(move || read_all(&mut err));
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("the child is ours") {
            break status;
        }
        if begun.elapsed() > HUNG {
            child.kill().expect("the child is ours");
            panic!("hung; stderr:\n{}", err.join().expect("the reader ends"));
        }
        thread::sleep(Duration::from_millis(3));
    };
    Ran {
        code: status.code().unwrap_or(-1),
        stdout: out.join().expect("the reader ends"),
        stderr: err.join().expect("the reader ends"),
    }
}

fn read_all(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).expect("a pipe can be read");
    String::from_utf8(bytes).expect("all output is UTF-8")
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "still waiting: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Says whether a process runs; one that is dead and only not yet collected does not.
pub(crate) fn runs(pid: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    state.is_ok_and(|stat| !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X'])))
}

/// Every file below a folder with its content.
pub(crate) fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let content = fs::read(&path).unwrap_or_default();
                found.push((path, content));
            }
        }
    }
    found.sort();
    found
}

/// Says whether bytes hold a text.
pub(crate) fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
