// Renders a Conversation as a generateContent body. A pure function of conversation and target: the same history always
// gives the same bytes. The part that grows from turn to turn comes last, so the bytes before it stay the same.

import {
  type AssistantBlock,
  type ContentBlock,
  type Conversation,
  type DocumentBlock,
  type ImageBlock,
  type MediaSource,
  type OutputFormat,
  pointerTo,
  type RawJson,
  type Tool,
  type ToolCallBlock,
  type ToolResultBlock,
  type Turn,
  turnPointer,
} from '../../canonical/conversation.ts'
import { filledArray, filledObject, jsonArray, jsonObject, jsonString, type Members } from '../../canonical/json.ts'
import type { TargetRules } from '../../canonical/target-rules.ts'
import { tierWordsOf } from '../../canonical/tiers.ts'
import { type RenderedRequest, renderedRequest, type Target } from '../../canonical/translation.ts'
import { chooseMarks, warnCacheOptions } from '../../request/cache-marks.ts'
import { refuseAt, refuseEmpty, refusing, shownWord, WarningList } from '../../request/fields.ts'
import { endingOf, knownMediaType, refuseMediaUrl } from '../../request/media.ts'
import { SchemaBudget } from '../../request/schema.ts'
import {
  acceptsSampling,
  renderOutputCap,
  renderSampling,
  type SamplingRow,
  splitStop,
  warnHints,
} from '../../request/settings.ts'
import {
  callInput,
  customNames,
  customToolSchema,
  describedGrammar,
  isForced,
  offeredTools,
  preparedTurns,
  refuseTooMany,
  refuseTwice,
  ToolNames,
  type ToolOffer,
  toolNamesIn,
  wantsSingleCall,
  warnSingleCall,
} from '../../request/tools.ts'
import { isTurnedOff, renderThinking, restoreThinking, signatureOf, thinksByLevel } from '../reasoning.ts'
import { hostTiers } from '../tiers.ts'
import { subsetSchema, toolParameters } from './schema.ts'

const toolNameMaxDefault = 128
const toolIdMaxDefault = 64
const stopMaxDefault = 5

interface Rendering {
  readonly rules: TargetRules
  readonly warnings: WarningList
  readonly names: ToolNames
  readonly schemas: SchemaBudget
}

export const renderRequest = refusing(render)

function render(conversation: Conversation, target: Target): RenderedRequest {
  const { rules } = target
  const warnings = new WarningList()
  // Ids are needed for pairing even if they are not sent.
  const toolIdMax = (takesIds(rules) ? rules.toolIdMax : undefined) ?? toolIdMaxDefault
  const turns = preparedTurns(conversation, { rules, toolIdMax, warnings }, (all) =>
    restoreThinking(all, target.issuer, warnings),
  )
  const names = new ToolNames(toolNamesIn(conversation), rules.toolNameMax ?? toolNameMaxDefault, /^[A-Za-z_][\w-]*$/)
  const rendering: Rendering = { rules, warnings, names, schemas: new SchemaBudget() }
  // The provider only caches implicitly and accepts no marks.
  chooseMarks(conversation, { isAccepted: false, canCarry: () => false, isImplicit: true }, warnings)
  warnHints(conversation, warnings)
  warnCacheOptions(conversation, warnings)
  if (conversation.endUserId) warnings.add('end_user_id_dropped', pointerTo(conversation, 'endUserId'))
  const format = renderFormat(conversation, rendering)
  const tools = renderTools(conversation, format.hiddenTool, rendering)
  const stop = splitStop(conversation.stop, rules.stopMax ?? stopMaxDefault)
  const contents = renderMessages(turns, rendering)
  if (contents.length === 0) refuseEmpty(conversation)
  const generationConfig = filledObject({
    // Thoughts count towards the cap.
    maxOutputTokens: renderOutputCap(conversation, target, warnings),
    ...samplingMembers(conversation, rendering),
    stopSequences: filledArray(stop.sent.map(jsonString)),
    ...format.members,
    thinkingConfig: renderThinking(conversation, rendering),
  })
  const body = jsonObject({
    systemInstruction: renderSystem(conversation),
    ...tools.members,
    generationConfig,
    serviceTier: renderServiceTier(conversation, rendering),
    contents: jsonArray(contents),
  })
  const { customTools, singleToolCall } = tools
  const jsonTool = format.hiddenTool?.name
  const mapping = { toolNames: names.callerNames, customTools, jsonTool, stop: stop.matched, singleToolCall }
  return renderedRequest(body, warnings.list, mapping)
}

