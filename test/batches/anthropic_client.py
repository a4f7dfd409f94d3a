"""A batch with a model of every dialect, and one that is cancelled, with Anthropic's client. Arguments: URL, key. Prints JSON."""

import json
import sys
import time

from anthropic import Anthropic

client = Anthropic(base_url=sys.argv[1], api_key=sys.argv[2])
batches = client.messages.batches


def create(models):
    message = {"max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
    return batches.create(
        requests=[
            {"custom_id": f"line-{at}", "params": {"model": model, **message}} for at, model in enumerate(models)
        ]
    )


def wait(batch):
    while batch.processing_status != "ended":
        time.sleep(0.1)
        batch = batches.retrieve(batch.id)
    return batch


models = ["test/chat", "test/messages", "test/responses", "test/gemini"]
done = wait(create(models))
results = {line.custom_id: line.result for line in batches.results(done.id)}
found = {"models": [results[f"line-{at}"].message.model for at in range(len(models))]}

cancelled = wait(batches.cancel(create(["sandbox/slow"] * 40).id))
kinds = [line.result.type for line in batches.results(cancelled.id)]
counts = cancelled.request_counts
found["cancelled"] = [len(kinds), counts.canceled > 0, counts.succeeded + counts.canceled]
found["listed"] = len(list(batches.list(limit=1)))
batches.delete(done.id)
found["left"] = len(list(batches.list(limit=1)))
print(json.dumps(found))
