use rcrt_breadcrumb::{AccessList, Permissions};
use serde_json::json;

#[test]
fn net_is_false_true_or_a_list() {
    let read = |value| serde_json::from_value::<Permissions>(json!({"net": value})).map(|read| read.net);
    assert_eq!(read(json!(false)).unwrap(), AccessList::None);
    assert_eq!(read(json!(true)).unwrap(), AccessList::All);
    assert_eq!(read(json!(["a.example"])).unwrap(), AccessList::Listed(vec!["a.example".into()]));
    assert!(read(json!("a.example")).is_err());
    assert!(read(json!([1])).is_err());
}

#[test]
fn an_empty_list_grants_nothing() {
    assert!(!AccessList::Listed(Vec::new()).is_granted());
    assert!(!Permissions::default().net.is_granted());
}

#[test]
fn an_unknown_permission_is_refused() {
    assert!(serde_json::from_value::<Permissions>(json!({"network": true})).is_err());
}
