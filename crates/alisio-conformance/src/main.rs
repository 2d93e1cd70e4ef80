//! The scripted server as a program that any harness can be pointed at.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;

use alisio_conformance::faults::{self, Expectation};
use alisio_conformance::{Api, Observer, RecordedRequest, Scenario, ScenarioError, Server};
use clap::{ArgGroup, Parser, Subcommand};
use serde_json::{Value, json};

/// A scripted OpenAI-compatible model server with every fault by name.
#[derive(Parser)]
#[command(version, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prints every fault with a sentence and what a good client does.
    List {
        /// Prints JSON instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Serves a scenario until it is interrupted; prints the base URL.
    #[command(group = ArgGroup::new("what").required(true))]
    Serve {
        /// Plays the scenario in this file.
        #[arg(long, group = "what", value_name = "FILE")]
        scenario: Option<PathBuf>,
        /// Plays the ready scenario of this fault.
        #[arg(long, group = "what", value_name = "NAME")]
        fault: Option<String>,
        /// The wire format that the ready scenario is for.
        #[arg(long, value_enum, default_value = "chat", conflicts_with = "scenario")]
        api: Api,
        /// Listens on this port of 127.0.0.1; any free one when 0.
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Appends every request to this file, a line of JSON each.
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
    },
    /// Prints the ready scenario of a fault, to start one's own from.
    Show {
        /// The fault.
        fault: String,
        /// The wire format.
        #[arg(long, value_enum, default_value = "chat")]
        api: Api,
    },
    /// Prints the JSON Schema of scenarios.
    Schema,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Nobody is left to tell when standard error is closed.
            let _ = writeln!(io::stderr(), "error: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<(), String> {
    match command {
        Command::List { json: true } => print(&pretty(&list_json())),
        Command::List { json: false } => print(&list_text()),
        Command::Schema => print(&pretty(&Scenario::json_schema())),
        Command::Show { fault, api } => {
            let scenario = ready(&fault, api)?;
            print(&pretty(&serde_json::to_value(&scenario).map_err(|error| error.to_string())?))
        }
        Command::Serve { scenario, fault, api, port, record } => {
            let scenario = match (scenario, fault) {
                (Some(path), _) => Scenario::load(&path).map_err(|error| match error {
                    ScenarioError::Read { .. } => error.to_string(),
                    ScenarioError::Part { .. } => format!("{}: {error}", path.display()),
                })?,
                (None, fault) => ready(fault.as_deref().unwrap_or_default(), api)?,
            };
            serve(scenario, port, record)
        }
    }
}

fn ready(name: &str, api: Api) -> Result<Scenario, String> {
    let fault = faults::find(name).ok_or_else(|| faults::unknown_name(name))?;
    if !fault.apis.contains(&api) {
        return Err(format!("the fault `{name}` does not exist in the wire format `{}`", api.as_str()));
    }
    Ok(fault.scenario(api))
}

fn serve(scenario: Scenario, port: u16, record: Option<PathBuf>) -> Result<(), String> {
    let observer = match record {
        None => None,
        Some(path) => {
            let open = std::fs::OpenOptions::new().create(true).append(true).open(&path);
            let file = Mutex::new(open.map_err(|error| format!("can't open `{}`: {error}", path.display()))?);
            let observe = move |request: &RecordedRequest| {
                if let (Ok(mut file), Ok(mut line)) = (file.lock(), serde_json::to_vec(request)) {
                    line.push(b'\n');
                    if let Err(error) = file.write_all(&line) {
                        let _ = writeln!(io::stderr(), "error: can't write to `{}`: {error}", path.display());
                    }
                }
            };
            Some(Box::new(observe) as Observer)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let server =
            Server::start_on(scenario, address, observer).await.map_err(|error| error.to_string())?;
        print(&format!("{}\n", server.base_url()))?;
        tokio::signal::ctrl_c().await.map_err(|error| error.to_string())?;
        let failures = server.failures();
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
    })
}

fn list_text() -> String {
    let mut text = String::new();
    let behaviour = |fault: &faults::Fault| match fault.behaviour() {
        faults::Behaviour::Survives => "survives".to_owned(),
        faults::Behaviour::Retries => "retries".to_owned(),
        faults::Behaviour::FailsWithSentence => "fails with a sentence".to_owned(),
    };
    for fault in faults::all() {
        let apis: Vec<&str> = fault.apis.iter().map(|api| api.as_str()).collect();
        text.push_str(&format!("{} [{}]\n", fault.name, apis.join(", ")));
        text.push_str(&format!("    {}\n    A good client: {}.\n", fault.sentence, behaviour(fault)));
    }
    text.push_str(&format!("\n{} faults, {} cases\n", faults::all().len(), faults::cases().count()));
    text
}

fn list_json() -> Value {
    let entry = |fault: &faults::Fault| {
        let words = match fault.expectation {
            Expectation::Answer => Value::Null,
            Expectation::Error { contains } => json!(contains),
        };
        json!({
            "name": fault.name, "apis": fault.apis, "sentence": fault.sentence, "client": fault.behaviour(),
            "retries": fault.retries, "callsTool": fault.calls_tool(), "errorContainsOneOf": words,
        })
    };
    faults::all().iter().map(entry).collect()
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Prints; a reader that has gone is no error.
fn print(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("can't print: {error}")),
        _ => Ok(()),
    }
}
