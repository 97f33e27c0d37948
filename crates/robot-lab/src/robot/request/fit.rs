//! What the fallback is sent: the request as far as it fits that model, which may read less than the main one.

use super::{Requester, Source};
use crate::context::{Compacted, Context, Gauge};
use crate::event::RobotEvent;
use crate::message::Message;
use crate::model::{ModelError, ModelId, ModelRequest};
use std::sync::{MutexGuard, PoisonError};

impl Requester<'_> {
    /// The request in short, where the fallback could not read it otherwise. An error when it is known not to fit.
    pub(super) fn fitted(
        &self,
        source: Source<'_>,
        mut request: ModelRequest,
    ) -> Result<ModelRequest, ModelError> {
        if source.is_spare {
            let messages = std::mem::take(&mut request.messages);
            let model = source.model.id();
            let fitted = self
                .spare_context()
                .fit(&mut request, &messages, self.gauge(model));
            self.tell_compacted(model, fitted?);
        }
        Ok(request)
    }

    /// A request that the fallback has refused for its length, made shorter once.
    pub(super) fn shortened(
        &self,
        source: Source<'_>,
        mut sent: ModelRequest,
        whole: &[Message],
        error: ModelError,
    ) -> Result<ModelRequest, ModelError> {
        let model = source.model.id();
        let known = self.window(model);
        let shorter = self
            .spare_context()
            .refused(error, &mut sent, whole, self.gauge(model));
        self.tell_window(model, known);
        self.tell_compacted(model, Some(shorter?));
        Ok(sent)
    }

    /// The conversation is sent to the main model in another form, so what was left out for the fallback is elsewhere.
    pub(in crate::robot) fn fit_anew(&self) {
        self.spare_context().clear();
    }

    /// What is left of the fallback's view of the conversation.
    pub(in crate::robot) fn into_spare_context(self) -> Context {
        self.spare_context
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The length of a conversation with this model, as far as it was learnt.
    pub(in crate::robot) fn window(&self, model: &ModelId) -> Option<u64> {
        self.budget.meter().window(model)
    }

    /// Tells what was learnt of that since.
    pub(in crate::robot) fn tell_window(&self, model: &ModelId, known: Option<u64>) {
        let window = self.window(model).filter(|window| known != Some(*window));
        if let Some(tokens) = window {
            self.sink.emit(RobotEvent::WindowLearnt {
                model: model.to_string(),
                tokens,
            });
        }
    }

    /// Tells that a conversation was shortened.
    pub(in crate::robot) fn tell_compacted(&self, model: &ModelId, compacted: Option<Compacted>) {
        if let Some(Compacted {
            before,
            after,
            window,
        }) = compacted
        {
            self.sink.emit(RobotEvent::Compacted {
                model: model.to_string(),
                before,
                after,
                window,
            });
        }
    }

    fn gauge<'b>(&'b self, model: &'b ModelId) -> Gauge<'b> {
        Gauge {
            budget: self.budget,
            model,
        }
    }

    fn spare_context(&self) -> MutexGuard<'_, Context> {
        self.spare_context.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
