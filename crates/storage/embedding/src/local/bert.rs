//! The BERT encoder, as published (Devlin et al., 2018): one vector for each token, computed from
//! its context. It encodes one text at a time, so it needs no padding.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, Axis, Zip, s};
use serde::Deserialize;

use super::weights::{Table, Weights};

/// The dimensions of a model, from its `config.json`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Shape {
    pub(super) hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    layer_norm_eps: f32,
    pub(super) max_position_embeddings: usize,
    pub(super) vocab_size: usize,
    type_vocab_size: usize,
    hidden_act: String,
    position_embedding_type: Option<String>,
}

impl Shape {
    fn check(&self) -> Result<(), String> {
        let heads = self.num_attention_heads;
        if heads == 0 || !self.hidden_size.is_multiple_of(heads) || self.type_vocab_size == 0 {
            return Err(format!("cannot divide hidden_size {} by {heads} attention heads", self.hidden_size));
        }
        if self.hidden_act != "gelu" || self.position_embedding_type.as_deref().is_some_and(|kind| kind != "absolute") {
            return Err(
                "is not a supported BERT (hidden_act must be gelu, position_embedding_type absolute)".to_owned()
            );
        }
        Ok(())
    }
}

pub(super) struct Bert {
    words: Table,
    /// The position embeddings. They include the embedding of token type 0, the only one that is
    /// used.
    positions: Array2<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    heads: usize,
}

struct Layer {
    query: Dense,
    key: Dense,
    value: Dense,
    attended: Dense,
    attended_norm: Norm,
    wide: Dense,
    narrow: Dense,
    narrow_norm: Norm,
}

impl Bert {
    pub(super) fn read(shape: &Shape, weights: &Weights) -> Result<Self, String> {
        shape.check()?;
        let (size, eps) = (shape.hidden_size, shape.layer_norm_eps);
        let mut positions =
            weights.matrix("embeddings.position_embeddings.weight", shape.max_position_embeddings, size)?;
        let kinds = weights.matrix("embeddings.token_type_embeddings.weight", shape.type_vocab_size, size)?;
        positions += &kinds.row(0);
        let layer = |number: usize| {
            let dense =
                |name: &str, to, from| Dense::read(weights, &format!("encoder.layer.{number}.{name}"), to, from);
            let norm = |name: &str| Norm::read(weights, &format!("encoder.layer.{number}.{name}"), size, eps);
            Ok(Layer {
                query: dense("attention.self.query", size, size)?,
                key: dense("attention.self.key", size, size)?,
                value: dense("attention.self.value", size, size)?,
                attended: dense("attention.output.dense", size, size)?,
                attended_norm: norm("attention.output.LayerNorm")?,
                wide: dense("intermediate.dense", shape.intermediate_size, size)?,
                narrow: dense("output.dense", size, shape.intermediate_size)?,
                narrow_norm: norm("output.LayerNorm")?,
            })
        };
        Ok(Self {
            words: weights.table("embeddings.word_embeddings.weight", shape.vocab_size, size)?,
            positions,
            norm: Norm::read(weights, "embeddings.LayerNorm", size, eps)?,
            layers: (0..shape.num_hidden_layers).map(layer).collect::<Result<_, String>>()?,
            heads: shape.num_attention_heads,
        })
    }

    /// Returns one row for each token id of `text`. Fails if the text has more tokens than the
    /// model has positions. Returns `None` if `is_given_up` returned true between two layers.
    pub(super) fn encode(&self, text: &[u32], is_given_up: &dyn Fn() -> bool) -> Result<Option<Array2<f32>>, String> {
        if text.len() > self.positions.nrows() {
            return Err(format!("takes at most {} tokens", self.positions.nrows()));
        }
        let mut rows = self.positions.slice(s![..text.len(), ..]).to_owned();
        for (mut row, number) in rows.rows_mut().into_iter().zip(text) {
            if let Some(row) = row.as_slice_mut() {
                self.words.add_row(*number, row)?;
            }
        }
        self.norm.apply(&mut rows);
        for layer in &self.layers {
            if is_given_up() {
                return Ok(None);
            }
            rows = layer.apply(&rows, self.heads);
        }
        Ok(Some(rows))
    }
}

