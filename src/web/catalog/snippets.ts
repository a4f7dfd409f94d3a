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

export function snippetsFor(options: SnippetOptions): readonly Snippet[] {
  const cap = Math.min(outputCap, options.maxOutputTokens ?? outputCap)
  const root = quote(options.address)
  const facts: Facts = { root, base: quote(`${options.address}/v1`), model: quote(options.modelId), cap }
  return [
    curl(options),
    { ...openaiJs(facts), recipe: 'openai.ts' },
    { ...openaiPython(facts), recipe: 'openai-python.py' },
    { ...anthropicJs(facts), recipe: 'anthropic.ts' },
    { ...anthropicPython(facts), recipe: 'anthropic-python.py' },
    { ...aiSdk(facts), recipe: 'ai-sdk.ts' },
    { ...langChain(facts), recipe: 'langchain.ts' },
    claudeCode(options),
  ]
}

/** Strings in double quotes, which JSON, JavaScript and Python read the same. */
interface Facts {
  readonly root: string
  readonly base: string
  readonly model: string
  readonly cap: number
}

type CodeOnly = Omit<Snippet, 'recipe'>

function quote(text: string): string {
  return JSON.stringify(text)
}

/** Inside single quotes a shell only interprets the quote itself. */
function shellQuote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function curl({ address, modelId }: SnippetOptions): Snippet {
  const body = `{
    "model": ${quote(modelId)},
    "stream": true,
    "stream_options": {"include_usage": true},
    "messages": [{"role": "user", "content": "${hello}"}]
  }`
  return {
    client: 'curl',
    language: 'sh',
    install: '',
    recipe: 'curl.sh',
    code: `curl -N ${shellQuote(`${address}/v1/chat/completions`)} \\
  -H "Authorization: Bearer $TOLLGATE_KEY" \\
  -H 'Content-Type: application/json' \\
  -d ${shellQuote(body)}`,
  }
}

function openaiJs({ base, model }: Facts): CodeOnly {
  return {
    client: 'OpenAI JS',
    language: 'javascript',
    install: 'npm install openai',
    code: `import OpenAI from "openai"

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
  }
}

function openaiPython({ base, model }: Facts): CodeOnly {
  return {
    client: 'OpenAI Python',
    language: 'python',
    install: 'pip install openai',
    code: `import os
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
  }
}

function anthropicJs({ root, model, cap }: Facts): CodeOnly {
  return {
    client: 'Anthropic JS',
    language: 'javascript',
    install: 'npm install @anthropic-ai/sdk',
    code: `import Anthropic from "@anthropic-ai/sdk"

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
  }
}

function anthropicPython({ root, model, cap }: Facts): CodeOnly {
  return {
    client: 'Anthropic Python',
    language: 'python',
    install: 'pip install anthropic',
    code: `import os
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
  }
}

function aiSdk({ base, model }: Facts): CodeOnly {
  return {
    client: 'AI SDK',
    language: 'javascript',
    install: 'npm install ai @ai-sdk/openai-compatible',
    code: `import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
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
  }
}

function langChain({ base, model }: Facts): CodeOnly {
  return {
    client: 'LangChain',
    language: 'javascript',
    install: 'npm install @langchain/core @langchain/openai',
    code: `import { ChatOpenAI } from "@langchain/openai"

const model = new ChatOpenAI({
  model: ${model},
  apiKey: process.env.TOLLGATE_KEY,
  configuration: { baseURL: ${base} },
})

for await (const chunk of await model.stream("${hello}")) {
  process.stdout.write(chunk.text)
}`,
  }
}

function claudeCode({ address, modelId }: SnippetOptions): Snippet {
  const sizes = ['OPUS', 'SONNET', 'HAIKU'].map((size) => `export ANTHROPIC_DEFAULT_${size}_MODEL="$ANTHROPIC_MODEL"`)
  return {
    client: 'Claude Code',
    language: 'sh',
    install: '',
    recipe: 'claude-code.md',
    code: [
      '# The root of the gateway, without /v1.',
      `export ANTHROPIC_BASE_URL=${shellQuote(address)}`,
      'export ANTHROPIC_AUTH_TOKEN="$TOLLGATE_KEY"',
      '# Otherwise your own Anthropic key would be sent as well.',
      'export ANTHROPIC_API_KEY=',
      `export ANTHROPIC_MODEL=${shellQuote(modelId)}`,
      ...sizes,
      'claude',
    ].join('\n'),
  }
}
