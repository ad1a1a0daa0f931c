"""A plugin of pytest for the compatibility kit of A2A, which is for agents without tokens and skills.

It adds what a caller of this server sends: a token, and the skill of each message, which is chosen by the kit's
scenario in the message's id. It also takes back the slash that the kit's client adds to the URL of the binding JSON-RPC.
"""

import json
import os
import re

import httpx

BASE = os.environ["KIT_BASE"]
TOKEN = os.environ["KIT_TOKEN"]
# The beginning of a message's id, and its skill. The first one that fits counts.
SKILLS = (
    ("tck-artifact-text", "kit_text"),
    ("tck-artifact-data", "kit_data"),
    ("tck-reject-task", "kit_reject"),
    ("tck-input-required", "kit_long"),
    ("tck-stream", "kit_stream"),
    ("tck-push", "kit_stream"),
    ("test-resubscribe", "kit_long"),
    ("", "kit_hello"),
)

send = httpx.Client.send


def with_skill(content):
    try:
        body = json.loads(content)
        params = body.get("params", body)
        message = params["message"]
        identifier = message.get("messageId", "")
    except (AttributeError, KeyError, TypeError, ValueError):
        return content
    if not isinstance(identifier, str):
        return content
    skill = next(skill for start, skill in SKILLS if identifier.startswith(start))
    message.setdefault("metadata", {})["skill"] = skill
    return json.dumps(body).encode()


def adapted(self, request, **options):
    url = str(request.url)
    if url.startswith(BASE):
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
        if b"authorization" not in (name.lower() for name, _ in headers):
            headers.append((b"Authorization", f"Bearer {TOKEN}".encode()))
        url = re.sub(r"/a2a/(?=$|[?])", "/a2a", url)
        request = httpx.Request(request.method, url, headers=headers, content=with_skill(request.read()), extensions=request.extensions)
    return send(self, request, **options)


httpx.Client.send = adapted
