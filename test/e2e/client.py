"""Submits a file by a client that was generated from the OpenAPI document, waits, and
reads the receipt, the object and a refusal. Prints what it got as JSON."""

import json
import os
import sys
import time

from generated import AuthenticatedClient
from generated.api.batches import get_batch, list_batch_jobs, submit_batch
from generated.api.jobs import get_job, get_receipt, list_job_events
from generated.api.objects import get_object, list_versions
from generated.models import (BatchRequest, BatchState, Identifiers, JobState, Metadata, Payload, PayloadType,
                              StateChange)

api, source = sys.argv[1:]
client = AuthenticatedClient(base_url=api, token=os.environ["ARCHIVIST_TOKEN"])
accepted = submit_batch.sync(
    client=client,
    idempotency_key="generated-client",
    body=BatchRequest(
        collection="generated",
        submitter="a generated client",
        payload=Payload(url=source, type_=PayloadType.FILE, filename="letter.txt"),
        identifiers=Identifiers(local=["generated-1"]),
        metadata=Metadata(what="A letter"),
    ),
)
assert accepted.state == BatchState.PENDING, accepted

deadline = time.monotonic() + 600
while (batch := get_batch.sync(accepted.id, client=client)).state not in (BatchState.COMPLETED, BatchState.FAILED):
    assert time.monotonic() < deadline, batch
    time.sleep(0.2)
jobs = list_batch_jobs.sync(accepted.id, client=client, state=JobState.COMPLETED).items
assert len(jobs) == 1, (batch, jobs)
receipt = get_receipt.sync(jobs[0].id, client=client)
naan, name = receipt.ark.removeprefix("ark:/").split("/")
stored = get_object.sync(naan, name, client=client)
versions = list_versions.sync(naan, name, client=client).items
events = list_job_events.sync(jobs[0].id, client=client).items
assert all(isinstance(e.detail, StateChange) for e in events), events

missing = get_job.sync_detailed("none", client=client)
assert missing.status_code == 404 and missing.parsed.type_ == "urn:archivist:problem:not-found", missing

json.dump({"ark": stored.ark, "version": stored.version, "title": stored.title, "versions": len(versions),
           "files": {f.path: f.digests["sha256"] for f in receipt.files}}, sys.stdout)
