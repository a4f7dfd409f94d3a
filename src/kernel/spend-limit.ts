// Spend limits as they are declared: how much a subject may spend, on which models, in which window of time. The subjects
// are one table; nothing else knows what kinds there are. Counting is the ledger's.

import { isTag } from './attribution.ts'
import type { Nano } from './money.ts'

export interface SpendLimit {
  readonly subject: Subject
  /** A model id, or the beginning of some and `*`; with `!` before it, all others. undefined = every model. */
  readonly models?: string | undefined
  readonly window: WindowWord
  readonly amount: Nano
  /** The model that is used once it is reached; undefined = requests are refused. */
  readonly then?: string | undefined
  /** The requests per minute that its subject may make from `slowShare` of the amount on; undefined = any number. */
  readonly slowDown?: number | undefined
  /** Of a workspace's limits: an admin of it set this one, beside those of the operator. */
  readonly setBy?: 'admin' | undefined
}

/** The share of a limit, in percent, from which on its requests are slowed down. */
export const slowShare = 80n

// ── Subjects ──

/** Whom a request, or a charge in the log, is of. */
export interface SpendFacts {
  /** `eu_…` */
  readonly endUser: string | undefined
  /** `team=web` */
  readonly tags: readonly string[]
  /** Whose key it is, `per_…`; undefined = the installation's. */
  readonly personId: string | undefined
  /** In which the key or its person is, `grp_…`. */
  readonly groupIds: readonly string[]
}

/** Of a request that nobody has made. */
export const noFacts: SpendFacts = Object.freeze({ endUser: undefined, tags: [], personId: undefined, groupIds: [] })

type SubjectForm = readonly [text: string, meaning: string]

interface SubjectKindRow {
  /** The names by which a request belongs to such a subject; [] = it belongs to none. */
  names(facts: SpendFacts): readonly string[]
  /** Whether it is known with the request, and not with its key already. */
  readonly isOfRequest: boolean
  /** What a name must look like in a limit of one of them; undefined = a limit cannot name one. */
  readonly isName: ((text: string) => boolean) | undefined
  /** Whether a name is stored as the id of a person or group of the workspace, so that a key, which is one person's, limits none. */
  readonly isById: boolean
  /** Whether a limit without a name is one of each of them. */
  readonly hasEach: boolean
  /** How errors begin; `name` as people know it. */
  title(name: string): string
  /** How limits write it, and what that means. */
  readonly forms: readonly SubjectForm[]
  /** How a question about one of them writes it; undefined = there is only one. */
  readonly one: string | undefined
}

const everything: readonly string[] = ['']

/** An id, or as people write it before it is stored: an address, a name. */
function isLabel(text: string): boolean {
  return text !== '' && text.length <= 200
}

/** Every kind of subject. A limit counts the requests of the key, project or workspace that sets it, as far as they are its subject's. */
export const subjectKinds = {
  /** All requests of the key, project or workspace. */
  all: {
    names: () => everything,
    isOfRequest: false,
    isName: undefined,
    isById: false,
    hasEach: true,
    title: () => '',
    forms: [['all', 'all requests']],
    one: undefined,
  },
  user: {
    names: ({ endUser }) => (endUser === undefined ? [] : [endUser]),
    isOfRequest: true,
    isName: undefined,
    isById: false,
    hasEach: true,
    title: (name) => `End user ${name}`,
    forms: [['user', 'each end user']],
    one: 'user:ID',
  },
  tag: {
    names: ({ tags }) => tags,
    isOfRequest: true,
    isName: isTag,
    isById: false,
    hasEach: false,
    title: (name) => `The tag ${name}`,
    forms: [['tag:team=web', 'requests with this tag']],
    one: 'tag:team=web',
  },
  /** All keys and sign-ins of one person. */
  person: {
    names: ({ personId }) => (personId === undefined ? [] : [personId]),
    isOfRequest: false,
    isName: isLabel,
    isById: true,
    hasEach: true,
    title: (name) => `Person ${name}`,
    forms: [
      ['person', 'each person by their keys and sign-ins'],
      ['person:ADDRESS', 'one of them'],
    ],
    one: 'person:ADDRESS',
  },
  /** A named set of people and keys. */
  group: {
    names: ({ groupIds }) => groupIds,
    isOfRequest: false,
    isName: isLabel,
    isById: true,
    hasEach: false,
    title: (name) => `Group "${name}"`,
    forms: [['group:NAME', 'people and keys together']],
    one: 'group:NAME',
  },
} as const satisfies Readonly<Record<string, SubjectKindRow>>

export type SubjectKind = keyof typeof subjectKinds

export const subjectForms = Object.values<SubjectKindRow>(subjectKinds).flatMap(({ forms }) => forms)

/** How questions name one subject. */
export const namedSubjectForms = Object.values<SubjectKindRow>(subjectKinds).flatMap(({ one }) => one ?? [])

/** Kinds whose names are ids in what is stored. */
export type KindById = {
  [Kind in SubjectKind]: (typeof subjectKinds)[Kind]['isById'] extends true ? Kind : never
}[SubjectKind]

export function isById(kind: SubjectKind): kind is KindById {
  return subjectKinds[kind].isById
}

/** Without a name: each of them separately. */
export interface Subject {
  readonly kind: SubjectKind
  readonly name?: string | undefined
}

export interface NamedSubject extends Subject {
  readonly name: string
}

export const wholeSubject: Subject = Object.freeze({ kind: 'all' })

