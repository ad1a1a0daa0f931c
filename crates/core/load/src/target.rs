use async_trait::async_trait;

/// What is put under load. One `call` is one operation from the caller's point of view: it returns
/// when the caller has its result.
#[async_trait]
pub trait Target: Send + Sync {
    /// Makes call `number` of this run, counted from 0. The error is a short sentence. Equal
    /// sentences are counted together.
    async fn call(&self, number: u64) -> Result<(), String>;
}
