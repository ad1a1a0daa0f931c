//! Combines two rankings by rank alone, because their scores cannot be compared.

use std::collections::HashMap;

use uuid::Uuid;

/// Damps the weight of the first ranks (Cormack, Clarke and Büttcher, 2009).
const K: f64 = 60.0;

/// Reciprocal rank fusion: a record with a high rank in one list comes early, one with a high rank
/// in both comes earlier. Returns each record with its score. Equal scores are ordered by id, so
/// that the result is stable.
pub(crate) fn fuse(rankings: &[&[Uuid]]) -> Vec<(Uuid, f64)> {
    let mut scores: HashMap<Uuid, f64> = HashMap::new();
    for ranking in rankings {
        for (rank, id) in ranking.iter().enumerate() {
            *scores.entry(*id).or_default() += 1.0 / (K + 1.0 + rank as f64);
        }
    }
    let mut fused: Vec<(Uuid, f64)> = scores.into_iter().collect();
    fused.sort_by(|(one, a), (other, b)| b.total_cmp(a).then(one.cmp(other)));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_in_both_rankings_come_first() {
        let [a, b, c] = [1, 2, 3].map(Uuid::from_u128);
        let fused = fuse(&[&[a, b], &[c, b]]);
        assert_eq!(fused.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [b, a, c]);
        assert!((fused[0].1 - 2.0 / 62.0).abs() < 1e-12);
        assert!((fused[1].1 - 1.0 / 61.0).abs() < 1e-12);
    }
}
