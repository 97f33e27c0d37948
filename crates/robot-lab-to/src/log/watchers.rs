//! Those who watch a run, on a thread of their own: slow, stuck or panicking, they hold nothing up.

use crate::event::Record;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

/// Records that wait for a watcher that is stuck. The log has those that find no room.
const QUEUE: usize = 16_384;

/// Somebody who watches a run. What it does cannot fail or stop anything.
pub trait Observer: Send + Sync {
    /// Sees a record that was written.
    fn record(&self, record: &Record);

    /// Sees that the model wrote so many bytes. These are not recorded.
    fn delta(&self, _bytes: usize) {}
}

enum Seen {
    Record(Box<Record>),
    Delta(usize),
    Flush(Sender<()>),
}

/// The way to the observers.
pub(super) struct Watchers {
    queue: Option<SyncSender<Seen>>,
    missed: AtomicU64,
}

impl Watchers {
    pub(super) fn new(observers: Vec<Arc<dyn Observer>>) -> Self {
        if observers.is_empty() {
            return Self {
                queue: None,
                missed: AtomicU64::new(0),
            };
        }
        let (queue, seen) = sync_channel(QUEUE);
        std::thread::spawn(move || show(&seen, &observers));
        Self {
            queue: Some(queue),
            missed: AtomicU64::new(0),
        }
    }

    pub(super) fn record(&self, record: &Record) {
        self.send(Seen::Record(Box::new(record.clone())));
    }

    pub(super) fn delta(&self, bytes: usize) {
        self.send(Seen::Delta(bytes));
    }

    /// Waits until everything so far was seen, but not longer than `limit`. Answers how many records found no room.
    pub(super) fn flush(&self, limit: Duration) -> u64 {
        let (done, seen) = channel();
        self.send(Seen::Flush(done));
        // Either it was seen, or whoever should see it is stuck.
        seen.recv_timeout(limit).ok();
        self.missed.load(Ordering::SeqCst)
    }

    fn send(&self, seen: Seen) {
        if let Some(queue) = &self.queue
            && let Err(TrySendError::Full(Seen::Record(_))) = queue.try_send(seen)
        {
            self.missed.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn show(seen: &Receiver<Seen>, observers: &[Arc<dyn Observer>]) {
    for seen in seen {
        for observer in observers {
            // A watcher that panics misses what made it panic.
            drop(catch_unwind(AssertUnwindSafe(|| match &seen {
                Seen::Record(record) => observer.record(record),
                Seen::Delta(bytes) => observer.delta(*bytes),
                Seen::Flush(_) => {}
            })));
        }
        if let Seen::Flush(done) = seen {
            done.send(()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use std::sync::Mutex;

    struct Odd(Mutex<Vec<u64>>, Mutex<()>);

    impl Observer for Odd {
        #[expect(clippy::manual_assert, reason = "the panic is the point")]
        fn record(&self, record: &Record) {
            drop(self.1.lock());
            if record.seq.is_multiple_of(2) {
                panic!("an even record");
            }
            self.0.lock().unwrap().push(record.seq);
        }
    }

    fn record(seq: u64) -> Record {
        let ts = "2026-11-30T01:02:03Z".parse().unwrap();
        Record {
            seq,
            ts,
            iteration: 0,
            event: Event::Notice {
                message: String::new(),
            },
        }
    }

    #[test]
    fn a_watcher_that_panics_or_is_stuck_holds_nothing_up() {
        let odd = Arc::new(Odd(Mutex::default(), Mutex::default()));
        let watchers = Watchers::new(vec![Arc::clone(&odd) as Arc<dyn Observer>]);
        for seq in 1..=4 {
            watchers.record(&record(seq));
        }
        assert_eq!(watchers.flush(Duration::from_secs(60)), 0);
        assert_eq!(*odd.0.lock().unwrap(), [1, 3]);

        let stuck = odd.1.lock().unwrap();
        for seq in 0..QUEUE as u64 + 100 {
            watchers.record(&record(2 * seq + 1));
        }
        assert!(
            watchers.flush(Duration::from_millis(10)) >= 99,
            "the rest is only in the log"
        );
        drop(stuck);
    }
}
