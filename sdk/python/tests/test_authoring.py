"""Tools that an agent makes, on the running server."""

from __future__ import annotations

from typing import Any

import pytest
from rcrt import ProblemError, ToolError
from world import curator, word


def doubling(name: str, output: int) -> dict[str, Any]:
    number = {"type": "object", "properties": {"n": {"type": "number", "description": "A number."}}, "required": ["n"]}
    source = "export async function execute(input: { n: number }) { return { n: 2 * input.n }; }"
    return {
        "name": name,
        "description": "Doubles a number.",
        "code": {"language": "typescript", "source": source},
        "input_schema": number,
        "output_schema": number,
        "examples": [{"description": "Four", "input": {"n": 4}, "output": {"n": output}}],
    }


async def test_a_tool_is_validated_tested_created_and_called() -> None:
    name = word()
    async with curator() as rcrt:
        source = "export async function execute(input: object) { return input; }"
        found = await rcrt.validate_tool({"name": name, "code": {"language": "typescript", "source": source}})
        assert not found["valid"]
        assert any(one["rule"] == "description" and one.get("fix") for one in found["validation"]["errors"])
        assert (await rcrt.validate_tool(doubling(name, 8)))["valid"]
        assert "type Input = {" in await rcrt.tool_types(doubling(name, 8))
        assert "declare namespace tools" in await rcrt.tool_types()

        failing = await rcrt.test_tool(doubling(name, 9))
        example = failing["examples"][0]
        assert (failing["passed"], example["status"], example["actual"]) == (False, "failed", {"n": 8})
        assert (await rcrt.test_tool(doubling(name, 8)))["passed"]
        with pytest.raises(ToolError) as unknown:
            await rcrt.call(name, {"n": 1})
        assert unknown.value.code == "ToolNotFound"

        assert (await rcrt.create_tool(doubling(name, 9)))["status"] == "rejected"
        created = await rcrt.create_tool(doubling(name, 8))
        assert (created["status"], created["draft"], created["record_version"]) == ("created", False, 1)
        assert await rcrt.call(name, {"n": 21}) == {"n": 42}
        changed = {**doubling(name, 8), "description": "Doubles a number exactly."}
        assert (await rcrt.create_tool(changed, mode="update", if_version=1))["status"] == "updated"
        with pytest.raises(ProblemError) as published:
            await rcrt.publish_tool(name)
        assert published.value.code == "tool_not_found"
