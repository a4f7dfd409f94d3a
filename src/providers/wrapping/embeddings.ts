// Embeddings of hosts with their own format: takes OpenAI's request, sends the host's, and returns OpenAI's reply.

import { isRecord, parseRecord, recordOf } from '../../dialects/canonical/json.ts'
import { invalidRequest } from '../../kernel/failure.ts'
import { utf8Text } from '../../wire/bytes.ts'
import { readResponseBody } from '../../wire/read-body.ts'
import type { UpstreamResponse } from '../provider.ts'
import type { HostCall, WrappedCall, Wrapping } from './messages-call.ts'

const replyBytesMax = 64 * 1024 * 1024

interface Asked {
  readonly model: string
  readonly texts: readonly unknown[]
  readonly dimensions: unknown
}

function readAsked({ path, body }: WrappedCall): Asked | undefined {
  if (path !== '/embeddings') return undefined
  const { model, input, dimensions } = recordOf(parseRecord(utf8Text(body, 0, body.length)))
  const texts: unknown[] = Array.isArray(input) ? input : [input]
  return { model: String(model), texts, dimensions }
}

/** The caller's members are mapped to the host's form, which drops those it does not have. */
function hostCall({ headers }: WrappedCall, { texts }: Asked, path: string, body: object): HostCall {
  const isText = texts.every((text) => typeof text === 'string')
  return {
    ...{ path, headers, body: new TextEncoder().encode(JSON.stringify(body)), warnings: [] },
    ...(!isText && { refused: invalidRequest('This model takes text, not tokens. Send the text itself.', 'input') }),
  }
}

/** Reads the host's reply when it is there; errors pass as they are. */
function rewritten(
  response: UpstreamResponse,
  read: (reply: Record<string, unknown>) => { readonly vectors: readonly unknown[]; readonly tokens: unknown },
): UpstreamResponse {
  if (response.status !== 200) return response
  const bytes = async (): Promise<Uint8Array<ArrayBuffer>> => {
    const whole = await readResponseBody(response, replyBytesMax)
    const reply = whole === 'too-large' ? undefined : parseRecord(utf8Text(whole, 0, whole.length))
    if (!reply) return new Uint8Array(0)
    const { vectors, tokens } = read(reply)
    const data = vectors.map((embedding, index) => ({ object: 'embedding', index, embedding }))
    const usage = tokens === undefined ? {} : { usage: { prompt_tokens: tokens, total_tokens: tokens } }
    return new TextEncoder().encode(JSON.stringify({ object: 'list', data, ...usage }))
  }
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      controller.enqueue(await bytes())
      controller.close()
    },
  })
  const headers = { get: (name: string) => (/^content-length$/i.test(name) ? null : response.headers.get(name)) }
  return { status: 200, headers, body, bytes: () => new Response(body).bytes() }
}

/**
 * Bedrock: Titan takes one text, Cohere's models 96.
 * https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html and -embed.html, 2026-11
 */
export const invokeEmbedding: Wrapping = {
  wrap(call) {
    const asked = readAsked(call)
    if (!asked) return undefined
    const { model, texts, dimensions } = asked
    const path = `/model/${encodeURIComponent(model)}/invoke`
    if (/cohere\./.test(model)) {
      const form = { texts, input_type: 'search_document', embedding_types: ['float'] }
      return hostCall(call, asked, path, { ...form, ...(dimensions !== undefined && { output_dimension: dimensions }) })
    }
    const one = hostCall(call, asked, path, { inputText: texts[0], ...(dimensions !== undefined && { dimensions }) })
    const refused = invalidRequest('This model embeds one text in each request. Send the texts one by one.', 'input')
    return texts.length > 1 ? { ...one, refused } : one
  },
  unwrap: (response) =>
    rewritten(response, ({ embedding, embeddings, inputTextTokenCount }) => {
      const counted = response.headers.get('x-amzn-bedrock-input-token-count')
      const tokens = inputTextTokenCount ?? (counted === null ? undefined : Number(counted))
      const list = isRecord(embeddings) ? embeddings.float : embeddings
      return { vectors: Array.isArray(list) ? list : [embedding], tokens }
    }),
}

/** Vertex AI. https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api, 2026-11 */
export const predictEmbedding: Wrapping = {
  wrap(call) {
    const asked = readAsked(call)
    if (!asked) return undefined
    const { model, texts, dimensions } = asked
    const instances = texts.map((content) => ({ content }))
    const parameters = dimensions === undefined ? {} : { parameters: { outputDimensionality: dimensions } }
    return hostCall(call, asked, `/models/${encodeURIComponent(model)}:predict`, { instances, ...parameters })
  },
  unwrap: (response) =>
    rewritten(response, ({ predictions }) => {
      const all = (Array.isArray(predictions) ? predictions : []).map((each) => recordOf(recordOf(each).embeddings))
      const counts = all.map(({ statistics }) => recordOf(statistics).token_count)
      const tokens = counts.every((each) => typeof each === 'number')
        ? (counts as number[]).reduce((sum, each) => sum + each, 0)
        : undefined
      return { vectors: all.map(({ values }) => values), tokens }
    }),
}
