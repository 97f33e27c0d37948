//! Performs an invocation: asks the pure machine what is next, does it, and says how it went.

use super::request::Requester;
use super::turn::{Action, End, Invocation, MAX_BAD_CALLS};
use super::{Robot, RobotResult, RunError, StopReason};
use crate::context::{Compacted, Context, Gauge};
use crate::event::RobotEvent;
use crate::hook::{HookCx, NextModel, NextTool, Store, Turn, TurnAction};
use crate::message::{ToolCall, ToolResult, Transcript};
use crate::model::{ModelError, ModelErrorKind, ModelReply, ModelRequest};
use crate::repair::{Repair, Settled, settle};
use crate::tool::{Abort, ToolOutcome};
use futures::future::FutureExt as _;
use std::any::Any;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How long a tool may go on after the invocation was cancelled, before it is dropped.
const TOOL_GRACE: Duration = Duration::from_secs(3);

pub(super) async fn run(
    robot: &mut Robot,
    message: &str,
    cancel: &CancellationToken,
) -> Result<RobotResult, RunError> {
    let mut transcript = std::mem::take(&mut robot.transcript);
    let store = Store::default();
    let context = std::mem::take(&mut robot.context);
    let spare_context = std::mem::take(&mut robot.spare_context);
    let (outcome, usage, context, spare_context) = {
        let requester = Requester::new(robot, cancel, spare_context);
        let mut run = Run {
            robot,
            requester: &requester,
            store: &store,
            cancel,
            turn: 0,
            repairs: HashMap::new(),
            settled: Mutex::new(None),
            context,
        };
        let invoked = AssertUnwindSafe(run.invoke(message, &mut transcript))
            .catch_unwind()
            .await;
        let outcome = match invoked {
            Ok(outcome) => outcome,
            // Neither is ours. A tool that panics is answered for where it is called.
            Err(panic) => {
                let abort = Abort(format!("a hook or the model crashed: {}", said(&*panic)));
                give_up(&mut transcript, &abort).and(Err(RunError::Aborted(abort)))
            }
        };
        for hook in &robot.hooks {
            // It only looks on, and there is nothing left to end.
            drop(
                AssertUnwindSafe(hook.after_run(&run.cx(), &outcome))
                    .catch_unwind()
                    .await,
            );
        }
        let (usage, context) = (requester.usage(), run.context);
        (outcome, usage, context, requester.into_spare_context())
    };
    robot.context = context;
    robot.spare_context = spare_context;
    robot.transcript = transcript;
    robot.usage += usage;
    outcome
}

/// Answers what is open, the call that was under way first, so that the conversation can go on.
fn give_up(transcript: &mut Transcript, abort: &Abort) -> Result<(), RunError> {
    let why = format!("the invocation was aborted: {abort}");
    let mut outcome = ToolOutcome::Failed(why.clone());
    while let Some(open) = transcript.pending().first().cloned() {
        answer(transcript, open, outcome)?;
        outcome = ToolOutcome::Refused(why.clone());
    }
    Ok(())
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason was given")
}

struct Run<'a> {
    robot: &'a Robot,
    requester: &'a Requester<'a>,
    store: &'a Store,
    cancel: &'a CancellationToken,
    turn: u32,
    /// What was done to the calls of the last reply, by their ids.
    repairs: HashMap<String, Repair>,
    /// How the calls of the reply on its way were read: before hooks see it, so that they see calls.
    settled: Mutex<Option<Settled>>,
    context: Context,
}

