"""The official Anthropic client for Python on Tollgate: the base URL is the root, without /v1; all else is as usual.

    pip install anthropic
    TOLLGATE_KEY=sk-tg-… python3 docs/recipes/anthropic-python.py             every example
    TOLLGATE_KEY=sk-tg-… python3 docs/recipes/anthropic-python.py text tools  some of them

(Do not call a file of yours anthropic.py: Python would import that instead of the client.)
"""

import json
import os
import sys

import anthropic
from pydantic import BaseModel

client = anthropic.Anthropic(
    base_url=os.environ.get("TOLLGATE_URL", "http://127.0.0.1:8080"),
    api_key=os.environ["TOLLGATE_KEY"],
)


def model(sandbox):
    """Your model, or the one of the sandbox that is made for the example."""
    return os.environ.get("TOLLGATE_MODEL") or f"sandbox/{sandbox}"


def user(content):
    return {"role": "user", "content": content}


def joined(message, kind="text"):
    return "".join(getattr(block, kind) for block in message.content if block.type == kind)


DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
HELLO = "hello from the other side of the gate"


def get_weather(city: str) -> str:
    """Weather of a city."""
    return f"it rains in {city}"


def get_time(city: str) -> str:
    """Time in a city."""
    return f"it is noon in {city}"


def text():
    message = client.messages.create(model=model("echo"), max_tokens=1000, messages=[user(HELLO)])
    usage = message.usage
    # `cost`, in USD, is Tollgate's addition; the client keeps fields it has no type for.
    return {
        "text": joined(message),
        "tokens": [usage.input_tokens, usage.output_tokens],
        "cost": usage.cost,
        "request": message._request_id,
    }


def stream():
    pieces, cost = 0, None
    with client.messages.stream(model=model("echo"), max_tokens=1000, messages=[user(HELLO)]) as events:
        for event in events:
            pieces += event.type == "text"
            # The finished message keeps the counts it knows; the cost is in the event.
            if event.type == "message_delta":
                cost = event.usage.cost
        message = events.get_final_message()
    tokens = [message.usage.input_tokens, message.usage.output_tokens]
    return {"text": joined(message), "tokens": tokens, "cost": cost, "pieces": pieces}


def tool_loop():
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"name": "get_weather", "input_schema": schema}]
    messages = [user("What is the weather like?")]
    while True:
        reply = client.messages.create(model=model("tools"), max_tokens=1000, messages=messages, tools=tools)
        if reply.stop_reason != "tool_use":
            return {"text": joined(reply)}
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": get_weather(**block.input)}
            for block in reply.content
            if block.type == "tool_use"
        ]
        messages += [{"role": "assistant", "content": reply.content}, user(results)]


def parallel():
    """The client's own loop, streamed."""
    runner = client.beta.messages.tool_runner(
        model=model("tools"),
        max_tokens=1000,
        stream=True,
        messages=[user("Weather and time, in parallel please.")],
        tools=[anthropic.beta_tool(get_weather), anthropic.beta_tool(get_time)],
    )
    return {"text": joined(runner.until_done())}


def thinking():
    def ask(*messages):
        adaptive = {"type": "adaptive"}
        return client.messages.create(model=model("think"), max_tokens=4000, thinking=adaptive, messages=messages)

    first = ask(user("why is it so"))
    # Thinking blocks go back as they came, with their signatures.
    following = ask(user("why is it so"), {"role": "assistant", "content": first.content}, user("and then"))
    return {"thinking": joined(first, "thinking"), "text": joined(first), "next": joined(following)}


def image():
    content = [
        {"type": "text", "text": "what is in this picture"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}},
    ]
    message = client.messages.create(model=model("echo"), max_tokens=1000, messages=[user(content)])
    return {"text": joined(message), "tokens": [message.usage.input_tokens, message.usage.output_tokens]}


class Report(BaseModel):
    city: str
    rain: bool
    celsius: float


def structured():
    messages = [user("Report the weather.")]
    message = client.messages.parse(model=model("echo"), max_tokens=1000, messages=messages, output_format=Report)
    return message.parsed_output.model_dump()


def models():
    return [each.id for each in client.models.list()]


def count():
    """For any model; exact where its provider counts, else an estimate."""
    return {"tokens": client.messages.count_tokens(model=model("echo"), messages=[user(HELLO)]).input_tokens}


def errors():
    plain = client.with_options(max_retries=0)

    def caught(by, name, **more):
        try:
            for _ in by.messages.create(model=name, max_tokens=1000, messages=[user("hello")], **more):
                pass
        except anthropic.APIError as error:
            # The exception's class, and the word of Tollgate's vocabulary.
            return [type(error).__name__, error.body["error"]["code"], getattr(error, "request_id", None)]

    return {
        "key": caught(client.with_options(api_key="sk-tg-wrong"), model("echo")),
        "model": caught(plain, "unknown/model"),
        "limit": caught(plain, "sandbox/throttled"),
        "broken": caught(plain, "sandbox/breaks-off", stream=True),
    }


EXAMPLES = {
    "text": text,
    "stream": stream,
    "tools": tool_loop,
    "parallel": parallel,
    "thinking": thinking,
    "image": image,
    "structured": structured,
    "models": models,
    "count": count,
    "errors": errors,
}
for name in sys.argv[1:] or EXAMPLES:
    print(name, json.dumps(EXAMPLES[name]()))
