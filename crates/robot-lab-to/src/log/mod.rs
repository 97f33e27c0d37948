//! `run.log`: the truth about a run, and its only writer.

mod journal;
mod reader;
mod robot_events;

pub use journal::{Journal, Observer};
pub use reader::{ReadLog, read_log};
pub use robot_events::RobotEvents;
