//! A line of the log, and which turn an event belongs to.

use super::Event;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Position in the log, from 1.
    pub seq: u64,
    /// When it was written.
    pub ts: Timestamp,
    /// The iteration it belongs to; 0 before the first.
    pub iteration: u32,
    /// What happened.
    pub event: Event,
}

/// Which turn of which candidate something belongs to. A late answer to another turn is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The iteration; 0 for the baseline.
    pub iteration: u32,
    /// Number of the candidate within its iteration, from 0.
    pub candidate: u32,
    /// Number of the robot's turn within the candidate, from 1.
    pub attempt: u32,
}
