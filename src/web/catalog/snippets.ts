// Code that calls a model with each client: the shortest streamed request with this gateway's address and the model's id. The
// key is read from TOLLGATE_KEY, never included. A test runs the code; docs/recipes/ has the long versions.

export interface Snippet {
  readonly client: string
  readonly language: 'sh' | 'javascript' | 'python'
  /** The install command; empty = none needed. */
  readonly install: string
  readonly code: string
  /** A file in docs/recipes/. */
  readonly recipe: string
}

export interface SnippetOptions {
  /** Origin of the gateway, without a trailing slash. */
  readonly address: string
  readonly modelId: string
  /** The model's limit; the Messages API requires a cap. */
  readonly maxOutputTokens: number | undefined
}

const hello = 'hello from the other side of the gate'
const outputCap = 1000

export function snippetsFor({ address, modelId, maxOutputTokens = outputCap }: SnippetOptions): readonly Snippet[] {
  const facts: Facts = {
    root: JSON.stringify(address),
    base: JSON.stringify(`${address}/v1`),
    model: JSON.stringify(modelId),
    cap: Math.min(outputCap, maxOutputTokens),
    shellRoot: shellQuote(address),
    shellModel: shellQuote(modelId),
    shellChat: shellQuote(`${address}/v1/chat/completions`),
    shellResponses: shellQuote(`${address}/v1/responses`),
  }
  return rows.map(([client, language, recipe, install, code]) => {
    return { client, language, recipe, install, code: code(facts) }
  })
}

interface Facts {
  // In double quotes, which JSON, JavaScript and Python read the same.
  readonly root: string
  readonly base: string
  readonly model: string
  readonly cap: number
  // In single quotes.
  readonly shellRoot: string
  readonly shellModel: string
  readonly shellChat: string
  readonly shellResponses: string
}

/** Inside single quotes a shell only interprets the quote itself. */
function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

type Row = readonly [
  client: string,
  language: Snippet['language'],
  recipe: string,
  install: string,
  code: (facts: Facts) => string,
]

