"""Holds every response that a test gets to docs/openapi.yaml.

harness.py calls watch(): from then on a response whose operation, status, headers, body or error is not documented raises a
Violation where it is read. `violations` keeps them all, for those that nobody saw; `answered` has what was answered.
"""

import json
import os
import re
from urllib.parse import unquote_to_bytes

import wiretap
import yaml

from contract_schema import Invalid, Validator

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/openapi.yaml")
METHODS = ("get", "head", "put", "post", "delete")
REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,39}")
# Answers that need not know the request's id: its head could not be read, or nobody looked at it.
NAMELESS = {"malformed_request", "head_too_large", "timeout", "too_many_connections"}

answered = set()  # (operationId, status, content type)
violations = []


class Violation(AssertionError):
    """The server did not do what docs/openapi.yaml says."""


def load():
    with open(PATH, encoding="utf-8") as f:
        return yaml.load(f, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def load_json(data):
    def members(pairs):
        if len(dict(pairs)) != len(pairs):
            raise Invalid(f"a member stands twice: {[k for k, _ in pairs]}")
        return dict(pairs)
    try:
        return json.loads(data, object_pairs_hook=members)
    except ValueError as e:
        raise Invalid(f"no JSON: {e}: {data[:200]!r}") from e


class Operation:
    def __init__(self, contract, path, method, item, node):
        resolve = contract.resolve
        self.path, self.method, self.node = path, method, node
        self.id = node["operationId"]
        self.parameters = [resolve(p) for p in [*item.get("parameters", ()), *node.get("parameters", ())]]
        self.responses = {s: resolve(r) for s, r in node["responses"].items()}

    def names(self, where):
        return {p["name"]: p for p in self.parameters if p["in"] == where}

    def success(self):
        """(status, content type) of all that is no failure."""
        return {(s, t) for s, r in self.responses.items() if s[0] in "12" for t in r.get("content", {None: None})}


class Contract(Validator):
    def __init__(self):
        super().__init__(load())
        self.operations = [Operation(self, path, m, item, item[m])
                           for path, item in self.document["paths"].items() for m in METHODS if m in item]
        responses = self.document["components"]["responses"]
        self.any = responses["Any"]["x-statuses"]
        self.undocumented = responses["Undocumented"]["x-statuses"]
        self.errors = self.document["components"]["schemas"]["ErrorModel"]["x-errors"]

    # ---- requests ----

    def find(self, method, target):
        """(operation or None, the values in its path)"""
        path = target.partition("?")[0]
        parts = [unquote_to_bytes(p) for p in path.split("/")[1:]]
        best, values = None, {}
        if not path.startswith("/") or any(p in (b"", b".", b"..") or b"\0" in p for p in parts):
            return None, {}
        for op in self.operations:
            template = op.path.split("/")[1:]
            if op.method != method.lower() or len(template) != len(parts):
                continue
            if any(t != p.decode("latin-1") and t[0] != "{" for t, p in zip(template, parts)):
                continue
            if best is None or op.path.count("{") < best.path.count("{"):
                best = op
                values = {t[1:-1]: p.decode("utf-8", "replace") for t, p in zip(template, parts) if t[0] == "{"}
        return best, values

    def check_value(self, parameter, text):
        schema = self.resolve(parameter["schema"])
        if schema.get("type") == "integer" and text.lstrip("-").isdecimal():
            text = int(text)
        self.check(schema, text, f"{parameter['in']} parameter {parameter['name']}")

    def check_request(self, op, values, request):
        """A request that was taken must be a documented one."""
        query = {}
        for pair in filter(None, request.words[1].partition("?")[2].split("&")):
            name, _, value = (unquote_to_bytes(p.replace("+", " ")).decode("utf-8", "replace") for p in pair.partition("="))
            query[name] = value
        for where, given in (("path", values), ("query", query)):
            known = op.names(where)
            if set(given) - set(known):
                raise Invalid(f"taken, and not documented: {where} parameters {set(given) - set(known)}")
            for name, value in given.items():
                self.check_value(known[name], value)
            missing = [n for n, p in known.items() if p.get("required") and n not in given]
            if missing:
                raise Invalid(f"taken without {missing}")
        content = op.node.get("requestBody", {}).get("content", {})
        if "application/json" in content and request.body:
            self.check(content["application/json"]["schema"], load_json(bytes(request.body)), "request")

    # ---- responses ----

    def reasons(self, op, status):
        """All documented reasons of an error, or None."""
        places = [self.any]
        if op is None:
            places.append(self.undocumented)
        elif status in op.responses:
            places.append({status: op.responses[status].get("x-reasons", {})})
        found = [set(p[status]) for p in places if status in p]
        return set().union(*found) if found else None

    def check_headers(self, spec, response):
        for name, header in spec.get("headers", {}).items():
            header = self.resolve(header)
            value = response.headers.get(name.lower())
            if value is None and header.get("required"):
                raise Invalid(f"without the header {name}")
            if value is not None:
                self.check(header["schema"], value, f"header {name}")

    def spec(self, op, status):
        """What is documented of a response. Invalid: nothing is."""
        if op and status in op.responses:
            return op.responses[status]
        if self.reasons(op, status) is not None and status[0] in "45":
            return {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}}
        raise Invalid("this status is not documented")

    def check_head(self, op, request, response):
        status = str(response.status)
        spec = self.spec(op, status)
        content = spec.get("content", {})
        kind = response.headers.get("content-type")
        if kind not in content and not (kind is None and not content):
            raise Invalid(f"the content type {kind} is not among {list(content)}")
        self.check_headers(spec, response)
        for needs, header in (("405", "allow"), ("401", "www-authenticate")):
            if status == needs and header not in response.headers:
                raise Invalid(f"without the header {header}")
        if status[0] in "12":
            asked, told = request.headers.get("x-request-id", ""), response.headers.get("x-request-id", "")
            if told != asked if REQUEST_ID.fullmatch(asked) else not REQUEST_ID.fullmatch(told):
                raise Invalid(f"X-Request-Id: {told!r} for {asked!r}")
            if response.headers.get("traceparent", "") not in ("", request.headers.get("traceparent")):
                raise Invalid(f"traceparent: {response.headers['traceparent']!r}")
        return content.get(kind)

    def check_error(self, op, response, value):
        e = value["error"]
        row = self.errors.get(e["reason"])
        if row != [response.status, e["type"], e["code"]]:
            raise Invalid(f"status, type and code of {e['reason']} are documented as {row}")
        if e["reason"] not in self.reasons(op, str(response.status)):
            raise Invalid(f"the reason {e['reason']} is not documented for {response.status}")
        if e.get("request_id") != response.headers.get("x-request-id"):
            raise Invalid("request_id is not X-Request-Id")
        if "request_id" not in e and e["reason"] not in NAMELESS:
            raise Invalid("without X-Request-Id")
        if ("retry_after_seconds" in e) != ("retry-after" in response.headers):
            raise Invalid("Retry-After and retry_after_seconds come together")

    def check_event(self, schema, lines):
        fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
        if set(fields) - {"id", "event", "data"} or not fields.get("id", "0").isdecimal():
            raise Invalid(f"no event: {lines}")
        if "data" in fields:
            value = load_json(fields["data"])
            self.check(schema, value, "event")
            if fields["event"] != value["kind"]:
                raise Invalid(f"the event is called {fields['event']}: {value}")

    # ---- the judge of wiretap ----

    def begin(self, request, response):
        with self.told_of(request, response):
            op, response.values = self.find(*request.words[:2]) if request else (None, {})
            response.op = op
            response.content = self.check_head(op, request, response)
            response.pending = bytearray()
            if op and response.status == 101:
                answered.add((op.id, "101", None))

    def body(self, response, data):
        content = response.content or {}
        if "x-item-schema" not in content:
            response.keep(data)
            return
        end = b"\n" if "ndjson" in response.headers["content-type"] else b"\n\n"
        response.pending += data
        *items, response.pending = response.pending.split(end)
        with self.told_of(None, response):
            for item in items:
                if end == b"\n":
                    self.check(content["x-item-schema"], load_json(item), "line")
                else:
                    self.check_event(content["x-item-schema"], item.decode().split("\n"))

    def end(self, request, response):
        op, content = response.op, response.content or {}
        kind = response.headers.get("content-type")
        head = request is not None and request.words[0] == "HEAD"
        with self.told_of(request, response):
            if kind == "application/json" and not head and response.body is not None:
                value = load_json(bytes(response.body))
                self.check(content["schema"], value)
                if response.status >= 400:
                    self.check_error(op, response, value)
            elif head and response.body or kind is None and response.body:
                raise Invalid("there is a body")
            if op and response.status < 300:
                self.check_request(op, response.values, request)
        if op:
            answered.add((op.id, str(response.status), kind))

    def frame(self, response, opcode, payload):
        spec = response.op.responses["101"]
        with self.told_of(None, response):
            if opcode == 1:
                self.check(spec["x-text-messages"], load_json(payload), "message")
            elif opcode == 2 and (payload[:1] not in (b"\1", b"\2") or not 2 <= len(payload) <= 65537):
                raise Invalid(f"binary: {len(payload)} bytes, {payload[:20]}")

    def told_of(self, request, response):
        return Telling(request, response)


class Telling:
    """Turns Invalid into a Violation that says which request it was."""

    def __init__(self, request, response):
        self.request, self.response = request, response

    def __enter__(self):
        return self

    def __exit__(self, kind, e, _traceback):
        if kind is None or not issubclass(kind, Invalid):
            return False
        op = getattr(self.response, "op", None)
        what = " ".join(self.request.words[:2]) if self.request else op.id if op else "(no request that can be read)"
        text = f"{what} -> {self.response.status}: {e}\n  {bytes(self.response.body or b'')[:300]!r}"
        violations.append(text)
        raise Violation(text)


def watch():
    wiretap.listen(Contract())


def take_violations():
    """Those that there were since this was asked last."""
    found = violations[:]
    violations.clear()
    return found
