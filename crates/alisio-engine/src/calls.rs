//! The calls of one response, each through the gate.
//!
//! Consecutive reads run up to four at a time, everything else alone and in call order. The steps of a call stand below
//! in the order in which they happen: find, prepare, decide, record, run, record the result. There is no other way to
//! a tool.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use alisio_policy::{
    Answering, Ask, Authority, Basis, Decision, Denial, Issuer, LedgerSink, Moment, Permit, RecordError,
    Request, RuleId, Ruling, no_rung, rule_on,
};
use alisio_protocol::{
    CallId, ContentPart, Effect, EventKind, ToolCall, ToolMessage, ToolResult, VerdictSource, VerdictWord,
};
use alisio_sdk::{Prepared, Progress, ToolContext};
use alisio_store::{CallRow, Durability, LedgerEntry, StoreError, covers};
use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::active_time::ActiveTime;
use crate::approvals::{Approvals, Asking, opened_by, question, settle};
use crate::cancel::Cancel;
use crate::clock::Clock;
use crate::context::Context;
use crate::conversation::Asked;
use crate::recorder::Recorder;
use crate::registry::Registry;
use crate::subject::{subject_of, without_words};
use crate::telling::Telling;

/// Reads that run at a time.
const READS_AT_A_TIME: usize = 4;
/// How long a stopped call may take to end its processes before it is left to its fate.
const STOP_GRACE: Duration = Duration::from_secs(8);
/// Characters of a result that an event shows.
const PREVIEW_CHARS: usize = 500;

/// What the calls of a run share.
pub(crate) struct Calls<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) authority: &'a Authority,
    pub(crate) issuer: &'a Issuer,
    pub(crate) recorder: &'a Arc<Recorder>,
    /// Absent where nobody can answer.
    pub(crate) approvals: Option<&'a Approvals>,
    pub(crate) active: &'a ActiveTime,
    pub(crate) cancel: &'a Cancel,
    pub(crate) clock: Clock,
    pub(crate) workspace: &'a Path,
    pub(crate) spill_folder: &'a Path,
}

/// How the calls of one response ended.
pub(crate) struct Round {
    /// One result a call, in call order.
    pub(crate) results: Vec<ToolMessage>,
    /// How many of them, from the first on, the stored conversation holds already.
    pub(crate) n_told: usize,
    /// Calls among them that did not come back, so that their outcome is unknown.
    pub(crate) unknown: Vec<CallId>,
    /// Refusals that a person could have lifted.
    pub(crate) refused: Vec<String>,
    /// Why the round ended early, if it did; the results are whole all the same.
    pub(crate) fault: Option<RoundFault>,
    /// Files written.
    pub(crate) written: Vec<PathBuf>,
}

/// Why a round ended early.
#[derive(Debug)]
pub(crate) enum RoundFault {
    Cancelled,
    RunTimeout { tool: String },
    Store(String),
}

/// A call that has passed the gate, or has its answer already.
enum Admitted {
    Answered(ToolResult),
    Refused(Denial),
    Ready(Box<Ready>),
}

/// A call that is over.
struct Finished {
    message: ToolMessage,
    written: Vec<PathBuf>,
    unknown: bool,
    fault: Option<RoundFault>,
}

struct Ready {
    tool: String,
    effect: Effect,
    prepared: Box<dyn Prepared>,
    permit: Permit,
    instructions: Option<String>,
    writes: Vec<PathBuf>,
}

