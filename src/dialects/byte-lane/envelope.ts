// Reads the few body fields that the gateway itself relies on, and finds the parts that identify a conversation.

import { type Failure, invalidRequest } from '../../kernel/failure.ts'
import { openBracket } from '../../wire/bytes.ts'
import type { JsonSpan } from '../../wire/json.ts'
import {
  JsonFault,
  type JsonKind,
  type JsonMember,
  type JsonMembers,
  memberKind,
  memberText,
  memberValue,
  readJsonElementsUntil,
  readJsonMembers,
  readJsonValueMembers,
} from '../../wire/json.ts'
import type { Envelope, ProviderPreferences } from '../canonical/translation.ts'
import { RequestFields, readRequest, wrongType } from '../request/fields.ts'

/** Members are read from the body. */
const noMembers = {}
const object = ['object'] as const
const array = ['array'] as const

/** The top-level members of one body. A member is parsed on first use; long ones are only checked by kind. */
export class EnvelopeFields extends RequestFields {
  constructor(
    readonly body: Uint8Array<ArrayBuffer>,
    readonly members: JsonMembers,
  ) {
    super(noMembers, '')
  }

  override value(name: string): unknown {
    const member = this.members.find(name)
    return member && (memberValue(this.body, member) ?? undefined)
  }

  /** Refuses repeated names: the gateway and the provider might read different ones. */
  override optionalObject(name: string): RequestFields | undefined {
    const member = this.ofKind(name, object, 'an object')
    const inner = member && readJsonValueMembers(this.body, member.valueStart, member.valueEnd)
    return inner instanceof JsonFault ? this.refuse(name, `\`${name}\`: ${inner.message}.`) : super.optionalObject(name)
  }

  /** Not empty. */
  override text(name: string): string {
    const text = super.text(name)
    return text.trim() === '' ? this.refuse(name, `\`${name}\` is empty.`) : text
  }

  /** Requires a list with at least one entry. */
  requiredList(name: string, whenMissing: string): void {
    const member = this.ofKind(name, array, 'an array') ?? this.refuse(name, whenMissing)
    if (isEmptyList(this.body, member)) this.refuse(name, `\`${name}\` is empty; at least one message is needed.`)
  }

  /** Requires a text or a list in `input`. `elsewhere`: what to say about a body with `messages` in its place. */
  requiredInput(elsewhere: string): void {
    const missing = `\`input\` is missing.${this.members.find('messages') ? ` The body has \`messages\`, which ${elsewhere}` : ''}`
    const input = this.ofKind('input', ['string', 'array'], 'a string or an array') ?? this.refuse('input', missing)
    const isList = memberKind(this.body, input) === 'array'
    const isEmpty = isList ? isEmptyList(this.body, input) : memberText(this.body, input) === ''
    if (isEmpty) this.refuse('input', '`input` is empty.')
  }

  /** Whether it is a non-empty list. Other types are not judged here. */
  hasEntries(name: string): boolean {
    const member = this.members.find(name)
    return member !== undefined && memberKind(this.body, member) === 'array' && !isEmptyList(this.body, member)
  }

  optionalInteger(name: string, least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
    const value = this.value(name)
    if (value === undefined) return undefined
    if (typeof value !== 'number') return wrongType(`/${name}`, 'a whole number', value)
    if (Number.isInteger(value) && value >= least && value <= most) return value
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`
    return this.refuse(name, `\`${name}\` must be a whole number ${range}.`)
  }

  /** undefined if the member is absent or null. */
  ofKind(name: string, kinds: readonly JsonKind[], expected: string): JsonMember | undefined {
    const member = this.members.find(name)
    const kind = member && memberKind(this.body, member)
    if (kind === undefined || kind === 'null') return undefined
    return kinds.includes(kind) ? member : wrongType(`/${name}`, expected, this.value(name))
  }
}

/** Checks the body's JSON and passes its fields to `read`, which may refuse at any point. */
export function readFields<Value>(
  body: Uint8Array<ArrayBuffer>,
  read: (fields: EnvelopeFields) => Value,
): Value | Failure {
  const members = readJsonMembers(body)
  return members instanceof JsonFault
    ? jsonFailure(members)
    : readRequest(() => read(new EnvelopeFields(body, members)))
}

/** For calls that generate nothing: their bodies say no more than the facts. */
export function envelopeOf(
  { body, members }: EnvelopeFields,
  facts: Partial<Envelope> & Pick<Envelope, 'model'>,
): Envelope {
  const usual = { stream: false, outputCap: undefined, choices: 1, offersTools: false, reasoning: undefined }
  return { body, members, ...usual, wantsStreamUsage: true, ...facts }
}

// Which models and providers to use, as OpenRouter's callers say it, on every surface. The gateway acts on these members
// itself, so they are not passed on.

export const routingMembers = ['models', 'provider', 'route'] as const

const fallbacksMax = 10
const namesMax = 50

/** `models` alone names the first one too. */
export function routingFields(fields: EnvelopeFields): Pick<Envelope, 'model' | 'fallbacks' | 'providers'> {
  if (!fields.members.find('models') && !fields.members.find('provider')) return { model: fields.text('model') }
  const listed = fields.members.find('models') ? (namesIn(fields, 'models', fallbacksMax) ?? []) : []
  const model = listed[0] !== undefined && fields.value('model') === undefined ? listed[0] : fields.text('model')
  const fallbacks = [...new Set(listed)].filter((name) => name !== model)
  return {
    model,
    ...(fallbacks.length > 0 && { fallbacks }),
    ...(fields.members.find('provider') && { providers: providerPreferences(fields) }),
  }
}

/** Promises of another gateway that this one cannot keep. */
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

function namesIn(fields: RequestFields, name: string, most: number): readonly string[] | undefined {
  const list = fields.optionalList(name)
  if (list === undefined) return undefined
  if (list.length > most) fields.refuse(name, `\`${name}\` has ${list.length} entries; at most ${most}.`)
  return list.map((each) =>
    typeof each === 'string' && each !== '' ? each : fields.refuse(name, `\`${name}\` must be a list of names.`),
  )
}

function jsonFailure(fault: JsonFault): Failure {
  const where = fault.reason === 'not-object' ? '' : ` (byte ${fault.offset})`
  return invalidRequest(`The body is not usable JSON: ${fault.message}${where}.`, fault.name)
}

function isEmptyList(body: Uint8Array, member: JsonMember): boolean {
  for (let at = member.valueStart + 1; at < member.valueEnd - 1; at++) if ((body[at] as number) > 0x20) return false
  return true
}

// The spans of the body that are the same in every turn of a conversation. Of the messages, that is everything up to
// and including the caller's first, because the list grows at its end.

/** Empty if the body has no such member. */
export function memberSpans({ members }: Envelope, name: string): JsonSpan[] {
  const member = members.find(name)
  return member ? [{ start: member.valueStart, end: member.valueEnd }] : []
}

/** `instructing`: roles of messages that precede the caller's first one. `name`: the list of messages, or one text. */
export function firstMessageSpans(
  envelope: Envelope,
  instructing: ReadonlySet<string>,
  name: 'messages' | 'input' | 'contents' = 'messages',
): JsonSpan[] {
  const [list] = memberSpans(envelope, name)
  if (list === undefined || envelope.body[list.start] !== openBracket) return list ? [list] : []
  return readJsonElementsUntil(envelope.body, list.start, list.end, (span) => {
    const message = readJsonValueMembers(envelope.body, span.start, span.end)
    const role = message instanceof JsonFault ? undefined : message.find('role')
    return role === undefined || !instructing.has(memberText(envelope.body, role) ?? '')
  })
}
