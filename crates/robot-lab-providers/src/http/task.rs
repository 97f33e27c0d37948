//! A reply read in a task of its own, which ends when nobody waits for it any more.

use futures::StreamExt as _;
use robot_lab::{ModelError, ModelErrorKind, ModelStream};
use std::future::Future;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// Events that may wait to be read.
const QUEUE: usize = 64;

/// Runs `reply` and its stream in a task.
pub(super) async fn apart(
    reply: impl Future<Output = Result<ModelStream, ModelError>> + Send + 'static,
) -> Result<ModelStream, ModelError> {
    let (opened, open) = oneshot::channel();
    let (events, mut received) = mpsc::channel(QUEUE);
    // Dropped, the set ends its task.
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        match reply.await {
            Err(error) => {
                opened.send(Err(error)).ok();
            }
            Ok(mut stream) => {
                if opened.send(Ok(())).is_err() {
                    return;
                }
                while let Some(event) = stream.next().await {
                    if events.send(event).await.is_err() {
                        return;
                    }
                }
            }
        }
    });
    open.await.unwrap_or_else(|_| Err(lost()))?;
    let stream = futures::stream::poll_fn(move |cx| {
        let _keeps_the_task_alive = &tasks;
        received.poll_recv(cx)
    });
    Ok(Box::pin(stream))
}

fn lost() -> ModelError {
    ModelError::new(
        ModelErrorKind::MalformedReply,
        "the reply could not be read: its reader crashed",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use robot_lab::ModelEvent;
    use std::time::{Duration, Instant};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_reader_that_never_pauses_does_not_stop_the_clock() {
        let busy = async {
            let until = Instant::now() + Duration::from_secs(2);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            Err(lost())
        };
        let waited = tokio::time::timeout(Duration::from_millis(50), apart(busy)).await;
        assert!(waited.is_err(), "the deadline comes first");
    }

    #[tokio::test]
    async fn events_come_in_order_and_errors_come_at_once() {
        let events = (0..200).map(|n| Ok(ModelEvent::CallProgress(n)));
        let stream = apart(async { Ok(futures::stream::iter(events).boxed()) })
            .await
            .unwrap();
        let read: Vec<_> = stream
            .map(|event| matches!(event, Ok(ModelEvent::CallProgress(_))))
            .collect()
            .await;
        assert_eq!(read, [true; 200]);
        assert!(apart(async { Err(lost()) }).await.is_err());
    }
}
