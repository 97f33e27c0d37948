//! One request until its reply is of use: what the server does not take is put otherwise, and the request sent again.

use super::connection::{self, Connection};
use super::exchange::Watched;
use super::reply::{Body, Ended, Reply};
use crate::failure::Reporter;
use crate::protocol::{Change, Fault, Learnt, Options, Protocol};
use crate::record::Playback;
use futures::StreamExt as _;
use reqwest::Url;
use robot_lab::{ModelError, ModelErrorKind as Kind, ModelEvent, ModelRequest, ModelStream};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How often one request is put otherwise, which is more than any server has been seen to want.
const MAX_CHANGES: usize = 6;

/// What all requests of a model need.
pub(super) struct Speaker {
    pub(super) model: String,
    /// The model for people and for logs, as `provider/name`.
    pub(super) id: String,
    pub(super) protocol: Protocol,
    /// What the user asks for.
    pub(super) options: Options,
    pub(super) base: Url,
    pub(super) connection: Connection,
    pub(super) reporter: Arc<Reporter>,
    pub(super) watched: Watched,
    /// What the server has been found not to take.
    pub(super) learnt: Mutex<Learnt>,
    /// A recording that answers in place of the provider.
    pub(super) playback: Option<Playback>,
}

/// A request as it goes over the wire.
struct Written {
    url: Url,
    protocol: Protocol,
    options: Options,
    body: serde_json::Value,
}

impl Clone for Speaker {
    fn clone(&self) -> Self {
        Self {
            model: self.model.clone(),
            id: self.id.clone(),
            protocol: self.protocol,
            options: self.options,
            base: self.base.clone(),
            connection: self.connection.clone(),
            reporter: Arc::clone(&self.reporter),
            watched: self.watched.again(),
            learnt: Mutex::new(self.learnt()),
            playback: self.playback.clone(),
        }
    }
}

impl Speaker {
    /// Where requests go, without what may be secret in it.
    pub(super) fn address(&self) -> String {
        let learnt = self.learnt();
        let (protocol, options) = (learnt.protocol(self.protocol), learnt.options(self.options));
        connection::address(&protocol.endpoint(&self.base, &self.model, options.stream))
    }

    /// Sends a request, and hands on the reply.
    pub(super) async fn speak(self: Arc<Self>, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let (reply, notes) = self.begin(&request, self.learnt()).await?;
        let speech = Speech {
            notes: notes.into(),
            streamed: reply.streamed,
            second: None,
            heard: false,
            reply,
            request,
            speaker: self,
        };
        let next = |mut speech: Speech| async { speech.next().await.map(|event| (event, speech)) };
        let speaker = Arc::clone(&speech.speaker);
        let events = futures::stream::unfold(speech, next).boxed();
        Ok(match &speaker.playback {
            // Only a whole reply can be put into the words of this run.
            Some(playback) => futures::stream::iter(playback.translate(events.collect().await)).boxed(),
            None => events,
        })
    }

    fn learnt(&self) -> Learnt {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers what helped.
    fn remember(&self, changes: &[Change]) {
        let mut learnt = self.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            if let Some(more) = learnt.and(*change) {
                *learnt = more;
            }
        }
    }

    fn write(&self, request: &ModelRequest, learnt: &Learnt) -> Written {
        let (protocol, options) = (learnt.protocol(self.protocol), learnt.options(self.options));
        let mut body = protocol.body(&self.model, request, &options);
        learnt.apply(&mut body);
        Written {
            url: protocol.endpoint(&self.base, &self.model, options.stream),
            protocol,
            options,
            body,
        }
    }

    /// Sends a request until a reply begins, and remembers what helped. What fails before that has cost nothing.
    async fn begin(
        &self,
        request: &ModelRequest,
        known: Learnt,
    ) -> Result<(Reply, Vec<ModelEvent>), ModelError> {
        let mut learnt = known.clone();
        let mut written = self.write(request, &learnt);
        // What a server in trouble says may be of the trouble: then it counts for this request alone.
        let mut sure = true;
        for _ in 0..MAX_CHANGES {
            let ended = match self.open(request, &learnt, &written).await {
                Ok(reply) => {
                    let changes = learnt.since(&known);
                    if sure {
                        self.remember(&changes);
                    }
                    return Ok((reply, notes(&changes, sure)));
                }
                Err(ended) => ended,
            };
            let said = ended
                .said
                .as_deref()
                .filter(|_| may_be_of_form(&ended.error.kind));
            let next = said.and_then(|said| learnt.after(written.protocol, &written.body, said));
            let Some(next) = next else { return Err(ended.error) };
            let otherwise = self.write(request, &next);
            if otherwise.body == written.body && otherwise.url == written.url {
                return Err(ended.error);
            }
            sure &= ended.error.kind != Kind::Overloaded;
            (learnt, written) = (next, otherwise);
        }
        self.open(request, &learnt, &written)
            .await
            .map(|reply| (reply, notes(&learnt.since(&known), false)))
            .map_err(|ended| ended.error)
    }

