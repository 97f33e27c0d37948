//! Takes known secrets out of everything that is written down.

use super::Event;

/// What stands in the place of a secret.
const MARK: &str = "[redacted]";
/// Shorter values are too likely to be ordinary words.
const MIN_SECRET: usize = 8;

/// Replaces secrets that are known by value, such as the provider's key: as they are, and as they stand in JSON, also in
/// JSON inside of JSON. A secret that holds another one goes first, so that nothing of it remains.
#[derive(Clone, Default)]
pub struct Redactor(Vec<String>);

impl Redactor {
    /// A redactor for these secrets. Values under eight bytes are ignored.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let secrets = secrets.into_iter().filter(|secret| secret.len() >= MIN_SECRET);
        let mut forms: Vec<String> = secrets
            .flat_map(|secret| {
                let once = escaped(&secret);
                let twice = escaped(&once);
                [secret, once, twice]
            })
            .collect();
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        Self(forms)
    }

    /// The text without secrets.
    pub fn text(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            if text.contains(secret.as_str()) {
                text.replace(secret.as_str(), MARK)
            } else {
                text
            }
        })
    }

    /// The event without secrets.
    pub fn event(&self, event: Event) -> Event {
        let Ok(json) = serde_json::to_string(&event) else {
            return event;
        };
        if !self.0.iter().any(|secret| json.contains(secret.as_str())) {
            return event;
        }
        let clean = self.text(json);
        serde_json::from_str(&clean).unwrap_or(Event::Notice {
            message: "an event held a secret and was left out".into(),
        })
    }
}

/// The secret as it stands inside a JSON string.
fn escaped(secret: &str) -> String {
    serde_json::Value::from(secret)
        .to_string()
        .trim_matches('"')
        .to_owned()
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} forms of secrets)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_several_lines_is_taken_out_of_json_inside_of_json() {
        let (key, longer) = ("-----BEGIN\n\"KEY\"-----", "-----BEGIN\n\"KEY\"-----and more");
        let redactor = Redactor::new([key.to_owned(), longer.to_owned()]);
        let inner = serde_json::json!({ "said": key, "and": longer }).to_string();
        let outer = serde_json::json!({ "arguments": inner }).to_string();
        let clean = redactor.text(format!("{key} {longer} {outer}"));
        assert!(!clean.contains("BEGIN") && !clean.contains("and more"), "{clean}");
        assert_eq!(clean.matches(MARK).count(), 4, "{clean}");
    }

    #[test]
    fn a_secret_is_taken_out_of_texts_and_events() {
        let redactor = Redactor::new(["sk-12345\"6".to_owned(), "short".to_owned()]);
        assert_eq!(redactor.text("key sk-12345\"6!".into()), "key [redacted]!");
        let event = redactor.event(Event::Notice {
            message: "short sk-12345\"6".into(),
        });
        assert_eq!(
            event,
            Event::Notice {
                message: "short [redacted]".into()
            }
        );
    }
}
