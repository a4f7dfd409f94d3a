"""The official OpenAI client for Python on Tollgate: the base URL ends in /v1, everything else is as usual.

    pip install openai
    TOLLGATE_KEY=sk-tg-… python3 docs/recipes/openai-python.py             every example
    TOLLGATE_KEY=sk-tg-… python3 docs/recipes/openai-python.py text tools  some of them

(Do not call a file of yours openai.py: Python would import that instead of the client.)
"""

import json
import os
import sys

import openai
from pydantic import BaseModel

client = openai.OpenAI(
    base_url=os.environ.get("TOLLGATE_URL", "http://127.0.0.1:8080") + "/v1",
    api_key=os.environ["TOLLGATE_KEY"],
)


def model(sandbox):
    """Your model, or the one of the sandbox that is made for the example."""
    return os.environ.get("TOLLGATE_MODEL") or f"sandbox/{sandbox}"


def user(content):
    return {"role": "user", "content": content}


DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
HELLO = "hello from the other side of the gate"
FUNCTIONS = {
    "get_weather": lambda city: f"it rains in {city}",
    "get_time": lambda city: f"it is noon in {city}",
}


def tools(*names):
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return [{"type": "function", "function": {"name": name, "parameters": parameters}} for name in names]


def results(message):
    """One tool message for every call of the assistant's."""
    for call in message.tool_calls:
        said = FUNCTIONS[call.function.name](**json.loads(call.function.arguments))
        yield {"role": "tool", "tool_call_id": call.id, "content": said}


def text():
    reply = client.chat.completions.create(model=model("echo"), messages=[user(HELLO)])
    usage = reply.usage
    # `cost`, in USD, is Tollgate's addition; the client keeps fields it has no type for.
    return {
        "text": reply.choices[0].message.content,
        "tokens": [usage.prompt_tokens, usage.completion_tokens],
        "cost": usage.cost,
        "request": reply._request_id,
    }


def stream():
    pieces = 0
    # Without include_usage the client cannot know tokens and cost of a stream.
    options = {"include_usage": True}
    with client.chat.completions.stream(model=model("echo"), messages=[user(HELLO)], stream_options=options) as events:
        for event in events:
            pieces += event.type == "content.delta"
        reply = events.get_final_completion()
    return {
        "text": reply.choices[0].message.content,
        "tokens": [reply.usage.prompt_tokens, reply.usage.completion_tokens],
        "cost": reply.usage.cost,
        "pieces": pieces,
    }


def tool_loop():
    messages = [user("What is the weather like?")]
    while True:
        reply = client.chat.completions.create(model=model("tools"), messages=messages, tools=tools("get_weather"))
        message = reply.choices[0].message
        if not message.tool_calls:
            return {"text": message.content}
        messages += [message, *results(message)]


def parallel():
    """The same loop, streamed."""
    messages = [user("Weather and time, in parallel please.")]
    while True:
        offered = tools("get_weather", "get_time")
        with client.chat.completions.stream(model=model("tools"), messages=messages, tools=offered) as events:
            message = events.get_final_completion().choices[0].message
        if not message.tool_calls:
            return {"text": message.content}
        messages += [message, *results(message)]


def thinking():
    def ask(*messages):
        reply = client.chat.completions.create(model=model("think"), reasoning_effort="low", messages=messages)
        return reply.choices[0].message

    first = ask(user("why is it so"))
    # The thoughts are in `reasoning_content`; sent back with the message, they stay with the conversation.
    following = ask(user("why is it so"), first, user("and then"))
    return {"thinking": first.reasoning_content, "text": first.content, "next": following.content}


def image():
    content = [
        {"type": "text", "text": "what is in this picture"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}},
    ]
    reply = client.chat.completions.create(model=model("echo"), messages=[user(content)])
    usage = reply.usage
    return {"text": reply.choices[0].message.content, "tokens": [usage.prompt_tokens, usage.completion_tokens]}


class Report(BaseModel):
    city: str
    rain: bool
    celsius: float


def structured():
    messages = [user("Report the weather.")]
    reply = client.chat.completions.parse(model=model("echo"), messages=messages, response_format=Report)
    return reply.choices[0].message.parsed.model_dump()


def models():
    return [each.id for each in client.models.list()]


def errors():
    plain = client.with_options(max_retries=0)

    def caught(by, name, **more):
        try:
            for _ in by.chat.completions.create(model=name, messages=[user("hello")], **more):
                pass
        except openai.APIError as error:
            # The exception's class, and the word of Tollgate's vocabulary.
            return [type(error).__name__, error.code, getattr(error, "request_id", None)]

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
    "errors": errors,
}
for name in sys.argv[1:] or EXAMPLES:
    print(name, json.dumps(EXAMPLES[name]()))
