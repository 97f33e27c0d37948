//! Plays one turn of a script.

use super::file::Turn;
use futures::StreamExt as _;
use robot_lab::{FinishReason, ModelError, ModelErrorKind, ModelEvent, ModelStream, ToolCall};
use std::time::Duration;

/// How many pieces a text is streamed in, at most.
const MAX_PIECES: usize = 6;

type Event = Result<ModelEvent, ModelError>;

/// The reply of a turn, or its failure.
pub(super) async fn play(number: usize, turn: &Turn) -> Result<ModelStream, ModelError> {
    if let Some(error) = &turn.error {
        pause(turn.delay()).await;
        let message = error
            .message
            .clone()
            .unwrap_or_else(|| format!("turn {number} of the script fails"));
        return Err(ModelError::new(error.kind(), message));
    }
    let steps = futures::stream::iter(steps(number, turn));
    let events = steps.then(|(delay, event)| async move {
        pause(delay).await;
        event
    });
    Ok(events.boxed())
}

async fn pause(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

/// The events of a reply, each with the time before it.
fn steps(number: usize, turn: &Turn) -> Vec<(Duration, Event)> {
    let mut events: Vec<Event> = pieces(&turn.text)
        .into_iter()
        .map(|piece| Ok(ModelEvent::Text(piece)))
        .collect();
    // The time passes before each piece of the text; without a text, before what comes first.
    let waits = u32::try_from(events.len()).unwrap_or(1).max(1);
    let calls: Vec<ToolCall> = calls(number, turn);
    // Counted before the calls are whole, as a provider's are: what was written has to be paid for.
    events.extend(
        calls
            .iter()
            .map(|call| Ok(ModelEvent::CallProgress(length(call)))),
    );
    if turn.cut {
        let message = format!("the reply broke off before its end, as turn {number} of the script says");
        events.push(Err(ModelError::new(ModelErrorKind::MalformedReply, message)));
    } else {
        let finish = if calls.is_empty() {
            FinishReason::Stop
        } else {
            FinishReason::ToolCalls
        };
        events.extend(calls.into_iter().map(|call| Ok(ModelEvent::Call(call))));
        events.extend(turn.usage.map(|tokens| Ok(ModelEvent::Usage(tokens.into()))));
        events.push(Ok(ModelEvent::Finished(finish)));
    }
    // Whole milliseconds, as finer ones are rounded up each time.
    let each = Duration::from_millis(turn.delay_ms / u64::from(waits));
    let first = turn.delay().saturating_sub(each * (waits - 1));
    let delays = std::iter::once(first)
        .chain(std::iter::repeat_n(each, waits as usize - 1))
        .chain(std::iter::repeat(Duration::ZERO));
    delays.zip(events).collect()
}

fn calls(number: usize, turn: &Turn) -> Vec<ToolCall> {
    let call = |(index, call): (usize, &super::file::Call)| ToolCall {
        id: format!("script_{number}_{}", index + 1),
        name: call.tool.clone(),
        arguments: call.args.clone(),
    };
    turn.calls.iter().enumerate().map(call).collect()
}

/// The bytes that a model writes for a call.
fn length(call: &ToolCall) -> usize {
    let arguments = call
        .arguments
        .as_str()
        .map_or_else(|| call.arguments.to_string().len(), str::len);
    call.name.len() + arguments
}

/// A text in a few pieces of whole words.
fn pieces(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_inclusive(char::is_whitespace).collect();
    let size = words.len().div_ceil(MAX_PIECES).max(1);
    words.chunks(size).map(|words| words.concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_few_and_make_up_the_text() {
        for text in [
            "",
            "one",
            "a b",
            " lead and trail \n",
            "a b c d e f g h i j k l m n o p q r s t u v w",
        ] {
            let pieces = pieces(text);
            assert_eq!(pieces.concat(), text);
            assert!(
                pieces.len() <= MAX_PIECES && pieces.iter().all(|piece| !piece.is_empty()),
                "{pieces:?}"
            );
        }
    }

    #[test]
    fn the_whole_delay_passes_and_most_of_it_between_the_pieces() {
        for (script, parts) in [("text: a b c", 3), ("calls: [{ tool: t }]", 1), ("cut: true", 1)] {
            let turns =
                super::super::file::read(&format!("turns:\n  - {{ {script}, delay_ms: 100 }}")).unwrap();
            let delays: Vec<_> = steps(1, &turns[0]).into_iter().map(|(delay, _)| delay).collect();
            assert_eq!(
                delays.iter().sum::<Duration>(),
                Duration::from_millis(100),
                "{script}"
            );
            assert_eq!(
                delays.iter().filter(|delay| !delay.is_zero()).count(),
                parts,
                "{script}"
            );
        }
    }
}
