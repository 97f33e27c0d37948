//! An attempt that is kept, as a line for people or for programs.

use super::extent;
use robot_lab_to::commit_message::clip;
use robot_lab_to::run::LoggedIteration;
use robot_lab_to::workspace::{DiffStat, Kept};
use serde_json::json;

/// Longest summary, in characters.
const MAX_SUMMARY: usize = 100;

/// An attempt and what is known of it.
pub(crate) struct Row<'a> {
    pub(crate) kept: Kept,
    /// `None` when objects of it are missing.
    pub(crate) stat: Option<DiffStat>,
    /// `None` when the log does not tell of it.
    pub(crate) told: Option<LoggedIteration<'a>>,
}

impl Row<'_> {
    /// The line for people.
    pub(crate) fn line(&self) -> String {
        let extent = self
            .stat
            .as_ref()
            .map_or_else(|| "objects are missing".into(), extent);
        let summary = clip(&self.summary(), MAX_SUMMARY);
        let line = format!(
            "{:>4}  {:<19}  {extent:<20}  {summary}",
            self.number(),
            self.outcome()
        );
        line.trim_end().to_owned()
    }

    /// The line for programs.
    pub(crate) fn json(&self, run_id: &str) -> String {
        json!({
            "run_id": run_id,
            "iteration": self.kept.iteration,
            "candidate": self.kept.candidate,
            "outcome": self.outcome(),
            "summary": self.summary(),
            "files": self.stat.map(|stat| stat.files),
            "added": self.stat.map(|stat| stat.added),
            "removed": self.stat.map(|stat| stat.removed),
            "commit": self.kept.commit.as_str(),
            "tree": self.kept.tree.as_str(),
            "parent": self.kept.parent.as_str(),
        })
        .to_string()
    }

    fn number(&self) -> String {
        match self.kept.candidate {
            0 => self.kept.iteration.to_string(),
            candidate => format!("{}-{candidate}", self.kept.iteration),
        }
    }

    fn outcome(&self) -> &'static str {
        self.told.as_ref().map_or("unknown", LoggedIteration::outcome)
    }

    fn summary(&self) -> String {
        self.told
            .as_ref()
            .map(LoggedIteration::summary)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use robot_lab_to::event::{Event, Record};
    use robot_lab_to::workspace::Oid;

    fn oid(digit: &str) -> Oid {
        digit.repeat(40).parse().unwrap()
    }

    #[test]
    fn an_attempt_is_a_line_whatever_a_robot_wrote() {
        let record = |event| Record {
            seq: 1,
            ts: "2026-11-30T01:02:03Z".parse().unwrap(),
            iteration: 2,
            event,
        };
        let records = [
            record(Event::IterationStarted {
                parent: oid("a"),
                from: None,
            }),
            record(Event::Failure {
                candidate: 0,
                summary: "it\x1b[2J\r\nfails \u{202e}".repeat(20),
                learnings: vec![],
            }),
        ];
        let kept = |iteration, candidate| Kept {
            iteration,
            candidate,
            commit: oid("c"),
            tree: oid("d"),
            parent: oid("a"),
        };
        let stat = DiffStat {
            files: 2,
            added: 10,
            removed: 0,
        };
        let rows = [
            Row {
                kept: kept(2, 0),
                stat: Some(stat),
                told: LoggedIteration::of(&records, 2),
            },
            Row {
                kept: kept(3, 1),
                stat: None,
                told: None,
            },
        ];
        let text = rows.each_ref().map(Row::line).join("\n");
        insta::assert_snapshot!(text, @r"
          2  failed               +10 −0 in 2 files     it [2J fails it [2J fails it [2J fails it [2J fails it [2J fails it [2J fails it [2J fails it [2J f…
        3-1  unknown              objects are missing
        ");
        insta::assert_snapshot!(rows[1].json("R"), @r#"{"run_id":"R","iteration":3,"candidate":1,"outcome":"unknown","summary":"","files":null,"added":null,"removed":null,"commit":"cccccccccccccccccccccccccccccccccccccccc","tree":"dddddddddddddddddddddddddddddddddddddddd","parent":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#);
    }
}
