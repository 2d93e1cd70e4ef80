//! Questions to a person, and waiting for the answer.
//!
//! The row in the store is the truth: whoever answers, from this process or from another one, changes the row and rings
//! the doorbell, and the run that waits looks at its row. Nobody polls. A run that can't ask does not come here: the
//! policy turns its questions into refusals.

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use alisio_policy::{Ask, Basis, Denial, Request};
use alisio_protocol::{Approval, EventKind, Grant, Resolution, ToolCall, VerdictSource, Width};
use alisio_store::{Doorbell, Durability, Store, StoreError};
use serde_json::{Value, json};
use tokio::net::UnixDatagram;
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use crate::active_time::ActiveTime;
use crate::cancel::Cancel;
use crate::clock::Clock;
use crate::recorder::Recorder;

/// After a ring without an answer, a run looks at its row again, first after this long and then after twice as long each
/// time: whoever rang may have been killed between its answer and the next ring.
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// The longest pause before such a look; a writer gives up sooner.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// Puts questions to whoever can answer, and waits.
pub struct Approvals {
    store: Store,
    bell: Doorbell,
    /// How long a question waits before it is refused by itself; for ever, when absent.
    patience: watch::Sender<Option<Duration>>,
}

/// Says that whoever was to answer has gone: questions are refused by themselves from then on.
#[derive(Clone, Debug)]
pub struct Detacher(watch::Sender<Option<Duration>>);

impl Detacher {
    /// Gives every question, also those that wait, this long from now on.
    pub fn detach(&self, patience: Duration) {
        self.0.send_replace(Some(patience));
    }
}

/// How a question about one call ended.
pub(crate) struct Answered {
    pub(crate) request_id: String,
    pub(crate) resolution: Resolution,
}

/// What a question stands in.
pub(crate) struct Asking<'a> {
    pub(crate) recorder: &'a Recorder,
    pub(crate) active: &'a ActiveTime,
    pub(crate) cancel: &'a Cancel,
    pub(crate) clock: Clock,
}

impl Approvals {
    /// Starts to listen for answers.
    ///
    /// # Errors
    /// When the doorbell can't be made.
    pub fn listen(store: &Store, patience: Option<Duration>) -> Result<Self, StoreError> {
        let bell = Doorbell::listen(store)?;
        Ok(Self { store: store.clone(), bell, patience: watch::Sender::new(patience) })
    }

    /// Hands out what tells that nobody answers any more.
    pub fn detacher(&self) -> Detacher {
        Detacher(self.patience.clone())
    }

    /// Puts a question and waits until it is answered, runs out, or the run is stopped.
    pub(crate) async fn ask(
        &self,
        asking: &Asking<'_>,
        request: &Request,
        mut approval: Approval,
    ) -> Result<Answered, StoreError> {
        let Asking { recorder, active, .. } = asking;
        approval.deadline = (*self.patience.borrow())
            .map(|patience| approval.since + i64::try_from(patience.as_millis()).unwrap_or(i64::MAX));
        let requested = EventKind::ApprovalRequested {
            id: approval.call_id.clone(),
            name: request.tool.clone(),
            effect: request.effect,
            request_id: approval.request_id.clone(),
            label: String::new(),
            reason: approval.reason.clone(),
        };
        recorder.commit(Durability::Synced, vec![requested], |tx| tx.approval_requested(&approval))?;
        let resolution = {
            let _pause = active.wait_for_person();
            self.wait(&approval.request_id, asking).await?
        };
        let decision = match &resolution {
            Resolution::Once => "once",
            Resolution::Always { .. } => "session",
            _ => "deny",
        };
        recorder.store_events(vec![EventKind::ApprovalResolved {
            id: approval.call_id.clone(),
            name: request.tool.clone(),
            effect: request.effect,
            request_id: approval.request_id.clone(),
            decision: decision.to_owned(),
            resolution: resolution.clone(),
        }])?;
        Ok(Answered { request_id: approval.request_id, resolution })
    }

