"""Google's Gen AI client for Python on Tollgate: the base URL is the root, without /v1beta; everything else is as usual.

    pip install google-genai
    TOLLGATE_KEY=sk-tg-… python3 docs/recipes/google-genai-python.py             every example
    TOLLGATE_KEY=sk-tg-… python3 docs/recipes/google-genai-python.py text tools  some of them
"""

import base64
import json
import os
import sys

from google import genai
from google.genai import errors, types
from pydantic import BaseModel

OPTIONS = types.HttpOptions(base_url=os.environ.get("TOLLGATE_URL", "http://127.0.0.1:8080"))
client = genai.Client(api_key=os.environ["TOLLGATE_KEY"], http_options=OPTIONS)


def model(sandbox):
    """Your model, or the one of the sandbox that is made for the example."""
    return os.environ.get("TOLLGATE_MODEL") or f"sandbox/{sandbox}"


DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
HELLO = "hello from the other side of the gate"


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"it rains in {city}"


def get_time(city: str) -> str:
    """The time in a city."""
    return f"it is noon in {city}"


def tokens(usage):
    return [usage.prompt_token_count, usage.candidates_token_count]


def text():
    reply = client.models.generate_content(model=model("echo"), contents=HELLO)
    headers = reply.sdk_http_response.headers
    # The client drops members it does not know, such as `cost`; the header has it as well, in USD.
    return {
        "text": reply.text,
        "tokens": tokens(reply.usage_metadata),
        "cost": float(headers["x-tollgate-cost"]),
        "request": headers["x-request-id"],
    }


def stream():
    said, pieces, usage = "", 0, None
    for chunk in client.models.generate_content_stream(model=model("echo"), contents=HELLO):
        said += chunk.text or ""
        pieces += 1
        usage = chunk.usage_metadata or usage
    return {"text": said, "tokens": tokens(usage), "pieces": pieces}


def tool_loop():
    """The client's own loop: it calls the functions itself."""
    config = types.GenerateContentConfig(tools=[get_weather])
    reply = client.models.generate_content(model=model("tools"), contents="What is the weather like?", config=config)
    return {"text": reply.text}


def parallel():
    """A loop of yours, streamed. A chat keeps the model's parts as they came, with their thought signatures."""
    functions = {"get_weather": get_weather, "get_time": get_time}
    own_loop = types.AutomaticFunctionCallingConfig(disable=True)
    config = types.GenerateContentConfig(tools=list(functions.values()), automatic_function_calling=own_loop)
    chat = client.chats.create(model=model("tools"), config=config)
    message = "Weather and time, in parallel please."
    while True:
        said, calls = "", []
        for chunk in chat.send_message_stream(message):
            calls += chunk.function_calls or []
            said += "" if chunk.function_calls else chunk.text or ""
        if not calls:
            return {"text": said}
        message = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=call.id, name=call.name, response={"output": functions[call.name](**call.args)}
                )
            )
            for call in calls
        ]


def thinking():
    config = types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_level="LOW")
    )
    chat = client.chats.create(model=model("think"), config=config)
    first = chat.send_message("why is it so")
    following = chat.send_message("and then")
    thoughts = "".join(part.text for part in first.candidates[0].content.parts if part.thought)
    return {"thinking": thoughts, "text": first.text, "next": following.text}


def image():
    picture = types.Part.from_bytes(data=base64.b64decode(DOT), mime_type="image/png")
    reply = client.models.generate_content(model=model("echo"), contents=["what is in this picture", picture])
    return {"text": reply.text, "tokens": tokens(reply.usage_metadata)}


class Report(BaseModel):
    city: str
    rain: bool
    celsius: float


def structured():
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Report)
    reply = client.models.generate_content(model=model("echo"), contents="Report the weather.", config=config)
    return reply.parsed.model_dump()


def models():
    return [each.name.removeprefix("models/") for each in client.models.list()]


def count():
    """For any model, by an estimate."""
    return {"tokens": client.models.count_tokens(model=model("echo"), contents=HELLO).total_tokens}


def error_classes():
    def caught(by, name, streamed=False):
        try:
            if streamed:
                for _ in by.models.generate_content_stream(model=name, contents="hello"):
                    pass
            else:
                by.models.generate_content(model=name, contents="hello")
        except errors.APIError as error:
            # The exception's class, and the word of Tollgate's vocabulary.
            return [type(error).__name__, error.details["error"]["details"][0]["reason"]]

    return {
        "key": caught(genai.Client(api_key="sk-tg-wrong", http_options=OPTIONS), model("echo")),
        "model": caught(client, "unknown/model"),
        "limit": caught(client, "sandbox/throttled"),
        "broken": caught(client, "sandbox/breaks-off", streamed=True),
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
    "errors": error_classes,
}
for name in sys.argv[1:] or EXAMPLES:
    print(name, json.dumps(EXAMPLES[name]()))
