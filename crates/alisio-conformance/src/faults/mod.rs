//! The catalogue: every way in which the scripted server can misbehave, by name.
//!
//! A fault is data: a name, a sentence, what a good client ends with, and one act that changes one stage of an answer.
//! A new fault is one entry in one of the lists below; the server, the in-process provider, the printed list and the
//! table-driven tests of clients take it from there.

mod chat;
mod connection;
mod content;
mod finish;
mod framing;
mod http;
mod responses;

use std::sync::LazyLock;

use alisio_sdk::ProviderErrorKind;
use serde::Serialize;
use serde_json::json;

use crate::reply::Reply;
use crate::scenario::{CallStep, Expect, FaultParameters, Role, Scenario, Then, Turn};
use crate::wire::{self, Answer, Api, Event, Frame, Piece};

/// The final text of every ready scenario that a client survives.
pub const ANSWER: &str = "The answer is 42.";
/// The text beside the calls of ready scenarios; it holds letters of two, three and four bytes.
pub const BESIDE: &str = "I look at the notes – größer als 東京 🙂.";
/// The tool that ready scenarios call.
pub const TOOL: &str = "read_file";
/// The file that they read with it.
pub const FILE: &str = "notes.txt";

/// Encrypted reasoning of a ready scenario.
const ENCRYPTED: &str = "gAAAAAB-scripted-encrypted-reasoning-0123456789abcdef";

/// One kind of misbehaviour.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Its name: words joined by `-`.
    pub name: &'static str,
    /// The wire formats in which it exists.
    pub apis: &'static [Api],
    /// What the server does, in a sentence.
    pub sentence: &'static str,
    /// What a good client ends with.
    pub expectation: Expectation,
    /// How many requests fail before the same request succeeds.
    pub retries: u32,
    plot: Plot,
    act: Act,
    in_process: InProcess,
}

/// What a good client ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Expectation {
    /// The text [`ANSWER`].
    Answer,
    /// An error whose sentence holds at least one of these words, whatever their case; any sentence when empty.
    Error {
        /// The words.
        contains: &'static [&'static str],
    },
}

impl Expectation {
    /// Says whether the sentence of an error is one that names the fault.
    pub fn accepts_error(&self, sentence: &str) -> bool {
        let sentence = sentence.to_lowercase();
        match self {
            Self::Answer => false,
            Self::Error { contains } => {
                contains.is_empty() || contains.iter().any(|word| sentence.contains(&word.to_lowercase()))
            }
        }
    }
}

/// What a good client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// It goes on as if nothing were wrong.
    Survives,
    /// It sends the request again and goes on.
    Retries,
    /// It ends with a sentence that names the fault.
    FailsWithSentence,
}

/// The turns of a ready scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plot {
    /// The answer, with the fault.
    Answer,
    /// A call with the fault, then the answer.
    Call,
    /// Two calls at once with the fault, then the answer.
    TwoCalls,
    /// Two turns of one call each, both with the fault, then the answer.
    TwoTurns,
    /// A call with the fault, which is asked for again: then the call, then the answer.
    CallAgain,
    /// A failed request, then the answer.
    Again,
    /// The fault on every request.
    Forever,
}

/// The stage of an answer that a fault changes.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// What is answered; also in process and without a stream.
    Reply(fn(&mut Reply)),
    /// The events.
    Events(fn(&mut Vec<Event>, &Reply, &Given)),
    /// How an event is written.
    Frame(Frame),
    /// What the socket does with the written events.
    Pieces(fn(Vec<Piece>, &Given) -> Vec<Piece>),
    /// The response around the stream.
    Around(fn(Answer) -> Answer),
    /// The whole response.
    Answer(fn(&Reply, &Given) -> Answer),
    /// Bytes of an HTTP/1.1 connection, made from the stream as it should be.
    Raw(fn(Vec<u8>) -> Vec<u8>),
}

/// How a fault of the wire looks without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InProcess {
    /// There is nothing to see.
    Plain,
    /// An error before the first delta.
    Fails(ProviderErrorKind),
    /// An error after the text.
    Midway(ProviderErrorKind),
    /// Silence for ever before the first delta.
    Silent,
}

/// What a fault is told about the request.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) api: Api,
    pub(crate) parameters: FaultParameters,
    pub(crate) port: u16,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
}

const BOTH: &[Api] = &Api::ALL;
const CHAT: &[Api] = &[Api::Chat];
const RESPONSES: &[Api] = &[Api::Responses];

