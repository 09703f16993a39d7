"""Starts MiniStack for the project, with five changes of behaviour at run time, beside
those of permissions.py:

the Lambda runtime API answers without Nagle's delay, a finished invocation does
not wait long for more log lines, and connections are not closed after 1,000
requests. Together they make a warm invocation about 20 times as fast. Checksums
are computed by a library: in Python they take most of the time of a large upload.
Functions are told with which key of API Gateway a request came.
"""
import functools
import socketserver

import awscrt.checksums
import hypercorn.config
import ministack.core.lambda_runtime as runtime
import ministack.services.apigateway_v1 as apigateway
import ministack.services.s3 as s3

socketserver.StreamRequestHandler.disable_nagle_algorithm = True
runtime.Worker._drain_stderr_bounded = functools.partialmethod(
    runtime.Worker._drain_stderr_bounded, first_line_wait=0.002, idle_confirm=0.002, hard_cap=0.25
)
s3._crc64nvme = awscrt.checksums.crc64nvme
hypercorn.config.Config.keep_alive_max_requests = 10**9


_build_event = apigateway._build_lambda_event_v1


@functools.wraps(_build_event)
def _event_with_key(api, stage_name, stage, resource, path, method, headers, *rest, **kw):
    event = _build_event(api, stage_name, stage, resource, path, method, headers, *rest, **kw)
    if key := apigateway._resolve_api_key(apigateway._api_key_from_request(headers)):
        event["requestContext"]["identity"] |= {"apiKey": key["value"], "apiKeyId": key["id"]}
    return event


apigateway._build_lambda_event_v1 = _event_with_key

import permissions  # noqa: E402, F401  (after the changes above)
from ministack.app import main  # noqa: E402

main()