    /// Sends a request once.
    async fn open(&self, request: &ModelRequest, learnt: &Learnt, written: &Written) -> Result<Reply, Ended> {
        let body = written.body.to_string();
        let address = connection::address(&written.url);
        let mut recorder = self.watched.begin(&self.id, &address, &body, &self.reporter);
        let response = match &self.playback {
            Some(playback) => {
                let answer = playback
                    .answer(&self.id, &body, &self.reporter)
                    .map_err(|ended| *ended)?;
                Body::Recorded(Some(answer))
            }
            None => {
                let url = written.url.clone();
                let sent = self.connection.send(url, body, &self.reporter, &mut recorder);
                Body::Live(sent.await?)
            }
        };
        let streamed = written.options.stream;
        let notices = streamed && !request.tools.is_empty() && !learnt.has(Change::Silence);
        let decoder = written
            .protocol
            .decoder(request, &written.options)
            .noticing_silence(notices);
        Reply::open(response, decoder, streamed, Arc::clone(&self.reporter), recorder).await
    }
}

/// Says what is done otherwise, and in a form to be written down where it is `kept`.
fn notes(changes: &[Change], kept: bool) -> Vec<ModelEvent> {
    let note = |change: &Change| ModelEvent::Adapted {
        note: change.to_string(),
        change: kept.then(|| change.written()),
    };
    changes.iter().map(note).collect()
}

/// Whether a failure may be one of how the request is put.
fn may_be_of_form(kind: &Kind) -> bool {
    matches!(kind, Kind::BadRequest | Kind::ModelNotFound | Kind::Overloaded)
}

/// A reply that is handed on, and the one in its place when it turns out to have lost its calls.
struct Speech {
    speaker: Arc<Speaker>,
    request: ModelRequest,
    reply: Reply,
    /// What comes before more of the reply.
    notes: VecDeque<ModelEvent>,
    /// Whether the first reply was a stream.
    streamed: bool,
    /// In the place of a reply that lost its calls: whether that one had announced them.
    second: Option<bool>,
    /// Whether the reply has a call.
    heard: bool,
}

impl Speech {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(note) = self.notes.pop_front() {
                return Some(Ok(note));
            }
            match self.reply.next().await? {
                Ok(event) => {
                    self.heard |= matches!(event, ModelEvent::Call(_));
                    if matches!(event, ModelEvent::Finished(_)) {
                        self.conclude();
                        self.notes.push_back(event);
                        continue;
                    }
                    return Some(Ok(event));
                }
                Err(Ended {
                    fault:
                        Some(Fault::Lost {
                            announced,
                            usage,
                            charged,
                        }),
                    ..
                }) if self.streamed && self.second.is_none() => {
                    self.second = Some(announced);
                    self.notes.extend(usage.map(ModelEvent::Usage));
                    self.notes.extend(charged.map(ModelEvent::Charged));
                    self.notes.push_back(ModelEvent::Discarded);
                    if let Err(error) = self.ask_for_all_at_once().await {
                        self.reply.end_with(error);
                    }
                }
                Err(ended) => return Some(Err(ended.error)),
            }
        }
    }

    /// The same request again, whose reply comes in one piece.
    async fn ask_for_all_at_once(&mut self) -> Result<(), ModelError> {
        let learnt = self.speaker.learnt();
        let whole = learnt.and(Change::Whole).unwrap_or(learnt);
        let (reply, notes) = self.speaker.begin(&self.request, whole).await?;
        self.notes.push_back(ModelEvent::Again);
        self.notes.extend(notes);
        self.reply = reply;
        Ok(())
    }

    /// Learns from how the reply in one piece ended.
    fn conclude(&mut self) {
        let change = match self.second {
            Some(_) if self.heard => Change::Whole,
            Some(false) => Change::Silence,
            _ => return,
        };
        self.speaker.remember(&[change]);
        self.notes.extend(notes(&[change], true));
    }
}