function renderSystem({ system }: Conversation): RawJson | undefined {
  const texts = system.map(({ text }) => text).filter((text) => text !== '')
  return texts.length === 0 ? undefined : jsonObject({ parts: jsonArray(texts.map((text) => textPart(text))) })
}

// Renders sampling, service tier and output format as far as the target supports them.
// Omitting a default value needs no warning; any other omission does.

/** The provider uses 32-bit integers. */
const seedMax = 2 ** 31 - 1

const samplingRows: readonly SamplingRow[] = [
  { setting: 'logitBias' },
  { setting: 'temperature', member: 'temperature' },
  { setting: 'topP', member: 'topP' },
  { setting: 'topK', member: 'topK', when: ({ topK }) => topK !== false },
  { setting: 'presencePenalty', member: 'presencePenalty', when: ({ penalties }) => penalties !== false },
  { setting: 'frequencyPenalty', member: 'frequencyPenalty', when: ({ penalties }) => penalties !== false },
  { setting: 'seed', member: 'seed', always: true, when: ({ seed }, value) => seed !== false && isSeed(Number(value)) },
]

function isSeed(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) <= seedMax
}

function samplingMembers({ sampling, reasoning }: Conversation, { rules, warnings }: Rendering): Members {
  const thinks = reasoning ? !isTurnedOff(reasoning) : rules.thinksByDefault !== false
  const isAccepted = acceptsSampling(rules, thinks)
  return renderSampling(sampling, samplingRows, { rules, warnings, isAccepted, temperatureMax: 2 })
}

function renderServiceTier(conversation: Conversation, { rules, warnings }: Rendering): RawJson | undefined {
  const { serviceTier } = conversation
  // Standard is the default.
  if (serviceTier === undefined || serviceTier === 'auto' || serviceTier === 'standard') return undefined
  const word = tierWordsOf(rules, hostTiers)[serviceTier]
  if (word === undefined) warnings.add('service_tier_dropped', pointerTo(conversation, 'serviceTier'))
  return jsonString(word)
}

// The output format: native where the target supports it, otherwise through a hidden function.

const json = { responseMimeType: '"application/json"' }

/** `members`: of generationConfig. `hiddenTool`: a function added by the gateway, for a JSON answer. */
function renderFormat(conversation: Conversation, rendering: Rendering) {
  const { outputFormat, tools } = conversation
  if (!outputFormat) return { members: {} }
  const { rules, warnings } = rendering
  const pointer = pointerTo(conversation, 'outputFormat')
  // Older models refuse JSON output together with functions.
  if (tools.length > 0 && !thinksByLevel(rules)) {
    return { members: {}, hiddenTool: hiddenTool(outputFormat, rendering, pointer) }
  }
  if (outputFormat.kind === 'json-object') return { members: json }
  if (outputFormat.description) warnings.add('description_dropped', pointer)
  const result = subsetSchema(outputFormat.schema, rendering.schemas)
  if (typeof result === 'string') return refuseAt(pointer, `The schema of the output format cannot be used: ${result}.`)
  if (result.loosened) warnings.add('output_schema_loosened', pointer)
  return { members: { ...json, responseJsonSchema: result.schema } }
}

type HiddenTool = ReturnType<typeof hiddenTool>

