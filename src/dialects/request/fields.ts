// Reading a request field by field, with uniform error messages: from its parsed JSON, or from the members of a body that
// is not parsed. The reader refuses by throwing; readRequest turns that into a result, so parsers do not have to pass
// failures along.

import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { utf8Text, withoutByteOrderMark } from '../../wire/bytes.ts'
import { JsonFault, type JsonKind, type JsonNode, type JsonSpan, readJson } from '../../wire/json.ts'
import {
  type Conversation,
  pointerTo,
  type RawJson,
  type TextBlock,
  type Turn,
  turnPointer,
  type UnsupportedField,
} from '../canonical/conversation.ts'
import { isRecord } from '../canonical/json.ts'
import type { Envelope, ProviderPreferences, SentRequest, Warning } from '../canonical/translation.ts'

class Refused {
  constructor(readonly failure: Failure) {}
}

/** Runs a parser that may refuse at any point. */
export function readRequest<Value>(parse: () => Value): Value | Failure {
  try {
    return parse()
  } catch (refused) {
    if (refused instanceof Refused) return refused.failure
    throw refused
  }
}

/** Wraps a function that may refuse at any point: the result returns the failure. */
export function refusing<Arguments extends unknown[], Value>(run: (...given: Arguments) => Value) {
  return (...given: Arguments): Value | Failure => readRequest(() => run(...given))
}

export function refuse(failure: Failure): never {
  throw new Refused(failure)
}

export function refuseAt(pointer: string, message: string): never {
  return refuse(invalidRequest(message, paramOf(pointer)))
}

/** One JSON object of a request. The `optional…` methods treat null like an absent member. */
export class RequestFields {
  constructor(
    private readonly object: Readonly<Record<string, unknown>>,
    /** JSON pointer of the object; '' = the body itself. */
    readonly at: string,
  ) {}

  static of(value: unknown, at: string): RequestFields {
    if (!isRecord(value)) return wrongType(at, 'an object', value)
    return new RequestFields(value, at)
  }

  pointer(name: string): string {
    return this.at + pointerStep(name)
  }

  get names(): string[] {
    return Object.keys(this.object)
  }

  value(name: string): unknown {
    return Object.hasOwn(this.object, name) ? (this.object[name] ?? undefined) : undefined
  }

  text(name: string): string {
    return this.optionalText(name) ?? this.missing(name)
  }

  /** Treats an empty string like an absent member. */
  filledText(name: string): string {
    return this.optionalText(name) || this.missing(name)
  }

  optionalText(name: string): string | undefined {
    const value = this.value(name)
    return value === undefined || typeof value === 'string' ? value : wrongType(this.pointer(name), 'a string', value)
  }

  optionalBoolean(name: string): boolean | undefined {
    const value = this.value(name)
    if (value === undefined || typeof value === 'boolean') return value
    return wrongType(this.pointer(name), 'true or false', value)
  }

  optionalNumber(name: string): number | undefined {
    const value = this.value(name)
    if (value === undefined || (typeof value === 'number' && Number.isFinite(value))) return value
    return wrongType(this.pointer(name), 'a number', value)
  }

  numberWithin(name: string, min: number, max: number): number | undefined {
    const value = this.optionalNumber(name)
    if (value === undefined || (value >= min && value <= max)) return value
    return this.refuse(name, `\`${name}\` must be from ${min} to ${max}.`)
  }

  optionalWord<Word extends string>(name: string, words: readonly Word[]): Word | undefined {
    const value = this.optionalText(name)
    const word = words.find((known) => known === value)
    if (value === undefined || word !== undefined) return word
    return this.refuse(name, `\`${paramOf(this.pointer(name))}\` must be one of ${words.join(', ')}.`)
  }

  optionalObject(name: string): RequestFields | undefined {
    const value = this.value(name)
    return value === undefined ? undefined : RequestFields.of(value, this.pointer(name))
  }

  requiredObject(name: string): RequestFields {
    return this.optionalObject(name) ?? this.missing(name)
  }

  optionalList(name: string): readonly unknown[] | undefined {
    const value = this.value(name)
    return value === undefined || Array.isArray(value) ? value : wrongType(this.pointer(name), 'an array', value)
  }

