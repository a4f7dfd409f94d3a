// What a client says about a request: session, agent, end user and tags. It is recorded with the request for reports and
// limits, and grants nothing.

export interface Attribution {
  readonly session: string | undefined
  readonly agent: string | undefined
  /** As it is recorded: see `hashOfEndUser`. */
  readonly endUser: string | undefined
  readonly tags: Tags
}

export interface AttributionFilters {
  readonly session?: string
  readonly agent?: string
  /** The hash, or the id that was sent if the operator records it. */
  readonly endUser?: string
  /** `name=value` */
  readonly tag?: string
}

export function passesAttribution(of: Attribution, { session, agent, endUser, tag }: AttributionFilters): boolean {
  return (
    (session === undefined || of.session === session) &&
    (agent === undefined || of.agent === agent) &&
    (endUser === undefined || [hashOfEndUser(of.endUser ?? ''), shownEndUser(of.endUser ?? '')].includes(endUser)) &&
    (tag === undefined || hasTag(of.tags, tag))
  )
}

// End users are recorded as a hash, `eu_…`. If the operator records ids, a space and the id that was sent follow.

export const endUserHashDigits = 20
export const endUserHashLength = 3 + endUserHashDigits

export function hashOfEndUser(recorded: string): string {
  return recorded.slice(0, endUserHashLength)
}

/** The id, or the hash if no id is recorded. */
export function shownEndUser(recorded: string): string {
  return recorded.length > endUserHashLength ? recorded.slice(endUserHashLength + 1) : recorded
}

// Tags are short names with short values, `team=web`.

export type Tags = Readonly<Record<string, string>>

export const noTags: Tags = Object.freeze({})

const tagsMax = 8
const namePattern = /^[A-Za-z][A-Za-z0-9_.-]{0,31}$/
/** Neither a comma nor a space: both separate the names of budgets. */
const valuePattern = /^[A-Za-z0-9_.:/@+-]{1,64}$/

export const tagRule =
  'A name has up to 32 letters, digits, `_`, `.` or `-` and starts with a letter; a value has up to 64 letters, digits or `_.:/@+-`.'

export function isTagName(text: string): boolean {
  return namePattern.test(text)
}

/** `team=web` */
export function isTag(text: string): boolean {
  const at = text.indexOf('=')
  return at > 0 && namePattern.test(text.slice(0, at)) && valuePattern.test(text.slice(at + 1))
}

/** Reads `team=web,job=nightly` into a sorted list with each name once. Returns a text that says what is wrong otherwise. */
export function readTags(text: string): readonly string[] | string {
  const tags = text.split(',').map((tag) => tag.trim())
  if (tags.length > tagsMax) return `it has ${tags.length} tags, and at most ${tagsMax} are allowed`
  for (const tag of tags) if (!isTag(tag)) return `\`${tag.slice(0, 100)}\` is not a tag. ${tagRule}`
  const names = tags.map((tag) => tag.slice(0, tag.indexOf('=')))
  const repeated = names.find((name, at) => names.indexOf(name) !== at)
  if (repeated !== undefined) return `\`${repeated}\` appears twice`
  return tags.sort()
}

/** Parses the text that is stored, `job=nightly,team=web`. */
export function tagsFromText(text: string | null): Tags {
  if (text === null) return noTags
  return Object.fromEntries(
    text.split(',').map((tag) => [tag.slice(0, tag.indexOf('=')), tag.slice(tag.indexOf('=') + 1)]),
  )
}

export function tagsText(tags: Tags): string {
  return Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(',')
}

export function hasTag(tags: Tags, tag: string): boolean {
  const at = tag.indexOf('=')
  return tags[tag.slice(0, at)] === tag.slice(at + 1)
}