function hiddenTool(format: OutputFormat, { rules, names, warnings, schemas }: Rendering, pointer: string) {
  if (rules.forcedToolChoice === false) return refuseAt(pointer, 'This model cannot be held to a JSON form.')
  const isSchema = format.kind === 'json-schema'
  const parameters = toolParameters(isSchema ? format.schema : '{"type":"object"}', schemas)
  if (typeof parameters === 'string') {
    return refuseAt(pointer, `The output format cannot be used with this model: ${parameters}.`)
  }
  if (parameters?.loosened) warnings.add('output_schema_loosened', pointer)
  const description =
    (isSchema ? format.description : undefined) || 'Call this to answer; its arguments are the answer.'
  return { name: names.unused('json'), parameters: parameters?.schema ?? '{"type":"object"}', description }
}

// Renders tools as function declarations, and the tool choice. A custom tool becomes a function with one string
// argument, and its calls are mapped back in the reply.

/** Declarations per request (docs of 2026-11). */
const toolsMaxDefault = 512

/** Returns members of the body, and what the reply must be mapped back by. */
function renderTools(conversation: Conversation, hidden: HiddenTool | undefined, rendering: Rendering) {
  const { rules, warnings } = rendering
  const offer = offeredTools(conversation, rules.allowedTools !== false, warnings)
  const { tools } = offer
  refuseTooMany(tools.length + (hidden ? 1 : 0), rules.toolsMax ?? toolsMaxDefault)
  refuseTwice(tools)
  const declared = tools.map((tool) => renderTool(tool, rendering))
  if (hidden) declared.push(declaration(hidden.name, hidden.description, hidden.parameters))
  const mode = hidden ? hiddenMode(offer, hidden.name, rendering) : chooseMode(offer, rendering)
  const single = wantsSingleCall(conversation, offer)
  if (single) warnSingleCall(conversation, warnings)
  const declarations = jsonObject({ functionDeclarations: jsonArray(declared) })
  return {
    members: {
      tools: declared.length === 0 ? undefined : jsonArray([declarations]),
      toolConfig: mode && jsonObject({ functionCallingConfig: mode }),
    },
    customTools: customNames(tools),
    singleToolCall: single,
  }
}

function renderTool(tool: Tool, { names, warnings, schemas }: Rendering): RawJson {
  const name = names.sent(tool.name)
  const pointer = tool.pointer ?? '/tools'
  if (tool.kind === 'custom') {
    return declaration(name, describedGrammar(tool, warnings), customToolSchema)
  }
  const parameters = toolParameters(tool.schema, schemas)
  if (typeof parameters === 'string')
    refuseAt(pointer, `The tool ${shownWord(tool.name)} cannot be used: ${parameters}.`)
  if (parameters?.loosened) warnings.add('tool_schema_loosened', pointer)
  return declaration(name, tool.description, parameters?.schema)
}

/** A function without parameters has no schema. */
function declaration(name: string, description: string | undefined, parameters: RawJson | undefined): RawJson {
  return jsonObject({
    name: jsonString(name),
    description: jsonString(description || undefined),
    parametersJsonSchema: parameters,
  })
}

// The tool choice, as one of the provider's modes:
//
//   AUTO       the model decides
//   NONE       no calls
//   VALIDATED  like AUTO, with arguments that follow the schema, and only the given names
//   ANY        a call is required, of one of the given names

/** undefined = omit it. */
function chooseMode(offer: ToolOffer, rendering: Rendering): RawJson | undefined {
  const { tools, choice } = offer
  if (tools.length === 0) return undefined
  const isRelaxed = isForced(choice) && rendering.rules.forcedToolChoice === false
  if (isRelaxed) rendering.warnings.add('tool_choice_relaxed', '/tool_choice')
  const names = chosenNames(offer, rendering)
  if (isForced(choice) && !isRelaxed) return writeMode('ANY', names)
  if (choice?.kind === 'none') return writeMode('NONE', undefined)
  const restricted = choice?.kind === 'allowed' ? names : undefined
  // Arguments of a required call follow the schema anyway.
  const isStrict = !isRelaxed && heldToSchema(tools, rendering)
  if (restricted || isStrict) return writeMode('VALIDATED', restricted)
  return choice === undefined ? undefined : writeMode('AUTO', undefined)
}

