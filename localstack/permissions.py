"""Brings MiniStack's evaluation of policies nearer to AWS, where the project needs it:

- SendTaskSuccess and SendTaskFailure are authorised on the state machine that waits
  for the token. MiniStack asks for "*", which a policy that names machines refuses.
- A write to the table has the condition key dynamodb:LeadingKeys: its partition key;
  in a transaction, that of each item.
- A mail is sent on the authority of the identity that sends it, its address or domain.
  MiniStack asks for "*".
- The batch actions of queues have the permissions of the single ones. MiniStack asks for
  actions that policies cannot name.
- A state machine sends messages and invokes functions as its own role. MiniStack does it
  as the account.

What each role asked for is written to the file that EVALUATED names, each kind of
request once: role, action, resource and leading key (keys by what they begin with).

Policies are parsed once, and a session is looked up by its key alone: else evaluation
adds half to the CPU time of the emulator.

Not evaluated here: what event source mappings, rules, alarms and the API may do. The
tests of the templates look at those.
"""
import base64
import contextvars
import functools
import json
import os
import re
from email import message_from_bytes
from email.utils import parseaddr
from urllib.parse import parse_qs

import ministack.app as app
import ministack.core.iam_actions as actions
import ministack.core.iam_evaluator as evaluator
import ministack.services.stepfunctions as stepfunctions
import ministack.services.sts as sts
from ministack.core.responses import get_account_id, get_region
from ministack.core.router import extract_access_key_id

_machine = contextvars.ContextVar("machine", default="")  # whose execution runs
_waiting = {}  # machine by task token
_written = set()  # kinds of requests


def _wrap(module, name):
    """Replaces a function of a module by one that gets the original first."""

    def decorate(f):
        original = getattr(module, name)
        setattr(module, name, lambda *args, **kw: f(original, *args, **kw))

    return decorate


_parse = functools.lru_cache(maxsize=1024)(evaluator.parse_policy_document)


@_wrap(evaluator, "parse_policy_document")
def _(original, document):
    return _parse(document) if isinstance(document, str) else original(document)


@_wrap(evaluator, "request_caller_arn")
def _(original, headers, params=None):
    session = sts._sessions.get(extract_access_key_id(headers or {}, params or {}))
    return session["Arn"] if session else original(headers, params)


def _write(role, action, resource, leading=""):
    """Notes a kind of request: keys are cut after their first part."""
    if resource.startswith("arn:aws:s3:::"):
        resource = re.sub(r"^([^/]*/[^/]*/).*", r"\1*", resource)
    kind = (role, action, re.sub(r":execution:([^:]*):.*", r":execution:\1:*", resource), re.sub(r"#.*", "#", leading))
    if "EVALUATED" in os.environ and kind not in _written:
        _written.add(kind)
        with open(os.environ["EVALUATED"], "a") as f:
            f.write(json.dumps(dict(zip(("role", "action", "resource", "leading"), kind))) + "\n")


@_wrap(stepfunctions, "_execute_task")
def _(original, state, given, execution, ctx):
    _machine.set((execution or {}).get("stateMachineArn", ""))
    return original(state, given, execution, ctx)


@_wrap(stepfunctions, "_invoke_with_callback")
def _(original, resource, given, token, state):
    _waiting[token] = _machine.get()
    return original(resource, given, token, state)


@_wrap(actions, "extract_resource_arn")
def _(original, service, method, path, headers, body, *rest):
    if service == "states":
        token = json.loads(body or b"{}").get("taskToken")
        if token in _waiting:
            return _waiting[token]
    if service == "ses" and (raw := parse_qs(body.decode("utf-8", "replace")).get("RawMessage.Data")):
        sender = parseaddr(message_from_bytes(base64.b64decode(raw[0]))["From"])[1]
        return f"arn:aws:ses:{get_region()}:{get_account_id()}:identity/{sender}"
    return original(service, method, path, headers, body, *rest)


@_wrap(actions, "extract_iam_action")
def _(original, service, method, path, headers, body, params):
    action = original(service, method, path, headers, body, params)
    if service == "states" and action in ("states:SendTaskSuccess", "states:SendTaskFailure"):
        if json.loads(body or b"{}").get("taskToken") not in _waiting:
            return None  # a token that never was is refused as such
    return action.removesuffix("Batch") if service == "sqs" and action else action


class _ItemAction(str):
    """The action of one item of a transaction, with the item's partition key."""

    leading = ""


def _leading(detail):
    row = detail.get("Key") or detail.get("Item") or {}
    return row.get("pk", {}).get("S", "")


@_wrap(actions, "dynamodb_transaction_checks")
def _(original, action, body, *rest):
    checks = original(action, body, *rest)
    if not checks:
        return checks
    items = [detail for item in json.loads(body)["TransactItems"] for detail in item.values()]
    out = []
    for (name, arn), detail in zip(checks, items, strict=True):
        name = _ItemAction(name)
        name.leading = _leading(detail)
        out.append((name, arn))
    return out


@_wrap(actions, "dynamodb_service_context")
def _(original, body):
    context = original(body)
    if leading := _leading(json.loads(body or b"{}")):
        context["dynamodb:LeadingKeys"] = [leading]
    return context


@_wrap(evaluator, "enforce")
def _(original, key, action, *args, resource_arn="*", service_context=None):
    context = dict(service_context or {})
    if isinstance(action, _ItemAction):
        context["dynamodb:LeadingKeys"] = [action.leading]
    _, _, session = sts._sessions.get(key, {}).get("Arn", "").partition(":assumed-role/")
    if session:
        _write(session.split("/")[0], action, resource_arn, *context.get("dynamodb:LeadingKeys", []))
    return original(key, action, *args, resource_arn=resource_arn, service_context=context)


def _refused(service, action, resource):
    """Why the role of the machine whose execution runs may not do something, "" if it may."""
    if not (app.AUTH and _machine.get()):
        return ""
    account, region = get_account_id(), get_region()
    role = stepfunctions._state_machines[_machine.get()]["roleArn"].rsplit("/", 1)[-1]
    arn = f"arn:aws:{service}:{region}:{account}:{resource}"
    _write(role, action, arn)
    who = f"arn:aws:sts::{account}:assumed-role/{role}/states"
    ctx = evaluator.EvalContext(who, "AssumedRole", account, action, arn, region)
    if evaluator.evaluate(ctx, evaluator._gather_role_policies(role, account)).decision == "Allow":
        return ""
    return f"User: {who} is not authorized to perform: {action.lower()} on resource: {arn}"


def _send_message(resource, given, original=stepfunctions._invoke_sqs_send_message):
    if why := _refused("sqs", "sqs:SendMessage", given.get("QueueUrl", "").rsplit("/", 1)[-1]):
        raise stepfunctions._ExecutionError("SQS.SqsException", why)
    return original(resource, given)


stepfunctions._SERVICE_DISPATCH["arn:aws:states:::sqs:sendMessage"] = _send_message


@_wrap(stepfunctions, "_call_lambda")
def _(original, function, event):
    name = stepfunctions._resolve_lambda_function_name(function, optimized=True)
    if why := _refused("lambda", "lambda:InvokeFunction", "function:" + name):
        raise stepfunctions._ExecutionError("Lambda.AWSLambdaException", why)
    return original(function, event)
