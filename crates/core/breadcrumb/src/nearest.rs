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

/// The number of insertions, deletions and replacements between two names.
pub(crate) fn edits(left: &[char], right: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
