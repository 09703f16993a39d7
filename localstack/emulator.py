"""Starts MiniStack for the project, with four changes of behaviour at run time, beside
those of permissions.py:

the Lambda runtime API answers without Nagle's delay, a finished invocation does
not wait long for more log lines, and connections are not closed after 1,000
requests. Together they make a warm invocation about 20 times as fast. Checksums
are computed by a library: in Python they take most of the time of a large upload.
"""
import functools
import socketserver

import awscrt.checksums
import hypercorn.config
import ministack.core.lambda_runtime as runtime
import ministack.services.s3 as s3

socketserver.StreamRequestHandler.disable_nagle_algorithm = True
runtime.Worker._drain_stderr_bounded = functools.partialmethod(
    runtime.Worker._drain_stderr_bounded, first_line_wait=0.002, idle_confirm=0.002, hard_cap=0.25
)
s3._crc64nvme = awscrt.checksums.crc64nvme
hypercorn.config.Config.keep_alive_max_requests = 10**9

import permissions  # noqa: E402, F401  (after the changes above)
from ministack.app import main  # noqa: E402

main()