  /** The elements of a list, each an object. */
  objects(name: string): RequestFields[] {
    return (this.optionalList(name) ?? []).map((value, i) => RequestFields.of(value, `${this.pointer(name)}/${i}`))
  }

  /** The elements of a list, each a string. */
  texts(name: string): string[] {
    return (this.optionalList(name) ?? []).map((text, i) =>
      typeof text === 'string' ? text : wrongType(`${this.pointer(name)}/${i}`, 'a string', text),
    )
  }

  /** Content in the form that several dialects share: a string, or a list of parts. */
  blocks<Block>(name: string, parse: (part: RequestFields) => Block | readonly Block[]): (Block | TextBlock)[] {
    const content = this.textOrObjects(name)
    return typeof content === 'string' ? textBlocks(content) : content.flatMap(parse)
  }

  /** A string, a list of objects, or nothing, which becomes ''. */
  textOrObjects(name: string): string | RequestFields[] {
    const value = this.value(name)
    if (value === undefined || typeof value === 'string') return value ?? ''
    return Array.isArray(value) ? this.objects(name) : wrongType(this.pointer(name), 'a string or an array', value)
  }

  /** Warns about unknown members, which are omitted. null and empty lists carry no information and need no warning. */
  warnUnknown(known: readonly string[], warnings: WarningList): void {
    for (const name of this.names) {
      if (!known.includes(name) && !isEmptyValue(this.value(name))) warnings.add('field_dropped', this.pointer(name))
    }
  }

  missing(name: string): never {
    return this.refuse(name, `\`${paramOf(this.pointer(name))}\` is missing.`)
  }

  refuse(name: string, message: string): never {
    return refuseAt(this.pointer(name), message)
  }
}

/** Content that is a string. An empty string becomes no block. */
export function textBlocks(text: string): TextBlock[] {
  return text === '' ? [] : [{ kind: 'text', text }]
}

export function wrongType(pointer: string, expected: string, value: unknown): never {
  const got =
    value === null ? 'null' : Array.isArray(value) ? 'an array' : isRecord(value) ? 'an object' : `a ${typeof value}`
  return refuseAt(pointer, `\`${paramOf(pointer)}\` must be ${expected}, not ${got}.`)
}

// ── A body that is not parsed ──

/** Members are read from the body. */
const noMembers = {}
const object = ['object'] as const
const array = ['array'] as const

/** The top-level members of one body. A member is parsed on first use; long ones are only checked by kind. */
export class EnvelopeFields extends RequestFields {
  constructor(readonly members: JsonNode) {
    super(noMembers, '')
  }

  override value(name: string): unknown {
    return this.members.get(name)?.value() ?? undefined
  }

  /** Refuses repeated names: the gateway and the provider might read different ones. */
  override optionalObject(name: string): RequestFields | undefined {
    const fault = this.ofKind(name, object, 'an object')?.fault
    return fault ? this.refuse(name, `\`${name}\`: ${fault.message}.`) : super.optionalObject(name)
  }

  /** Not empty. */
  override text(name: string): string {
    const text = super.text(name)
    return text.trim() === '' ? this.refuse(name, `\`${name}\` is empty.`) : text
  }

  /** Requires a list with at least one entry. */
  requiredList(name: string, whenMissing: string): void {
    const list = this.ofKind(name, array, 'an array') ?? this.refuse(name, whenMissing)
    if (list.isEmpty) this.refuse(name, `\`${name}\` is empty; at least one message is needed.`)
  }

