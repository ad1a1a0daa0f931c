use std::collections::BTreeMap;

use proptest::prelude::*;
use rcrt_breadcrumb::{Annotations, Catalog, CatalogEntry, Profile, Registration, ToolFormat, ToolSource, Waiting};
use serde_json::{Value, json};
use uuid::Uuid;

fn tool(name: &str, parameters: Value) -> Registration {
    Registration {
        name: name.into(),
        description: format!("What {name} does."),
        parameters,
        output_schema: None,
        source: ToolSource::Native,
        tags: Vec::new(),
        annotations: Annotations::default(),
        deprecated: None,
        tool_id: Uuid::from_u128(7),
        tool_version: 3,
    }
}

fn waiting(name: &str) -> Waiting {
    Waiting {
        name: name.into(),
        source: ToolSource::Rest,
        tags: Vec::new(),
        tool_id: Uuid::from_u128(8),
        missing_requirements: vec!["Its key is not there: rcrt secret set KEY.".into()],
    }
}

fn only(name: &str, parameters: Value, format: ToolFormat) -> Value {
    Catalog::new(vec![tool(name, parameters)], Vec::new()).in_format(format)
}

#[test]
fn catalog_is_sorted_and_prefers_offered_tools() {
    let catalog = Catalog::new(
        vec![tool("b", json!(true)), tool("a", json!(true)), tool("b", json!(false))],
        vec![waiting("c"), waiting("a"), waiting("c")],
    );
    let offered: Vec<_> = catalog.tools.iter().map(|tool| (tool.name.as_str(), &tool.parameters)).collect();
    assert_eq!(offered, [("a", &json!(true)), ("b", &json!(true))]);
    assert_eq!(catalog.waiting, [waiting("c")]);
    assert!(matches!(catalog.entry("a"), Some(CatalogEntry::Offered(_))));
    assert!(matches!(catalog.entry("c"), Some(CatalogEntry::Waiting(_))));
    assert_eq!(catalog.entry("d"), None);
    assert_eq!(catalog.names().collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn catalog_is_filtered_by_profile() {
    let catalog = Catalog::new(
        vec![tool("echo", json!(true)), tool("cancel_scheduled_task", json!(true))],
        vec![waiting("spawn_subagent")],
    );
    assert_eq!(catalog.clone().for_profile(Profile::Main), catalog);
    let seen = catalog.for_profile(Profile::Subagent);
    assert_eq!(seen.names().collect::<Vec<_>>(), ["echo"]);
}

#[test]
fn entries_round_trip_through_json() {
    for entry in [CatalogEntry::Offered(tool("echo", json!({"type": "object"}))), CatalogEntry::Waiting(waiting("key"))]
    {
        let text = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<CatalogEntry>(&text).unwrap(), entry);
    }
}

#[test]
fn each_format_has_its_shape() {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let mut weather = tool("weather", parameters.clone());
    weather.annotations = Annotations { title: Some("Weather".into()), read_only: true, ..Annotations::default() };
    let catalog = Catalog::new(vec![weather], vec![waiting("key")]);
    assert_eq!(catalog.in_format(ToolFormat::Rcrt), json!(catalog));
    assert_eq!(catalog.in_format(ToolFormat::Rcrt)["tools"][0]["source"], "native");
    assert_eq!(
        catalog.in_format(ToolFormat::OpenAi),
        json!([{"type": "function", "function":
            {"name": "weather", "description": "What weather does.", "parameters": parameters}}])
    );
    assert_eq!(
        catalog.in_format(ToolFormat::OpenAiResponses),
        json!([{"type": "function", "name": "weather", "description": "What weather does.", "parameters": parameters,
            "strict": false}])
    );
    assert_eq!(
        catalog.in_format(ToolFormat::Anthropic),
        json!([{"name": "weather", "description": "What weather does.", "input_schema": parameters}])
    );
    assert_eq!(
        catalog.in_format(ToolFormat::Mcp),
        json!({"tools": [{"name": "weather", "title": "Weather", "description": "What weather does.",
            "inputSchema": parameters,
            "annotations": {"readOnlyHint": true, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}}]})
    );
}

#[test]
fn formats_are_parsed_by_name() {
    for format in ToolFormat::ALL {
        assert_eq!(format.to_string().parse::<ToolFormat>().unwrap(), format);
        assert_eq!(serde_json::to_value(format).unwrap(), format.as_str());
    }
    let refused = "xml".parse::<ToolFormat>().unwrap_err();
    let names = ToolFormat::ALL.map(ToolFormat::as_str);
    assert!(refused.contains("\"xml\"") && names.iter().all(|name| refused.contains(name)), "{refused}");
}

#[test]
fn refused_names_are_replaced() {
    let catalog = Catalog::new(vec![tool("weather.now", json!(true)), tool("weather_now", json!(true))], Vec::new());
    let names = |format: ToolFormat, pointer: &str| -> Vec<String> {
        let list = catalog.in_format(format);
        let list = list.as_array().cloned().unwrap_or_else(|| list["tools"].as_array().unwrap().clone());
        list.iter().map(|tool| tool.pointer(pointer).unwrap().as_str().unwrap().to_owned()).collect()
    };
    let openai = names(ToolFormat::OpenAi, "/function/name");
    assert_eq!(openai, names(ToolFormat::OpenAiResponses, "/name"));
    assert_eq!(openai, names(ToolFormat::Anthropic, "/name"));
    assert!(openai[0].starts_with("weather_now_") && openai[0].len() == "weather_now_".len() + 8, "{openai:?}");
    assert_eq!(openai[1], "weather_now");
    assert_eq!(names(ToolFormat::Mcp, "/name"), ["weather.now", "weather_now"]);
    // Either name finds the tool.
    assert_eq!(catalog.find_by_any_name(&openai[0]).unwrap().name, "weather.now");
    assert_eq!(catalog.find_by_any_name("weather.now").unwrap().name, "weather.now");
    assert_eq!(catalog.find_by_any_name("weather_now").unwrap().name, "weather_now");
    assert!(catalog.find_by_any_name("weather_now_00000000").is_none());
}

#[test]
fn schemas_are_narrowed_to_objects() {
    let parameters = |schema: Value| only("t", schema, ToolFormat::OpenAi)[0]["function"]["parameters"].clone();
    assert_eq!(parameters(json!(true)), json!({"type": "object", "properties": {}}));
    assert_eq!(parameters(json!({})), json!({"type": "object", "properties": {}}));
    assert_eq!(
        parameters(json!({"type": ["object", "null"], "required": ["a"]})),
        json!({"type": "object", "required": ["a"], "properties": {}})
    );
    // A tool whose input is never an object is left out.
    for schema in [json!({"type": "string"}), json!(false), json!({"type": ["array", "null"]}), json!(7)] {
        for format in [ToolFormat::OpenAi, ToolFormat::OpenAiResponses, ToolFormat::Anthropic] {
            assert_eq!(only("t", schema.clone(), format), json!([]), "{schema}");
        }
        assert_eq!(only("t", schema.clone(), ToolFormat::Mcp), json!({"tools": []}));
        assert_eq!(only("t", schema.clone(), ToolFormat::Rcrt)["tools"][0]["parameters"], schema);
    }
}

#[test]
fn top_level_keywords_refused_by_model_apis_are_removed() {
    let inner = json!({"anyOf": [{"type": "string"}, {"type": "number"}]});
    let schema = json!({"type": "object", "properties": {"a": inner}, "anyOf": [{"required": ["a"]}], "not": {}});
    let flat = json!({"type": "object", "properties": {"a": inner}});
    assert_eq!(only("t", schema.clone(), ToolFormat::OpenAi)[0]["function"]["parameters"], flat);
    assert_eq!(only("t", schema.clone(), ToolFormat::Anthropic)[0]["input_schema"], flat);
    assert_eq!(only("t", schema.clone(), ToolFormat::Mcp)["tools"][0]["inputSchema"], schema);
}

#[test]
fn long_descriptions_are_cut_for_openai() {
    let long = Registration { description: "é".repeat(1025), ..tool("t", json!(true)) };
    let catalog = Catalog::new(vec![long.clone()], Vec::new());
    let description = catalog.in_format(ToolFormat::OpenAi)[0]["function"]["description"].as_str().unwrap().to_owned();
    assert!(description.chars().count() == 1024 && description.ends_with("é…"));
    assert_eq!(catalog.in_format(ToolFormat::Anthropic)[0]["description"], long.description);
}

/// The names in each part.
fn parts(catalog: &Catalog) -> BTreeMap<String, (String, Vec<String>)> {
    catalog
        .records()
        .into_iter()
        .map(|record| {
            record.check().unwrap();
            assert_eq!(record.schema_name.as_deref(), Some("tool.catalog.v1"));
            assert_eq!(record.tags[0], Catalog::TAG);
            let text = serde_json::to_string(&record.context).unwrap();
            assert!(text.len() <= Catalog::MAX_PART_BYTES, "{} bytes", text.len());
            let names = ["tools", "waiting"]
                .iter()
                .flat_map(|list| record.context[*list].as_array().unwrap())
                .map(|tool| tool["name"].as_str().unwrap().to_owned())
                .collect();
            (record.tags[1].clone(), (text, names))
        })
        .collect()
}

#[test]
fn few_tools_or_none_make_one_part() {
    let few = Catalog::new(vec![tool("a", json!(true)), tool("b", json!(true))], vec![waiting("c")]);
    let found = parts(&few);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["catalog:part:0"]);
    assert_eq!(found["catalog:part:0"].1, ["a", "b", "c"]);
    assert!(parts(&Catalog::default())["catalog:part:0"].1.is_empty());
}