impl Calls<'_> {
    /// Runs the calls of one response.
    pub(crate) async fn run(&self, context: &mut Context, asked: Vec<Asked>) -> Round {
        let mut round = Round {
            results: Vec::with_capacity(asked.len()),
            n_told: 0,
            unknown: Vec::new(),
            refused: Vec::new(),
            fault: None,
            written: Vec::new(),
        };
        let telling = Telling::of(&asked);
        let mut queue = VecDeque::from(asked);
        while !queue.is_empty() {
            if round.fault.is_none() && self.cancel.is_stopped() {
                round.fault = Some(RoundFault::Cancelled);
            }
            if round.fault.is_some() {
                round.results.extend(queue.drain(..).map(|asked| not_run(asked.call.id)));
                break;
            }
            let n_reads = queue.iter().take(READS_AT_A_TIME).take_while(|asked| self.is_read(asked)).count();
            let batch: Vec<Asked> = queue.drain(..n_reads.max(1)).collect();
            self.run_batch(context, batch, &telling, &mut round).await;
        }
        round.n_told = telling.n_told();
        round
    }

    fn is_read(&self, asked: &Asked) -> bool {
        self.registry.find(&asked.call.name).is_some_and(|tool| tool.spec().effect == Effect::Read)
    }

    async fn run_batch(
        &self,
        context: &mut Context,
        batch: Vec<Asked>,
        telling: &Telling,
        round: &mut Round,
    ) {
        let mut running = Vec::with_capacity(batch.len());
        for asked in batch {
            let call = asked.call.clone();
            let admitted = match self.admit(context, asked).await {
                Ok(admitted) => admitted,
                Err(fault) => {
                    round.fault = Some(RoundFault::Store(fault.to_string()));
                    Admitted::Answered(ToolResult::error("not run: the verdict could not be recorded"))
                }
            };
            if let Admitted::Refused(denial) = &admitted
                && denial.answerable
            {
                let Denial { basis, remedy, .. } = denial;
                let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
                round.refused.push(format!("{}: {}{remedy}", call.name, basis.reason));
            }
            running.push(self.finish(call, admitted, telling));
        }
        for finished in join_all(running).await {
            if finished.unknown {
                round.unknown.push(finished.message.call_id.clone());
            }
            round.results.push(finished.message);
            round.written.extend(finished.written);
            round.fault = round.fault.take().or(finished.fault);
        }
    }

    /// Finds, prepares, decides and records: all that comes before a call may run.
    async fn admit(&self, context: &mut Context, asked: Asked) -> Result<Admitted, RecordError> {
        let call = asked.call;
        if let Some(malformed) = asked.malformed {
            return Ok(Admitted::Answered(ToolResult::error(malformed)));
        }
        let Some(tool) = self.registry.find(&call.name) else {
            return Ok(Admitted::Answered(ToolResult::error(self.registry.unknown(&call.name))));
        };
        let spec = tool.spec();
        let prepared = match tool.prepare(&call) {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Admitted::Answered(ToolResult::error(error.to_string()))),
        };
        let mut request = prepared.request();
        request.subject = subject_of(&call, &request, self.workspace);
        let Verdict { decision, answers, uses } = self
            .decide(&call, &spec.name, spec.effect, &request)
            .await
            .map_err(|error| RecordError(Box::new(error)))?;
        let mut instructions = None;
        if decision.is_ok() {
            instructions = context.unseen(touched(&request));
            if spec.effect.leaves_traces()
                && let Some(text) = instructions
            {
                return Ok(Admitted::Answered(ToolResult::error(format!(
                    "not run yet: these instructions apply to what this call touches and you had not seen them. Read \
                     them, then call again if the call is still right.\n{text}"
                ))));
            }
        }
        let writes = request.scope.writes.clone();
        let entry = LedgerCall { calls: self, call: &call, answers: &answers, uses: &uses };
        match self.issuer.record(request, decision, &entry) {
            Ok(Ok(permit)) => Ok(Admitted::Ready(Box::new(Ready {
                tool: spec.name.clone(),
                effect: spec.effect,
                prepared,
                permit,
                instructions,
                writes,
            }))),
            Ok(Err(denial)) => Ok(Admitted::Refused(denial)),
            Err(error) => Err(error),
        }
    }

    /// Asks the policy, then what a person answered before, then a person. A tool that does not stand by what it declared
    /// is refused.
    async fn decide(
        &self,
        call: &ToolCall,
        tool: &str,
        effect: Effect,
        request: &Request,
    ) -> Result<Verdict, StoreError> {
        if request.effect != effect || request.tool != tool {
            let reason = format!("the call does not have the effect that `{tool}` declares");
            let basis = Basis { source: VerdictSource::Fault, reason };
            return Ok(Verdict::of(Err(Denial { basis, remedy: String::new(), answerable: false })));
        }
        let grants = self.recorder.grants(self.workspace, self.clock.now().as_millisecond())?;
        let mut authority = self.authority.clone();
        authority.opened.extend(grants.iter().filter_map(opened_by));
        let mut answers = Vec::new();
        let recorder: &Recorder = self.recorder;
        let moment = Moment { now: self.clock.now().as_millisecond(), uses: recorder, has_rung: &no_rung };
        loop {
            // As if somebody were there: a remembered answer counts also where nobody is.
            let with_person = Authority { answering: Answering::Person, ..authority.clone() };
            let Ruling { decision, basis, uses, .. } = rule_on(&with_person, request, moment);
            let ask = match decision {
                Decision::Allow(basis) => return Ok(Verdict { decision: Ok(basis), answers, uses }),
                Decision::Deny(denial) => return Ok(Verdict::of(Err(denial))),
                Decision::Ask(ask) => ask,
            };
            let question = question(self.recorder, call, request, &ask, &basis, self.clock);
            if let Some(grant) = grants.iter().find(|grant| covers(grant, &question)) {
                let reason = format!("a person allowed this before (grant {})", grant.id);
                let basis = Basis { source: VerdictSource::Grant, reason };
                return Ok(Verdict { decision: Ok(basis), answers, uses });
            }
            let Some(approvals) = self.approvals else {
                // Nobody is there, so the policy says what the refusal is.
                let decision = match rule_on(&authority, request, moment).decision {
                    Decision::Allow(basis) => Ok(basis),
                    Decision::Deny(denial) => Err(denial),
                    Decision::Ask(_) => Err(nobody_to_ask(effect)),
                };
                return Ok(Verdict { decision, answers, uses });
            };
            let asking = Asking {
                recorder: self.recorder,
                active: self.active,
                cancel: self.cancel,
                clock: self.clock,
            };
            let answered = approvals.ask(&asking, request, question).await?;
            let settled = settle(request, &answered.resolution);
            answers.push(answered.request_id);
            match ask {
                // The directory comes first; the effect is still to be decided on.
                Ask::Directory(outside) if settled.is_ok() => authority.opened.push(outside.directory),
                _ => return Ok(Verdict { decision: settled, answers, uses }),
            }
        }
    }

    /// Runs an admitted call and records its result.
    async fn finish(&self, call: ToolCall, admitted: Admitted, telling: &Telling) -> Finished {
        let ready = match admitted {
            Admitted::Answered(result) => return self.answered(&call, result, telling),
            Admitted::Refused(denial) => {
                return self.answered(&call, ToolResult::error(denial.message()), telling);
            }
            Admitted::Ready(ready) => *ready,
        };
        let Ready { tool, effect, prepared, permit, instructions, writes } = ready;
        let watch = self.clock.start();
        let (outcome, fault) = self.run_prepared(&call.id, &tool, prepared, permit).await;
        let came_back = outcome.is_some();
        let mut result = outcome.unwrap_or_else(|| ToolResult::error("stopped before it came back"));
        if let Some(text) = instructions {
            result.content.insert(1.min(result.content.len()), ContentPart::Text { text });
        }
        // A read that did not come back can't have left anything, so it is closed. Any other effect stays open in the
        // journal, since nobody knows what it did.
        let unknown = !came_back && effect.leaves_traces();
        let written = if result.is_error { Vec::new() } else { writes };
        let message = ToolMessage { call_id: call.id.clone(), result };
        let stored =
            if unknown { Ok(()) } else { self.completed(&call, &message, watch.elapsed_ms(), true, telling) };
        Finished {
            written,
            message,
            unknown,
            fault: fault.or(stored.err().map(|error| RoundFault::Store(error.to_string()))),
        }
    }

    /// Records a call that has its answer without having run.
    fn answered(&self, call: &ToolCall, result: ToolResult, telling: &Telling) -> Finished {
        let message = ToolMessage { call_id: call.id.clone(), result };
        let stored = self.completed(call, &message, 0, false, telling);
        let fault = stored.err().map(|error| RoundFault::Store(error.to_string()));
        Finished { message, written: Vec::new(), unknown: false, fault }
    }

    /// Runs a call until it ends or has to. `None`: it did not come back after it was told to stop.
    async fn run_prepared(
        &self,
        call: &CallId,
        tool: &str,
        prepared: Box<dyn Prepared>,
        permit: Permit,
    ) -> (Option<ToolResult>, Option<RoundFault>) {
        let stop = self.cancel.child_token();
        let context = self.tool_context(call, stop.clone());
        let run = AssertUnwindSafe(async move { prepared.run(permit, context).await }).catch_unwind();
        let mut run = std::pin::pin!(run);
        let fault = tokio::select! {
            biased;
            ended = &mut run => return (Some(or_panic(ended)), None),
            () = self.cancel.stopped() => RoundFault::Cancelled,
            () = self.active.expired() => RoundFault::RunTimeout { tool: tool.to_owned() },
        };
        stop.cancel();
        let outcome = tokio::time::timeout(STOP_GRACE, run).await.ok().map(or_panic);
        (outcome, Some(fault))
    }

    fn tool_context(&self, call: &CallId, cancel: CancellationToken) -> ToolContext {
        let recorder = Arc::clone(self.recorder);
        let id = call.clone();
        ToolContext {
            call: call.clone(),
            cancel,
            progress: Progress::new(move |data| {
                recorder.show(EventKind::ToolProgress { id: id.clone(), data })
            }),
            spill_folder: self.spill_folder.to_owned(),
        }
    }

    /// Stores the end of a call, and with it what the conversation can hold by now.
    fn completed(
        &self,
        call: &ToolCall,
        message: &ToolMessage,
        duration_ms: u64,
        journaled: bool,
        telling: &Telling,
    ) -> Result<(), StoreError> {
        let result = &message.result;
        let text = result.text_projection();
        let event = EventKind::ToolCompleted {
            id: call.id.clone(),
            name: call.name.clone(),
            is_error: result.is_error,
            duration_ms,
            preview: text[..text.floor_char_boundary(PREVIEW_CHARS)].to_owned(),
        };
        telling.tell(message, |messages| {
            self.recorder.commit(Durability::Unsynced, vec![event], |tx| {
                if journaled {
                    tx.call_ended(&call.id, result, &self.clock.stamp())?;
                }
                messages.iter().try_for_each(|message| tx.message(self.recorder.run_id(), message))
            })
        })
    }
}

