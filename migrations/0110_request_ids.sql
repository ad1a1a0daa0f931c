-- Request ids belong to the agent that wrote the request. Any agent may reuse the text of another's `requestId`, so a
-- selector that names a request id must not give an agent the response to somebody else's request.

-- The agent whose request this record answers; NULL when that is not known. An imported response has no call: its
-- metadata, which only runtimes write, name the request.
CREATE FUNCTION asker_of(response uuid) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT coalesce(
        (SELECT c.agent_id FROM calls c WHERE c.response = asker_of.response AND c.owner_id = current_tenant()),
        (SELECT q.created_by FROM breadcrumbs r JOIN breadcrumbs q ON q.id = (
                SELECT CASE WHEN named ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN named::uuid END
                FROM (SELECT r.context #>> '{metadata,request}') AS m (named))
         WHERE r.id = asker_of.response AND r.owner_id = current_tenant() AND q.owner_id = current_tenant()
            AND q.schema_name = 'tool.request.v1'))
$$;

-- Whether the running transaction's agent may take this response for the answer to a request id that it names: its own,
-- one that a grant opens to it, and any for those that see the whole tenant.
CREATE FUNCTION takes_response(response uuid) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT current_setting('rcrt.agent', true) = '*'
        OR asker_of(response)::text = current_setting('rcrt.agent', true)
        OR acl_admits(response)
$$;

-- The same for an agent that hears of the response by an event; to be asked by a transaction that sees all.
CREATE FUNCTION hears_response(agent uuid, response uuid) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(asker_of(response) = agent, false)
        OR EXISTS (SELECT FROM agents a WHERE a.id = agent AND a.deleted_at IS NULL
            AND a.roles && '{curator,runner}'::text[])
        OR coalesce(acl_readers(response) && ARRAY[agent, current_tenant()], false)
$$;

REVOKE ALL ON FUNCTION asker_of(uuid), takes_response(uuid), hears_response(uuid, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION asker_of(uuid), takes_response(uuid), hears_response(uuid, uuid) TO rcrt_app;