const rows: readonly Row[] = [
  [
    'curl',
    'sh',
    'curl.sh',
    '',
    ({ shellChat, model }) => `curl -N ${shellChat} \\
  -H "Authorization: Bearer $TOLLGATE_KEY" \\
  -H 'Content-Type: application/json' \\
  -d ${shellQuote(`{
    "model": ${model},
    "stream": true,
    "stream_options": {"include_usage": true},
    "messages": [{"role": "user", "content": "${hello}"}]
  }`)}`,
  ],
  [
    'OpenAI JS',
    'javascript',
    'openai.ts',
    'npm install openai',
    ({ base, model }) => `import OpenAI from "openai"

const client = new OpenAI({ baseURL: ${base}, apiKey: process.env.TOLLGATE_KEY })

const stream = await client.chat.completions.create({
  model: ${model},
  messages: [{ role: "user", content: "${hello}" }],
  stream: true,
  stream_options: { include_usage: true },
})
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "")
  if (chunk.usage) console.log("\\n$" + chunk.usage.cost)
}`,
  ],
  [
    'OpenAI Python',
    'python',
    'openai-python.py',
    'pip install openai',
    ({ base, model }) => `import os
from openai import OpenAI

client = OpenAI(base_url=${base}, api_key=os.environ["TOLLGATE_KEY"])

stream = client.chat.completions.create(
    model=${model},
    messages=[{"role": "user", "content": "${hello}"}],
    stream=True,
    stream_options={"include_usage": True},
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    if chunk.usage:
        print(f"\\n\${chunk.usage.cost}")`,
  ],
  [
    'Responses, curl',
    'sh',
    'curl.sh',
    '',
    ({ shellResponses, model }) => `curl -N ${shellResponses} \\
  -H "Authorization: Bearer $TOLLGATE_KEY" \\
  -H 'Content-Type: application/json' \\
  -d ${shellQuote(`{
    "model": ${model},
    "stream": true,
    "input": "${hello}"
  }`)}`,
  ],
  [
    'Responses, JS',
    'javascript',
    'openai.ts',
    'npm install openai',
    ({ base, model }) => `import OpenAI from "openai"

const client = new OpenAI({ baseURL: ${base}, apiKey: process.env.TOLLGATE_KEY })

const stream = await client.responses.create({
  model: ${model},
  input: "${hello}",
  stream: true,
})
for await (const event of stream) {
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta)
  if (event.type === "response.completed") console.log("\\n$" + event.response.usage.cost)
}`,
  ],
  [
    'Responses, Python',
    'python',
    'openai-python.py',
    'pip install openai',
    ({ base, model }) => `import os
from openai import OpenAI

client = OpenAI(base_url=${base}, api_key=os.environ["TOLLGATE_KEY"])

stream = client.responses.create(
    model=${model},
    input="${hello}",
    stream=True,
)
for event in stream:
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)
    if event.type == "response.completed":
        print(f"\\n\${event.response.usage.cost}")`,
  ],
  [
    'Anthropic JS',
    'javascript',
    'anthropic.ts',
    'npm install @anthropic-ai/sdk',
    ({ root, model, cap }) => `import Anthropic from "@anthropic-ai/sdk"

// The root of the gateway, without /v1.
const client = new Anthropic({ baseURL: ${root}, apiKey: process.env.TOLLGATE_KEY })

const stream = client.messages.stream({
  model: ${model},
  max_tokens: ${cap},
  messages: [{ role: "user", content: "${hello}" }],
})
stream.on("text", (text) => process.stdout.write(text))
stream.on("streamEvent", (event) => {
  if (event.type === "message_delta") console.log("\\n$" + event.usage.cost)
})
await stream.finalMessage()`,
  ],
  [
    'Anthropic Python',
    'python',
    'anthropic-python.py',
    'pip install anthropic',
    ({ root, model, cap }) => `import os
from anthropic import Anthropic

# The root of the gateway, without /v1.
client = Anthropic(base_url=${root}, api_key=os.environ["TOLLGATE_KEY"])

with client.messages.stream(
    model=${model},
    max_tokens=${cap},
    messages=[{"role": "user", "content": "${hello}"}],
) as stream:
    for event in stream:
        if event.type == "text":
            print(event.text, end="", flush=True)
        if event.type == "message_delta":
            print(f"\\n\${event.usage.cost}")`,
  ],
  [
    'AI SDK',
    'javascript',
    'ai-sdk.ts',
    'npm install ai @ai-sdk/openai-compatible',
    ({ base, model }) => `import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { streamText } from "ai"

const tollgate = createOpenAICompatible({
  name: "tollgate",
  baseURL: ${base},
  apiKey: process.env.TOLLGATE_KEY,
  includeUsage: true,
  supportsStructuredOutputs: true,
})

const { textStream, usage } = streamText({
  model: tollgate(${model}),
  prompt: "${hello}",
})
for await (const text of textStream) process.stdout.write(text)
console.log("\\n$" + (await usage).raw.cost)`,
  ],
  [
    'LangChain',
    'javascript',
    'langchain.ts',
    'npm install @langchain/core @langchain/openai',
    ({ base, model }) => `import { ChatOpenAI } from "@langchain/openai"

const model = new ChatOpenAI({
  model: ${model},
  apiKey: process.env.TOLLGATE_KEY,
  configuration: { baseURL: ${base} },
})

for await (const chunk of await model.stream("${hello}")) {
  process.stdout.write(chunk.text)
}`,
  ],
  [
    'Claude Code',
    'sh',
    'claude-code.md',
    '',
    ({ shellRoot, shellModel }) => `# The root of the gateway, without /v1.
export ANTHROPIC_BASE_URL=${shellRoot}
export ANTHROPIC_AUTH_TOKEN="$TOLLGATE_KEY"
# Otherwise your own Anthropic key would be sent as well.
export ANTHROPIC_API_KEY=
export ANTHROPIC_MODEL=${shellModel}
export ANTHROPIC_DEFAULT_OPUS_MODEL="$ANTHROPIC_MODEL"
export ANTHROPIC_DEFAULT_SONNET_MODEL="$ANTHROPIC_MODEL"
export ANTHROPIC_DEFAULT_HAIKU_MODEL="$ANTHROPIC_MODEL"
claude`,
  ],
  [
    'Codex',
    'sh',
    'codex.md',
    'npm install -g @openai/codex',
    ({ base, shellModel }) => `# TOLLGATE_KEY is read by Codex. \`tollgate connect codex\` also configures every model.
codex -c model_provider=tollgate \\
  -c model_providers.tollgate.name=Tollgate \\
  -c ${shellQuote(`model_providers.tollgate.base_url=${base}`)} \\
  -c model_providers.tollgate.env_key=TOLLGATE_KEY \\
  -c model_providers.tollgate.wire_api=responses \\
  --model ${shellModel}`,
  ],
]
