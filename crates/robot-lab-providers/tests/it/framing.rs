//! The frames of a stream: wherever they are split, and however their lines are written, the reply is the same.

use crate::support::{EVENTS, RawServer, answer, model, request, send};
use serde_json::json;
use testkit::{Call, Reply};

const TEXT: &str = "caf\u{e9} 👩‍🚀 \u{1f600}, naïve — ½";

#[tokio::test]
async fn characters_may_be_split_anywhere() {
    for bytes in [1, 2, 3, 5, 7, 11] {
        let reply = Reply::calls([Call::new("say", json!({ "text": TEXT }))]).with_text(TEXT);
        let outcome = answer(reply.chunk_bytes(bytes)).await.whole();
        assert_eq!(outcome.text(), TEXT, "{bytes} bytes at a time");
        assert_eq!(
            outcome.calls()[0].arguments,
            json!({ "text": TEXT }),
            "{bytes} bytes at a time"
        );
    }
}

#[tokio::test]
async fn lines_may_be_written_in_any_way_that_is_allowed() {
    let delta = format!("{{\"choices\":[{{\"delta\":{{\"content\":\"{TEXT}\"}}}}]}}");
    let end = "{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}";
    for body in [
        format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n"),
        format!("data:{delta}\n\ndata:{end}\n\ndata:[DONE]\n\n"),
        format!("data: {delta}\r\n\r\ndata: {end}\r\n\r\ndata: [DONE]\r\n\r\n"),
        format!(": hello\n\nevent: chunk\nid: 1\ndata: {delta}\n\n:\n\n\n\ndata: {end}\n\n"),
        format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]"),
        format!("data: {delta}\n\ndata: {end}"),
    ] {
        for at_a_time in [1, 4, usize::MAX] {
            let server = RawServer::writing(format!("{EVENTS}{body}").into_bytes(), at_a_time);
            let outcome = send(&model(server.base_url.clone()), request()).await.whole();
            assert_eq!(outcome.text(), TEXT, "{at_a_time} at a time: {body:?}");
        }
    }
}
