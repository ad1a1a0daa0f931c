//! What parts computing from doing. A call may be run before its request is on the disk, so that neither waits for the
//! other: until the word is given it computes, and whatever it would do to the world waits. So a crash, or a write that
//! is refused, leaves nothing behind of a call that never was.

use tokio::sync::watch;

/// A call's end of it.
#[derive(Debug, Clone)]
pub struct GoAhead(Option<watch::Receiver<bool>>);

/// Gives the word. Dropped without it, the call never does anything.
#[derive(Debug)]
pub struct GivesGoAhead(watch::Sender<bool>);

/// The word never came, and will not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeverGiven;

impl GoAhead {
    /// For a call that may do what its tool may do from its beginning.
    pub fn given() -> Self {
        Self(None)
    }

    /// Still to be given.
    pub fn later() -> (GivesGoAhead, Self) {
        let (gives, waits) = watch::channel(false);
        (GivesGoAhead(gives), Self(Some(waits)))
    }

    /// Returns once it is given.
    pub async fn wait(&self) -> Result<(), NeverGiven> {
        match &self.0 {
            None => Ok(()),
            Some(waits) => waits.clone().wait_for(|is_given| *is_given).await.map(|_| ()).map_err(|_| NeverGiven),
        }
    }
}

impl GivesGoAhead {
    pub fn give(self) {
        // The call may have ended already.
        self.0.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn nothing_goes_before_the_word_and_nothing_without_it() {
        assert_eq!(GoAhead::given().wait().now_or_never(), Some(Ok(())));
        let (gives, waits) = GoAhead::later();
        let other = waits.clone();
        assert_eq!(waits.wait().now_or_never(), None);
        gives.give();
        assert_eq!(waits.wait().now_or_never(), Some(Ok(())));
        assert_eq!(other.wait().now_or_never(), Some(Ok(())), "it stays given when who gave it has gone");
        let (gives, waits) = GoAhead::later();
        drop(gives);
        assert_eq!(waits.wait().now_or_never(), Some(Err(NeverGiven)));
    }
}
