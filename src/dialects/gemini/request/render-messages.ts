// Renders turns as contents: user and model alternate, and all responses to a batch of calls are in one content, in the
// order of the calls. A content depends only on its own turns and those before it, so a growing conversation keeps its
// prefix.

import type {
  AssistantBlock,
  DocumentBlock,
  ImageBlock,
  MediaSource,
  RawJson,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from '../../canonical/conversation.ts'
import { filledArray, jsonArray, jsonObject, jsonString, type Members } from '../../canonical/json.ts'
import { refuseAt } from '../../request/fields.ts'
import { endingOf, knownMediaType, refuseMediaUrl } from '../../request/media.ts'
import { argumentsObject } from '../../request/tools.ts'
import { signatureOf } from '../reasoning.ts'
import { type Rendering, takesIds, takesMediaInResults, thinksByLevel } from './context.ts'

interface Content {
  readonly role: 'user' | 'model'
  readonly parts: RawJson[]
}

/** Call ids, unique by now, with their order and sent name. */
type Calls = Map<string, { readonly place: number; readonly name: string }>

export function renderMessages(turns: readonly Turn[], rendering: Rendering): readonly RawJson[] {
  const contents: Content[] = []
  const calls: Calls = new Map()
  for (let at = 0, end = 0; at < turns.length; at = end) {
    const isAssistant = turns[at]?.role === 'assistant'
    const next = turns.findIndex(({ role }, i) => i > at && (role === 'assistant') !== isAssistant)
    end = next === -1 ? turns.length : next
    const run = turns.slice(at, end)
    if (isAssistant) {
      const blocks = run.flatMap((turn) => (turn.role === 'assistant' ? turn.blocks : []))
      for (const block of blocks) {
        if (block.kind !== 'tool-call') continue
        calls.set(block.id, { place: calls.size, name: rendering.names.sent(block.name) })
      }
      join(contents, 'model', renderAssistant(blocks, rendering, turnPlace(run[0])))
    } else joinOthers(contents, run, calls, rendering)
  }
  return contents.map(({ role, parts }) => jsonObject({ role: `"${role}"`, parts: jsonArray(parts) }))
}

function join(contents: Content[], role: Content['role'], parts: readonly RawJson[]): void {
  if (parts.length === 0) return
  const last = contents.at(-1)
  if (last?.role === role) for (const part of parts) last.parts.push(part)
  else contents.push({ role, parts: [...parts] })
}

/** Everything up to the next assistant turn: first all responses, then the rest, in order. */
function joinOthers(contents: Content[], run: readonly Turn[], calls: Calls, rendering: Rendering): void {
  const results = run.flatMap((turn) =>
    turn.blocks.flatMap((block) => (block.kind === 'tool-result' ? [{ block, place: turnPlace(turn) }] : [])),
  )
  const orderOf = ({ block }: { block: ToolResultBlock }) => calls.get(block.callId)?.place ?? 0
  const responses = results
    .toSorted((one, other) => orderOf(one) - orderOf(other))
    .map(({ block, place }) => renderToolResult(block, calls.get(block.callId)?.name ?? '', rendering, place))
  join(
    contents,
    'user',
    responses.map(({ response }) => response),
  )
  const media = responses.flatMap((rendered) => rendered.media)
  const rest = [...media, ...run.flatMap((turn) => renderTurn(turn, rendering))]
  // Models that do not accept media inside a response count media beside it as another response.
  if (media.length > 0 && !takesMediaInResults(rendering.rules)) contents.push({ role: 'user', parts: rest })
  else join(contents, 'user', rest)
}

function renderTurn(turn: Turn, rendering: Rendering): readonly RawJson[] {
  if (turn.role === 'assistant') return []
  if (turn.role === 'user') {
    return turn.blocks.flatMap((block) =>
      block.kind === 'tool-result' ? [] : renderParts(block, rendering, turnPlace(turn)),
    )
  }
  // There is only one system instruction, at the front. A later one stays in place as tagged text.
  const texts = turn.blocks.flatMap(({ text }) => (text === '' ? [] : [text]))
  if (texts.length === 0) return []
  rendering.warnings.add('system_inlined', turnPlace(turn))
  return [textPart(`<system>\n${texts.join('\n\n')}\n</system>`)]
}

function turnPlace(turn: Turn | undefined): string {
  return turn?.place ?? '/messages'
}

// Assistant turns: text, thoughts and calls, each with the signature the provider wants back.

/** Google's placeholder for a lost signature. An unsigned call in the history is refused (docs of 2026-11). */
const lostSignature = 'skip_thought_signature_validator'

function renderAssistant(blocks: readonly AssistantBlock[], rendering: Rendering, place: string): RawJson[] {
  // Only the first of parallel calls is signed.
  const first = blocks.find(({ kind }) => kind === 'tool-call')
  return blocks.flatMap((block) => {
    switch (block.kind) {
      case 'tool-call': {
        const signature = signatureOf(block)
        if (signature !== undefined || block !== first || !thinksByLevel(rendering.rules)) {
          return [renderCall(block, signature, rendering, place)]
        }
        // The call is accepted, but the model no longer sees the reasoning behind it.
        rendering.warnings.add('thought_signature_skipped', place)
        return [renderCall(block, lostSignature, rendering, place)]
      }
      case 'thinking':
        return [textPart(block.text, { thought: 'true', thoughtSignature: jsonString(block.signature) })]
      case 'sealed-thinking':
        return []
      default:
        if (block.text === '') return []
        return [textPart(block.text, { thoughtSignature: jsonString(signatureOf(block)) })]
    }
  })
}

function renderCall(
  call: ToolCallBlock,
  signature: string | undefined,
  { rules, names, warnings }: Rendering,
  place: string,
): RawJson {
  const args = call.custom ? jsonObject({ input: jsonString(call.arguments) }) : argumentsObject(call.arguments)
  if (!call.custom && args.startsWith('{"raw_arguments":') && args !== call.arguments.trim()) {
    warnings.add('invalid_arguments_wrapped', place)
  }
  const id = takesIds(rules) ? jsonString(call.id) : undefined
  const functionCall = jsonObject({ id, name: jsonString(names.sent(call.name)), args })
  return jsonObject({ functionCall, thoughtSignature: jsonString(signature) })
}

// Tool results as function responses. Media are inside where the target accepts them; otherwise they are returned, to
// be placed after all responses of the batch.

interface RenderedResult {
  readonly response: RawJson
  /** Parts for the user content, starting with the call they belong to. */
  readonly media: readonly RawJson[]
}

/** `name`: the sent name of the called function. */
function renderToolResult(result: ToolResultBlock, name: string, rendering: Rendering, place: string): RenderedResult {
  const { rules } = rendering
  const inside: RawJson[] = []
  const outside: RawJson[] = []
  const texts = result.content.map((block) => {
    if (block.kind === 'text') return block.text
    const text = block.kind === 'document' ? plainText(block) : undefined
    if (text !== undefined) return text
    // The provider fetches no URLs for a response.
    if (!takesMediaInResults(rules) || block.source.kind !== 'data') {
      outside.push(...renderParts(block, rendering, place))
      return `[${block.kind}]`
    }
    inside.push(...renderParts({ kind: block.kind, source: block.source }, rendering, place))
    return block.kind === 'document' ? aboutDocument(block) : ''
  })
  const response = jsonObject({
    id: takesIds(rules) ? jsonString(result.callId) : undefined,
    name: jsonString(name),
    response: saying(texts.filter(Boolean).join('\n'), result.isError),
    parts: filledArray(inside),
  })
  const label = textPart(`From the result of tool call ${result.callId} (${name}):`)
  return {
    response: jsonObject({ functionResponse: response }),
    media: outside.length === 0 ? [] : [label, ...outside],
  }
}

function saying(text: string, isError: boolean): RawJson {
  if (!isError) return jsonObject({ output: jsonString(text) })
  return jsonObject({ error: jsonString(text === '' ? '[tool error]' : text) })
}

// Content blocks as parts, in any position. Media types are detected from the bytes, and unsupported ones are refused
// before anything is sent.

/** What the provider accepts (docs of 2026-11). */
const imageTypes = ['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif']
const documentTypes = /^(application\/pdf$|audio\/|video\/)/
const textTypes = /^(text\/|application\/json$)/

/** For media by URL, which have no label. */
const typeOfEnding: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  heic: 'image/heic',
  heif: 'image/heif',
  gif: 'image/gif',
  svg: 'image/svg+xml',
  pdf: 'application/pdf',
}

