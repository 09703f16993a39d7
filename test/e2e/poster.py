"""Posts a form as clients of Merritt do, with the standard library: URL, FILE, and NAME=VALUE for each field."""
import json
import os
import sys
import urllib.error
import urllib.request
import uuid


def form(path, fields):
    boundary = uuid.uuid4().hex
    out = b""
    for name, value in fields:
        out += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
    with open(path, "rb") as file:
        content = file.read()
    name = path.rsplit("/", 1)[-1]
    out += f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    return boundary, out + content + f"\r\n--{boundary}--\r\n".encode()


boundary, body = form(sys.argv[2], [one.split("=", 1) for one in sys.argv[3:]])
request = urllib.request.Request(sys.argv[1], body, {
    "Content-Type": "multipart/form-data; boundary=" + boundary,
    "Authorization": "Bearer " + os.environ["ARCHIVIST_TOKEN"],
})
try:
    with urllib.request.urlopen(request) as answer:
        state = json.load(answer)["bat:batchState"]
        assert answer.headers["BID"] == state["bat:batchID"]
        print(state["bat:batchID"], state["bat:batchStatus"])
except urllib.error.HTTPError as refused:
    (says,) = json.load(refused).values()
    print(refused.code, says["exc:statusName"], says["exc:error"])
