//! Suggests names that are similar to an unknown one.

/// Returns at most three known names within three edits (one for each three letters), nearest
/// first.
pub fn nearest_names<'n>(wanted: &str, known: impl Iterator<Item = &'n str>) -> Vec<String> {
    let wanted: Vec<char> = wanted.to_lowercase().chars().take(200).collect();
    let most = (wanted.len() / 3).clamp(1, 3);
    let mut near: Vec<(usize, &str)> = known
        .filter(|name| name.len().abs_diff(wanted.len()) <= most)
        .filter_map(|name| {
            let name_letters: Vec<char> = name.to_lowercase().chars().collect();
            let distance = edits(&wanted, &name_letters);
            (distance <= most).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// The number of insertions, deletions, replacements and swaps of neighbours between two names (the
/// optimal string alignment distance).
pub(crate) fn edits(left: &[char], right: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    let mut above = row.clone();
    for i in 1..=left.len() {
        let mut next = vec![i];
        for j in 1..=right.len() {
            let replaced = row[j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut fewest = replaced.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                fewest = fewest.min(above[j - 2] + 1);
            }
            next.push(fewest);
        }
        above = std::mem::replace(&mut row, next);
    }
    row[right.len()]
}
