//! Ranks records by the words that they share with a question, in the manner of BM25: a rare word
//! counts more than a common one, the first occurrence more than further ones, and an occurrence in
//! a short record more than one in a long record.

use std::collections::HashMap;

use uuid::Uuid;

use super::{Candidate, Term};

/// A term with this `ts_rank` has half of its weight in a record of average length.
const HALF: f64 = 0.3;
/// How much the length of a record counts, from 0 to 1.
const LENGTH: f64 = 0.5;
/// How much more a code or a name counts than another word of the same rarity.
const IDENTIFIER: f64 = 3.0;
/// At least as many records have a common word. `matching_breadcrumbs` has the same number.
const COMMON: f64 = 1000.0;

/// How much of the question's information each record has, from 0 to 1. A word that no record has
/// counts as the rarest: what has the others answers only a part of the question.
pub(super) fn shares(terms: &[Term], searched: u32, records: &[Candidate]) -> HashMap<Uuid, f64> {
    let weight = |(place, term): (usize, &Term)| {
        let having = records.iter().filter(|record| record.ranks[place] > 0.0).count() as f64;
        let having = if term.is_common { having.max(COMMON) } else { having };
        let others = (f64::from(searched) - having).max(0.0);
        let rarity = (1.0 + (others + 0.5) / (having + 0.5)).ln();
        if term.is_identifier { rarity * IDENTIFIER } else { rarity }
    };
    let weights: Vec<f64> = terms.iter().enumerate().map(weight).collect();
    let whole: f64 = weights.iter().sum();
    let average = records.iter().map(|record| f64::from(record.length)).sum::<f64>() / records.len() as f64;
    let share = |record: &Candidate| {
        let half = HALF * (1.0 - LENGTH + LENGTH * f64::from(record.length) / average);
        let ranks = record.ranks.iter().map(|rank| f64::from(*rank));
        let sum: f64 = ranks.zip(&weights).map(|(rank, weight)| weight * rank / (rank + half)).sum();
        // A question of exclusions alone has no terms.
        if whole > 0.0 { sum / whole } else { 0.0 }
    };
    records.iter().map(|record| (record.id, share(record))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(is_identifier: bool) -> Term {
        Term { query: String::new(), is_identifier, is_common: false }
    }

    fn record(id: u128, length: i32, ranks: &[f32]) -> Candidate {
        Candidate { id: Uuid::from_u128(id), updated_at: chrono::DateTime::UNIX_EPOCH, length, ranks: ranks.to_vec() }
    }

    fn ranked(terms: &[Term], records: &[Candidate]) -> Vec<u128> {
        let shares = shares(terms, 1000, records);
        assert!(shares.values().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
        let mut order: Vec<u128> = records.iter().map(|record| record.id.as_u128()).collect();
        order.sort_by(|one, other| shares[&Uuid::from_u128(*other)].total_cmp(&shares[&Uuid::from_u128(*one)]));
        order
    }

    #[test]
    fn a_rare_word_counts_more_than_several_common_ones() {
        let common: Vec<Candidate> = (10..200).map(|id| record(id, 10, &[0.6, 0.6, 0.0])).collect();
        let records: Vec<Candidate> = common.into_iter().chain([record(1, 10, &[0.0, 0.0, 0.6])]).collect();
        assert_eq!(ranked(&[term(false), term(false), term(false)], &records)[0], 1);
    }

    #[test]
    fn a_short_record_and_a_second_occurrence_count_more() {
        let records = [record(1, 100, &[0.3]), record(2, 10, &[0.3]), record(3, 100, &[0.4])];
        assert_eq!(ranked(&[term(false)], &records), [2, 3, 1]);
    }

    #[test]
    fn a_code_counts_more_than_a_word_as_rare() {
        let records = [record(1, 10, &[0.6, 0.0]), record(2, 10, &[0.0, 0.6])];
        assert_eq!(ranked(&[term(false), term(true)], &records), [2, 1]);
    }
}
