//! Combines the ranking by meaning with the ranking by words.

use std::collections::HashMap;

use uuid::Uuid;

/// The share of the cosine in the score; the rest is the share of the words.
const MEANING: f64 = 0.65;
/// Above 1, so that a word or two of many add little, and a rare code adds much.
const WORDS_POWER: f64 = 1.5;

/// `near`: records with their cosine, the nearest first. `words`: how much of the question each
/// record has, from 0 to 1. A record that is not near has at most the cosine of the last that is.
/// Returns each record with its score, the best first. Equal scores are ordered by id, so that the
/// result is stable.
pub(crate) fn fuse(near: &[(Uuid, f64)], by_words: &[Uuid], words: &HashMap<Uuid, f64>) -> Vec<(Uuid, f64)> {
    let farthest = near.last().map_or(0.0, |(_, cosine)| *cosine);
    let mut cosines: HashMap<Uuid, f64> = by_words.iter().map(|id| (*id, farthest)).collect();
    cosines.extend(near.iter().copied());
    let score = |(id, cosine)| {
        let share = words.get(&id).copied().unwrap_or_default();
        (id, MEANING * cosine + (1.0 - MEANING) * share.powf(WORDS_POWER))
    };
    let mut fused: Vec<(Uuid, f64)> = cosines.into_iter().map(score).collect();
    fused.sort_by(|(one, a), (other, b)| b.total_cmp(a).then(one.cmp(other)));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(near: &[(u128, f64)], words: &[(u128, f64)]) -> Vec<u128> {
        let near: Vec<(Uuid, f64)> = near.iter().map(|(id, cosine)| (Uuid::from_u128(*id), *cosine)).collect();
        let by_words: Vec<Uuid> = words.iter().map(|(id, _)| Uuid::from_u128(*id)).collect();
        let words = words.iter().map(|(id, share)| (Uuid::from_u128(*id), *share)).collect();
        fuse(&near, &by_words, &words).into_iter().map(|(id, _)| id.as_u128()).collect()
    }

    #[test]
    fn the_record_with_a_rare_code_comes_before_nearer_ones() {
        assert_eq!(order(&[(1, 0.6), (2, 0.58), (3, 0.5)], &[(3, 0.5), (1, 0.05)]), [3, 1, 2]);
        // Also if it is not among the nearest.
        assert_eq!(order(&[(1, 0.6), (2, 0.58)], &[(3, 0.5)]), [3, 1, 2]);
    }

    #[test]
    fn a_word_of_many_does_not_hide_the_nearest() {
        assert_eq!(order(&[(1, 0.5), (2, 0.3)], &[(2, 0.2)]), [1, 2]);
    }
}
