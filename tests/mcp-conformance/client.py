#!/usr/bin/env python3
"""The client of a scenario: `client.py URL`. It makes the suite's server an MCP server of the program that runs at RCRT_SERVER, and
calls its tools as an agent calls them, with the command line (RCRT_BINARY)."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
SECONDS = 40
# Between two looks at a state.
PAUSE = 0.1
# A question of a server is otherwise declined.
ELICITATION = "defaults" if SCENARIO == "elicitation-sep1034-client-defaults" else "decline"
# What the suite expects of a client that is described by a document.
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
# A value for an argument that has no other.
VALUES = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


def run(*arguments):
    """Runs a command. Its JSON output, or None if it failed."""
    ran = subprocess.run([os.environ["RCRT_BINARY"], *arguments, "--output", "json"], capture_output=True, text=True)
    print(f"{' '.join(arguments)}: {ran.returncode}\n{ran.stdout}{ran.stderr}", flush=True)
    return json.loads(ran.stdout) if ran.returncode == 0 else None


def until(what, read):
    end = time.monotonic() + SECONDS
    while (found := read()) is None:
        if time.monotonic() > end:
            sys.exit(f"{SCENARIO}: not {what} within {SECONDS} s")
        time.sleep(PAUSE)
    return found


class Server:
    def __init__(self, url):
        self.name = f"c{os.getpid()}"
        self.tools = []
        # Those that the last login asked for.
        self.scopes = []
        if run("mcp", "add", self.name, "--url", url, "--elicitation", ELICITATION, "--yes") is None:
            sys.exit("the server cannot be added")

    def connect(self):
        """Waits for the connection, and until the tools can be called."""
        # Before a login was noticed, the state is that of an attempt without it.
        refused = 0
        while (status := until("connected or refused", self.state))["state"] != "connected":
            refused += 1
            if refused * PAUSE > SECONDS:
                sys.exit(f"{SCENARIO}: {status['error']}")
            if SCENARIO == "auth/authorization-server-migration" and refused == 50:
                self.login()
            time.sleep(PAUSE)
        self.tools = status["tools"]
        until("offered", lambda: True if set(self.tools) <= offered() else None)

    def state(self):
        return run("mcp", "show", self.name)["status"]

    def login(self, *scopes):
        """Opens the page where a person would allow the access. The suite's page redirects to the command at once."""
        command = [os.environ["RCRT_BINARY"], "mcp", "login", self.name, *client_options(), *(f"--scope={scope}" for scope in scopes)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            # A page that does not redirect would leave the command waiting for a person.
            timer = threading.Timer(SECONDS, process.kill)
            timer.start()
            for line in process.stdout:
                print(line, end="", flush=True)
                if scopes := re.search(r"The scopes are: (.*)\.$", line):
                    self.scopes = scopes[1].split(", ")
                if page := re.search(r"https?://\S+[?&]response_type=code\S*", line):
                    open_page(page[0])
            timer.cancel()
        if process.returncode != 0:
            sys.exit(f"{SCENARIO}: not logged in")

    def call(self, tool, arguments):
        return run("call", f"{self.name}__{tool}", json.dumps(arguments))

    def details(self):
        return {tool["tool_name"]: tool for tool in run("call", "mcp_get_service_details", json.dumps({"server_name": self.name}))["output"]["tools"]}


def client_options():
    """How the authorization server knows the client. Without options, the client registers itself."""
    if SCENARIO == "auth/basic-cimd":
        return ["--client-metadata", CLIENT_METADATA]
    if "client_id" not in CONTEXT:
        return []
    secret = tempfile.NamedTemporaryFile("w", delete=False)
    with secret:
        secret.write(CONTEXT.get("client_secret", ""))
    return ["--client-id", CONTEXT["client_id"], "--client-secret-file", secret.name]


def open_page(url):
    try:
        urllib.request.urlopen(url, timeout=30).close()
    except urllib.error.URLError as error:
        print(error, flush=True)


def offered():
    request = urllib.request.Request(os.environ["RCRT_SERVER"] + "/tools", headers={"Authorization": f"Bearer {os.environ['RCRT_TOKEN']}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return {tool["name"] for tool in json.load(answer)["tools"]}


def call_all(server):
    for name, tool in server.details().items():
        schema = tool["inputSchema"]
        properties = schema.get("properties", {})
        server.call(name, {argument: VALUES[properties[argument].get("type", "string")] for argument in schema.get("required", [])})


def lists(server):
    call_all(server)
    named = {"server_name": server.name}
    for resource in run("call", "mcp_list_resources", json.dumps(named))["output"]["resources"]:
        run("call", "mcp_read_resource", json.dumps({**named, "uri": resource["uri"]}))
    run("call", "mcp_get_prompt", json.dumps({**named, "prompt_name": "test_prompt"}))


def custom_headers(server):
    for call in CONTEXT["toolCalls"]:
        # Schemas of the suite do not allow null, and the runtime checks the input. So such an
        # argument is left out.
        server.call(call["name"], {name: value for name, value in call["arguments"].items() if value is not None})


def schema(server):
    server.call("json_schema_echo", {"schema": server.details()["json_schema_2020_12_tool"]["inputSchema"]})


def call_and_login_again(server):
    """What a person does whose call fails because the login does not cover it, or no more."""
    asked = []
    for name in server.tools:
        ran = subprocess.run([os.environ["RCRT_BINARY"], "call", name, "{}"], capture_output=True, text=True)
        print(f"{name}: {ran.returncode}\n{ran.stdout}{ran.stderr}", flush=True)
        if "rcrt mcp login" in ran.stderr:
            asked.append(name)
            scope = re.search(r'scope="([^"]*)"', ran.stderr)
            server.login(*({*server.scopes, *scope[1].split()} if scope else ()))
            server.connect()
    for name in asked:
        run("call", name, "{}")


CALLS = {
    "tools_call": lambda server: server.call("add_numbers", {"a": 5, "b": 3}),
    "http-standard-headers": lists,
    "http-custom-headers": custom_headers,
    "json-schema-2020-12-preservation": schema,
    # Connecting is all that they need.
    **dict.fromkeys(["auth/scope-step-up", "auth/authorization-server-migration"], call_and_login_again),
    **dict.fromkeys(["initialize", "request-metadata", "json-schema-ref-no-deref"], lambda server: None),
}


def main():
    server = Server(sys.argv[1])
    if SCENARIO.startswith("auth/"):
        server.login()
    server.connect()
    CALLS.get(SCENARIO, call_all)(server)
    run("mcp", "remove", server.name)


if __name__ == "__main__":
    main()