/** `all`, `user`, `tag:team=web`, `group:design`; undefined for text that is none. */
export function parseSubject(text: string): Subject | undefined {
  const [, kind = '', name] = /^([a-z]+)(?::(.*))?$/s.exec(text) ?? []
  if (!Object.hasOwn(subjectKinds, kind)) return undefined
  const row: SubjectKindRow = subjectKinds[kind as SubjectKind]
  const isRight = name === undefined ? row.hasEach : row.isName?.(name) === true
  if (!isRight) return undefined
  return name === undefined ? { kind: kind as SubjectKind } : { kind: kind as SubjectKind, name }
}

/** One person, group, end user or tag; undefined for text that names none. Limits cannot name all of them. */
export function parseNamedSubject(text: string): NamedSubject | undefined {
  const [, kind = '', name] = /^([a-z]+):(.+)$/s.exec(text) ?? []
  if (name === undefined || !Object.hasOwn(subjectKinds, kind)) return undefined
  const { one, isName }: SubjectKindRow = subjectKinds[kind as SubjectKind]
  return one !== undefined && isName?.(name) !== false ? { kind: kind as SubjectKind, name } : undefined
}

export function subjectText({ kind, name }: Subject): string {
  return name === undefined ? kind : `${kind}:${name}`
}

/** What one counter counts: the charges of its owner's requests that are of the subject and by the models. */
export interface SpendScope {
  /** The key, project or workspace that sets the limit. */
  readonly owner: string
  readonly kind: SubjectKind
  readonly name: string
  readonly models?: string | undefined
}

/** `ws_…`, `prj_…/user:eu_…`, `ws_…/tag:team=web?acme/*`. Has no space and no comma. */
export function scopeText({ owner, kind, name, models }: SpendScope): string {
  const subject = kind === 'all' ? '' : `/${kind}:${name}`
  return models === undefined ? `${owner}${subject}` : `${owner}${subject}?${models}`
}

export function parseScope(text: string): SpendScope {
  const [, owner = text, kind = 'all', name = '', models] =
    /^([^/?]+)(?:\/([a-z]+):([^?]*))?(?:\?(.*))?$/.exec(text) ?? []
  return { owner, kind: kind as SubjectKind, name, models }
}

/** How errors call the subject of a scope; empty = its owner itself. `label`: its name as people know it. */
export function scopeTitle({ kind, name, models }: SpendScope, label = name): string {
  const title = (subjectKinds[kind] as SubjectKindRow).title(label)
  return models === undefined || title === '' ? title : `${title} with ${models}`
}

/** The scopes of the owner in which a request of one of these models counts for the limit. */
export function scopesOf(
  owner: string,
  { subject: { kind, name }, models }: Pick<SpendLimit, 'subject' | 'models'>,
  facts: SpendFacts,
): readonly string[] {
  const names: readonly string[] = subjectKinds[kind].names(facts)
  if (name !== undefined) return names.includes(name) ? [scopeText({ owner, kind, name, models })] : []
  return names.map((each) => scopeText({ owner, kind, name: each, models }))
}

/** As allowlists match it, an id or the beginning of some; or all others. */
export function matchesModel(pattern: string, id: string): boolean {
  if (pattern.startsWith('!')) return !matchesModel(pattern.slice(1), id)
  return pattern.endsWith('*') ? id.startsWith(pattern.slice(0, -1)) : id === pattern
}

// ── Windows ──

export const periods = ['day', 'week', 'month'] as const
export type Period = (typeof periods)[number]

/** `5h`, `7d`: the last hours or days before now. */
export type RollingWord = `${number}h` | `${number}d`

export type WindowWord = Period | RollingWord

const rollingMinutesMin = 60
const rollingMinutesMax = 31 * 24 * 60

export const windowWords = '"day", "week", "month", or whole hours or days from "1h" to "31d"'

export function parseWindow(text: string): WindowWord | undefined {
  const period = periods.find((each) => each === text)
  if (period) return period
  const minutes = rollingMinutes(text)
  const isRight = minutes !== undefined && minutes >= rollingMinutesMin && minutes <= rollingMinutesMax
  return isRight ? (text as RollingWord) : undefined
}

const minutesByWord = new Map<string, number>()

/** How long a rolling window is; undefined for every other text. */
export function rollingMinutes(text: string): number | undefined {
  // Windows of the calendar begin with a letter.
  if (!(text.charCodeAt(0) <= 57)) return undefined
  const known = minutesByWord.get(text)
  if (known !== undefined) return known
  const [, count, unit] = /^([1-9][0-9]{0,2})([hd])$/.exec(text) ?? []
  if (count === undefined) return undefined
  const minutes = Number(count) * (unit === 'h' ? 60 : 24 * 60)
  minutesByWord.set(text, minutes)
  return minutes
}

export function isRolling(text: WindowWord | string): text is RollingWord {
  return rollingMinutes(text) !== undefined
}

export function minuteAt(epochMs: number): number {
  return Math.floor(epochMs / 60_000)
}

/** Longer than clocks are set back by: charges that left a window count again then. */
const keptMinutes = 24 * 60

/** The minute from which a charge of a minute is not needed any more. */
export function keptUntil(word: string, minute: number): number {
  return minute + (rollingMinutes(word) ?? 0) + keptMinutes + 1
}

/** A window of one charge in a rolling window: `5h#29384756`. */
export function minuteWindow(word: string, minute: number): string {
  return `${word}#${minute}`
}

/** undefined for windows of the calendar. */
export function splitMinute(window: string): { readonly word: string; readonly minute: number } | undefined {
  const [, word, minute] = /^([0-9]+[hd])#([0-9]+)$/.exec(window) ?? []
  return word === undefined ? undefined : { word, minute: Number(minute) }
}