/** Strictness applies to all tools or none. */
function heldToSchema(tools: readonly Tool[], { rules, warnings }: Rendering): boolean {
  const strict = tools.find((tool) => tool.kind === 'function' && tool.strict)
  if (!strict) return false
  if (rules.strictTools !== false) return true
  warnings.add('strict_dropped', `${strict.pointer ?? '/tools'}/strict`)
  return false
}

/** Sent names; undefined = any tool. */
function chosenNames({ tools, choice }: ToolOffer, { names }: Rendering): readonly string[] | undefined {
  if (choice?.kind === 'named') return [names.sent(choice.name)]
  if (choice?.kind !== 'allowed') return undefined
  return tools.flatMap(({ name }) => (choice.names.includes(name) ? [names.sent(name)] : []))
}

/** The answer must come through the hidden function; the caller's tools stay callable as requested. */
function hiddenMode(offer: ToolOffer, hidden: string, rendering: Rendering): RawJson {
  const { tools, choice } = offer
  if (tools.length === 0 || choice?.kind === 'none') return writeMode('ANY', [hidden])
  const names = chosenNames(offer, rendering)
  // The hidden function would satisfy a required call, so it is excluded.
  if (isForced(choice)) return writeMode('ANY', names ?? tools.map(({ name }) => rendering.names.sent(name)))
  return writeMode('ANY', names && [...names, hidden])
}

function writeMode(mode: 'AUTO' | 'NONE' | 'VALIDATED' | 'ANY', names: readonly string[] | undefined): RawJson {
  return jsonObject({ mode: `"${mode}"`, allowedFunctionNames: names && jsonArray(names.map(jsonString)) })
}

// Renders turns as contents: user and model alternate, and all responses to a batch of calls are in one content, in the
// order of the calls. A content depends only on its own turns and those before it, so a growing conversation keeps its
// prefix.

interface Content {
  readonly role: 'user' | 'model'
  readonly parts: RawJson[]
}

/** Call ids, unique by now, with their order and sent name. */
type Calls = Map<string, { readonly index: number; readonly name: string }>

function renderMessages(turns: readonly Turn[], rendering: Rendering): readonly RawJson[] {
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
        calls.set(block.id, { index: calls.size, name: rendering.names.sent(block.name) })
      }
      join(contents, 'model', renderAssistant(blocks, rendering, turnPointer(run[0])))
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
    turn.blocks.flatMap((block) => (block.kind === 'tool-result' ? [{ block, pointer: turnPointer(turn) }] : [])),
  )
  const orderOf = ({ block }: { block: ToolResultBlock }) => calls.get(block.callId)?.index ?? 0
  const responses = results
    .toSorted((one, other) => orderOf(one) - orderOf(other))
    .map(({ block, pointer }) => renderToolResult(block, calls.get(block.callId)?.name ?? '', rendering, pointer))
  join(
    contents,
    'user',
    responses.map(({ response }) => response),
  )
  const media = responses.flatMap((rendered) => rendered.media)
  const rest = [...media, ...run.flatMap((turn) => renderTurn(turn, rendering))]
  // Models that do not accept media inside a response count media beside it as another response.
  if (media.length > 0 && !thinksByLevel(rendering.rules)) contents.push({ role: 'user', parts: rest })
  else join(contents, 'user', rest)
}

function renderTurn(turn: Turn, rendering: Rendering): readonly RawJson[] {
  if (turn.role === 'assistant') return []
  if (turn.role === 'user') {
    return turn.blocks.flatMap((block) =>
      block.kind === 'tool-result' ? [] : renderParts(block, rendering, turnPointer(turn)),
    )
  }
  // There is only one system instruction, at the front. A later one stays in place as tagged text.
  const texts = turn.blocks.flatMap(({ text }) => (text === '' ? [] : [text]))
  if (texts.length === 0) return []
  rendering.warnings.add('system_inlined', turnPointer(turn))
  return [textPart(`<system>\n${texts.join('\n\n')}\n</system>`)]
}

// Assistant turns: text, thoughts and calls, each with the signature the provider wants back.

/** Google's placeholder for a lost signature. An unsigned call in the history is refused (docs of 2026-11). */
const lostSignature = 'skip_thought_signature_validator'

