// OpenAI's embeddings, which every host of Chat Completions has at the same address.
// https://platform.openai.com/docs/api-reference/embeddings/create, 2026-11

import type { Failure } from '../../kernel/failure.ts'
import { tokenCount, totalInputTokens, type Usage } from '../../kernel/usage.ts'
import { utf8Text } from '../../wire/bytes.ts'
import { BodyEdits } from '../byte-lane/edits.ts'
import { createReplyRelay } from '../byte-lane/relay.ts'
import {
  base64Vector,
  type Embeddings,
  type EmbeddingsReply,
  type EmbeddingsRequest,
  inputUsage,
} from '../canonical/embeddings.ts'
import { replyFault } from '../canonical/faults.ts'
import {
  isRecord,
  jsonArray,
  jsonNumber,
  jsonObject,
  jsonString,
  listOf,
  parseRecord,
  recordOf,
} from '../canonical/json.ts'
import { askedTier, openaiTiers } from '../canonical/tiers.ts'
import type { RenderContext, SentRequest } from '../canonical/translation.ts'
import type { RelayReply } from '../reply/relay.ts'
import {
  envelopeOf,
  parseBody,
  readFields,
  refuseAt,
  routingFields,
  routingMembers,
  WarningList,
} from '../request/fields.ts'
import { readErrorObject } from './errors.ts'

const path = '/embeddings'
/** As many as OpenAI takes in one request. */
const inputsMax = 2048

function readEnvelope(body: Uint8Array<ArrayBuffer>): SentRequest | Failure {
  return readFields(body, (fields) => {
    const routing = routingFields(fields)
    fields.requiredInput('belongs to /v1/chat/completions.')
    fields.optionalInteger('dimensions', 1, 65_536)
    const encoding = fields.optionalWord('encoding_format', ['float', 'base64'])
    if (fields.optionalBoolean('stream')) fields.refuse('stream', 'Embeddings are not streamed. Leave out `stream`.')
    const tier = askedTier(openaiTiers, fields.value('service_tier'))
    return envelopeOf({
      ...{ ...routing, outputCap: 0, embeddings: { isBase64: encoding === 'base64' } },
      ...(tier !== undefined && { tier }),
    })
  })
}

export const supported = [
  ...['model', 'input', 'dimensions', 'encoding_format', 'service_tier', 'user', 'stream'],
  ...routingMembers,
]

function parseRequest(sent: SentRequest): EmbeddingsRequest | Failure {
  return parseBody(sent, (fields, { warnings }) => {
    fields.warnUnknown(supported, warnings)
    return {
      inputs: readInputs(fields.value('input')),
      dimensions: fields.optionalNumber('dimensions'),
      warnings: warnings.list,
    }
  })
}

function readInputs(input: unknown): EmbeddingsRequest['inputs'] {
  if (typeof input === 'string') return [input]
  const list = listOf(input)
  if (isTokens(list)) return [list]
  if (list.length > inputsMax) {
    refuseAt('/input', `\`input\` has ${list.length} entries; at most ${inputsMax} fit into one request.`)
  }
  return list.map((each, i) => {
    if (typeof each === 'string' && each !== '') return each
    return Array.isArray(each) && isTokens(each)
      ? each
      : refuseAt(`/input/${i}`, `\`input[${i}]\` must be a text, or a list of tokens; neither may be empty.`)
  })
}

function isTokens(list: readonly unknown[]): list is readonly number[] {
  return list.length > 0 && list.every((each) => typeof each === 'number')
}

function readUsage(value: unknown): Usage | undefined {
  const { prompt_tokens, total_tokens } = recordOf(value)
  return inputUsage(tokenCount(prompt_tokens) ?? tokenCount(total_tokens))
}

function renderUsage(usage: Usage, cost: string): string {
  const tokens = String(totalInputTokens(usage))
  return jsonObject({ prompt_tokens: tokens, total_tokens: tokens, cost })
}

const relayAsIs = createReplyRelay({
  content: 'data',
  readUsage,
  renderUsage,
  outputBytes: () => 0,
  readErrorObject,
  isEmptyReply: ({ data }) => !Array.isArray(data) || data.length === 0,
})

/** Some hosts ignore `encoding_format` and send numbers, which OpenAI's client would take for base64. */
const relayAsBase64: RelayReply = (body, context) => {
  const firstValue = /"embedding"\s*:\s*(.)/.exec(utf8Text(body, 0, Math.min(body.length, 4096)))?.[1]
  if (firstValue !== '[') return relayAsIs(body, context)
  const reply = parseRecord(utf8Text(body, 0, body.length))
  if (!reply || !Array.isArray(reply.data)) return relayAsIs(body, context)
  const data = reply.data.map((each: unknown) =>
    isRecord(each) && Array.isArray(each.embedding)
      ? { ...each, embedding: base64Vector(each.embedding as number[]) }
      : each,
  )
  return relayAsIs(new TextEncoder().encode(JSON.stringify({ ...reply, data })), context)
}

export const embeddings: Embeddings = {
  readEnvelope,
  parseRequest,
  renderRequest({ inputs, dimensions, taskType, title, warnings: parsed }, target) {
    const warnings = new WarningList()
    warnings.addAll(parsed)
    if (taskType !== undefined) warnings.add('task_type_dropped', '/taskType')
    if (title !== undefined) warnings.add('title_dropped', '/title')
    const body = jsonObject({
      model: jsonString(target.upstreamModel),
      input: JSON.stringify(inputs),
      dimensions: jsonNumber(dimensions),
      encoding_format: '"float"',
    })
    return { path, body: new TextEncoder().encode(body), warnings: warnings.list }
  },
  parseReply(body) {
    const reply = parseRecord(utf8Text(body, 0, body.length))
    if (isRecord(reply?.error)) return { fault: readErrorObject(reply.error) }
    const data = listOf(reply?.data).map(recordOf)
    const vectors = data.map(({ embedding }) => embedding)
    if (vectors.length === 0 || !vectors.every(isVector)) return { fault: replyFault('a reply without vectors') }
    return { vectors, usage: readUsage(reply?.usage) }
  },
  renderReply({ vectors, usage }: EmbeddingsReply & { readonly usage: Usage }, envelope, context: RenderContext) {
    const isBase64 = envelope.embeddings?.isBase64
    const data = vectors.map((vector, index) => {
      const embedding = isBase64 ? jsonString(base64Vector(vector)) : JSON.stringify(vector)
      return jsonObject({ object: '"embedding"', index: String(index), embedding })
    })
    return jsonObject({
      object: '"list"',
      data: jsonArray(data),
      model: jsonString(context.model),
      usage: renderUsage(usage, context.quotedUsd(usage)),
    })
  },
  editRequest(envelope, edits) {
    const body = new BodyEdits(envelope, edits)
    body.nameModel()
    if (edits.rules.endUserId === false) body.removeMembers(['user'])
    return { ...body.finish(), path }
  },
  relayReply: ({ embeddings: asked }) => (asked?.isBase64 ? relayAsBase64 : relayAsIs),
}

function isVector(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length > 0 && typeof value[0] === 'number'
}