  /** Requires a text or a list in `input`. `elsewhere`: what to say about a body with `messages` in its place. */
  requiredInput(elsewhere: string): void {
    const missing = `\`input\` is missing.${this.members.get('messages') ? ` The body has \`messages\`, which ${elsewhere}` : ''}`
    const input = this.ofKind('input', ['string', 'array'], 'a string or an array') ?? this.refuse('input', missing)
    if (input.kind === 'array' ? input.isEmpty : input.string === '') this.refuse('input', '`input` is empty.')
  }

  /** Whether it is a non-empty list. Other types are not judged here. */
  hasEntries(name: string): boolean {
    const member = this.members.get(name)
    return member?.kind === 'array' && !member.isEmpty
  }

  optionalInteger(name: string, min: number, max = Number.MAX_SAFE_INTEGER): number | undefined {
    const value = this.value(name)
    if (value === undefined) return undefined
    if (typeof value !== 'number') return wrongType(`/${name}`, 'a whole number', value)
    if (Number.isInteger(value) && value >= min && value <= max) return value
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
    return this.refuse(name, `\`${name}\` must be a whole number ${range}.`)
  }

  /** undefined if the member is absent or null. */
  ofKind(name: string, kinds: readonly JsonKind[], expected: string): JsonNode | undefined {
    const member = this.members.get(name)
    if (!member || member.kind === 'null') return undefined
    return kinds.includes(member.kind) ? member : wrongType(`/${name}`, expected, member.value())
  }
}

/** Checks the body's JSON and passes its fields to `read`, which may refuse at any point. */
export function readFields(
  sent: Uint8Array<ArrayBuffer>,
  read: (fields: EnvelopeFields) => Envelope,
): SentRequest | Failure {
  const body = withoutByteOrderMark(sent)
  const members = readMembers(body)
  if (members instanceof Failure) return members
  return readRequest(() => ({ envelope: read(new EnvelopeFields(members)), body, members }))
}

/** The members of a body, which has to be a JSON object. */
export function readMembers(body: Uint8Array): JsonNode | Failure {
  const members = readJson(body)
  if (!(members instanceof JsonFault)) return members
  const where = members.reason === 'not-object' ? '' : ` (byte ${members.offset})`
  return invalidRequest(`The body is not usable JSON: ${members.message}${where}.`, members.name)
}

/** For calls that generate nothing, with the defaults of all other facts. */
export function envelopeOf(facts: Partial<Envelope> & Pick<Envelope, 'model'>): Envelope {
  const usual = { stream: false, outputCap: undefined, choices: 1, offersTools: false, reasoning: undefined }
  return { ...usual, wantsStreamUsage: true, ...facts }
}

// ── Which models and providers to use ──

// OpenRouter's members, on every surface. The gateway acts on them itself and does not pass them on.

export const routingMembers: readonly string[] = ['models', 'provider', 'route']

const fallbacksMax = 10
const namesMax = 50

/** Without `model`, the first of `models` is used. */
export function routingFields(fields: EnvelopeFields): Pick<Envelope, 'model' | 'fallbacks' | 'providers'> {
  if (!fields.members.get('models') && !fields.members.get('provider')) return { model: fields.text('model') }
  const listed = fields.members.get('models') ? namesIn(fields, 'models', fallbacksMax) : undefined
  const [first] = listed ?? []
  const model = first !== undefined && fields.value('model') === undefined ? first : fields.text('model')
  return {
    model,
    ...(listed && { fallbacks: [...new Set(listed)].filter((name) => name !== model) }),
    ...(fields.members.get('provider') && { providers: providerPreferences(fields) }),
  }
}

/** Guarantees of OpenRouter that this gateway cannot give. */
const promises: Readonly<Record<string, (value: unknown) => boolean>> = {
  data_collection: (value) => value === 'deny',
  zdr: (value) => value === true,
  max_price: (value) => value !== undefined,
}
const preferenceMembers: ReadonlySet<string> = new Set(['order', 'only', 'ignore', 'sort', 'allow_fallbacks'])

function providerPreferences(fields: EnvelopeFields): ProviderPreferences | undefined {
  const preferences = fields.optionalObject('provider')
  if (!preferences) return undefined
  const lower = (name: string) => namesIn(preferences, name, namesMax)?.map((each) => each.toLowerCase())
  for (const [name, isPromise] of Object.entries(promises)) {
    if (isPromise(preferences.value(name)))
      preferences.refuse(name, `\`provider.${name}\` is not available: this gateway cannot guarantee it.`)
  }
  return {
    order: lower('order'),
    only: lower('only'),
    ignore: lower('ignore'),
    sort: preferences.optionalWord('sort', ['price', 'throughput', 'latency']),
    isClosed: preferences.optionalBoolean('allow_fallbacks') === false,
    dropped: preferences.names.filter((name) => !preferenceMembers.has(name) && !Object.hasOwn(promises, name)),
  }
}