impl<'a> Run<'a> {
    fn cx(&self) -> HookCx<'a> {
        HookCx {
            robot: &self.robot.name,
            turn: self.turn,
            store: self.store,
            cancel: self.cancel,
        }
    }

    async fn invoke(&mut self, message: &str, transcript: &mut Transcript) -> Result<RobotResult, RunError> {
        let started = Instant::now();
        for hook in &self.robot.hooks {
            hook.before_run(&self.cx()).await.map_err(RunError::Aborted)?;
        }
        transcript.push_user(message)?;
        let mut machine = Invocation::new(self.robot.max_tool_calls);
        let mut reply: Option<ModelReply> = None;
        let mut results: Vec<ToolResult> = Vec::new();
        let mut action = Action::Request;
        let end = loop {
            action = match action {
                Action::Request => {
                    self.turn += 1;
                    results.clear();
                    self.robot.sink.emit(RobotEvent::TurnStarted { turn: self.turn });
                    match self.request(transcript).await {
                        Ok(mut answer) => {
                            // A hook may have answered itself, or made calls of an answer.
                            let calls = answer.message.calls().count();
                            let settled = self
                                .take_settled()
                                .filter(|settled| settled.repairs.len() == calls);
                            let settled = settled.unwrap_or_else(|| settle(&mut answer, &self.robot.tools));
                            transcript.push_assistant(answer.message.clone())?;
                            let calls = transcript.pending().to_vec();
                            let ids = calls.iter().map(|call| call.id.clone());
                            self.repairs = ids.zip(settled.repairs).collect();
                            let next = match settled.unreadable {
                                Some(why) => machine.unreadable(&why),
                                None => machine.replied(calls, &answer.finish),
                            };
                            reply = Some(answer);
                            next
                        }
                        Err(error) => match error.kind {
                            ModelErrorKind::Cancelled => machine.unanswered(StopReason::Cancelled),
                            ModelErrorKind::OverBudget => {
                                machine.unanswered(StopReason::Budget(self.robot.budget.reached()))
                            }
                            _ => return Err(RunError::Model(error)),
                        },
                    }
                }
                Action::Run(call) => match self.call(call.clone()).await {
                    Ok(outcome) => {
                        let next = machine.ran(&outcome, self.cancel.is_cancelled());
                        results.push(answer(transcript, call, outcome)?);
                        next
                    }
                    Err(abort) => {
                        give_up(transcript, &abort)?;
                        return Err(RunError::Aborted(abort));
                    }
                },
                Action::Answer(call, outcome) => {
                    results.push(answer(transcript, call, outcome)?);
                    machine.answered()
                }
                Action::AfterTurn => {
                    let next = match &reply {
                        Some(reply) => {
                            self.after_turn(&Turn {
                                reply,
                                results: &results,
                            })
                            .await
                        }
                        None => TurnAction::Continue,
                    };
                    machine.after_turn(next)
                }
                Action::Say(text) => {
                    transcript.push_user(text)?;
                    Action::Request
                }
                Action::Done(end) => break end,
            };
        };
        match end {
            End::Stop(stop) => Ok(RobotResult {
                text: transcript.last_text(),
                turns: self.turn,
                tool_calls: machine.calls_run(),
                usage: self.requester.usage(),
                stop,
                duration: started.elapsed(),
            }),
            End::ToolLoop => Err(RunError::ToolLoop {
                limit: self.robot.max_tool_calls,
            }),
            End::BadCalls => Err(RunError::BadCalls { count: MAX_BAD_CALLS }),
        }
    }

    /// Sends the conversation as far as it fits the model. One that is refused for its length is made shorter once.
    async fn request(&mut self, transcript: &Transcript) -> Result<ModelReply, ModelError> {
        let robot = self.robot;
        let gauge = Gauge {
            budget: &robot.budget,
            model: robot.model.id(),
        };
        let mut request = ModelRequest {
            system: robot.system.clone(),
            messages: Vec::new(),
            tools: robot.tools.specs(),
            max_output_tokens: robot.max_output_tokens,
            temperature: None,
        };
        let compacted = self.context.fit(&mut request, transcript.messages(), gauge)?;
        self.tell(compacted);
        loop {
            match self.send(request.clone()).await {
                Err(error) if error.kind == ModelErrorKind::ContextLength => {
                    let messages = transcript.messages();
                    let known = self.requester.window(gauge.model);
                    let compacted = self.context.refused(error, &mut request, messages, gauge);
                    self.requester.tell_window(gauge.model, known);
                    self.tell(Some(compacted?));
                }
                other => return other,
            }
        }
    }

    fn tell(&self, compacted: Option<Compacted>) {
        if compacted.is_some() {
            self.requester.fit_anew();
        }
        self.requester.tell_compacted(self.robot.model.id(), compacted);
    }

    fn take_settled(&self) -> Option<Settled> {
        let mut settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        settled.take()
    }

    async fn send(&self, request: ModelRequest) -> Result<ModelReply, ModelError> {
        let (requester, tools, slot) = (self.requester, &self.robot.tools, &self.settled);
        let send = move |request| {
            async move {
                let mut reply = requester.send(request).await?;
                let settled = settle(&mut reply, tools);
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(settled);
                Ok(reply)
            }
            .boxed()
        };
        let cx = self.cx();
        NextModel {
            cx: &cx,
            hooks: &self.robot.hooks,
            send: &send,
        }
        .run(request)
        .await
    }

    async fn call(&self, call: ToolCall) -> Result<ToolOutcome, Abort> {
        let started = Instant::now();
        let (call_id, tool) = (call.id.clone(), call.name.clone());
        self.robot.sink.emit(RobotEvent::ToolStarted {
            call_id: call_id.clone(),
            tool: tool.clone(),
            arguments: call.arguments.clone(),
            repair: self.repairs.get(&call_id).cloned().unwrap_or_default(),
        });
        let cx = self.cx();
        let next = NextTool {
            cx: &cx,
            hooks: &self.robot.hooks,
            tools: &self.robot.tools,
        };
        let mut running = std::pin::pin!(next.run(call));
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            () = self.cancel.cancelled() => timeout(TOOL_GRACE, running)
                .await
                .unwrap_or_else(|_| Ok(ToolOutcome::Failed("cancelled; it may have done a part".into()))),
        };
        let (ok, text) = match &outcome {
            Ok(outcome) => (outcome.is_ok(), text_of(outcome)),
            Err(abort) => (false, abort.to_string()),
        };
        self.robot.sink.emit(RobotEvent::ToolFinished {
            call_id,
            tool,
            ok,
            text,
            elapsed: started.elapsed(),
        });
        outcome
    }

    async fn after_turn(&self, turn: &Turn<'_>) -> TurnAction {
        for hook in &self.robot.hooks {
            match hook.after_turn(&self.cx(), turn).await {
                TurnAction::Continue => {}
                action => return action,
            }
        }
        TurnAction::Continue
    }
}

fn text_of(outcome: &ToolOutcome) -> String {
    let parts = outcome.clone().into_parts();
    ToolResult {
        call_id: String::new(),
        parts,
        ok: true,
    }
    .text()
}

fn answer(transcript: &mut Transcript, call: ToolCall, outcome: ToolOutcome) -> Result<ToolResult, RunError> {
    let result = ToolResult {
        call_id: call.id,
        ok: outcome.is_ok(),
        parts: outcome.into_parts(),
    };
    transcript.push_result(result.clone())?;
    Ok(result)
}
