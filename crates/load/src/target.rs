use async_trait::async_trait;

/// What is put under load. One `call` is one operation from the caller's own view: it returns when the caller has
/// what it wanted.
#[async_trait]
pub trait Target: Send + Sync {
    /// The `number`th call of this run, counted from 0. The error is a short sentence; equal sentences are counted
    /// together.
    async fn call(&self, number: u64) -> Result<(), String>;
}
