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
import { parseJson } from '../dialects/canonical/json.ts'
import type { DialectId } from '../dialects/dialect.ts'
import type { SurfaceName } from '../dialects/surface.ts'
import { Failure, unreachable } from '../kernel/failure.ts'
import type { Policy } from '../kernel/policy.ts'
import { isText } from '../wire/bytes.ts'
import type { Admitted } from './stages.ts'
import { type UnseenString, unseenInBody, unseenInRecords } from './unseen-strings.ts'

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

/**
 * The content of a request. `conversation` or `inputs` is null if the body cannot be read; then all its strings are in
 * `other`.
 */
export function requestDocument({ exchange, content }: Admitted, media: Policy['images']) {
  const { body, envelope } = content.sent
  if (envelope.embeddings) {
    const parsed = exchange.surface.embeddings?.parseRequest(content.sent)
    const inputs = parsed && !(parsed instanceof Failure) ? parsed.inputs : null
    return { inputs, other: [...unseenInBody(body, { inputs }, new Set()), ...sentHeaders(exchange)] }
  }
  const parsed = content.parsed()
  const writer = new DocumentWriter(media)
  const conversation = parsed instanceof Failure ? null : writer.conversation(parsed.conversation)
  const unseen = unseenInBody(body, { conversation }, writer.mediaStrings)
  return { conversation, other: [...unseen, ...sentHeaders(exchange)] }
}

const versionForm = /^\d{4}-\d\d-\d\d$/

/** Headers of the client that a provider gets, which may have any text. */
function sentHeaders({ surface, http }: Admitted['exchange']): readonly UnseenString[] {
  const headers = Object.entries(surface.forwardedHeaders(http.headers))
  return headers.flatMap(([name, value]) => (versionForm.test(value) ? [] : [{ field: name, text: value }]))
}

/**
 * The content of an answer in the form of its surface: its blocks, and beside them the strings of its records that are in
 * none. `records`: JSON.
 */
export function answerDocument(blocks: readonly AssistantBlock[], records: readonly string[]) {
  const writer = new DocumentWriter('digest')
  const answer = { content: blocks.map((block) => writer.block(block)) }
  return { answer, other: unseenInRecords(records, { answer }) }
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
    // Decoders disagree about other characters: then it is also listed as it was written.
    if (/^[A-Za-z0-9+/_-]*={0,2}$/.test(base64)) {
      this.mediaStrings.add(base64).add(`data:${mediaType};base64,${base64}`)
    }
    const bytes = Buffer.from(base64, 'base64')
    const text = isText(bytes) ? { text: bytes.toString() } : undefined
    if (this.media === 'bytes') return { media_type: mediaType, data: base64, ...text }
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    return { media_type: mediaType, bytes: bytes.length, sha256, ...text }
  }
}

function toolDocument(tool: Tool): object {
  const { name, description } = tool
  if (tool.kind === 'custom') return { name, description, grammar: tool.grammar && parseJson(tool.grammar) }
  return { name, description, schema: tool.schema && parseJson(tool.schema) }
}
