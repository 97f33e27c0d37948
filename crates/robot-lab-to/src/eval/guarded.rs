//! Keeps a run from the faults of an eval that is not ours: one that panics or does not come back gives no score.

use super::commands::invalid;
use super::{Eval, EvalContext, Score};
use crate::iteration::StopReason;
use async_trait::async_trait;
use futures::FutureExt as _;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// An eval with a net under it.
pub(crate) struct Guarded {
    name: String,
    protected: Vec<String>,
    eval: Arc<dyn Eval>,
    timeout: Duration,
}

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
        let scoring = AssertUnwindSafe(async { self.eval.score(&own).await }).catch_unwind();
        let why = match timeout(self.timeout, scoring).await {
            Ok(Ok(scored)) => return scored.map(Score::checked),
            Ok(Err(panic)) => format!("it crashed: {}", said(&*panic)),
            Err(_late) => format!("it did not answer within {} s", self.timeout.as_secs()),
        };
        own.cancel.cancel();
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

/// What a panic said.
pub(crate) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason was given")
}
