# A policy by Presidio (https://microsoft.github.io/presidio/): blocks requests and answers with card numbers, e-mail
# addresses, IBANs, US social security numbers, phone numbers, and keys of well-known services.
#
#   pip install presidio-analyzer standardwebhooks
#   POLICY_SECRET=whsec_… python policy-presidio.py
#
# These are found by patterns and check digits, so no language model is downloaded. For names of people and places, load one
# as Presidio's documentation describes and add PERSON and LOCATION below.

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import spacy
from presidio_analyzer import AnalyzerEngine, Pattern, PatternRecognizer
from presidio_analyzer.nlp_engine import SpacyNlpEngine
from standardwebhooks import Webhook

BLOCKED = ["CREDIT_CARD", "EMAIL_ADDRESS", "IBAN_CODE", "US_SSN", "PHONE_NUMBER", "API_KEY"]
SCORE_MIN = 0.5


class WithoutModel(SpacyNlpEngine):
    def __init__(self):
        super().__init__()
        self.nlp = {"en": spacy.blank("en")}


analyzer = AnalyzerEngine(nlp_engine=WithoutModel(), supported_languages=["en"])
keys = Pattern("key", r"\b(sk-[A-Za-z0-9_-]{16,}|ghp_[A-Za-z0-9]{36}|AKIA[0-9A-Z]{16})\b", 0.9)
analyzer.registry.add_recognizer(PatternRecognizer(supported_entity="API_KEY", patterns=[keys]))
webhook = Webhook(os.environ["POLICY_SECRET"])


def texts_of(value):
    """All texts of a document, wherever they are."""
    if isinstance(value, str):
        return [value]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for child in children for text in texts_of(child)]


def verdict(data):
    content = [data.get(name) for name in ("conversation", "answer", "inputs", "other")]
    found = set()
    for text in texts_of(content):
        for result in analyzer.analyze(text=text, language="en", entities=BLOCKED, score_threshold=SCORE_MIN):
            found.add(result.entity_type)
    if not found:
        return {"decision": "allow"}
    kinds = ", ".join(sorted(found))
    return {"decision": "block", "code": "personal_data", "message": f"It contains {kinds}."}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            webhook.verify(body, dict(self.headers))
            status, answer = 200, verdict(json.loads(body)["data"])
        except Exception as error:  # No verdict: the entry's `on_failure` decides.
            status, answer = 500, {"error": str(error)}
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Handler)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
