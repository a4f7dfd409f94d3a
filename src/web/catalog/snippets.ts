// Code that calls a model with each client: the shortest streamed request with this gateway's address and the model's id. The
// key is read from TOLLGATE_KEY, never included. A test runs the code; docs/recipes/ has the long versions.

export interface Snippet {
  /** The API that it calls. */
  readonly api: string
  /** The language, or the client that is configured. */
  readonly client: string
  readonly language: 'sh' | 'javascript' | 'python'
  /** The install command; empty = none needed. */
  readonly install: string
  readonly code: string
  /** The page with more, in docs/. */
  readonly docs: string
}

export interface SnippetOptions {
  /** Origin of the gateway, without a trailing slash. */
  readonly address: string
  readonly modelId: string
  /** The model's limit; the Messages API requires a cap. */
  readonly maxOutputTokens: number | undefined
  /** Only /v1/embeddings serves it. */
  readonly isEmbedder?: boolean
}

const hello = 'hello from the other side of the gate'
const outputCap = 1000

export function snippetsFor({
  address,
  modelId,
  maxOutputTokens = outputCap,
  isEmbedder = false,
}: SnippetOptions): readonly Snippet[] {
  const facts: Facts = {
    root: JSON.stringify(address),
    base: JSON.stringify(`${address}/v1`),
    model: JSON.stringify(modelId),
    cap: Math.min(outputCap, maxOutputTokens),
    shellRoot: shellQuote(address),
    shellModel: shellQuote(modelId),
    shellChat: shellQuote(`${address}/v1/chat/completions`),
    shellResponses: shellQuote(`${address}/v1/responses`),
    shellEmbeddings: shellQuote(`${address}/v1/embeddings`),
    shellGemini: shellQuote(`${address}/v1beta/models/${modelId}:streamGenerateContent?alt=sse`),
  }
  return (isEmbedder ? embeddingRows : rows).map(([api, client, language, docs, install, code]) => {
    return { api, client, language, docs, install, code: code(facts) }
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
  readonly shellEmbeddings: string
  readonly shellGemini: string
}

/** Inside single quotes a shell only interprets the quote itself. */
function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

type Row = readonly [
  api: string,
  client: string,
  language: Snippet['language'],
  docs: string,
  install: string,
  code: (facts: Facts) => string,
]

const rows: readonly Row[] = [
  [
    'Chat Completions',
    'curl',
    'sh',
    'recipes/curl.sh',
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
    'Chat Completions',
    'JavaScript',
    'javascript',
    'recipes/openai.ts',
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
    'Chat Completions',
    'Python',
    'python',
    'recipes/openai-python.py',
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
    'Responses',
    'curl',
    'sh',
    'recipes/curl.sh',
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
    'Responses',
    'JavaScript',
    'javascript',
    'recipes/openai.ts',
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
    'Responses',
    'Python',
    'python',
    'recipes/openai-python.py',
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
    'Messages',
    'JavaScript',
    'javascript',
    'recipes/anthropic.ts',
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
    'Messages',
    'Python',
    'python',
    'recipes/anthropic-python.py',
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
    'Gemini',
    'curl',
    'sh',
    'reference/gemini.md',
    '',
    ({ shellGemini }) => `curl -N ${shellGemini} \\
  -H "x-goog-api-key: $TOLLGATE_KEY" \\
  -H 'Content-Type: application/json' \\
  -d ${shellQuote(`{
    "contents": [{"role": "user", "parts": [{"text": "${hello}"}]}]
  }`)}`,
  ],
  [
    'Gemini',
    'JavaScript',
    'javascript',
    'recipes/google-genai.mjs',
    'npm install @google/genai',
    ({ root, model }) => `import { GoogleGenAI } from "@google/genai"

// The root of the gateway, without /v1beta.
const ai = new GoogleGenAI({ apiKey: process.env.TOLLGATE_KEY, httpOptions: { baseUrl: ${root} } })

const stream = await ai.models.generateContentStream({ model: ${model}, contents: "${hello}" })
for await (const { text, usageMetadata } of stream) {
  process.stdout.write(text ?? "")
  if (usageMetadata?.cost !== undefined) console.log("\\n$" + usageMetadata.cost)
}`,
  ],
  [
    'Gemini',
    'Python',
    'python',
    'recipes/google-genai-python.py',
    'pip install google-genai',
    ({ root, model }) => `import os
from google import genai

# The root of the gateway, without /v1beta.
client = genai.Client(api_key=os.environ["TOLLGATE_KEY"], http_options={"base_url": ${root}})

for chunk in client.models.generate_content_stream(model=${model}, contents="${hello}"):
    print(chunk.text or "", end="", flush=True)`,
  ],
  [
    'Chat Completions',
    'AI SDK',
    'javascript',
    'recipes/ai-sdk.ts',
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
    'Chat Completions',
    'LangChain',
    'javascript',
    'recipes/langchain.ts',
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
    'Messages',
    'Claude Code',
    'sh',
    'recipes/claude-code.md',
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
    'Responses',
    'Codex',
    'sh',
    'recipes/codex.md',
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

const embeddingRows: readonly Row[] = [
  [
    'Embeddings',
    'curl',
    'sh',
    'reference/embeddings.md',
    '',
    ({ shellEmbeddings, model }) => `curl ${shellEmbeddings} \\
  -H "Authorization: Bearer $TOLLGATE_KEY" \\
  -H 'Content-Type: application/json' \\
  -d ${shellQuote(`{
    "model": ${model},
    "input": "${hello}"
  }`)}`,
  ],
  [
    'Embeddings',
    'JavaScript',
    'javascript',
    'reference/embeddings.md',
    'npm install openai',
    ({ base, model }) => `import OpenAI from "openai"

const client = new OpenAI({ baseURL: ${base}, apiKey: process.env.TOLLGATE_KEY })

const { data, usage } = await client.embeddings.create({
  model: ${model},
  input: "${hello}",
})
console.log(data[0].embedding.length + " numbers, $" + usage.cost)`,
  ],
  [
    'Embeddings',
    'Python',
    'python',
    'reference/embeddings.md',
    'pip install openai',
    ({ base, model }) => `import os
from openai import OpenAI

client = OpenAI(base_url=${base}, api_key=os.environ["TOLLGATE_KEY"])

answer = client.embeddings.create(
    model=${model},
    input="${hello}",
)
print(f"{len(answer.data[0].embedding)} numbers, \${answer.usage.cost}")`,
  ],
]