function renderAssistant(blocks: readonly AssistantBlock[], rendering: Rendering, pointer: string): RawJson[] {
  // Only the first of parallel calls is signed.
  const first = blocks.find(({ kind }) => kind === 'tool-call')
  return blocks.flatMap((block) => {
    switch (block.kind) {
      case 'tool-call': {
        const signature = signatureOf(block)
        if (signature !== undefined || block !== first || !thinksByLevel(rendering.rules)) {
          return [renderCall(block, signature, rendering, pointer)]
        }
        // The call is accepted, but the model no longer sees the reasoning behind it.
        rendering.warnings.add('thought_signature_skipped', pointer)
        return [renderCall(block, lostSignature, rendering, pointer)]
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
  pointer: string,
): RawJson {
  const args = callInput(call, pointer, warnings)
  const id = takesIds(rules) ? jsonString(call.id) : undefined
  const functionCall = jsonObject({ id, name: jsonString(names.sent(call.name)), args })
  return jsonObject({ functionCall, thoughtSignature: jsonString(signature) })
}

// Tool results as function responses. Media are inside where the target accepts them; otherwise they are returned, to
// be placed after all responses of the batch.

/**
 * `name`: the sent name of the called function. Returns media as parts for the user content, starting with the call they
 * belong to.
 */
function renderToolResult(result: ToolResultBlock, name: string, rendering: Rendering, pointer: string) {
  const { rules } = rendering
  const inside: RawJson[] = []
  const outside: RawJson[] = []
  const texts = result.content.map((block) => {
    if (block.kind === 'text') return block.text
    const text = block.kind === 'document' ? plainText(block) : undefined
    if (text !== undefined) return text
    // The provider fetches no URLs for a response.
    if (!thinksByLevel(rules) || block.source.kind !== 'data') {
      outside.push(...renderParts(block, rendering, pointer))
      return `[${block.kind}]`
    }
    inside.push(...renderParts({ kind: block.kind, source: block.source }, rendering, pointer))
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

/** Some hosts refuse ids and match by call order; their rule is a maximum length of 0. */
export function takesIds({ toolIdMax }: TargetRules): boolean {
  return toolIdMax !== 0
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

/** Empty text gives no part, because the provider refuses it. */
function renderParts(block: ContentBlock, rendering: Rendering, pointer: string): RawJson[] {
  switch (block.kind) {
    case 'text':
      return block.text === '' ? [] : [textPart(block.text)]
    case 'image':
      return renderImage(block, rendering, pointer)
    case 'document':
      return renderDocument(block, rendering, pointer)
  }
}

function textPart(text: string, more: Members = {}): RawJson {
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

function renderImage(image: ImageBlock, rendering: Rendering, pointer: string): RawJson[] {
  const mediaType = typeOf(image.source)
  if (mediaType === 'application/pdf') return renderDocument({ ...image, kind: 'document' }, rendering, pointer)
  if (rendering.rules.images === false) refuseAt(pointer, 'This model does not take images.')
  refuseMediaUrl(image.source, rendering.rules, pointer)
  if (isFilm(image.source)) refuseAt(pointer, 'This is the address of a film, not of an image.')
  if (mediaType !== undefined && !imageTypes.includes(mediaType)) {
    refuseAt(pointer, `An image of type \`${mediaType}\` is not supported; send JPEG, PNG or WebP.`)
  }
  return [mediaPart(image.source, mediaType)]
}

function renderDocument(document: DocumentBlock, { rules }: Rendering, pointer: string): RawJson[] {
  const { source } = document
  const text = plainText(document)
  if (text !== undefined || source.kind === 'text') return text ? [textPart(text)] : []
  const mediaType = typeOf(source)
  if (rules.documents === false) refuseAt(pointer, 'This model does not take documents.')
  refuseMediaUrl(source, rules, pointer)
  if (mediaType !== undefined && !documentTypes.test(mediaType)) {
    refuseAt(pointer, `A document of type \`${mediaType}\` is not supported; send PDF or plain text.`)
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
