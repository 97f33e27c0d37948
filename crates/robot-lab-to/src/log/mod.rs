//! `run.log`: the truth about a run, and its only writer.

mod journal;
mod reader;
mod robot_events;
mod watchers;

pub use journal::Journal;
pub use reader::{ReadLog, read_log};
pub use robot_events::RobotEvents;
pub use watchers::Observer;
