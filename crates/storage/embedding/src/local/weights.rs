//! A file of weights (safetensors): a header with the position of each tensor, then their numbers.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ndarray::{Array1, Array2};
use serde::Deserialize;

/// Bytes. Headers of known models are shorter.
const MAX_HEADER: u64 = 1 << 20;

pub(super) struct Weights {
    file: File,
    /// Offset of the numbers in the file.
    start: u64,
    tensors: HashMap<String, Tensor>,
}

#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

impl Weights {
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let file = File::open(path).map_err(text)?;
        let mut length = [0; 8];
        file.read_exact_at(&mut length, 0).map_err(text)?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER {
            return Err("is not a safetensors file: its header is too long".to_owned());
        }
        let mut header = vec![0; length as usize];
        file.read_exact_at(&mut header, 8).map_err(text)?;
        let mut header: HashMap<String, serde_json::Value> =
            serde_json::from_slice(&header).map_err(|error| format!("has a header that cannot be parsed: {error}"))?;
        header.remove("__metadata__");
        let tensors = header
            .into_iter()
            .map(|(name, text)| Ok((name, serde_json::from_value(text).map_err(|error| error.to_string())?)))
            .collect::<Result<HashMap<String, Tensor>, String>>()?;
        let weights = Self { file, start: 8 + length, tensors };
        let size = weights.file.metadata().map_err(text)?.len();
        let end = weights.tensors.values().map(|tensor| tensor.data_offsets[1]).max().unwrap_or_default();
        if weights.start.checked_add(end) != Some(size) {
            return Err(format!("is {size} bytes long, which does not match its header"));
        }
        Ok(weights)
    }

    pub(super) fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, String> {
        Ok(Array1::from_vec(self.read(name, &[length])?))
    }

    /// A matrix with `rows` rows and `columns` columns.
    pub(super) fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Array2<f32>, String> {
        Array2::from_shape_vec((rows, columns), self.read(name, &[rows, columns])?).map_err(|error| error.to_string())
    }

    /// A matrix that stays in the file and is read row by row.
    pub(super) fn table(&self, name: &str, rows: usize, columns: usize) -> Result<Table, String> {
        let tensor = self.tensor(name, &[rows, columns])?;
        let file = self.file.try_clone().map_err(|error| error.to_string())?;
        Ok(Table { file, at: self.start + tensor.data_offsets[0], rows, columns })
    }

    fn tensor(&self, name: &str, shape: &[usize]) -> Result<&Tensor, String> {
        let tensor = self.tensors.get(name).ok_or_else(|| format!("has no {name}"))?;
        let bytes = 4 * shape.iter().product::<usize>() as u64;
        let [from, to] = tensor.data_offsets;
        if tensor.dtype != "F32" || tensor.shape != shape || to.checked_sub(from) != Some(bytes) {
            return Err(format!("has {name} as {} {:?}, not as F32 {shape:?}", tensor.dtype, tensor.shape));
        }
        Ok(tensor)
    }

    fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let tensor = self.tensor(name, shape)?;
        let [from, to] = tensor.data_offsets;
        let mut bytes = vec![0; (to - from) as usize];
        self.file.read_exact_at(&mut bytes, self.start + from).map_err(|error| error.to_string())?;
        Ok(numbers(&bytes).collect())
    }
}

/// A matrix that is read row by row from the file, usually from the page cache. The word embeddings
/// are half of the model, and a text needs few of their rows.
pub(super) struct Table {
    file: File,
    at: u64,
    rows: usize,
    columns: usize,
}

impl Table {
    /// Adds a row to `sum`, which must have `columns` numbers.
    pub(super) fn add_row(&self, row: u32, sum: &mut [f32]) -> Result<(), String> {
        if row as usize >= self.rows {
            return Err(format!("has no row {row}"));
        }
        let mut bytes = vec![0; 4 * self.columns];
        let at = self.at + u64::from(row) * bytes.len() as u64;
        self.file.read_exact_at(&mut bytes, at).map_err(|error| error.to_string())?;
        sum.iter_mut().zip(numbers(&bytes)).for_each(|(sum, number)| *sum += number);
        Ok(())
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}