impl Layer {
    fn apply(&self, rows: &Array2<f32>, heads: usize) -> Array2<f32> {
        let mut attended = self.attended.apply(&self.attend(rows, heads));
        attended += rows;
        self.attended_norm.apply(&mut attended);
        let mut wide = self.wide.apply(&attended);
        wide.mapv_inplace(gelu);
        let mut narrow = self.narrow.apply(&wide);
        narrow += &attended;
        self.narrow_norm.apply(&mut narrow);
        narrow
    }

    fn attend(&self, rows: &Array2<f32>, heads: usize) -> Array2<f32> {
        let (query, key, value) = (self.query.apply(rows), self.key.apply(rows), self.value.apply(rows));
        let width = rows.ncols() / heads;
        let scale = 1.0 / (width as f32).sqrt();
        let mut seen = Array2::zeros(rows.raw_dim());
        let mut scores = Array2::zeros((rows.nrows(), rows.nrows()));
        for head in 0..heads {
            let part = s![.., head * width..(head + 1) * width];
            general_mat_mul(scale, &query.slice(part), &key.slice(part).t(), 0.0, &mut scores);
            scores.rows_mut().into_iter().for_each(|row| softmax(row.into_slice().unwrap_or_default()));
            general_mat_mul(1.0, &scores, &value.slice(part), 0.0, &mut seen.slice_mut(part));
        }
        seen
    }
}

/// `x · weight + bias`.
struct Dense {
    /// In the layout of the file: one row for each output.
    weight: Array2<f32>,
    bias: Array1<f32>,
}

impl Dense {
    fn read(weights: &Weights, name: &str, to: usize, from: usize) -> Result<Self, String> {
        Ok(Self {
            weight: weights.matrix(&format!("{name}.weight"), to, from)?,
            bias: weights.vector(&format!("{name}.bias"), to)?,
        })
    }

    fn apply(&self, rows: &Array2<f32>) -> Array2<f32> {
        let into: ArrayView2<'_, f32> = self.weight.t();
        let mut result = Array2::zeros((rows.nrows(), into.ncols()));
        general_mat_mul(1.0, rows, &into, 0.0, &mut result);
        result += &self.bias;
        result
    }
}

/// Layer normalisation: each row to mean 0 and variance 1, then scaled and shifted.
struct Norm {
    scale: Array1<f32>,
    shift: Array1<f32>,
    eps: f32,
}

impl Norm {
    fn read(weights: &Weights, name: &str, size: usize, eps: f32) -> Result<Self, String> {
        let vector = |part: &str| weights.vector(&format!("{name}.{part}"), size);
        Ok(Self { scale: vector("weight")?, shift: vector("bias")?, eps })
    }

    fn apply(&self, rows: &mut Array2<f32>) {
        for mut row in rows.axis_iter_mut(Axis(0)) {
            let count = row.len() as f32;
            let mean = row.sum() / count;
            let spread = row.fold(0.0, |sum, x| sum + (x - mean) * (x - mean)) / count;
            let factor = 1.0 / (spread + self.eps).sqrt();
            Zip::from(&mut row)
                .and(&self.scale)
                .and(&self.shift)
                .for_each(|x, scale, shift| *x = (*x - mean) * factor * scale + shift);
        }
    }
}

fn softmax(row: &mut [f32]) {
    let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for x in row.iter_mut() {
        *x = (*x - most).exp();
        sum += *x;
    }
    for x in row.iter_mut() {
        *x /= sum;
    }
}

fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function, to 1.5e-7 (Abramowitz and Stegun, 7.1.26).
fn erf(x: f32) -> f32 {
    const A: [f32; 5] = [1.061_405_4, -1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6];
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let y = 1.0 - A.iter().fold(0.0, |sum, a| (sum + a) * t) * (-x * x).exp();
    y.copysign(x)
}
