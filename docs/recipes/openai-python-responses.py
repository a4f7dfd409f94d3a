"""The Responses API with the official OpenAI client for Python on Tollgate: the base URL ends in /v1.

    pip install openai
    TOLLGATE_KEY=sk-tg-… python3 docs/recipes/openai-python-responses.py             every example
    TOLLGATE_KEY=sk-tg-… python3 docs/recipes/openai-python-responses.py text tools  some of them

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
    parameters = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    return [{"type": "function", "name": name, "parameters": parameters, "strict": True} for name in names]


def calls(reply):
    return [item for item in reply.output if item.type == "function_call"]


def results(reply):
    """One output for every call."""
    for call in calls(reply):
        said = FUNCTIONS[call.name](**json.loads(call.arguments))
        yield {"type": "function_call_output", "call_id": call.call_id, "output": said}


def text():
    reply = client.responses.create(model=model("echo"), input=HELLO)
    usage = reply.usage
    # `cost`, in USD, is Tollgate's addition; the client keeps fields it has no type for.
    return {
        "text": reply.output_text,
        "tokens": [usage.input_tokens, usage.output_tokens],
        "cost": usage.cost,
        "request": reply._request_id,
    }


def stream():
    pieces = 0
    with client.responses.stream(model=model("echo"), input=HELLO) as events:
        for event in events:
            pieces += event.type == "response.output_text.delta"
        reply = events.get_final_response()
    return {
        "text": reply.output_text,
        "tokens": [reply.usage.input_tokens, reply.usage.output_tokens],
        "cost": reply.usage.cost,
        "pieces": pieces,
    }


def tool_loop():
    items = [user("What is the weather like?")]
    while True:
        reply = client.responses.create(model=model("tools"), input=items, tools=tools("get_weather"))
        if not calls(reply):
            return {"text": reply.output_text}
        items += [*reply.output, *results(reply)]


def parallel():
    """The same loop, streamed."""
    items = [user("Weather and time, in parallel please.")]
    while True:
        offered = tools("get_weather", "get_time")
        with client.responses.stream(model=model("tools"), input=items, tools=offered) as events:
            reply = events.get_final_response()
        if not calls(reply):
            return {"text": reply.output_text}
        # A stream's items are parsed; as JSON they are what was sent.
        items += [item.model_dump(exclude={"parsed_arguments"}, exclude_none=True) for item in reply.output]
        items += results(reply)


def thinking():
    def ask(*items):
        effort = {"effort": "low", "summary": "auto"}
        return client.responses.create(model=model("think"), reasoning=effort, input=list(items))

    first = ask(user("why is it so"))
    # Sent back with their `encrypted_content`, the thoughts stay with the conversation.
    following = ask(user("why is it so"), *first.output, user("and then"))
    thought = "".join(part.text for item in first.output if item.type == "reasoning" for part in item.summary)
    return {"thinking": thought, "text": first.output_text, "next": following.output_text}


def image():
    content = [
        {"type": "input_text", "text": "what is in this picture"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{DOT}"},
    ]
    reply = client.responses.create(model=model("echo"), input=[user(content)])
    return {"text": reply.output_text, "tokens": [reply.usage.input_tokens, reply.usage.output_tokens]}


class Report(BaseModel):
    city: str
    rain: bool
    celsius: float


def structured():
    reply = client.responses.parse(model=model("echo"), input="Report the weather.", text_format=Report)
    return reply.output_parsed.model_dump()


def errors():
    plain = client.with_options(max_retries=0)

    def caught(by, name):
        try:
            by.responses.create(model=name, input="hello")
        except openai.APIError as error:
            # The exception's class, and the word of Tollgate's vocabulary.
            return [type(error).__name__, error.code, error.request_id]

    def ending(name):
        """A stream that breaks off ends with an event, and no exception."""
        events = list(plain.responses.create(model=name, input="hello", stream=True))
        return [events[-1].type, events[-1].response.error.code]

    return {
        "key": caught(client.with_options(api_key="sk-tg-wrong"), model("echo")),
        "model": caught(plain, "unknown/model"),
        "limit": caught(plain, "sandbox/throttled"),
        "broken": ending("sandbox/breaks-off"),
    }


EXAMPLES = {
    "text": text,
    "stream": stream,
    "tools": tool_loop,
    "parallel": parallel,
    "thinking": thinking,
    "image": image,
    "structured": structured,
    "errors": errors,
}
for name in sys.argv[1:] or EXAMPLES:
    print(name, json.dumps(EXAMPLES[name]()))
