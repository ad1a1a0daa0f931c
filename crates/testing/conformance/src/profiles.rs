//! The profiles of a call, and the records that only runners write.

use rcrt_breadcrumb::{BreadcrumbChanges, BreadcrumbQuery, NewBreadcrumb, Profile, Profiles, Role, schema_names};

use crate::harness::{Agent, Harness, assert_forbidden, claim_of, fields, note, request};

async fn claimed(runner: &Agent) -> Profiles {
    let mut claims = runner.claim(&claim_of(5)).await.unwrap();
    assert_eq!(claims.len(), 1);
    claims.remove(0).profiles
}

fn profiles(of: &[Profile]) -> Profiles {
    let mut profiles = Profiles::default();
    for profile in of {
        profiles.add(*profile);
    }
    profiles
}

fn tagged(tags: &[&str]) -> NewBreadcrumb {
    let mut record = request();
    record.tags.extend(tags.iter().map(|tag| (*tag).to_owned()));
    record
}

pub async fn a_call_has_the_profiles_of_its_writer_and_tags(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let runner = harness.agent(tenant).await;
    let roles = [Role::Emitter];
    for own in Profile::ALL {
        let agent = harness.agent_of(tenant, &roles, own).await;
        agent.create(request(), None).await.unwrap();
        assert_eq!(claimed(&runner).await, Profiles::of(own), "{own}");
        // A tag adds to the writer's own profile and removes nothing from it.
        agent.create(tagged(&["profile:scheduled", "profile:main", "profile:king"]), None).await.unwrap();
        assert_eq!(claimed(&runner).await, profiles(&[own, Profile::Scheduled]), "{own}");
    }
}

pub async fn a_calls_profiles_do_not_change_later(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let runner = harness.agent(tenant).await;
    let agent = harness.agent_of(tenant, &[Role::Emitter], Profile::Subagent).await;
    let id = agent.create(tagged(&["profile:scheduled"]), None).await.unwrap().id;
    // Another agent writes the record's next version, without the tag.
    let changes = BreadcrumbChanges { tags: Some(vec!["tool:request".into()]), ..BreadcrumbChanges::default() };
    runner.update(id, 1, changes).await.unwrap();
    assert_eq!(claimed(&runner).await, profiles(&[Profile::Subagent, Profile::Scheduled]));
}

pub async fn records_of_runners_are_written_by_runners_and_curators(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let runner = harness.agent_with(tenant, &[Role::Runner]).await;
    let curator = harness.agent_with(tenant, &[Role::Curator]).await;
    let emitter = harness.agent_with(tenant, &[Role::Emitter, Role::Subscriber]).await;
    for schema in [
        schema_names::TOOL_CATALOG,
        schema_names::TOOL_RUNNER,
        schema_names::TOOL_LOG,
        schema_names::TOOL_SHADOW,
        schema_names::SCHEDULE,
    ] {
        let record = NewBreadcrumb { schema_name: Some(schema.into()), ..note("Kept") };
        assert_forbidden(emitter.create(record.clone(), None).await);
        let id = runner.create(record.clone(), None).await.unwrap().id;
        let titled = BreadcrumbChanges { title: Some("Mine".into()), ..BreadcrumbChanges::default() };
        assert_forbidden(emitter.update(id, 1, titled.clone()).await);
        assert_forbidden(emitter.delete(id, None).await);
        // Renaming the schema, in either direction, does not bypass this.
        let named = |name: &str| BreadcrumbChanges { schema_name: Some(name.into()), ..BreadcrumbChanges::default() };
        assert_forbidden(emitter.update(id, 1, named("note.v1")).await);
        let mine = emitter.create(note("Mine"), None).await.unwrap().id;
        assert_forbidden(emitter.update(mine, 1, named(schema)).await);
        let query = BreadcrumbQuery::of_schema(schema);
        assert_eq!(emitter.list(&query).await.unwrap().len(), 1, "every agent reads it");

        runner.update(id, 1, titled.clone()).await.unwrap();
        curator.update(id, 2, titled).await.unwrap();
        runner.delete(id, None).await.unwrap();
        curator.create(record, None).await.unwrap();
    }
}

pub async fn no_role_cancels_a_schedule_that_the_profile_denies(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let runner = harness.agent(tenant).await;
    let record = NewBreadcrumb { schema_name: Some(schema_names::SCHEDULE.into()), ..note("Every hour") };
    let id = runner.create(record, None).await.unwrap().id;
    let subagent = harness.agent_of(tenant, &Role::ALL, Profile::Subagent).await;
    assert_forbidden(subagent.delete(id, None).await);
    let ended = BreadcrumbChanges { ttl: Some(chrono::Utc::now()), ..BreadcrumbChanges::default() };
    assert_forbidden(subagent.update(id, 1, ended).await);
    harness.agent_of(tenant, &Role::ALL, Profile::Scheduled).await.delete(id, None).await.unwrap();
}

pub async fn records_written_under_a_profile_are_tagged(harness: &impl Harness) {
    let tenant = harness.tenant().await;
    let main = harness.agent(tenant).await;
    let subagent = harness.agent_of(tenant, &[Role::Emitter], Profile::Subagent).await;
    let scheduled = harness.agent_of(tenant, &[Role::Emitter], Profile::Scheduled).await;
    let tags = async |id| main.get(id).await.unwrap().tags;
    let tagged = |tags: &[&str]| BreadcrumbChanges {
        tags: Some(tags.iter().map(|tag| (*tag).to_owned()).collect()),
        ..BreadcrumbChanges::default()
    };

    let id = subagent.create(note("Written"), Some("once")).await.unwrap().id;
    assert_eq!(subagent.create(note("Written"), Some("once")).await.unwrap().id, id);
    assert_eq!(tags(id).await, ["note", "profile:subagent"]);
    let found = main.list(&BreadcrumbQuery::tagged("profile:subagent")).await.unwrap();
    assert_eq!(found.iter().map(|item| item.id).collect::<Vec<_>>(), [id]);
    // An agent under a profile cannot remove the tag; an agent without one can.
    scheduled.update(id, 1, tagged(&["note"])).await.unwrap();
    assert_eq!(tags(id).await, ["note", "profile:subagent", "profile:scheduled"]);
    main.update(id, 2, BreadcrumbChanges { title: Some("Read".into()), ..BreadcrumbChanges::default() }).await.unwrap();
    assert_eq!(tags(id).await, ["note", "profile:subagent", "profile:scheduled"]);
    main.update(id, 3, tagged(&["note"])).await.unwrap();
    assert_eq!(tags(id).await, ["note"]);

    let many: Vec<String> = (0..100).map(|n| format!("tag {n}")).collect();
    let full = NewBreadcrumb { tags: many, ..note("Full") };
    assert_eq!(fields(subagent.create(full.clone(), None).await), ["tags"]);
    let id = main.create(full, None).await.unwrap().id;
    let titled = BreadcrumbChanges { title: Some("Mine".into()), ..BreadcrumbChanges::default() };
    assert_eq!(fields(subagent.update(id, 1, titled).await), ["tags"]);
}