#[test]
fn changing_one_tool_changes_one_part() {
    let many = |changed: &str| {
        let tools = (0..400).map(|n| {
            let name = format!("tool_{n}");
            let hint = if name == changed { "new" } else { "old" };
            tool(&name, json!({"type": "object", "description": format!("{hint}{}", "x".repeat(4000))}))
        });
        Catalog::new(tools.collect(), Vec::new())
    };
    let (before, after) = (parts(&many("")), parts(&many("tool_7")));
    assert!(before.len() >= 7, "{} parts", before.len());
    let mut names: Vec<&String> = before.values().flat_map(|(_, names)| names).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 400);
    let changed = before.iter().filter(|(tag, part)| after[*tag] != **part).count();
    assert_eq!((changed, before.len()), (1, after.len()));
}

#[test]
fn parts_are_too_few_at_twice_their_usual_size() {
    // 8 tools and 24 KiB are usual.
    let kib = 1024;
    for (entries, bytes, needs_more) in
        [(0, 2, false), (16, 100 * kib, false), (100, 48 * kib, false), (100, 49 * kib, true), (18, 100 * kib, true)]
    {
        assert_eq!(Catalog::needs_more_parts(1, entries, bytes), needs_more, "{entries} entries, {bytes} bytes");
        assert_eq!(
            Catalog::needs_more_parts(8, 8 * entries, 8 * bytes),
            needs_more,
            "{entries} entries, {bytes} bytes"
        );
    }
    assert!(!Catalog::needs_more_parts(4096, usize::MAX, usize::MAX));
}

