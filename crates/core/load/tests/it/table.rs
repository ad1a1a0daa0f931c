//! Tables for people.

use rcrt_load::Table;

#[test]
fn columns_are_aligned_and_numbers_are_on_the_right() {
    let mut table = Table::new(["what", "value", "note"]);
    table.row(["rate", "1,234 calls/s", ""]).row(["späte", "5 calls/s", "slow"]).row(["nothing"]);
    let expected = "\
what             value  note
rate     1,234 calls/s
späte        5 calls/s  slow
nothing
";
    assert_eq!(table.to_string(), expected);
}

#[test]
fn markdown_cells_are_escaped() {
    let mut table = Table::new(["a", "b"]);
    table.row(["x|y", "1"]).row(["two\nlines", "-2"]);
    assert_eq!(table.markdown(), "| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n| two lines | -2 |\n");
}

#[test]
fn empty_columns_can_be_left_out() {
    let mut table = Table::new(["a", "b", "c"]);
    table.row(["1", "", "x"]).row(["2", "", ""]);
    assert_eq!(table.without_empty_columns().to_string(), "a  c\n1  x\n2\n");
}