/** Empty text gives no part, because the provider refuses it. `place` names the message in a refusal. */
function renderParts(block: TextBlock | ImageBlock | DocumentBlock, rendering: Rendering, place: string): RawJson[] {
  switch (block.kind) {
    case 'text':
      return block.text === '' ? [] : [textPart(block.text)]
    case 'image':
      return renderImage(block, rendering, place)
    case 'document':
      return renderDocument(block, rendering, place)
  }
}

export function textPart(text: string, more: Members = {}): RawJson {
  return jsonObject({ text: jsonString(text), ...more })
}

/** The text of a plain-text document, with its title and context; undefined for any other. */
function plainText({ source, title, context }: DocumentBlock): string | undefined {
  const text =
    source.kind === 'text'
      ? source.text
      : source.kind === 'data' && textTypes.test(typeOf(source) ?? '')
        ? Buffer.from(source.base64, 'base64').toString()
        : undefined
  return text === undefined ? undefined : [title, text, context].filter(Boolean).join('\n\n')
}

function renderImage(image: ImageBlock, rendering: Rendering, place: string): RawJson[] {
  const mediaType = typeOf(image.source)
  if (mediaType === 'application/pdf') return renderDocument({ ...image, kind: 'document' }, rendering, place)
  if (rendering.rules.images === false) refuseAt(place, 'This model does not take images.')
  refuseMediaUrl(image.source, rendering.rules, place)
  if (isFilm(image.source)) refuseAt(place, 'This is the address of a film, not of an image.')
  if (mediaType !== undefined && !imageTypes.includes(mediaType)) {
    refuseAt(place, `An image of type \`${mediaType}\` is not supported; send JPEG, PNG or WebP.`)
  }
  return [mediaPart(image.source, mediaType)]
}

