//! Keeps a run from the faults of an eval that is not ours: one that panics or does not come back gives no score. It
//! has a thread of its own, so that a run can leave it behind also where it blocks.

use super::commands::invalid;
use super::{Eval, EvalContext, Score};
use crate::iteration::StopReason;
use async_trait::async_trait;
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use tokio::time::timeout;

/// An eval with a net under it.
pub(crate) struct Guarded {
    name: String,
    protected: Vec<String>,
    eval: Arc<dyn Eval>,
    timeout: Duration,
    /// Held while the eval is at work, also by one that was left behind: there is never more than one.
    at_work: Arc<Mutex<()>>,
}

/// What came of asking an eval; or what its panic said.
type Scored = Result<Result<Score, StopReason>, String>;

impl Guarded {
    /// Asks the eval once for what does not change. An error says that it panicked.
    pub(crate) fn new(eval: Arc<dyn Eval>, timeout: Duration) -> Result<Self, String> {
        let asked = catch_unwind(AssertUnwindSafe(|| {
            (eval.name().to_owned(), eval.protected_paths())
        }));
        let (name, protected) =
            asked.map_err(|panic| format!("the eval crashed before the run: {}", said(&*panic)))?;
        Ok(Self {
            name,
            protected,
            eval,
            timeout,
            at_work: Arc::default(),
        })
    }
}

#[async_trait]
impl Eval for Guarded {
    fn name(&self) -> &str {
        &self.name
    }

    async fn score(&self, cx: &EvalContext) -> Result<Score, StopReason> {
        let own = EvalContext {
            cancel: cx.cancel.child_token(),
            ..cx.clone()
        };
        // Whoever gives this up, by its deadline or because the run ends, also tells the eval.
        let _given_up = own.cancel.clone().drop_guard();
        let answer = async {
            let turn = Arc::clone(&self.at_work).lock_owned().await;
            let answer = ask(Arc::clone(&self.eval), own, turn)?.await;
            Ok::<Scored, io::Error>(answer.unwrap_or_else(|_gone| Err("it was ended".into())))
        };
        let why = match timeout(self.timeout, answer).await {
            Ok(Ok(Ok(scored))) => return scored.map(Score::checked),
            Ok(Ok(Err(panic))) => format!("it crashed: {panic}"),
            Ok(Err(error)) => {
                let text = format!("there is no thread for the eval: {error}");
                return Err(StopReason::environment(text));
            }
            Err(_late) => format!("it did not answer within {} s", self.timeout.as_secs()),
        };
        invalid(
            Score::default(),
            cx,
            (&format!("eval `{}`", self.name), &self.name),
            &why,
            "",
        )
    }

    fn protected_paths(&self) -> Vec<String> {
        self.protected.clone()
    }
}

/// Asks an eval on a thread of its own, where it may block. Once nobody waits for the answer, it is dropped at its next
/// `await`; the thread of one that has none is left behind, and keeps its turn.
fn ask(
    eval: Arc<dyn Eval>,
    cx: EvalContext,
    turn: OwnedMutexGuard<()>,
) -> io::Result<oneshot::Receiver<Scored>> {
    let (mut answer, asked) = oneshot::channel();
    let runtime = Handle::current();
    thread::Builder::new().name("eval".into()).spawn(move || {
        let scoring = async {
            tokio::select! {
                scored = eval.score(&cx) => Some(scored),
                () = answer.closed() => None,
            }
        };
        let scored = catch_unwind(AssertUnwindSafe(|| runtime.block_on(scoring)));
        drop(turn);
        let scored = scored.map_err(|panic| said(&*panic).to_owned()).transpose();
        if let Some(scored) = scored {
            // Where nobody waits any more, nobody is told.
            drop(answer.send(scored));
        }
    })?;
    Ok(asked)
}

/// What a panic said.
pub(crate) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason was given")
}