/// The present number comes from a tag.
#[test]
fn parts_have_an_upper_limit() {
    let large = |n| Registration { description: "x".repeat(3_000), ..tool(&format!("tool{n}"), json!(true)) };
    let catalog = Catalog::new((0..16_800).map(large).collect(), Vec::new());
    for may_be_fewer in [true, false] {
        assert_eq!(catalog.records_beside(8_192, may_be_fewer).len(), 4_096);
    }
}

#[test]
fn oversized_tool_names_its_record() {
    let huge = Registration {
        description: "d".repeat(300_000),
        ..tool("huge", json!({"type": "object", "description": "s".repeat(900_000)}))
    };
    let slow = Waiting { missing_requirements: vec!["w".repeat(5_000); 1_000], ..waiting("slow") };
    let catalog = Catalog::new(vec![huge, tool("small", json!(true))], vec![slow]);
    let found = parts(&catalog);
    let text: String = found.values().map(|(text, _)| text.as_str()).collect();
    assert!(text.contains("too large for the catalog") && text.contains(&Uuid::from_u128(7).to_string()));
    let names: Vec<&String> = found.values().flat_map(|(_, names)| names).collect();
    assert_eq!(names.len(), 3);
}

proptest! {
    #[test]
    fn converted_names_are_valid_in_their_format(name in "[a-zA-Z_][a-zA-Z0-9_.-]{0,99}") {
        for format in [ToolFormat::OpenAi, ToolFormat::OpenAiResponses, ToolFormat::Anthropic] {
            let given = format.name(&name);
            prop_assert!((1..=64).contains(&given.len()));
            prop_assert!(given.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')));
            prop_assert_eq!(given == name, name.len() <= 64 && !name.contains('.'));
            let catalog = Catalog::new(vec![tool(&name, json!(true))], Vec::new());
            prop_assert_eq!(&catalog.find_by_any_name(&given).unwrap().name, &name);
        }
        prop_assert_eq!(ToolFormat::Mcp.name(&name), name);
    }

    #[test]
    fn each_name_is_in_exactly_one_part(
        sizes in proptest::collection::btree_map("[a-z]{1,12}", (0..200_000_usize, any::<bool>()), 0..25),
    ) {
        let (mut tools, mut waits) = (Vec::new(), Vec::new());
        for (name, (size, is_offered)) in &sizes {
            if *is_offered {
                tools.push(tool(name, json!({"description": "x".repeat(*size)})));
            } else {
                waits.push(waiting(name));
            }
        }
        let found = parts(&Catalog::new(tools, waits));
        let mut names: Vec<&String> = found.values().flat_map(|(_, names)| names).collect();
        names.sort_unstable();
        prop_assert_eq!(names, sizes.keys().collect::<Vec<_>>());
    }
}
