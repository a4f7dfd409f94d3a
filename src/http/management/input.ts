// Reads and checks the body and the query of a request against the operation's schemas. Reports the first problem with
// the name of the field and what was expected, as a thrown Failure. Values are never repeated, because they may be secrets.

import { isUtf8 } from 'node:buffer'
import { z } from 'zod'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import { nearestNames } from '../../kernel/nearest.ts'
import { bodyFailure, type ClientRequest } from '../../pipeline/client-request.ts'
import { BodyFault, readBody } from '../../wire/read-body.ts'

const bodyBytesMax = 1024 * 1024
/** Far deeper than any body needs. */
const depthMax = 64

/** The body as JSON, not yet checked; `{}` if none was sent. */
export async function readJson(request: ClientRequest): Promise<unknown> {
  const bytes = await readBody(request, bodyBytesMax)
  if (bytes instanceof BodyFault) {
    throw bodyFailure(bytes, 'The body is larger than 1 MiB, the maximum of the management API. Send less.')
  }
  if (bytes.length === 0) return {}
  const mediaType = request.headers.get('content-type')
  if (!/^application\/(json|[a-z.-]+\+json)\s*(;|$)/i.test(mediaType ?? '')) {
    const got = mediaType === null ? 'none was sent' : `got ${mediaType.slice(0, 100)}`
    throw new Failure('UNSUPPORTED_MEDIA_TYPE', `Send the body with Content-Type: application/json; ${got}.`)
  }
  if (!isUtf8(bytes)) throw invalidRequest('The body is not valid UTF-8.')
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    // The parser's own message quotes the body.
    throw invalidRequest('The body is not valid JSON.')
  }
}

export function checkBody(schema: z.ZodType, json: unknown): unknown {
  const isObject = json !== null && typeof json === 'object' && !Array.isArray(json)
  // A few bodies may also be a string, such as the price "free".
  if (!isObject && !schema.safeParse(json).success) throw invalidRequest('The body must be a JSON object.')
  return check(schema, json, 'field')
}

/** Anyone can send a query, so this stops at the first name that is unknown or repeated. */
export function checkQuery(schema: z.ZodObject, query: URLSearchParams): unknown {
  const values = new Map<string, string>()
  for (const [name, value] of query) {
    if (values.has(name)) throw invalidRequest(`\`${shown(name)}\` is given twice.`, shown(name))
    values.set(name, value)
    if (!Object.hasOwn(schema.shape, name)) break
  }
  return check(schema, Object.fromEntries(values), 'query parameter')
}

function check(schema: z.ZodType, value: unknown, noun: 'field' | 'query parameter'): unknown {
  const unstorable = nulPath(value)
  if (unstorable === 'too deep') throw invalidRequest(`The body nests deeper than ${depthMax} levels.`)
  if (unstorable) {
    const param = pathText(unstorable)
    throw invalidRequest(`\`${param}\` must not contain a NUL character.`, param)
  }
  const result = schema.safeParse(value, { error: defaultMessage })
  if (result.success) return result.data
  // Unknown names first: a missing field is often only misspelt.
  const issues = result.error.issues.flatMap(meantIssues)
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]
  if (!issue) throw invalidRequest(`The ${noun}s are wrong.`)
  if (issue.code !== 'unrecognized_keys') {
    const param = pathText(issue.path)
    throw invalidRequest(`\`${param}\` ${issue.message}.`, param)
  }
  const unknown = issue.keys[0] ?? ''
  const param = pathText([...issue.path, unknown])
  throw invalidRequest(`There is no ${noun} \`${param}\` here. ${known(schema, issue.path, unknown)}`, param)
}

interface Place {
  readonly value: unknown
  readonly name: PropertyKey
  readonly above: Place | undefined
  readonly depth: number
}

/** PostgreSQL cannot store a NUL character, and no field needs one. */
function nulPath(root: unknown): readonly PropertyKey[] | 'too deep' | undefined {
  const rest: Place[] = [{ value: root, name: '', above: undefined, depth: 1 }]
  for (let place = rest.pop(); place; place = rest.pop()) {
    const { value, depth } = place
    if (typeof value === 'string' && value.includes('\0')) return pathTo(place)
    if (typeof value !== 'object' || value === null) continue
    if (depth > depthMax) return 'too deep'
    const inList = Array.isArray(value)
    // Reversed, because the last one is popped first.
    for (const [name, inner] of Object.entries(value).reverse()) {
      rest.push({ value: inner, name: inList ? Number(name) : name, above: place, depth: depth + 1 })
    }
  }
  return undefined
}

function pathTo(place: Place): readonly PropertyKey[] {
  const path: PropertyKey[] = []
  for (let at = place; at.above; at = at.above) path.push(at.name)
  return path.reverse()
}

/** For a union, the issues of the form that was probably meant: they say more than "none of these". */
function meantIssues(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code === 'invalid_key') return issue.issues.slice(0, 1).map((inner) => ({ ...inner, path: issue.path }))
  const meant =
    issue.code === 'invalid_union' ? issue.errors.find((form) => form.every(({ path }) => path.length > 0)) : undefined
  if (!meant) return [issue]
  return meant.flatMap(meantIssues).map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }))
}

/** For checks without a message. */
function defaultMessage(issue: z.core.$ZodRawIssue): string {
  if (issue.input === undefined) return 'is required'
  return issue.code === 'invalid_type' ? `must be ${typeNames[issue.expected] ?? issue.expected}` : 'is not valid'
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  int: 'a whole number',
  number: 'a number',
  object: 'an object',
  array: 'a list',
}

/** `limits.requests_per_minute`, `models[0]` */
function pathText(path: readonly PropertyKey[]): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else text += text === '' ? shown(String(part)) : `.${shown(String(part))}`
  }
  return text
}

function shown(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}…` : name
}

function known(schema: z.ZodType, path: readonly PropertyKey[], unknown: string): string {
  const names = namesAt(z.toJSONSchema(schema, { io: 'input' }), path)
  const [near] = nearestNames(shown(unknown), names, 1)
  if (near !== undefined) return `Did you mean \`${near}\`?`
  return names.length === 0 ? 'None is accepted.' : `Known are ${names.map((name) => `\`${name}\``).join(', ')}.`
}

/** Finds names in nested objects only; behind anything else there are none to suggest. */
function namesAt(schema: z.core.JSONSchema.JSONSchema, path: readonly PropertyKey[]): string[] {
  let node: z.core.JSONSchema.JSONSchema | boolean | undefined = schema
  for (const part of path) node = typeof node === 'object' ? node.properties?.[String(part)] : undefined
  if (typeof node !== 'object') return []
  const options: readonly unknown[] = [node, ...(node.anyOf ?? [])]
  return options.flatMap((option) =>
    typeof option === 'object' && option !== null && 'properties' in option ? Object.keys(option.properties ?? {}) : [],
  )
}
