"""A batch with a model of every dialect, and one that is cancelled, with OpenAI's client. Arguments: URL, key. Prints JSON."""

import io
import json
import sys
import time

from openai import OpenAI

client = OpenAI(base_url=sys.argv[1] + "/v1", api_key=sys.argv[2])


def create(model, count):
    body = {"model": model, "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
    lines = [
        json.dumps({"custom_id": f"line-{at}", "method": "POST", "url": "/v1/chat/completions", "body": body})
        for at in range(count)
    ]
    content = io.BytesIO("\n".join(lines).encode())
    file = client.files.create(file=("lines.jsonl", content), purpose="batch")
    return client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"model": model}
    )


def wait(batch):
    while batch.status in ("validating", "in_progress", "finalizing", "cancelling"):
        time.sleep(0.1)
        batch = client.batches.retrieve(batch.id)
    return batch


found = {}
for model in ["test/chat", "test/messages", "test/responses", "test/gemini"]:
    batch = wait(create(model, 2))
    assert batch.metadata == {"model": model}
    lines = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
    found[model] = [batch.status] + [(line["custom_id"], line["response"]["body"]["model"]) for line in lines]

cancelled = wait(client.batches.cancel(create("sandbox/slow", 40).id))
errors = client.files.content(cancelled.error_file_id).text.splitlines()
counts = cancelled.request_counts
found["cancelled"] = [cancelled.status, counts.total, counts.completed + len(errors)]
found["listed"] = sorted(batch.metadata["model"] for batch in client.batches.list(limit=2))
print(json.dumps(found))
