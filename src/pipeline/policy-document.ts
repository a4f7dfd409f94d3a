// What a policy is sent: requests and answers in one form, whichever surface they use. Text is sent as it was written.
// Strings of a body that the form has no place for are listed beside it, so that nothing is sent to a provider unseen.
// docs/operate/policies.md documents it.

import { createHash } from 'node:crypto'
import type {
  AssistantBlock,
  Conversation,
  DocumentBlock,
  ImageBlock,
  MediaSource,
  Tool,
  UserBlock,
} from '../dialects/canonical/conversation.ts'
import { isRecord, parseJson } from '../dialects/canonical/json.ts'
import type { DialectId } from '../dialects/dialect.ts'
import { pointerStep } from '../dialects/request/fields.ts'
import type { SurfaceName } from '../dialects/surface.ts'
import { Failure, unreachable } from '../kernel/failure.ts'
import type { Policy } from '../kernel/policy.ts'
import { utf8Text } from '../wire/bytes.ts'
import type { Admitted } from './stages.ts'

/** As policies know the surfaces. */
export const surfaceOf: Readonly<Record<DialectId, SurfaceName>> = {
  'openai-chat': 'chat',
  'anthropic-messages': 'messages',
  'openai-responses': 'responses',
  gemini: 'gemini',
}

/** Who asks what of which model. */
export function factsOf({ exchange, caller, envelope, model }: Admitted) {
  return {
    workspace: caller.workspaceId,
    project: caller.projectId,
    key: caller.keyId,
    end_user: exchange.record.endUser ?? null,
    surface: surfaceOf[exchange.surface.id],
    model: model.id,
    stream: envelope.stream,
  }
}

/** The content of a request. `conversation` or `inputs` is null if the body cannot be read; then all its strings are in `other`. */
export function requestDocument({ exchange, content }: Admitted, media: Policy['images']) {
  const { body, envelope } = content.sent
  const sentBody: unknown = JSON.parse(utf8Text(body, 0, body.length))
  if (envelope.embeddings) {
    const parsed = exchange.surface.embeddings?.parseRequest(content.sent)
    const inputs = parsed && !(parsed instanceof Failure) ? parsed.inputs : null
    return { inputs, other: unseenStrings(sentBody, inputs, new Set()) }
  }
  const parsed = content.parsed()
  const writer = new DocumentWriter(media)
  const conversation = parsed instanceof Failure ? null : writer.conversation(parsed.conversation)
  return { conversation, other: unseenStrings(sentBody, conversation, writer.mediaStrings) }
}

/**
 * The content of an answer in the form of its surface: its blocks, and beside them the strings of its records that are in
 * none. Strings of one place, such as the deltas of a transcript, are joined.
 */
export function answerDocument(blocks: readonly AssistantBlock[], records: readonly unknown[]) {
  const writer = new DocumentWriter('digest')
  const answer = { content: blocks.map((block) => writer.block(block)) }
  let seen = ''
  collectStrings(answer, '', (text) => {
    seen += `${text}\n`
  })
  const unseen = new Map<string, string>()
  // Deltas come in the order of the text, so each is looked for behind the last.
  let from = 0
  for (const record of records) {
    collectStrings(record, '', (text, field, name) => {
      if (text === '' || formatWords.has(name)) return
      const after = seen.indexOf(text, from)
      if (after !== -1) from = after
      else if (!seen.includes(text)) unseen.set(field, (unseen.get(field) ?? '') + text)
    })
  }
  return { answer, other: [...unseen].map(([field, text]): UnseenString => ({ field, text })) }
}

/** Writes blocks for one policy. */
export class DocumentWriter {
  /** Media that are in the document, as callers write them. */
  readonly mediaStrings = new Set<string>()

  constructor(private readonly media: Policy['images']) {}

  conversation({ system, turns, tools, outputFormat, stop, endUserId }: Conversation) {
    return {
      system: system.map((block) => this.block(block)),
      turns: turns.map(({ role, blocks }) => ({ role, content: blocks.map((block) => this.block(block)) })),
      tools: tools.map(toolDocument),
      ...(outputFormat?.kind === 'json-schema' && { output_schema: parseJson(outputFormat.schema) }),
      ...(stop.length > 0 && { stop }),
      ...(endUserId !== undefined && { user: endUserId }),
    }
  }

  block(block: UserBlock | AssistantBlock): object {
    switch (block.kind) {
      case 'text':
        return { type: 'text', text: block.text }
      case 'image':
      case 'document':
        return this.#mediaBlock(block)
      case 'tool-call':
        return { type: 'tool_call', id: block.id, name: block.name, arguments: block.arguments }
      case 'tool-result': {
        const content: object[] = block.content.map((each) => this.block(each))
        return { type: 'tool_result', call_id: block.callId, is_error: block.isError, content }
      }
      case 'thinking':
        return { type: 'thinking', text: block.text, signature: block.signature }
      case 'sealed-thinking':
        return { type: 'sealed_thinking', data: block.data }
      case 'refusal':
        return { type: 'refusal', text: block.text }
      default:
        return unreachable(block)
    }
  }

  #mediaBlock(block: ImageBlock | DocumentBlock): object {
    if (block.kind === 'image') return { type: 'image', ...this.#source(block.source) }
    const { title, context, source } = block
    return {
      type: 'document',
      title,
      context,
      ...(source.kind === 'text' ? { text: source.text } : this.#source(source)),
    }
  }

  #source(source: MediaSource): object {
    if (source.kind === 'url') return { url: source.url }
    const { mediaType, base64 } = source
    this.mediaStrings.add(base64).add(`data:${mediaType};base64,${base64}`)
    if (this.media === 'bytes') return { media_type: mediaType, data: base64 }
    const bytes = Buffer.from(base64, 'base64')
    return { media_type: mediaType, bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
  }
}

function toolDocument(tool: Tool): object {
  const { name, description } = tool
  if (tool.kind === 'custom') return { name, description, grammar: tool.grammar && parseJson(tool.grammar) }
  return { name, description, schema: tool.schema && parseJson(tool.schema) }
}

/** Members whose values are words of the format, which providers check, or the model. */
const formatWords: ReadonlySet<string> = new Set(['type', 'role', 'model'])

interface UnseenString {
  /** JSON pointer into the body. */
  readonly field: string
  readonly text: string
}

/** The strings of a body that are not in its document. */
function unseenStrings(body: unknown, document: unknown, media: ReadonlySet<string>): readonly UnseenString[] {
  const seen = new Set<string>(media)
  collectStrings(document, '', (text, _, name) => {
    seen.add(text)
    // Some dialects write arguments as an object, others as its text.
    if (name === 'arguments') collectStrings(parseJson(text), '', (inner) => void seen.add(inner))
  })
  const unseen: UnseenString[] = []
  collectStrings(body, '', (text, field, name) => {
    if (text === '' || seen.has(text) || formatWords.has(name)) return
    unseen.push({ field, text })
  })
  return unseen
}

type TakeString = (text: string, field: string, name: string) => void

/** Visits all strings of a value. Bodies are not deep: the reader of envelopes refuses those that are. */
function collectStrings(value: unknown, field: string, take: TakeString, name = ''): void {
  if (typeof value === 'string') return take(value, field, name)
  if (Array.isArray(value)) {
    for (const [at, each] of value.entries()) collectStrings(each, `${field}/${at}`, take, name)
  } else if (isRecord(value)) {
    for (const [key, each] of Object.entries(value)) collectStrings(each, field + pointerStep(key), take, key)
  }
}