/// Writes the verdict on one call: ledger entry, journal row and events in one transaction.
struct LedgerCall<'a> {
    calls: &'a Calls<'a>,
    call: &'a ToolCall,
    /// The answers that the verdict rests on, which are used up with it.
    answers: &'a [String],
    /// The rules whose allowance the call uses up if it runs.
    uses: &'a [RuleId],
}

impl LedgerSink for LedgerCall<'_> {
    fn record(&self, verdict: &alisio_policy::Verdict) -> Result<(), RecordError> {
        let Self { calls, call, answers, uses } = self;
        let request = &verdict.request;
        let allowed = verdict.word == VerdictWord::Allow;
        let at = calls.clock.stamp();
        let recorder = calls.recorder;
        let (session, run) = (recorder.session_id().clone(), recorder.run_id().clone());
        let mut entry = LedgerEntry::of_verdict(at.clone(), session, run, calls.workspace, verdict);
        entry.reason = without_words(&verdict.basis.reason, &request.subject);
        let mut events = vec![EventKind::ToolDecided {
            id: call.id.clone(),
            name: request.tool.clone(),
            effect: request.effect,
            verdict: verdict.word,
            source: verdict.basis.source,
            reason: verdict.basis.reason.clone(),
        }];
        if allowed {
            events.push(EventKind::ToolStarted {
                id: call.id.clone(),
                name: request.tool.clone(),
                arguments: call.arguments.clone(),
                effect: request.effect,
            });
        }
        let durability =
            if allowed && request.effect.leaves_traces() { Durability::Synced } else { Durability::Unsynced };
        calls
            .recorder
            .commit(durability, events, |tx| {
                tx.ledger(&entry)?;
                if allowed {
                    let now_ms = calls.clock.now().as_millisecond();
                    for request_id in *answers {
                        if !tx.mark_used(request_id, &request.digest, now_ms)? {
                            return Err(StoreError::NotPending(request_id.clone()));
                        }
                    }
                    for rule in *uses {
                        tx.rule_used(rule.as_str(), now_ms)?;
                    }
                    tx.call_started(&CallRow {
                        run: calls.recorder.run_id().clone(),
                        call: call.id.clone(),
                        tool: request.tool.clone(),
                        effect: request.effect,
                        arguments: call.arguments.clone(),
                        digest: request.digest,
                        started_at: at.clone(),
                    })?;
                }
                Ok(())
            })
            .map_err(|error| RecordError(Box::new(error)))
    }
}

