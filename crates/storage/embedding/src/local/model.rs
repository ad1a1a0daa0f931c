use std::path::Path;

use ndarray::Axis;

use super::bert::{Bert, Shape};
use super::vocabulary::Vocabulary;
use super::weights::Weights;
use crate::to_length_one;

/// Tokens of a text that are used, as in the model's training. About 180 English words.
const MAX_PIECES: usize = 256;

/// Turns a text into its vector: tokens, encoder, mean, length 1.
pub(super) struct Model {
    vocabulary: Vocabulary,
    bert: Bert,
    dimensions: usize,
}

impl Model {
    /// Reads `config.json`, `vocab.txt` and `model.safetensors` in a folder.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let text = |name: &str| {
            std::fs::read_to_string(folder.join(name)).map_err(|error| format!("{name} cannot be read: {error}"))
        };
        let shape: Shape =
            serde_json::from_str(&text("config.json")?).map_err(|error| format!("config.json: {error}"))?;
        let vocabulary = Vocabulary::read(&text("vocab.txt")?).map_err(|error| format!("vocab.txt {error}"))?;
        if vocabulary.size() > shape.vocab_size || shape.max_position_embeddings < MAX_PIECES {
            return Err("vocab.txt and config.json do not belong to the same model".to_owned());
        }
        let weights = Weights::open(&folder.join("model.safetensors"));
        let bert = weights.and_then(|weights| Bert::read(&shape, &weights));
        let bert = bert.map_err(|error| format!("model.safetensors {error}"))?;
        Ok(Self { vocabulary, bert, dimensions: shape.hidden_size })
    }

    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns `None` if the computation was cancelled.
    pub(super) fn embed(&self, text: &str, is_given_up: &dyn Fn() -> bool) -> Result<Option<Vec<f32>>, String> {
        let pieces = self.vocabulary.numbers(text, MAX_PIECES);
        let Some(rows) = self.bert.encode(&pieces, is_given_up)? else { return Ok(None) };
        let mut vector = rows.mean_axis(Axis(0)).map(|mean| mean.to_vec()).unwrap_or_default();
        to_length_one(&mut vector);
        Ok(Some(vector))
    }
}