    async fn wait(&self, id: &str, asking: &Asking<'_>) -> Result<Resolution, StoreError> {
        let mut patience = self.patience.subscribe();
        let mut since = Instant::now();
        let mut look_again = None;
        loop {
            if let Some(resolution) = self.store.approval(id)?.resolution {
                return Ok(resolution);
            }
            let deadline = *patience.borrow_and_update();
            let again = async {
                match look_again {
                    Some(pause) => tokio::time::sleep(pause).await,
                    None => std::future::pending().await,
                }
            };
            let expired = async {
                match deadline {
                    Some(patience) => tokio::time::sleep_until(since + patience).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = asking.cancel.stopped() => self.close(asking, id, &Resolution::Aborted)?,
                () = expired => self.close(asking, id, &Resolution::Timeout)?,
                // The sender lives in `self`, so this never fails.
                _ = patience.changed() => since = Instant::now(),
                () = again => {
                    look_again = look_again.map(|pause: Duration| 2 * pause).filter(|pause| *pause <= LAST_LOOK);
                }
                rung = self.rung() => {
                    rung.map_err(|source| StoreError::File { path: self.store.state_root().to_owned(), source })?;
                    look_again = Some(FIRST_LOOK);
                }
            }
        }
    }

    /// Ends a question that waits, unless somebody was quicker.
    fn close(&self, asking: &Asking<'_>, id: &str, resolution: &Resolution) -> Result<(), StoreError> {
        let now = now_ms(asking.clock);
        asking
            .recorder
            .commit(Durability::Synced, Vec::new(), |tx| tx.close_approval(id, resolution, now))
            .map(drop)
    }

    /// Comes back when somebody rang; what was said is in the rows.
    async fn rung(&self) -> io::Result<()> {
        let socket = self.bell.as_fd().try_clone_to_owned()?;
        let socket = UnixDatagram::from_std(std::os::unix::net::UnixDatagram::from(socket))?;
        socket.recv(&mut [0; 64]).await?;
        // What else has come says nothing more.
        self.bell.try_recv();
        Ok(())
    }
}

/// Makes the question about a call: what would run, whole, why it is asked, and how wide an answer may be.
pub(crate) fn question(
    recorder: &Recorder,
    call: &ToolCall,
    request: &Request,
    ask: &Ask,
    basis: &Basis,
    clock: Clock,
) -> Approval {
    let subject = &request.subject;
    let (widths, directory) = match ask {
        Ask::Directory(outside) => (vec![Width::Directory], Some(outside.directory.display().to_string())),
        Ask::Effect(_) if subject.facts.is_some() => {
            (vec![Width::Call, Width::Program, Width::Tool, Width::Effect], None)
        }
        Ask::Effect(_) => (vec![Width::Call, Width::Tool, Width::Effect], None),
    };
    Approval {
        request_id: Uuid::now_v7().to_string(),
        session_id: recorder.session_id().clone(),
        run_id: recorder.run_id().clone(),
        call_id: call.id.clone(),
        agent: subject.agent.clone(),
        tool: request.tool.clone(),
        effect: request.effect,
        target: subject.target.clone(),
        shown: shown(call, request),
        facts: subject.facts.clone(),
        reason: basis.reason.clone(),
        widths,
        directory,
        digest: request.digest,
        since: now_ms(clock),
        deadline: None,
    }
}

/// Turns the end of a question into what the gate records.
pub(crate) fn settle(request: &Request, resolution: &Resolution) -> Result<Basis, Denial> {
    let deny = |reason: String, answerable| {
        Err(Denial {
            basis: Basis { source: VerdictSource::Answer, reason },
            remedy: String::new(),
            answerable,
        })
    };
    match resolution {
        Resolution::Once => Ok(Basis {
            source: VerdictSource::Answer,
            reason: format!("a person let this call of {} run", request.tool),
        }),
        Resolution::Always { width, .. } => Ok(Basis {
            source: VerdictSource::Answer,
            reason: format!("a person let this call of {} run, and what its {width:?} covers", request.tool),
        }),
        Resolution::Reject { feedback: Some(feedback) } => {
            deny(format!("a person refused this call and said: {feedback}"), false)
        }
        Resolution::Reject { feedback: None } => deny("a person refused this call".into(), false),
        Resolution::Timeout => deny("nobody answered in time".into(), true),
        Resolution::Aborted => deny("the run was stopped while the call waited for approval".into(), false),
        Resolution::Dropped => deny("the question was dropped".into(), true),
    }
}

/// The directory outside the workspace that a remembered answer opens.
pub(crate) fn opened_by(grant: &Grant) -> Option<PathBuf> {
    (grant.width == Width::Directory).then(|| grant.directory.as_ref().map(PathBuf::from)).flatten()
}

fn now_ms(clock: Clock) -> i64 {
    clock.now().as_millisecond()
}

/// What would run, whole: the input as it will be used, and everything that it may touch.
fn shown(call: &ToolCall, request: &Request) -> Value {
    let input: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
    json!({
        "input": input,
        "reads": request.scope.reads,
        "writes": request.scope.writes,
        "directory": request.scope.spawns_in,
    })
}
