//! Which hosts a tool can name.

use rcrt_validate::tool;
use serde_json::json;

use crate::{definition, short};

fn complaint(host: &str) -> Option<String> {
    let report = tool(&definition(json!({ "permissions": { "net": [host] } })));
    report.errors.into_iter().next().map(|finding| finding.message)
}

#[test]
fn public_hosts_are_accepted() {
    for host in [
        "example.com",
        "api.example.com",
        "api.example.com:8443",
        "API.Example.COM",
        "example.com.",
        "bücher.de",
        "xn--bcher-kva.de",
        "*.example.com",
        "*.api.example.com:443",
        "8.8.8.8",
        "1.1.1.1:853",
        "168.63.129.15",
        "[2606:4700:4700::1111]",
        "[2606:4700:4700::1111]:443",
        "2606:4700:4700::1111",
        "[::ffff:8.8.8.8]",
        "under_score.example.com",
        "internal.example.com",
        "localhost.example.com",
    ] {
        assert_eq!(complaint(host), None, "{host}");
    }
}

#[test]
fn private_and_local_hosts_are_refused() {
    for host in [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "localhost:8080",
        "foo.localhost",
        "printer.local",
        "db.internal",
        "metadata.google.internal",
        "router.lan",
        "nas.home.arpa",
        "intranet",
        "metadata",
        "db:5432",
        "*.internal",
        "*.corp.local",
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "0x7f.1",
        "127.0.0.1.",
        "0",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1:80",
        "168.63.129.16",
        "[::ffff:168.63.129.16]",
        "[64:ff9b::a83f:8110]",
        "[2002:808:808::1]",
        "[2001::1]",
        "[3fff::1]",
        "[4000::1]",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::1]",
        "::1",
        "[::]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::10.0.0.1]",
        "[2002:7f00:1::]",
        "[2001:db8::1]",
        "１２７.0.0.1",
        "①27.0.0.1",
        "ⓛocalhost",
        "127。0。0。1",
    ] {
        assert!(complaint(host).is_some(), "{host}");
    }
}

#[test]
fn malformed_hosts_are_refused() {
    for host in [
        "",
        "*",
        "*.com",
        "*.*.example.com",
        "api.*.com",
        "*example.com",
        "*.8.8.8.8",
        "https://example.com",
        "example.com/path",
        "user@example.com",
        "example.com:",
        "example.com:0",
        "example.com:99999",
        "example.com:http",
        "exa mple.com",
        "example..com",
        ".example.com",
        "-a.example.com",
        "a?.example.com",
        "exam%70le.com",
        "[::1",
        "1.2.3.4.5",
        "256.1.1.1",
        "a\nb.example.com",
    ] {
        assert!(complaint(host).is_some(), "{host:?}");
    }
    let long = format!("{}.example.com", "a".repeat(64));
    assert!(complaint(&long).is_some());
}

#[test]
fn at_most_five_hosts() {
    let five = ["a.org", "b.org", "c.org", "d.org", "e.org"];
    assert_eq!(tool(&definition(json!({ "permissions": { "net": five } }))).errors, []);
    let six = ["a.org", "b.org", "c.org", "d.org", "e.org", "f.org"];
    let report = tool(&definition(json!({ "permissions": { "net": six } })));
    assert_eq!(short(&report.errors), [("net-too-many", "permissions.net")]);
}

#[test]
fn tools_that_can_be_called_have_names() {
    for tools in [json!(false), json!(true), json!(["calculator", "read_file"])] {
        assert_eq!(short(&tool(&definition(json!({"permissions": {"tools": tools}}))).errors), []);
    }
    let report = tool(&definition(json!({"permissions": {"tools": ["*", "echo", " "]}})));
    let places = [("tools-permission", "permissions.tools[0]"), ("tools-permission", "permissions.tools[2]")];
    assert_eq!(short(&report.errors), places);
    assert!(report.errors[0].message.contains("true"), "{:?}", report.errors[0]);
    let many: Vec<String> = (0..101).map(|number| format!("tool{number}")).collect();
    let report = tool(&definition(json!({"permissions": {"tools": many}})));
    assert_eq!(short(&report.errors), [("tools-permission", "permissions.tools")]);
}

#[test]
fn the_permissions_name_the_tools_that_the_code_calls() {
    let source = "export async function execute(input: any, context: any) {
  const tool = input.tool;
  await context.api.callTool(tool, {});
  await context.api.callTool('calculator', {});
  return { sum: await context.api.callTool('echo', input) };
}";
    let found = |tools: serde_json::Value| {
        let code = json!({"language": "typescript", "source": source});
        tool(&definition(json!({"permissions": {"tools": tools}, "code": code}))).errors
    };
    assert_eq!(found(json!(true)), []);
    assert_eq!(found(json!(["echo", "calculator"])), []);
    let errors = found(json!(["calculator"]));
    assert_eq!(short(&errors), [("tools-permission", "code.source")]);
    assert_eq!((errors[0].line, errors[0].column), (Some(5), Some(44)));
    let message = "calls the tool \"echo\", which permissions.tools does not name: add \"echo\" there";
    assert_eq!(errors[0].message, message);
    assert!(rcrt_validate::fix(errors[0].rule).unwrap().contains("Name the tools that the code calls"));
    assert_eq!(short(&found(json!(false))), [("tools-permission", "code.source"); 2]);
}

#[test]
fn an_open_net_is_a_warning() {
    let report = tool(&definition(json!({ "permissions": { "net": true } })));
    assert_eq!((short(&report.errors), short(&report.warnings)), (vec![], vec![("net-open", "permissions.net")]));
}

#[test]
fn permissions_that_no_tool_gets_are_refused_by_name() {
    for name in ["read", "write", "run", "ffi", "hrtime"] {
        let report = tool(&definition(json!({ "permissions": { name: true } })));
        assert_eq!(short(&report.errors), [("forbidden-permission", format!("permissions.{name}").as_str())]);
    }
    assert_eq!(tool(&definition(json!({ "permissions": { "read": [], "run": false } }))).errors, []);
}
