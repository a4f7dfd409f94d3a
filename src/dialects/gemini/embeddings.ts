// Google's embedContent and batchEmbedContents. https://ai.google.dev/api/embeddings, 2026-11

import type { Failure } from '../../kernel/failure.ts'
import { tokenCount, totalInputTokens, type Usage } from '../../kernel/usage.ts'
import { utf8Text } from '../../wire/bytes.ts'
import { JsonEdits, JsonNode } from '../../wire/json.ts'
import { isPresent, readReply } from '../byte-lane/relay.ts'
import { type Embeddings, type EmbeddingsRequest, inputUsage } from '../canonical/embeddings.ts'
import { replyFault } from '../canonical/faults.ts'
import { isRecord, jsonObject, listOf, parseRecord, recordOf } from '../canonical/json.ts'
import type { SentRequest } from '../canonical/translation.ts'
import type { RelayReply } from '../reply/relay.ts'
import { envelopeOf, parseBody, type RequestFields, readFields, readRequest, refuseAt } from '../request/fields.ts'
import { readCallPath } from './envelope.ts'
import { readErrorObject } from './errors.ts'
import { inOneSpelling } from './spelling.ts'

function readEnvelope(sent: Uint8Array<ArrayBuffer>, _: Headers, url = ''): SentRequest | Failure {
  const body = inOneSpelling(sent)
  return readFields(body, (fields) => {
    const { model = '', verb } = readCallPath(url) ?? {}
    const isBatch = verb === 'batchEmbedContents'
    if (isBatch) fields.requiredList('requests', '`requests` is missing.')
    else if (!fields.ofKind('content', ['object'], 'an object')) fields.refuse('content', '`content` is missing.')
    return envelopeOf({ model, outputCap: 0, embeddings: { isBatch } })
  })
}

const supported = ['model', 'content', 'taskType', 'title', 'outputDimensionality']

function parseRequest(sent: SentRequest): EmbeddingsRequest | Failure {
  return parseBody(sent, (fields, { warnings }) => {
    const requests = sent.envelope.embeddings?.isBatch ? fields.objects('requests') : [fields]
    for (const each of requests) each.warnUnknown(supported, warnings)
    const [first] = requests
    const shared = (name: string): unknown => {
      const value = first?.value(name)
      const other = requests.find((each) => each.value(name) !== value)
      if (other) refuseAt(other.pointer(name), `All requests of a batch need the same \`${name}\` for this model.`)
      return value
    }
    const dimensions = shared('outputDimensionality')
    const taskType = shared('taskType')
    const title = shared('title')
    return {
      inputs: requests.map(textIn),
      dimensions: typeof dimensions === 'number' ? dimensions : undefined,
      ...(typeof taskType === 'string' && { taskType }),
      ...(typeof title === 'string' && { title }),
      warnings: warnings.list,
    }
  })
}

function textIn(request: RequestFields): string {
  const content = request.requiredObject('content')
  return content
    .objects('parts')
    .map(
      (part) => part.optionalText('text') ?? refuseAt(part.at, 'This model embeds text only; send parts with `text`.'),
    )
    .join('')
}

function readUsage(reply: unknown): Usage | undefined {
  return inputUsage(tokenCount(recordOf(recordOf(reply).usageMetadata).promptTokenCount))
}

function renderUsage(usage: Usage, cost: string): string {
  const tokens = String(totalInputTokens(usage))
  return jsonObject({ promptTokenCount: tokens, totalTokenCount: tokens, cost })
}

/** The provider's bytes, with the usage added or replaced. */
const relayReply: RelayReply = (body, context) => {
  const reply = readReply(body, readErrorObject)
  if (!(reply instanceof JsonNode)) return reply
  if (!isPresent(reply.get('embedding')) && !isPresent(reply.get('embeddings'))) {
    return { fault: replyFault('a reply without vectors') }
  }
  const reported = readUsage({ usageMetadata: reply.get('usageMetadata')?.value() })
  const usage = context.quoteUsage(reported, undefined, () => 0)
  const edits = new JsonEdits(body)
  edits.put(reply, 'usageMetadata', renderUsage(usage, context.quotedUsd(usage)))
  return { body: edits.apply(), usage }
}

const encoder = new TextEncoder()

export const embeddings: Embeddings = {
  readEnvelope,
  parseRequest,
  renderRequest({ inputs, dimensions, taskType, title, warnings }, { upstreamModel }) {
    return readRequest(() => {
      const requests = inputs.map((input, i) => {
        if (typeof input !== 'string') {
          return refuseAt(`/input/${i}`, 'This model takes text, not tokens. Send the text itself.')
        }
        const content = { parts: [{ text: input }] }
        return { model: `models/${upstreamModel}`, content, taskType, title, outputDimensionality: dimensions }
      })
      const body = encoder.encode(JSON.stringify({ requests }))
      return { path: `/models/${upstreamModel}:batchEmbedContents`, body, warnings }
    })
  },
  parseReply(body) {
    const reply = parseRecord(utf8Text(body, 0, body.length))
    if (isRecord(reply?.error)) return { fault: readErrorObject(reply.error) }
    const list: unknown[] = Array.isArray(reply?.embeddings) ? reply.embeddings : [reply?.embedding]
    const vectors = list.map((each) => recordOf(each).values)
    if (!vectors.every((each): each is number[] => Array.isArray(each) && each.length > 0)) {
      return { fault: replyFault('a reply without vectors') }
    }
    return { vectors, usage: readUsage(reply) }
  },
  renderReply({ vectors, usage }, { embeddings: asked }, context) {
    const all = vectors.map((values) => ({ values }))
    return jsonObject({
      ...(asked?.isBatch ? { embeddings: JSON.stringify(all) } : { embedding: JSON.stringify(all[0]) }),
      usageMetadata: renderUsage(usage, context.quotedUsd(usage)),
    })
  },
  /** Each request of a batch repeats the name of the model. */
  editRequest({ envelope, body }, { upstreamModel }) {
    const { embeddings: asked } = envelope
    const json = recordOf(parseRecord(utf8Text(body, 0, body.length)))
    const model = `models/${upstreamModel}`
    const requests = listOf(json.requests).map((each) => ({ ...recordOf(each), model }))
    const edited = asked?.isBatch ? { ...json, requests } : { ...json, model }
    const verb = asked?.isBatch ? 'batchEmbedContents' : 'embedContent'
    return { path: `/${model}:${verb}`, body: encoder.encode(JSON.stringify(edited)), warnings: [] }
  },
  relayReply: () => relayReply,
}
