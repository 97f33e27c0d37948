//! Bounds what a weak model may answer at once: about twice the largest file that it knows, so that one that does not
//! find an end is cut, and one that writes a whole file is not.

use super::files::Files;
use async_trait::async_trait;
use robot_lab::{Hook, HookCx, ModelError, ModelReply, ModelRequest, NextModel};
use std::sync::Arc;

/// Bytes of a token.
const TOKEN: usize = 4;
/// The least, in tokens: a new file of thirty lines.
const LEAST: usize = 512;

/// The hook.
pub(crate) struct AnswerLimit(pub(crate) Arc<Files>);

#[async_trait]
impl Hook for AnswerLimit {
    fn name(&self) -> &'static str {
        "answer limit"
    }

    async fn around_model(
        &self,
        _cx: &HookCx<'_>,
        request: ModelRequest,
        next: NextModel<'_>,
    ) -> Result<ModelReply, ModelError> {
        next.run(limited(request, self.0.largest_known())).await
    }
}

/// The request with a limit for twice so many bytes, unless it has a lower one.
pub(crate) fn limited(mut request: ModelRequest, bytes: usize) -> ModelRequest {
    let limit = u32::try_from(LEAST.max(2 * bytes / TOKEN)).unwrap_or(u32::MAX);
    let asked = request.max_output_tokens.unwrap_or(limit);
    request.max_output_tokens = Some(asked.min(limit));
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_may_be_twice_the_file() {
        let of = |asked: Option<u32>, bytes| {
            let request = ModelRequest {
                max_output_tokens: asked,
                ..ModelRequest::default()
            };
            limited(request, bytes).max_output_tokens
        };
        assert_eq!(of(None, 0), Some(512));
        assert_eq!(of(None, 4_000), Some(2_000));
        assert_eq!(of(Some(100), 4_000), Some(100));
        assert_eq!(of(None, usize::MAX / 2), Some(u32::MAX));
    }
}