impl Fault {
    const fn new(name: &'static str, apis: &'static [Api], sentence: &'static str, act: Act) -> Self {
        Self {
            name,
            apis,
            sentence,
            expectation: Expectation::Answer,
            retries: 0,
            plot: Plot::Answer,
            act,
            in_process: InProcess::Plain,
        }
    }

    const fn plot(mut self, plot: Plot) -> Self {
        self.plot = plot;
        self
    }

    /// The request fails once and then succeeds.
    const fn again(mut self, kind: ProviderErrorKind) -> Self {
        self.plot = Plot::Again;
        self.retries = 1;
        self.in_process = InProcess::Fails(kind);
        self
    }

    /// The request never succeeds.
    const fn fails(mut self, kind: ProviderErrorKind, contains: &'static [&'static str]) -> Self {
        self.plot = Plot::Forever;
        self.expectation = Expectation::Error { contains };
        self.in_process = InProcess::Fails(kind);
        self
    }

    /// The response breaks after its first text.
    const fn midway(mut self, kind: ProviderErrorKind, contains: &'static [&'static str]) -> Self {
        self = self.fails(kind, contains);
        self.in_process = InProcess::Midway(kind);
        self
    }

    /// In process the changed reply already says it all.
    const fn in_process_plain(mut self) -> Self {
        self.in_process = InProcess::Plain;
        self
    }

    /// In process nothing ever comes the first time.
    const fn in_process_silent(mut self) -> Self {
        self.in_process = InProcess::Silent;
        self
    }

    /// What a good client does.
    pub fn behaviour(&self) -> Behaviour {
        match self.expectation {
            Expectation::Error { .. } => Behaviour::FailsWithSentence,
            Expectation::Answer if self.retries > 0 => Behaviour::Retries,
            Expectation::Answer => Behaviour::Survives,
        }
    }

    /// Whether the ready scenario calls [`TOOL`] before it answers.
    pub fn calls_tool(&self) -> bool {
        matches!(self.plot, Plot::Call | Plot::TwoCalls | Plot::TwoTurns | Plot::CallAgain)
    }

    /// Makes the ready scenario: the turns that carry the fault and, where a client can survive, [`ANSWER`] at the end.
    ///
    /// Each call is [`TOOL`] with `{"path": FILE}`. After the final answer any further request fails the scenario.
    pub fn scenario(&self, api: Api) -> Scenario {
        let answer = Turn { reasoning: Some("Let me think.".into()), ..Turn::text(ANSWER) };
        let step = |id: Option<&str>| CallStep {
            id: id.map(str::to_owned),
            name: TOOL.into(),
            arguments: json!({"path": FILE}),
        };
        let call = Turn { calls: vec![step(None)], text: Some(BESIDE.into()), ..answer.clone() };
        let mut after = answer.clone();
        after.expect = Some(Expect { last_role: Some(Role::Tool), ..Expect::default() });
        let faulty = |turn: &Turn| turn.clone().with_fault(self.name);
        let mut then = Then::Error;
        let turns = match self.plot {
            Plot::Answer => vec![faulty(&answer)],
            Plot::Call => vec![faulty(&call), after],
            Plot::TwoCalls => {
                let both = Turn { calls: vec![step(None), step(None)], ..call };
                vec![faulty(&both), after]
            }
            Plot::TwoTurns => {
                let second = Turn { expect: after.expect.clone(), ..call.clone() };
                vec![faulty(&call), faulty(&second), after]
            }
            Plot::CallAgain => vec![faulty(&call), call, after],
            Plot::Again => vec![faulty(&answer), answer],
            Plot::Forever => {
                then = Then::Last;
                vec![faulty(if self.name.ends_with("in-call") { &call } else { &answer })]
            }
        };
        let mut scenario = Scenario {
            name: Some(format!("{} ({})", self.name, api.as_str())),
            then,
            ..Scenario::new(turns)
        };
        if self.name == responses::ENCRYPTED_REASONING {
            scenario.turns[0].encrypted_reasoning = Some(ENCRYPTED.into());
            if let Some(expect) = &mut scenario.turns[1].expect {
                expect.body_contains = [ENCRYPTED].into();
            }
        }
        scenario
    }

    /// Changes what is answered, for faults that do.
    pub(crate) fn change(&self, reply: &mut Reply) {
        if let Act::Reply(change) = self.act {
            change(reply);
        }
    }

    /// How the fault looks without a wire: the kind of error and whether text comes before it; `None` for none.
    pub(crate) fn in_process(&self) -> Option<InProcessFault> {
        match self.in_process {
            InProcess::Plain => None,
            InProcess::Silent => Some(InProcessFault::Silence),
            InProcess::Fails(kind) => Some(InProcessFault::Error { kind, midway: false }),
            InProcess::Midway(kind) => Some(InProcessFault::Error { kind, midway: true }),
        }
    }

    /// The HTTP status that the fault answers with, where it is the point of the fault.
    pub(crate) fn status(&self, reply: &Reply, given: &Given) -> Option<u16> {
        match self.act {
            Act::Answer(make) => match make(reply, given) {
                Answer::Http { status, .. } => Some(status),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A fault of the wire, as the in-process provider plays it.
pub(crate) enum InProcessFault {
    /// Nothing comes.
    Silence,
    /// The request fails.
    Error { kind: ProviderErrorKind, midway: bool },
}

/// Makes the answer to a request, with or without a fault.
pub(crate) fn answer(fault: Option<&Fault>, mut reply: Reply, given: &Given) -> Answer {
    let act = fault.map(|fault| fault.act);
    if let Some(Act::Answer(make)) = act {
        return make(&reply, given);
    }
    if let Some(fault) = fault {
        fault.change(&mut reply);
    }
    if !given.stream {
        let whole = Answer::json(200, &wire::whole(given.api, &reply));
        return match act {
            Some(Act::Around(around)) => around(whole),
            _ => whole,
        };
    }
    let mut events = wire::events(given.api, &reply, given.include_usage);
    if let Some(Act::Events(edit)) = act {
        edit(&mut events, &reply, given);
    }
    let frame = match act {
        Some(Act::Frame(frame)) => frame,
        _ => wire::plain_frame,
    };
    let pieces = wire::pieces(events, frame);
    match act {
        Some(Act::Pieces(recut)) => Answer::stream(recut(pieces, given)),
        Some(Act::Around(around)) => around(Answer::stream(pieces)),
        Some(Act::Raw(raw)) => Answer::Raw(raw(wire::joined(&pieces))),
        _ => Answer::stream(pieces),
    }
}

static ALL: LazyLock<Vec<Fault>> = LazyLock::new(|| {
    [
        chat::FAULTS,
        content::FAULTS,
        finish::FAULTS,
        framing::FAULTS,
        http::FAULTS,
        connection::FAULTS,
        responses::FAULTS,
    ]
    .concat()
});

/// Lists every fault, in the order of the printed list.
pub fn all() -> &'static [Fault] {
    &ALL
}

/// Lists every case: a fault in one of its wire formats.
pub fn cases() -> impl Iterator<Item = (&'static Fault, Api)> {
    all().iter().flat_map(|fault| fault.apis.iter().map(move |api| (fault, *api)))
}

/// Finds a fault by its name.
pub fn find(name: &str) -> Option<&'static Fault> {
    all().iter().find(|fault| fault.name == name)
}

/// Says that a name is unknown and which one comes near.
pub fn unknown_name(name: &str) -> String {
    let near = all()
        .iter()
        .map(|fault| (strsim::damerau_levenshtein(name, fault.name), fault.name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= name.len() / 2);
    match near {
        Some((_, near)) => format!("there is no fault `{name}`, did you mean `{near}`?"),
        None => format!("there is no fault `{name}`; `alisio-conformance list` prints them"),
    }
}

/// Finds the place right after the first text delta.
fn after_first_text(events: &[Event]) -> usize {
    let is_text = |event: &Event| {
        event.json().is_some_and(|data| {
            data["type"] == "response.output_text.delta"
                || data["choices"][0]["delta"]["content"].as_str().is_some_and(|text| !text.is_empty())
        })
    };
    events.iter().position(is_text).map_or(events.len(), |at| at + 1)
}

/// Finds the place right after the first piece of a call's arguments.
fn after_first_arguments(events: &[Event]) -> usize {
    let is_piece = |event: &Event| {
        event.json().is_some_and(|data| {
            let arguments = &data["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"];
            data["type"] == "response.function_call_arguments.delta"
                || arguments.as_str().is_some_and(|text| !text.is_empty())
        })
    };
    events.iter().position(is_piece).map_or(events.len(), |at| at + 1)
}
