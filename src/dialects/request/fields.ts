// Reading a request's parsed JSON field by field, with uniform error messages. The reader refuses by throwing;
// readRequest turns that into a result, so parsers do not have to pass failures along.

import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import { utf8Text } from '../../wire/bytes.ts'
import { JsonNode } from '../../wire/json.ts'
import {
  type Conversation,
  placeOf,
  type RawJson,
  type TextBlock,
  type Turn,
  turnPlace,
  type UnsupportedField,
} from '../canonical/conversation.ts'
import { isRecord } from '../canonical/json.ts'
import type { Envelope, Warning } from '../canonical/translation.ts'

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

  numberWithin(name: string, least: number, most: number): number | undefined {
    const value = this.optionalNumber(name)
    if (value === undefined || (value >= least && value <= most)) return value
    return this.refuse(name, `\`${name}\` must be from ${least} to ${most}.`)
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
  warnUnknown(known: ReadonlySet<string>, warnings: WarningList): void {
    for (const name of this.names) {
      if (!known.has(name) && !isEmptyValue(this.value(name))) warnings.add('field_dropped', this.pointer(name))
    }
  }

  missing(name: string): never {
    return this.refuse(name, `\`${paramOf(this.pointer(name))}\` is missing.`)
  }

  refuse(name: string, message: string): never {
    return refuseAt(this.pointer(name), message)
  }
}

/** Content that is a string; an empty one says nothing. */
export function textBlocks(text: string): TextBlock[] {
  return text === '' ? [] : [{ kind: 'text', text }]
}

export function wrongType(pointer: string, expected: string, value: unknown): never {
  const got =
    value === null ? 'null' : Array.isArray(value) ? 'an array' : isRecord(value) ? 'an object' : `a ${typeof value}`
  return refuseAt(pointer, `\`${paramOf(pointer)}\` must be ${expected}, not ${got}.`)
}

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

// A conversation that ends with an assistant message asks the model to continue it, which most models refuse.

/** Anthropic's wording; official tools match it in order to recover. */
const prefillMessage =
  'This model does not support assistant message prefill. The conversation must end with a user message.'

export function refusePrefill(last: Turn | undefined): never {
  return refuseAt(turnPlace(last), prefillMessage)
}

export function refuseEmpty(conversation: Conversation): never {
  const place = placeOf(conversation, 'turns')
  return refuseAt(place, `\`${paramOf(place)}\` has nothing to answer.`)
}

// Fields that only the caller's dialect has: recorded by its parser, then refused or omitted with a warning when the
// request is rendered.

export interface OwnField extends Pick<UnsupportedField, 'reason' | 'addsInput' | 'maxSearches' | 'wantsAudio'> {
  /** Whether a value is the default, which needs no warning. */
  readonly isDefault?: (value: unknown) => boolean
}

/** Records the members that are not `known` and not switched off. Those of `own` that have a reason are refused. */
export function collectUnsupported(
  fields: RequestFields | undefined,
  known: readonly string[],
  { unsupported }: ParseContext,
  own: ReadonlyMap<string, OwnField> = new Map(),
): void {
  for (const name of fields?.names ?? []) {
    const value = fields?.value(name)
    if (!fields || known.includes(name) || value === false || isEmptyValue(value)) continue
    const { isDefault, ...field } = own.get(name) ?? {}
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

// State that the parsers of a request share: its warnings, and its texts as written.

export interface ParseContext {
  readonly warnings: WarningList
  readonly unsupported: UnsupportedField[]
  /** The value at a pointer, as written. */
  rawText(pointer: string): RawJson
}

/** Parses a whole body, which the envelope has shown to be JSON. */
export function parseBody<Value>(
  envelope: Envelope,
  parse: (body: RequestFields, context: ParseContext) => Value,
): Value | Failure {
  const { body } = envelope
  return readRequest(() =>
    parse(RequestFields.of(JSON.parse(utf8Text(body, 0, body.length)), ''), createParseContext(envelope)),
  )
}

function createParseContext({ body, members }: Envelope): ParseContext {
  // Nodes cache the positions of their children, so each container is scanned once.
  const nodes = new Map<string, JsonNode | undefined>([['', JsonNode.root(body, members)]])
  const nodeAt = (pointer: string): JsonNode | undefined => {
    if (nodes.has(pointer)) return nodes.get(pointer)
    const slash = pointer.lastIndexOf('/')
    const step = pointer.slice(slash + 1)
    const parent = nodeAt(pointer.slice(0, slash))
    const node = /^\d+$/.test(step) ? parent?.element(Number(step)) : parent?.member(step)
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

// Warnings about what a translation omits or approximates: one per code and field name, with the first place, or one
// per place for some codes. Also JSON pointers, which name such places.

/** Codes with one entry per place, because each place is a separate request, such as a cache breakpoint. */
const namedEach: ReadonlySet<string> = new Set(['cache_mark_dropped'])

export class WarningList {
  readonly #seen = new Set<string>()
  readonly #list: Warning[] = []
  /** Further places of a code come last, because the header holds only twenty warnings. */
  readonly #further: Warning[] = []

  add(code: string, field: string): void {
    const key = `${code} ${fieldName(field)}`
    const place = `${code} ${field}`
    if (!this.#seen.has(key)) this.#list.push({ code, field })
    else if (namedEach.has(code) && !this.#seen.has(place)) this.#further.push({ code, field })
    this.#seen.add(key).add(place)
  }

  addAll(warnings: readonly Warning[]): void {
    for (const { code, field } of warnings) this.add(code, field)
  }

  get list(): readonly Warning[] {
    return this.#further.length === 0 ? this.#list : [...this.#list, ...this.#further]
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
