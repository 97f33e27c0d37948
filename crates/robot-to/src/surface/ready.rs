//! How a run would begin: what was checked, the score of the base commit, and the first prompt in full.

use super::plain::count;
use super::printable;
use robot_lab::model::estimate_tokens;
use robot_lab_to::commit_message::one_line;
use robot_lab_to::run::Checked;
use robot_lab_to::shell::head_and_tail;
use serde_json::{Value, json};

/// Bytes of the output of the gate.
const MAX_OUTPUT: usize = 4_000;
/// Most locked files that are named.
const MAX_LOCKED: usize = 30;

/// A run that was checked.
pub(crate) struct Ready<'a> {
    pub(crate) checked: &'a Checked,
    /// The month of the price, when that is from the table.
    pub(crate) as_of: Option<&'static str>,
    /// The variable that holds the key, where the provider has one.
    pub(crate) variable: Option<&'a str>,
    /// Whether there is a key.
    pub(crate) key: bool,
    /// Why there is none, when there must be one.
    pub(crate) missing: Option<&'a str>,
}

impl Ready<'_> {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let checked = self.checked;
        let mut text = String::new();
        let mut line = |name: &str, value: &str| text.push_str(&format!("{name:<11} {value}\n"));
        let (git, (major, minor)) = &checked.git;
        line("Git:", &format!("{major}.{minor} ({})", git.display()));
        line("Repository:", &one_line(&checked.top.display().to_string()));
        if !checked.subdir.as_os_str().is_empty() {
            line("Directory:", &one_line(&checked.subdir.display().to_string()));
        }
        line("Base:", checked.base.short());
        line("Objective:", &one_line(&checked.plan.objective));
        line("Model:", &one_line(&checked.model));
        if let Some(price) = self.price() {
            line("Price:", &price);
        }
        line("Key:", &self.key_text());
        line("Gate:", &self.gate());
        if let Some(measure) = &checked.plan.measure {
            let goal = checked.plan.goal;
            let better = if goal.minimize { "lower" } else { "higher" };
            let target = goal
                .target
                .map(|target| format!("; target {target}"))
                .unwrap_or_default();
            let command = one_line(&measure.command);
            line("Measure:", &format!("{command} ({better} is better{target})"));
        }
        if !checked.locked.is_empty() {
            let named = checked.locked.iter().take(MAX_LOCKED);
            let named: Vec<_> = named.map(|path| one_line(&path.display().to_string())).collect();
            let more = match checked.locked.len().saturating_sub(MAX_LOCKED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            line("Locked:", &format!("{}{more}", named.join(", ")));
        }
        for notice in &checked.notices {
            line("Note:", &one_line(notice));
        }
        let score = &checked.baseline;
        if !score.detail.is_empty() {
            let failing = if score.gate_ok {
                ""
            } else {
                "; the robot is told what it printed"
            };
            line("Baseline:", &format!("{}{failing}", one_line(&score.detail)));
        }
        let output = score.output.as_deref().unwrap_or_default();
        for said in printable(&head_and_tail(output.trim_end(), MAX_OUTPUT)).lines() {
            text.push_str(&format!("    {said}\n"));
        }
        text.push_str(&format!("{:<11} {}\n", "Prompt:", self.size()));
        for (title, prompt) in [("system", &checked.system), ("first message", &checked.message)] {
            text.push_str(&format!("\n--- {title} ---\n{}\n", printable(prompt.trim_end())));
        }
        text.push_str(&format!("--- end ---\n\n{}\n", self.verdict()));
        text
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        let checked = self.checked;
        let score = &checked.baseline;
        json!({
            "ready": self.missing.is_none(),
            "missing": self.missing,
            "ends": checked.ends.as_ref().map(|reason| &reason.text),
            "git": format!("{}.{}", checked.git.1.0, checked.git.1.1),
            "top": checked.top.display().to_string(),
            "subdir": checked.subdir.display().to_string(),
            "base": checked.base.as_str(),
            "model": checked.model,
            "price_as_of": self.as_of,
            "key_variable": self.variable,
            "key": self.key,
            "plan": checked.plan,
            "locked": checked.locked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "notices": checked.notices,
            "baseline": {
                "gate": score.gate_ok,
                "value": score.value,
                "metrics": score.metrics,
                "detail": score.detail,
                "output": score.output,
                "elapsed_ms": score.elapsed_ms,
            },
            "prompt": {
                "system": checked.system,
                "message": checked.message,
                "bytes": self.bytes(),
                "estimated_tokens": estimate_tokens(self.bytes()),
            },
        })
    }

    /// What has to be paid.
    fn price(&self) -> Option<String> {
        let facts = self.checked.plan.models.get(&self.checked.model)?;
        let price = facts.price.filter(|price| !price.is_free())?;
        let rates = price.rates;
        let stated = match self.as_of {
            Some(month) => format!(", as of {month}: check it, or give --price"),
            None => String::new(),
        };
        Some(format!(
            "{} in, {} cached, {} out per million tokens{stated}",
            rates.input, rates.cached, rates.output
        ))
    }

    fn key_text(&self) -> String {
        match (self.variable, self.key, self.missing) {
            (Some(variable), true, _) => format!("{variable} is set"),
            (Some(variable), false, Some(_)) => format!("{variable} is not set, and is needed"),
            (Some(variable), false, None) => {
                format!("{variable} is not set; a server of your own may need none")
            }
            (None, ..) => "none is needed".into(),
        }
    }

    fn gate(&self) -> String {
        match &self.checked.plan.verify_command {
            Some(command) => one_line(command),
            None => "none: the robot's word decides (--verify CMD)".into(),
        }
    }

    fn bytes(&self) -> usize {
        self.checked.system.len() + self.checked.message.len()
    }

    fn size(&self) -> String {
        let tokens = count(estimate_tokens(self.bytes()));
        format!(
            "{} bytes, about {tokens} tokens, and the descriptions of the tools",
            self.bytes()
        )
    }

    fn verdict(&self) -> String {
        let verdict = match (&self.checked.ends, self.missing) {
            (_, Some(_)) => "Not ready: the key is missing.".into(),
            (Some(reason), None) => format!("A run would end at once: {}.", one_line(&reason.text)),
            (None, None) => "Ready: a run would begin.".to_owned(),
        };
        format!("{verdict} Nothing was changed, and no token was spent.")
    }
}
