// Reads what the gateway needs from a generateContent call. The model and the verb are in its address.

import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import { utf8Text } from '../../wire/bytes.ts'
import type { RequestHeaders } from '../../wire/http-message.ts'
import type { JsonSpan } from '../../wire/json.ts'
import { isRecord, parseRecord } from '../canonical/json.ts'
import type { SentRequest } from '../canonical/translation.ts'
import { firstMessageSpans, memberSpans, readFields } from '../request/fields.ts'
import type { ModelPath, Operation } from '../surface.ts'
import { isPassable } from './request/edit.ts'
import { inOneSpelling } from './spelling.ts'
import { askedIn } from './tiers.ts'

export function readEnvelope(sent: Uint8Array<ArrayBuffer>, _: RequestHeaders, url = ''): SentRequest | Failure {
  const body = inOneSpelling(sent)
  return readFields(body, (fields) => {
    const { model = '', verb, wantsEvents = false } = readCallPath(url) ?? {}
    fields.requiredList('contents', '`contents` is missing.')
    if (fields.value('cachedContent') !== undefined) {
      fields.refuse('cachedContent', '`cachedContent`: contents are not stored here. Send them in `contents`.')
    }
    const config = fields.optionalObject('generationConfig')
    const cap = config?.optionalNumber('maxOutputTokens')
    if (cap !== undefined && !(Number.isInteger(cap) && cap > 0)) {
      config?.refuse('maxOutputTokens', '`generationConfig.maxOutputTokens` must be a whole number of at least 1.')
    }
    if ((config?.optionalNumber('candidateCount') ?? 1) !== 1) {
      config?.refuse(
        'candidateCount',
        '`generationConfig.candidateCount` must be 1 here. Send several requests instead.',
      )
    }
    const thinking = config?.optionalObject('thinkingConfig')
    const wantsStream = verb === 'streamGenerateContent'
    const isArrayReply = wantsStream && !wantsEvents
    return {
      model,
      stream: wantsStream && wantsEvents,
      outputCap: cap,
      choices: 1,
      tier: askedIn(fields.value('serviceTier')),
      offersTools: fields.hasEntries('tools'),
      reasoning: thinking && (thinking.optionalNumber('thinkingBudget') === 0 ? 'off' : 'on'),
      wantsStreamUsage: true,
      ...(isArrayReply && { isArrayReply }),
      ...((isArrayReply || !isPassable(fields)) && { isForeign: true }),
    }
  })
}

/** The body of countTokens has the contents alone, or a whole request. */
export function readCountEnvelope(
  sent: Uint8Array<ArrayBuffer>,
  headers: RequestHeaders,
  url = '',
): SentRequest | Failure {
  const body = inOneSpelling(sent)
  const inner = parseRecord(utf8Text(body, 0, body.length))?.generateContentRequest
  if (inner === undefined) return readEnvelope(body, headers, url)
  if (!isRecord(inner)) return invalidRequest('`generateContentRequest` must be an object.', 'generateContentRequest')
  return readEnvelope(new TextEncoder().encode(JSON.stringify(inner)), headers, url)
}

// A conversation is identified by its tools, its instruction and its first content.

export function conversationSpans(sent: SentRequest): readonly JsonSpan[] {
  return [...memberSpans(sent, 'tools', 'systemInstruction'), ...firstMessageSpans(sent, 'contents')]
}

// The address of a generateContent call holds what other dialects have in the body: the model, and what is wanted.

const operations: ReadonlyMap<string, Operation> = new Map([
  ['generateContent', 'generate'],
  ['streamGenerateContent', 'generate'],
  ['countTokens', 'countTokens'],
  ['embedContent', 'embed'],
  ['batchEmbedContents', 'embed'],
])

const version = '(?:/v1)?(?:/v1(?:beta|alpha))+'
/** The list of models, or one of them; also with `/v1beta` twice. */
const modelPath = new RegExp(`^${version}/models(?:/(.*?)/?)?$`)
/**
 * A call, in a path or a whole URL. Its verb distinguishes it from the paths of other surfaces, so Google's libraries may be
 * configured to use `/v1`. The AI SDK's Google provider leaves out `models/` if the name of the model contains a slash.
 */
const callPath = new RegExp(
  `^(?:\\w+://[^/]+)?(?:${version}|/v1)/(?:models/)?([^?#]+):(${[...operations.keys()].join('|')})/?(?:[?]([^#]*))?(?:#.*)?$`,
)

/** Recognises the paths of this surface. A path with an unknown verb is that of a model with a colon in its id. */
export function matchPath(path: string): ModelPath | undefined {
  const [, encoded, verb = ''] = callPath.exec(path) ?? []
  if (encoded !== undefined) return { encodedModel: encoded, operation: operations.get(verb) }
  const model = modelPath.exec(path)
  return model ? { encodedModel: model[1] ?? '' } : undefined
}

/**
 * undefined = not the address of a call. `model`: decoded, because ids contain slashes. `verb`: a key of `operations`.
 * `wantsEvents`: `alt=sse`; without it a stream is one JSON list.
 */
export function readCallPath(url: string) {
  const [, encoded, verb, query = ''] = callPath.exec(url) ?? []
  if (encoded === undefined || verb === undefined) return undefined
  return { model: decoded(encoded), verb, wantsEvents: new URLSearchParams(query).get('alt') === 'sse' }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // Not the id of a model either; it is reported as an unknown one.
    return text
  }
}