function namesIn(fields: RequestFields, name: string, max: number): readonly string[] | undefined {
  const list = fields.optionalList(name)
  if (list === undefined) return undefined
  if (list.length > max) fields.refuse(name, `\`${name}\` has ${list.length} entries; at most ${max}.`)
  return list.map((each) =>
    typeof each === 'string' && each !== '' ? each : fields.refuse(name, `\`${name}\` must be a list of names.`),
  )
}

// ── What identifies a conversation ──

// The spans of the body that are the same in every turn. The list of messages grows at its end, so only the messages up to
// and including the caller's first count.

/** The values of these members; a member that the body does not have is left out. */
export function memberSpans({ members }: SentRequest, ...names: readonly string[]): JsonSpan[] {
  return names.flatMap((name) => members.get(name) ?? [])
}

const noRoles: ReadonlySet<string> = new Set()
export const openaiInstructing: ReadonlySet<string> = new Set(['system', 'developer'])

/** `name`: the list of messages, or one text. `instructing`: roles of messages that precede the caller's first one. */
export function firstMessageSpans(
  { members }: SentRequest,
  name: 'messages' | 'input' | 'contents',
  instructing = noRoles,
): JsonSpan[] {
  const list = members.get(name)
  if (list?.kind !== 'array') return list ? [list] : []
  const spans: JsonSpan[] = []
  for (let message = list.at(0); message; message = list.at(spans.length)) {
    spans.push(message)
    if (!instructing.has(message.get('role')?.string ?? '')) break
  }
  return spans
}

// ── Refusals that quote a value ──

// A refusal only repeats values that look like a type, a role or a tool name. Anything else may be part of a
// conversation or a key, and would end up in logs. The refusal's param names the place anyway.

const wordForm = /^[a-zA-Z][a-zA-Z0-9_-]{0,39}$/
/** The id formats of providers and clients. */
const callIdForm = /^(?:call|toolu|fc|chatcmpl-tool)_?[a-zA-Z0-9_-]{1,60}$/

/** The value in backticks. */
export function shownWord(value: unknown): string {
  return typeof value === 'string' && isWord(value) ? `\`${value}\`` : '`…`'
}

/** The same for a tool call id. */
export function shownCallId(id: string): string {
  return callIdForm.test(id) || isWord(id) ? `\`${id}\`` : '`…`'
}

/** Has few digits, as in `look2`, or a date, as in `web_search_20250305`. */
function isWord(text: string): boolean {
  if (!wordForm.test(text)) return false
  const digits = text.replaceAll(/[^0-9]/g, '')
  return digits.length <= 3 || (digits.length === 8 && /_[0-9]{8}$/.test(text))
}

// ── Conversations that cannot be answered ──

// A conversation that ends with an assistant message asks the model to continue it, which most models refuse.

/** Anthropic's wording; official tools match it in order to recover. */
const prefillMessage =
  'This model does not support assistant message prefill. The conversation must end with a user message.'

export function refusePrefill(last: Turn | undefined): never {
  return refuseAt(turnPointer(last), prefillMessage)
}

export function refuseEmpty(conversation: Conversation): never {
  const pointer = pointerTo(conversation, 'turns')
  return refuseAt(pointer, `\`${paramOf(pointer)}\` has nothing to answer.`)
}

// ── Fields of the caller's dialect only ──

// Recorded by its parser, then refused or omitted with a warning when the
// request is rendered.

export interface OwnField extends Pick<UnsupportedField, 'reason' | 'addsInput' | 'maxSearches' | 'wantsAudio'> {
  /** Whether a value is the default, which needs no warning. */
  readonly isDefault?: (value: unknown) => boolean
}

/** By name. Fields with a reason change the response or a guarantee, and are refused. */
export type OwnFields = Readonly<Record<string, OwnField>>

/** Records the members that are not `known` and not switched off. */
export function collectUnsupported(
  fields: RequestFields | undefined,
  known: readonly string[],
  { unsupported }: ParseContext,
  own: OwnFields = {},
): void {
  for (const name of fields?.names ?? []) {
    const value = fields?.value(name)
    if (!fields || known.includes(name) || value === false || isEmptyValue(value)) continue
    const { isDefault, ...field } = (Object.hasOwn(own, name) && own[name]) || {}
    if (isDefault?.(value)) continue
    unsupported.push({ field: fields.pointer(name), refuse: field.reason !== undefined, ...field })
  }
}

