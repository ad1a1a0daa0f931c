//! The record of a tool can require where its programs run.

use rcrt_breadcrumb::{Implementation, ToolDefinition};
use rcrt_executors::Executor;

use crate::fixture::Fixture;

fn requiring(tool: &str, isolation: &str) -> ToolDefinition {
    let mut definition = rcrt_test_tenant::seeded(tool);
    let Implementation::Native(native) = &mut definition.implementation else { panic!("it is code") };
    native.settings.insert("isolation".into(), isolation.into());
    definition
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_requires_a_jail_is_not_run_in_pods() {
    let Some(fixture) = Fixture::new().await else { return };
    assert_eq!(fixture.python("print(1)").await.unwrap(), "1\n");
    let executor = &fixture.programs.executor;
    assert_eq!(executor.missing_requirements(&requiring("bash", "pod")), Vec::<String>::new());
    let missing = executor.missing_requirements(&requiring("bash", "jail"));
    assert!(missing.len() == 1 && missing[0].contains("this runner has \"pod\""), "{missing:?}");
}
