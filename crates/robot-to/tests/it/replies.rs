//! What the scripted model says: the tool calls of a robot, and whole iterations in one reply.

use serde_json::{Value, json};
use testkit::{Call, Reply};

/// Writes a file.
pub(crate) fn write(path: &str, content: &str) -> Call {
    Call::new("write", json!({ "path": path, "content": content }))
}

/// Runs a command.
pub(crate) fn bash(command: &str) -> Call {
    Call::new("bash", json!({ "command": command }))
}

/// Reports success.
pub(crate) fn submit(summary: &str) -> Call {
    Call::new("submit_iteration_result", submission(true, summary))
}

/// Reports failure.
pub(crate) fn give_up(summary: &str) -> Call {
    Call::new("submit_iteration_result", submission(false, summary))
}

/// Reports success, and that the stop condition is met.
pub(crate) fn submit_and_stop(summary: &str) -> Call {
    let mut arguments = submission(true, summary);
    arguments["should_fully_stop"] = json!(true);
    Call::new("submit_iteration_result", arguments)
}

/// A whole iteration in one reply: the part `parts/<name>` with this content, and a report of success.
pub(crate) fn part(name: &str, content: &str) -> Reply {
    let path = format!("parts/{name}");
    Reply::calls([write(&path, content), submit(&format!("Add part {name}"))])
}

/// A whole iteration in one reply, which passes the test suite.
pub(crate) fn good(name: &str) -> Reply {
    part(name, "ok\n")
}

fn submission(success: bool, summary: &str) -> Value {
    json!({
        "success": success,
        "summary": summary,
        "key_changes": [format!("change of: {summary}")],
        "key_learnings": [format!("learning of: {summary}")],
    })
}