/// What was decided on a call, the answers that it rests on, and the rules whose allowance it uses up.
struct Verdict {
    decision: Result<Basis, Denial>,
    answers: Vec<String>,
    uses: Vec<RuleId>,
}

impl Verdict {
    fn of(decision: Result<Basis, Denial>) -> Self {
        Self { decision, answers: Vec::new(), uses: Vec::new() }
    }
}

fn nobody_to_ask(effect: Effect) -> Denial {
    let reason = format!("the {effect} effect needs approval and nobody can answer in this run");
    let basis = Basis { source: VerdictSource::NobodyToAsk, reason };
    Denial { basis, remedy: format!("run again with --allow-{effect}"), answerable: true }
}

/// The paths whose instruction files matter for a call.
fn touched(request: &Request) -> impl Iterator<Item = &Path> {
    let scope = &request.scope;
    scope.writes.iter().chain(&scope.reads).chain(&scope.spawns_in).map(PathBuf::as_path)
}

fn not_run(call_id: CallId) -> ToolMessage {
    ToolMessage { call_id, result: ToolResult::error("not run: the run ended before it") }
}

fn or_panic(ended: Result<ToolResult, Box<dyn std::any::Any + Send>>) -> ToolResult {
    ended.unwrap_or_else(|_| {
        ToolResult::error("the tool stopped because of a fault in Alisio; what it had done so far stands")
    })
}