/** Refuses the first field that must not be omitted; the others become warnings. */
export function reportUnsupported(unsupported: readonly UnsupportedField[], warnings: WarningList): void {
  for (const { field, refuse, reason } of unsupported) {
    if (refuse) refuseAt(field, reason ?? `\`${paramOf(field)}\` is not available for this model.`)
    const name = fieldName(field)
    warnings.add(/^\w{1,64}$/.test(name) ? `${name}_dropped` : 'field_dropped', field)
  }
}

/** Carries no information. */
function isEmptyValue(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.length === 0)
}

// ── Parsing a whole body ──

// State that the parsers of a request share: its warnings, and its texts as written.

export interface ParseContext {
  readonly warnings: WarningList
  readonly unsupported: UnsupportedField[]
  /** The value at a pointer, as written. */
  rawText(pointer: string): RawJson
}

/** Parses a whole body, which the envelope has shown to be JSON. */
export function parseBody<Value>(
  sent: SentRequest,
  parse: (body: RequestFields, context: ParseContext) => Value,
): Value | Failure {
  const { body } = sent
  return readRequest(() =>
    parse(RequestFields.of(JSON.parse(utf8Text(body, 0, body.length)), ''), createParseContext(sent)),
  )
}

function createParseContext({ members }: SentRequest): ParseContext {
  // Nodes remember their children, so each container is scanned once.
  const nodes = new Map<string, JsonNode | undefined>([['', members]])
  const nodeAt = (pointer: string): JsonNode | undefined => {
    if (nodes.has(pointer)) return nodes.get(pointer)
    const slash = pointer.lastIndexOf('/')
    const step = pointer.slice(slash + 1)
    const parent = nodeAt(pointer.slice(0, slash))
    const node = /^\d+$/.test(step) ? parent?.at(Number(step)) : parent?.get(step)
    nodes.set(pointer, node)
    return node
  }
  return {
    warnings: new WarningList(),
    unsupported: [],
    rawText: (pointer) =>
      nodeAt(pointer)?.text ??
      refuseAt(pointer, `\`${paramOf(pointer)}\` cannot be read: a name around it appears twice.`),
  }
}

// ── Warnings and JSON pointers ──

// Warnings about what a translation omits or approximates: one per code and field name, with the first place, or one
// per place for some codes. Also JSON pointers, which name such places.

/** Codes with one entry per place, because each place is a separate request, such as a cache breakpoint. */
const namedEach: ReadonlySet<string> = new Set(['cache_mark_dropped'])

export class WarningList {
  // Created with the first warning: most requests have none.
  #seen: Set<string> | undefined
  readonly #list: Warning[] = []
  /** Further places of a code come last, because the header holds only twenty warnings. */
  #further: Warning[] | undefined

  add(code: string, field: string): void {
    const key = `${code} ${fieldName(field)}`
    const pointer = `${code} ${field}`
    this.#seen ??= new Set()
    if (!this.#seen.has(key)) this.#list.push({ code, field })
    else if (namedEach.has(code) && !this.#seen.has(pointer)) {
      this.#further ??= []
      this.#further.push({ code, field })
    }
    this.#seen.add(key).add(pointer)
  }

  addAll(warnings: readonly Warning[]): void {
    for (const { code, field } of warnings) this.add(code, field)
  }

  get list(): readonly Warning[] {
    return this.#further ? [...this.#list, ...this.#further] : this.#list
  }
}

/** A member name as one step of a JSON pointer. */
export function pointerStep(name: string | number): string {
  return `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
}

/** A pointer in the notation of error messages: `/messages/2/content` becomes `messages[2].content`. */
export function paramOf(pointer: string): string {
  return steps(pointer)
    .map((step, i) => (/^\d+$/.test(step) ? `[${step}]` : i === 0 ? step : `.${step}`))
    .join('')
}

/** The last name in a pointer. */
export function fieldName(pointer: string): string {
  return steps(pointer).findLast((step) => !/^\d+$/.test(step)) ?? ''
}

function steps(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
