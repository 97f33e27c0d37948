//! A closure as an eval.

use super::{Eval, EvalContext, Score};
use crate::iteration::StopReason;
use async_trait::async_trait;

/// An eval made of a closure: see [`from_fn`].
pub struct FromFn<F> {
    name: String,
    score: F,
    protected: Vec<String>,
}

/// Makes an eval of a closure. `Err` says that nothing is known of the candidate, and ends the run: use
/// [`StopReason::environment`] for a disk that is full, and [`Score::fail`] for a candidate that cannot be read.
///
/// ```
/// use robot_lab_to::eval::{Score, from_fn};
///
/// let shorter = from_fn("shorter", |cx| async move {
///     match std::fs::read_to_string(cx.work_dir.join("poem.txt")) {
///         Ok(poem) => Ok(cx.score(poem.lines().count() as f64)),
///         Err(error) => Ok(Score::fail("poem=unreadable", error.to_string())),
///     }
/// })
/// .protects("rhymes.txt");
/// # let _: &dyn robot_lab_to::eval::Eval = &shorter;
/// ```
pub fn from_fn<F, Fut>(name: impl Into<String>, score: F) -> FromFn<F>
where
    F: Fn(EvalContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Score, StopReason>> + Send,
{
    FromFn {
        name: name.into(),
        score,
        protected: Vec::new(),
    }
}

impl<F> FromFn<F> {
    /// Locks files that it grades by: a git pathspec from the top of the repository.
    #[must_use]
    pub fn protects(mut self, pathspec: impl Into<String>) -> Self {
        self.protected.push(pathspec.into());
        self
    }
}

#[async_trait]
impl<F, Fut> Eval for FromFn<F>
where
    F: Fn(EvalContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Score, StopReason>> + Send,
{
    fn name(&self) -> &str {
        &self.name
    }

    async fn score(&self, cx: &EvalContext) -> Result<Score, StopReason> {
        (self.score)(cx.clone()).await
    }

    fn protected_paths(&self) -> Vec<String> {
        self.protected.clone()
    }
}
