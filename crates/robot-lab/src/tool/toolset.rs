//! The tools of one robot, by name.

use super::{Tool, ToolSpec, Typed, TypedTool};
use crate::repair::{Known, find_name};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a wrong name that an answer repeats.
const MAX_SHOWN: usize = 100;

/// Tools with unique names, in the order in which they were added.
#[derive(Clone, Default)]
pub struct Toolset {
    tools: Vec<Arc<dyn Tool>>,
    index: BTreeMap<String, usize>,
}

/// A tool that cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolsetError {
    /// Two tools with one name.
    #[error("a tool named {0} is there already; give one of them another name")]
    Duplicate(String),
}

impl Toolset {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolsetError> {
        let name = tool.spec().name.clone();
        if self.index.contains_key(&name) {
            return Err(ToolsetError::Duplicate(name));
        }
        self.index.insert(name, self.tools.len());
        self.tools.push(tool);
        Ok(())
    }

    /// Adds a typed tool.
    pub fn add_typed<T: TypedTool + 'static>(&mut self, tool: T) -> Result<(), ToolsetError> {
        self.add(Arc::new(Typed::new(tool)))
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.index.get(name).and_then(|&i| self.tools.get(i))
    }

    /// The tool that a name means, which may be written in another way.
    pub(crate) fn find(&self, name: &str) -> Known<'_> {
        find_name(&self.names(), name)
    }

    /// What to say to whoever calls a tool that is not there.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let near = match self.find(name) {
            Known::Not(Some(near)) => format!("; did you mean `{near}`?"),
            _ => String::new(),
        };
        let names = self.names().join(", ");
        format!("there is no tool `{}`; the tools are: {names}{near}", shown(name))
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.spec().name.as_str()).collect()
    }

    /// What the model is told, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec().clone()).collect()
    }
}

/// The beginning of a name, which a model may have made of anything.
fn shown(name: &str) -> &str {
    name.get(..name.floor_char_boundary(MAX_SHOWN)).unwrap_or(name)
}

impl std::fmt::Debug for Toolset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
