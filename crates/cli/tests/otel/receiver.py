"""Takes OTLP over HTTP, reads it with the official messages, and prints each as a line of JSON.

The first line is the port. It ends with its standard input.
"""

import base64
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}
IDS = ("traceId", "spanId", "parentSpanId")
lock = threading.Lock()


def with_ids(value, change):
    """OTLP writes ids in hexadecimal, where the JSON of protobuf has base 64."""
    if isinstance(value, dict):
        return {
            key: change(inner) if key in IDS else with_ids(inner, change)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [with_ids(inner, change) for inner in value]
    return value


def read(path, kind, body):
    message = KINDS[path]()
    if kind == "application/x-protobuf":
        message.ParseFromString(body)
    elif kind == "application/json":
        told = with_ids(json.loads(body), lambda text: base64.b64encode(bytes.fromhex(text)).decode())
        json_format.ParseDict(told, message)
    else:
        raise ValueError(kind)
    assert message.SerializeToString(), "it says nothing"
    told = json_format.MessageToDict(message)
    return with_ids(told, lambda text: base64.b64decode(text).hex())


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        kind = self.headers["content-type"]
        try:
            told = {"message": read(self.path, kind, body)}
        except Exception as error:
            told = {"problem": f"{type(error).__name__}: {error}"}
        told.update(path=self.path, kind=kind, key=self.headers.get("x-key"))
        with lock:
            print(json.dumps(told), flush=True)
        self.send_response(200 if "message" in told else 400)
        self.send_header("content-type", kind)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
