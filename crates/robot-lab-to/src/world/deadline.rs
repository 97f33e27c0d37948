//! The time that a robot has, which stands still while it waits for its provider.

use robot_lab::{EventSink, RobotEvent};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The furthest deadline.
const FAR: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);

/// How long the robot has waited.
#[derive(Clone, Copy, Debug, Default)]
struct Waited {
    /// When the present wait began.
    since: Option<Instant>,
    /// What those before it took.
    total: Duration,
}

/// The waits of a robot, as its events tell of them.
#[derive(Debug, Default)]
pub(crate) struct Waits(watch::Sender<Waited>);

impl Waits {
    /// Sees the events on their way to `sink`.
    pub(super) fn observing(self: &Arc<Self>, sink: Arc<dyn EventSink>) -> Arc<dyn EventSink> {
        Arc::new(Observed {
            waits: Arc::clone(self),
            sink,
        })
    }

    /// A deadline that is so far away, without the waits from now on.
    pub(crate) fn deadline(self: &Arc<Self>, limit: Duration) -> Deadline {
        Deadline {
            at: Instant::now() + limit.min(FAR),
            before: self.0.borrow().total,
            waits: Arc::clone(self),
        }
    }

    fn see(&self, event: &RobotEvent) {
        match event {
            RobotEvent::Waiting { .. } => self.0.send_modify(|waited| {
                waited.since.get_or_insert_with(Instant::now);
            }),
            RobotEvent::Resumed { .. } => self.0.send_modify(|waited| {
                if let Some(since) = waited.since.take() {
                    waited.total += since.elapsed();
                }
            }),
            _ => {}
        }
    }
}

struct Observed {
    waits: Arc<Waits>,
    sink: Arc<dyn EventSink>,
}

impl EventSink for Observed {
    fn emit(&self, event: RobotEvent) {
        self.waits.see(&event);
        self.sink.emit(event);
    }
}

/// A time by which a robot must be done.
#[derive(Debug)]
pub(crate) struct Deadline {
    at: Instant,
    /// Waits before it was set.
    before: Duration,
    waits: Arc<Waits>,
}

impl Deadline {
    /// Comes back when the time is over. It never is during a wait.
    pub(super) async fn passed(&self) {
        let mut changes = self.waits.0.subscribe();
        loop {
            let waited = *changes.borrow_and_update();
            let end = self.at + waited.total.saturating_sub(self.before);
            let over = async {
                match waited.since {
                    None => sleep_until(end).await,
                    Some(_) => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => return,
                // The sender is ours, so it is there.
                _ = changes.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use robot_lab::{ModelErrorKind, NoEvents};
    use tokio::time::sleep;

    #[tokio::test(start_paused = true)]
    async fn a_wait_for_the_provider_takes_no_time_from_the_robot() {
        let minute = Duration::from_secs(60);
        let waits = Arc::new(Waits::default());
        let sink = waits.observing(Arc::new(NoEvents));
        let wait = || RobotEvent::Waiting {
            model: "a/b".into(),
            kind: ModelErrorKind::Overloaded,
            message: String::new(),
            wait: minute,
            announced: false,
            other: None,
        };
        let resume = || RobotEvent::Resumed {
            model: "a/b".into(),
            waited: minute,
            answered: true,
        };
        let began = Instant::now();
        let deadline = waits.deadline(10 * minute);
        let robot = async {
            for _ in 0..2 {
                sleep(4 * minute).await;
                sink.emit(wait());
                sleep(100 * minute).await;
                sink.emit(wait());
                sleep(200 * minute).await;
                sink.emit(resume());
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = robot => {}
            () = deadline.passed() => {}
        }
        assert_eq!(began.elapsed(), 610 * minute);

        let began = Instant::now();
        waits.deadline(minute).passed().await;
        assert_eq!(
            began.elapsed(),
            minute,
            "what was waited before is not counted twice"
        );
        waits.deadline(Duration::ZERO).passed().await;
    }
}