function renderDocument(document: DocumentBlock, { rules }: Rendering, place: string): RawJson[] {
  const { source } = document
  const text = plainText(document)
  if (text !== undefined || source.kind === 'text') return text ? [textPart(text)] : []
  const mediaType = typeOf(source)
  if (rules.documents === false) refuseAt(place, 'This model does not take documents.')
  refuseMediaUrl(source, rules, place)
  if (mediaType !== undefined && !documentTypes.test(mediaType)) {
    refuseAt(place, `A document of type \`${mediaType}\` is not supported; send PDF or plain text.`)
  }
  // Parts have no title, so the model reads it before the document.
  const about = aboutDocument(document)
  return [...(about === '' ? [] : [textPart(about)]), mediaPart(source, mediaType)]
}

/** Title and context; '' if there are none. */
function aboutDocument({ title, context }: DocumentBlock): string {
  return [title, context].filter(Boolean).join('\n\n')
}

/** The provider plays videos from these sites: hours of input where the hold covers an image. */
const filmHosts = /^((www|m|music)\.)?(youtube(-nocookie)?\.com|youtu\.be)$/

function isFilm(source: MediaSource): boolean {
  return source.kind === 'url' && filmHosts.test(URL.parse(source.url)?.hostname ?? '')
}

/** undefined = the URL does not show the type. */
function typeOf(source: MediaSource): string | undefined {
  if (source.kind === 'url') {
    const ending = endingOf(source.url) ?? ''
    return Object.hasOwn(typeOfEnding, ending) ? typeOfEnding[ending] : undefined
  }
  return knownMediaType(source.base64, source.mediaType)
}

function mediaPart(source: MediaSource, mediaType: string | undefined): RawJson {
  const mimeType = jsonString(mediaType)
  if (source.kind === 'url') return jsonObject({ fileData: jsonObject({ mimeType, fileUri: jsonString(source.url) }) })
  return jsonObject({ inlineData: jsonObject({ mimeType, data: jsonString(source.base64) }) })
}
