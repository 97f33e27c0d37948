//! Typed tools: the schema comes from the argument struct, and arguments are checked before the tool runs.

use super::{Abort, Tool, ToolCx, ToolOutcome, ToolSpec};
use crate::message::ToolCall;
use crate::repair;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A tool whose arguments are a struct.
///
/// ```
/// use robot_lab::{Abort, ToolCx, ToolOutcome, Toolset, TypedTool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Weather {
///     /// The city to look up.
///     city: String,
/// }
///
/// struct WeatherTool;
///
/// #[async_trait::async_trait]
/// impl TypedTool for WeatherTool {
///     type Args = Weather;
///     const NAME: &'static str = "weather";
///     const DESCRIPTION: &'static str = "Tells the weather in a city.";
///
///     async fn run(&self, args: Weather, _cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
///         Ok(ToolOutcome::text(format!("it rains in {}", args.city)))
///     }
/// }
///
/// let mut tools = Toolset::new();
/// tools.add_typed(WeatherTool)?;
/// # Ok::<(), robot_lab::ToolsetError>(())
/// ```
#[async_trait]
pub trait TypedTool: Send + Sync {
    /// The arguments. Their doc comments become the descriptions in the schema.
    type Args: DeserializeOwned + JsonSchema + Send;
    /// The name that the model calls.
    const NAME: &'static str;
    /// What the tool does.
    const DESCRIPTION: &'static str;

    /// Runs one call with arguments that fit the schema.
    async fn run(&self, args: Self::Args, cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort>;
}

/// A [`TypedTool`] as a [`Tool`].
pub struct Typed<T> {
    spec: ToolSpec,
    tool: T,
}

impl<T: TypedTool> Typed<T> {
    /// Wraps a tool, deriving its schema once.
    pub fn new(tool: T) -> Self {
        let mut schema =
            schemars::SchemaGenerator::from(schemars::generate::SchemaSettings::draft2020_12().with(|s| {
                s.meta_schema = None;
                s.inline_subschemas = true;
            }))
            .into_root_schema_for::<T::Args>();
        schema.remove("title");
        schema.remove("description");
        let parameters = Value::from(schema);
        Self {
            spec: ToolSpec {
                name: T::NAME.into(),
                description: T::DESCRIPTION.into(),
                parameters,
            },
            tool,
        }
    }
}

impl<T> Typed<T> {
    /// The schema that the model sees, for a tool that leaves a part of its arguments out.
    pub fn parameters_mut(&mut self) -> &mut Value {
        &mut self.spec.parameters
    }
}

#[async_trait]
impl<T: TypedTool> Tool for Typed<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, call: &ToolCall, cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
        match parse::<T::Args>(&call.arguments) {
            Ok(args) => self.tool.run(args, cx).await,
            Err(why) => Ok(ToolOutcome::BadCall(format!(
                "{why}; nothing was done, call {name} again. {name} takes: {takes}",
                name = T::NAME,
                takes = repair::signature(&self.spec.parameters)
            ))),
        }
    }
}

/// Turns what the model wrote into typed arguments, or into a sentence that helps it to write better ones.
fn parse<A: DeserializeOwned>(arguments: &Value) -> Result<A, String> {
    let object = Value::Object(repair::arguments(arguments).map_err(|flaw| flaw.to_string())?);
    serde_path_to_error::deserialize(object).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        if path == "." {
            format!("the arguments do not fit: {inner}")
        } else {
            format!("argument `{path}`: {inner}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(serde::Deserialize, JsonSchema, Debug, PartialEq)]
    struct Args {
        /// File to read.
        path: String,
        #[serde(default)]
        limit: Option<u32>,
    }

    #[test]
    fn arguments_are_checked_and_explained() {
        let ok = Args {
            path: "a".into(),
            limit: None,
        };
        assert_eq!(parse::<Args>(&json!({"path": "a"})).unwrap(), ok);
        assert_eq!(
            parse::<Args>(&json!("{\"path\":\"a\"}")).unwrap(),
            ok,
            "encoded twice"
        );
        for (arguments, expected) in [
            (json!({}), "the arguments do not fit: missing field `path`"),
            (json!(null), "the arguments must be a JSON object, not null"),
            (
                json!({"path": 3}),
                "argument `path`: invalid type: integer `3`, expected a string",
            ),
            (json!([]), "the arguments must be a JSON object, not a list"),
            (json!("[1]"), "the arguments must be a JSON object, not a list"),
        ] {
            assert_eq!(parse::<Args>(&arguments).unwrap_err(), expected);
        }
        let broken = parse::<Args>(&json!("{\"path\": \"a\"")).unwrap_err();
        assert!(
            broken.starts_with("the arguments are not valid JSON: "),
            "{broken}"
        );
    }
}
