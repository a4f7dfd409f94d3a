#!/usr/bin/env bash
# Tollgate by hand, through either surface. With -N a stream is shown as it comes; add -i to see the headers, among them
# what the call cost (x-tollgate-cost), who served it (x-tollgate-provider) and its id (x-request-id).
#
#   TOLLGATE_KEY=sk-tg-… docs/recipes/curl.sh              every example, through both surfaces
#   TOLLGATE_KEY=sk-tg-… docs/recipes/curl.sh text stream  some of them
set -euo pipefail

url=${TOLLGATE_URL:-http://127.0.0.1:8080}
key=${TOLLGATE_KEY:?set it to a key of your gateway}
echo_model=${TOLLGATE_MODEL:-sandbox/echo}
tools_model=${TOLLGATE_MODEL:-sandbox/tools}

chat() {
  curl -sSN "$url/v1/chat/completions" -H "Authorization: Bearer $key" -H 'Content-Type: application/json' "${@:2}" -d "$1"
}
messages() {
  curl -sSN "$url/v1/messages" -H "x-api-key: $key" -H 'anthropic-version: 2023-06-01' \
    -H 'Content-Type: application/json' "${@:2}" -d "$1"
}

hello='[{"role": "user", "content": "hello from the other side of the gate"}]'
question='{"role": "user", "content": "What is the weather like?"}'
schema='{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'
report='{"type": "object", "properties": {"city": {"type": "string"}, "rain": {"type": "boolean"}, "celsius": {"type": "number"}},
  "required": ["city", "rain", "celsius"], "additionalProperties": false}'
dot=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==
look='{"type": "text", "text": "what is in this picture"}'

chat_text() { chat '{"model": "'"$echo_model"'", "messages": '"$hello"'}'; }
messages_text() { messages '{"model": "'"$echo_model"'", "max_tokens": 1000, "messages": '"$hello"'}'; }

# On the chat surface the last record tells usage and cost only when asked to.
chat_stream() {
  chat '{"model": "'"$echo_model"'", "stream": true, "stream_options": {"include_usage": true}, "messages": '"$hello"'}'
}
messages_stream() { messages '{"model": "'"$echo_model"'", "max_tokens": 1000, "stream": true, "messages": '"$hello"'}'; }

# The call comes back with its result; its id ties the two together.
chat_tools() {
  local tools='[{"type": "function", "function": {"name": "get_weather", "parameters": '"$schema"'}}]'
  chat '{"model": "'"$tools_model"'", "tools": '"$tools"', "messages": ['"$question"']}'
  echo
  chat '{"model": "'"$tools_model"'", "tools": '"$tools"', "messages": ['"$question"',
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "it rains in Paris"}]}'
}
messages_tools() {
  local tools='[{"name": "get_weather", "input_schema": '"$schema"'}]'
  messages '{"model": "'"$tools_model"'", "max_tokens": 1000, "tools": '"$tools"', "messages": ['"$question"']}'
  echo
  messages '{"model": "'"$tools_model"'", "max_tokens": 1000, "tools": '"$tools"', "messages": ['"$question"',
    {"role": "assistant", "content": [
      {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "Paris"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "it rains in Paris"}]}]}'
}

chat_image() {
  chat '{"model": "'"$echo_model"'", "messages": [{"role": "user", "content": ['"$look"',
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,'"$dot"'"}}]}]}'
}
messages_image() {
  messages '{"model": "'"$echo_model"'", "max_tokens": 1000, "messages": [{"role": "user", "content": ['"$look"',
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "'"$dot"'"}}]}]}'
}

chat_structured() {
  chat '{"model": "'"$echo_model"'", "messages": [{"role": "user", "content": "Report the weather."}], "response_format":
    {"type": "json_schema", "json_schema": {"name": "report", "strict": true, "schema": '"$report"'}}}'
}
messages_structured() {
  messages '{"model": "'"$echo_model"'", "max_tokens": 1000, "messages": [{"role": "user", "content": "Report the weather."}],
    "output_config": {"format": {"type": "json_schema", "schema": '"$report"'}}}'
}

chat_models() { curl -sS "$url/v1/models" -H "Authorization: Bearer $key"; }
messages_models() { curl -sS "$url/v1/models?limit=1000" -H "x-api-key: $key" -H 'anthropic-version: 2023-06-01'; }

# For any model; exact where its provider counts, else an estimate.
messages_count() {
  curl -sS "$url/v1/messages/count_tokens" -H "x-api-key: $key" -H 'anthropic-version: 2023-06-01' \
    -H 'Content-Type: application/json' -d '{"model": "'"$echo_model"'", "messages": '"$hello"'}'
}

# The status, and the word of Tollgate's vocabulary in error.code.
chat_errors() {
  key=sk-tg-wrong chat '{"model": "'"$echo_model"'", "messages": '"$hello"'}' -w '\n%{http_code}\n'
  chat '{"model": "unknown/model", "messages": '"$hello"'}' -w '\n%{http_code}\n'
  chat '{"model": "sandbox/throttled", "messages": '"$hello"'}' -w '\n%{http_code}\n'
}
messages_errors() {
  key=sk-tg-wrong messages '{"model": "'"$echo_model"'", "max_tokens": 1000, "messages": '"$hello"'}' -w '\n%{http_code}\n'
  messages '{"model": "unknown/model", "max_tokens": 1000, "messages": '"$hello"'}' -w '\n%{http_code}\n'
  messages '{"model": "sandbox/throttled", "max_tokens": 1000, "messages": '"$hello"'}' -w '\n%{http_code}\n'
}

[ $# -gt 0 ] || set -- text stream tools image structured models count errors
for surface in chat messages; do
  for name in "$@"; do
    declare -F "${surface}_$name" >/dev/null || continue
    echo "== $surface $name"
    "${surface}_$name"
    echo
  done
done
