"""Starts LocalStack's open core for the project, with three changes at run time:

functions of the provided runtimes run as processes of this machine (no Docker),
it listens on loopback only, and DynamoDB Local is the one that Maven installed.
"""
import functools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from localstack import config
from localstack.runtime.server import twisted
from localstack.services.dynamodb.server import DynamodbServer
from localstack.services.lambda_.invocation import runtime_executor
from localstack.services.lambda_.invocation.lambda_models import InvocationResult
from localstack.utils.threads import FuncThread

API = "/2018-06-01/runtime/"


class Invocation:
    """One event on its way through a function, and its answer."""

    def __init__(self, payload):
        self.payload = payload
        self.id = payload["invoke-id"]
        self.answered = threading.Event()
        self.body, self.failed = b"", False

    def answer(self, body, failed):
        self.body, self.failed = body, failed
        self.answered.set()


class Handler(BaseHTTPRequestHandler):
    """The Lambda Runtime API, as a bootstrap calls it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path != API + "invocation/next":
            return self.reply(404)
        env = self.server.environment
        env.ready.set()
        inv = env.waiting.get()
        if inv is None:  # the environment ends
            self.close_connection = True
            return None
        env.current = inv
        return self.reply(200, inv.payload["payload"].encode(), (
            ("Content-Type", "application/json"),
            ("Lambda-Runtime-Aws-Request-Id", inv.id),
            ("Lambda-Runtime-Deadline-Ms", str(int((time.time() + env.timeout) * 1000))),
            ("Lambda-Runtime-Trace-Id", inv.payload["trace-id"]),
            ("Lambda-Runtime-Invoked-Function-Arn", inv.payload["invoked-function-arn"]),
        ))

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(chunks)

    def do_POST(self):
        body, env = self.body(), self.server.environment
        if self.path == API + "init/error":
            env.failure = body
            env.ready.set()
            return self.reply(202)
        _, invocation, kind = self.path[len(API):].split("/")
        inv = env.current
        if inv is None or inv.id != invocation:
            return self.reply(400)  # it was given up
        env.current = None
        self.reply(202)
        return inv.answer(body, kind == "error")


class Processes(runtime_executor.RuntimeExecutor):
    """One execution environment: a process that asks for one event after another."""

    def __init__(self, id, function_version):  # noqa: A002  (the name is LocalStack's)
        super().__init__(id=id, function_version=function_version)
        self.timeout = function_version.config.timeout
        self.code = str(function_version.config.code.get_unzipped_code_location())
        self.process, self.current, self.failure = None, None, None
        self.ready = threading.Event()
        self.log, self.lock = [], threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.environment = self

    def start(self, env_vars):
        self.env = {k: str(v) for k, v in env_vars.items()} | {
            "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self.server.server_port}", "LAMBDA_TASK_ROOT": self.code,
            "PATH": "/usr/local/bin:/usr/bin:/bin", "TZ": ":UTC", "LANG": "en_US.UTF-8",
        }
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.spawn()

    def spawn(self):
        """Starts the process and waits until it asks for its first event."""
        self.waiting, self.current, self.failure = queue.Queue(), None, None
        self.ready.clear()
        bootstrap = os.path.join(self.code, "bootstrap")
        os.chmod(bootstrap, 0o755)
        self.process = subprocess.Popen([bootstrap], cwd=self.code, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        threading.Thread(target=self.listen, args=(self.process,), daemon=True).start()
        end = time.monotonic() + config.LAMBDA_RUNTIME_ENVIRONMENT_TIMEOUT
        while not self.ready.wait(0.01):
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise runtime_executor.LambdaRuntimeException(f"the function does not start: {self.get_logs()}")
        if self.failure is not None:
            raise runtime_executor.LambdaRuntimeException(f"the function does not start: {self.failure!r}")

    def listen(self, process):
        for line in process.stdout:
            text = line.decode(errors="replace")
            sys.stdout.write(text)
            with self.lock:
                self.log.append(text)

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def stop(self):
        self.waiting.put(None)
        self.kill()
        self.server.shutdown()
        self.server.server_close()

    def invoke(self, payload):
        began, inv = time.time(), Invocation(payload)
        with self.lock:
            self.log.clear()
        if self.process.poll() is not None:  # it died between two events
            self.spawn()
        self.waiting.put(inv)
        while not inv.answered.wait(0.01):
            if self.process.poll() is not None:
                inv.answer(error("Runtime.ExitError", f"the function ended with status {self.process.returncode}"), True)
            elif time.time() - began > self.timeout:
                self.kill()
                inv.answer(error("Sandbox.Timedout", f"Task timed out after {self.timeout:.2f} seconds"), True)
        took = int((time.time() - began) * 1000) + 1
        logs = f"START RequestId: {inv.id}\n{self.get_logs()}END RequestId: {inv.id}\nREPORT RequestId: {inv.id}\tDuration: {took} ms\tBilled Duration: {took} ms\n"
        return InvocationResult(inv.id, inv.body, is_error=inv.failed, logs=logs)

    def get_logs(self):
        with self.lock:
            return "".join(self.log)

    def get_address(self):
        return "127.0.0.1"

    def get_endpoint_from_executor(self):
        return "127.0.0.1"

    def get_runtime_endpoint(self):
        return f"http://127.0.0.1:{config.GATEWAY_LISTEN[0].port}/_localstack_lambda/{self.id}"

    @classmethod
    def prepare_version(cls, function_version):
        function_version.config.code.prepare_for_execution()

    @classmethod
    def cleanup_version(cls, function_version):
        pass

    @classmethod
    def validate_environment(cls):
        return True


def error(kind, message):
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()


def dynamodb(self):
    lib = os.environ["DYNAMODB_LOCAL_LIB"]
    command = ["java", "-Xmx1g", f"-Djava.library.path={lib}", "-cp", f"{lib}/*", "com.amazonaws.services.dynamodbv2.local.main.ServerRunner", "-port", str(self.port), "-inMemory", "-disableTelemetry"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # in our session: it ends with us
    thread = FuncThread(lambda *_: process.wait(), name="dynamodb-local", on_stop=lambda *_: process.terminate())
    thread.start()
    return thread


runtime_executor.get_runtime_executor = lambda: Processes
DynamodbServer.do_start_thread = dynamodb
twisted.endpoints.TCP4ServerEndpoint = functools.partial(twisted.endpoints.TCP4ServerEndpoint, interface="127.0.0.1")

from localstack.runtime.main import main  # noqa: E402  (after the changes above)

main()
