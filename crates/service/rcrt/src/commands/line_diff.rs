//! The difference between two texts, by lines, in the unified format.

/// Unchanged lines that are shown around a change.
const AROUND: usize = 3;
/// The most changed lines that are searched for. Texts with more changes are shown as replaced, so
/// that time and memory stay bounded.
const MAX_CHANGES: usize = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'t> {
    Same(&'t str),
    Removed(&'t str),
    Added(&'t str),
}

/// Hunks with `@@ -from,count +from,count @@`; empty if the texts have the same lines.
pub fn unified(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let lines = lines(&old, &new);
    let mut shown = Vec::new();
    let mut next = 0;
    while let Some(first) = (next..lines.len()).find(|at| is_change(lines[*at])) {
        let mut last = first;
        // Changes with few lines between them are one hunk.
        while let Some(more) = (last + 1..lines.len().min(last + 2 * AROUND + 2)).find(|at| is_change(lines[*at])) {
            last = more;
        }
        let (begin, end) = (first.saturating_sub(AROUND).max(next), (last + 1 + AROUND).min(lines.len()));
        shown.push(head(&lines, begin, end));
        shown.extend(lines[begin..end].iter().map(|line| match line {
            Line::Same(text) => format!(" {text}"),
            Line::Removed(text) => format!("-{text}"),
            Line::Added(text) => format!("+{text}"),
        }));
        next = end;
    }
    shown
}

fn is_change(line: Line<'_>) -> bool {
    !matches!(line, Line::Same(_))
}

fn head(lines: &[Line<'_>], begin: usize, end: usize) -> String {
    let range = |counts: fn(&Line<'_>) -> bool| {
        let before = lines[..begin].iter().filter(|line| counts(line)).count();
        let count = lines[begin..end].iter().filter(|line| counts(line)).count();
        // As other programs do: an empty range names the line before it.
        format!("{},{count}", if count == 0 { before } else { before + 1 })
    };
    let old = range(|line| !matches!(line, Line::Added(_)));
    let new = range(|line| !matches!(line, Line::Removed(_)));
    format!("@@ -{old} +{new} @@")
}

fn lines<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let start = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let (old_part, new_part) = (&old_rest[..old_rest.len() - end], &new_rest[..new_rest.len() - end]);
    let mut lines: Vec<Line<'t>> = old[..start].iter().copied().map(Line::Same).collect();
    match shortest(old_part, new_part) {
        Some(edits) => lines.extend(edits),
        None => {
            lines.extend(old_part.iter().copied().map(Line::Removed));
            lines.extend(new_part.iter().copied().map(Line::Added));
        }
    }
    lines.extend(old_rest[old_rest.len() - end..].iter().copied().map(Line::Same));
    lines
}

/// The shortest list of changes, by Myers' algorithm. `None` if it has more than [`MAX_CHANGES`].
fn shortest<'t>(old: &[&'t str], new: &[&'t str]) -> Option<Vec<Line<'t>>> {
    let most = (old.len() + new.len()).min(MAX_CHANGES);
    // For each diagonal `k` (position in `old` minus position in `new`), the furthest position in
    // `old` that this many changes reach. The diagonal is at index `k + most + 1`.
    let index = |k: isize| (k + most as isize + 1) as usize;
    let mut reached = vec![0_usize; 2 * most + 3];
    let mut steps: Vec<Vec<usize>> = Vec::new();
    for changes in 0..=most as isize {
        let before = reached[index(-changes)..=index(changes)].to_vec();
        steps.push(before);
        for k in (-changes..=changes).step_by(2) {
            let (left, right) = (reached[index(k - 1)], reached[index(k + 1)]);
            let is_added = k == -changes || (k != changes && left < right);
            let mut x = if is_added { right } else { left + 1 };
            let mut y = (x as isize - k) as usize;
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            reached[index(k)] = x;
            if x >= old.len() && y >= new.len() {
                return Some(walk_back(old, new, &steps));
            }
        }
    }
    None
}

/// The changes, from what each number of changes reached before it (`steps[d]` has the diagonals
/// from `-d` to `d`).
fn walk_back<'t>(old: &[&'t str], new: &[&'t str], steps: &[Vec<usize>]) -> Vec<Line<'t>> {
    let (mut x, mut y) = (old.len(), new.len());
    let mut lines = Vec::new();
    for (changes, reached) in steps.iter().enumerate().rev() {
        let changes = changes as isize;
        let at = |k: isize| reached[(k + changes) as usize];
        let k = x as isize - y as isize;
        let (mut from_x, mut from_y) = (0, 0);
        if changes > 0 {
            let is_added = k == -changes || (k != changes && at(k - 1) < at(k + 1));
            let from = if is_added { k + 1 } else { k - 1 };
            from_x = at(from);
            from_y = (from_x as isize - from) as usize;
        }
        while x > from_x && y > from_y {
            (x, y) = (x - 1, y - 1);
            lines.push(Line::Same(old[x]));
        }
        if changes > 0 {
            lines.push(if x == from_x { Line::Added(new[from_y]) } else { Line::Removed(old[from_x]) });
        }
        (x, y) = (from_x, from_y);
    }
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_shown_with_its_surroundings() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let new = "a\nb\nc\nd\nE\nf\ng\nh\n";
        assert_eq!(unified(old, new), ["@@ -2,7 +2,7 @@", " b", " c", " d", "-e", "+E", " f", " g", " h"]);
    }

    #[test]
    fn an_added_text_has_an_empty_range_before_it() {
        assert_eq!(unified("", "a\n"), ["@@ -0,0 +1,1 @@", "+a"]);
        assert_eq!(unified("a\n", ""), ["@@ -1,1 +0,0 @@", "-a"]);
        assert_eq!(unified("a\nb", "a\nb\n"), Vec::<String>::new());
    }

    #[test]
    fn distant_changes_are_two_hunks_and_near_ones_one() {
        let text = |changed: &[usize]| -> String {
            (0..30).map(|n| if changed.contains(&n) { format!("x{n}\n") } else { format!("{n}\n") }).collect()
        };
        let hunks = |changed: &[usize]| {
            unified(&text(&[]), &text(changed)).into_iter().filter(|line| line.starts_with("@@")).collect::<Vec<_>>()
        };
        assert_eq!(hunks(&[5, 11]), ["@@ -3,13 +3,13 @@"]);
        assert_eq!(hunks(&[5, 13]), ["@@ -3,7 +3,7 @@", "@@ -11,7 +11,7 @@"]);
    }

    /// Every pair of short texts of two letters: the lines give back both texts, and are as few as
    /// the longest common subsequence allows.
    #[test]
    fn the_lines_give_both_texts_with_the_fewest_changes() {
        let texts: Vec<Vec<&str>> = (0..=6)
            .flat_map(|length| {
                (0..1_usize << length).map(move |bits| {
                    (0..length).map(|at| if (bits >> at) & 1 == 0 { "a" } else { "b" }).collect::<Vec<_>>()
                })
            })
            .collect();
        for old in &texts {
            for new in &texts {
                let lines = lines(old, new);
                let side = |skipped: fn(&Line<'_>) -> bool| -> Vec<&str> {
                    let text = |line: &Line<'static>| match *line {
                        Line::Same(text) | Line::Removed(text) | Line::Added(text) => text,
                    };
                    lines.iter().filter(|line| !skipped(line)).map(text).collect()
                };
                assert_eq!(side(|line| matches!(line, Line::Added(_))), *old);
                assert_eq!(side(|line| matches!(line, Line::Removed(_))), *new);
                let changes = lines.iter().filter(|line| is_change(**line)).count();
                assert_eq!(changes, old.len() + new.len() - 2 * common(old, new), "{old:?} {new:?}");
            }
        }
    }

    fn common(one: &[&str], other: &[&str]) -> usize {
        match (one, other) {
            ([], _) | (_, []) => 0,
            ([a, one_rest @ ..], [b, other_rest @ ..]) if a == b => 1 + common(one_rest, other_rest),
            ([_, one_rest @ ..], [_, other_rest @ ..]) => common(one_rest, other).max(common(one, other_rest)),
        }
    }

    #[test]
    fn texts_with_too_many_changes_are_shown_as_replaced() {
        let lines = |word: &str| (0..MAX_CHANGES).map(|n| format!("{word} {n}\n")).collect::<Vec<_>>().concat();
        let (old, new) = (lines("old"), lines("new"));
        let shown = unified(&old, &new);
        assert_eq!(shown.len(), 2 * MAX_CHANGES + 1);
        assert_eq!((shown[1].as_str(), shown[MAX_CHANGES + 1].as_str()), ("-old 0", "+new 0"));
    }
}
