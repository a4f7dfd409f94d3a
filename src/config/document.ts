// Reads YAML (and JSON, which is a subset), checks it against a schema, and describes what is wrong: where, which field,
// what was expected. It does not know what the keys mean. Nothing here may print the value of a field that can hold a
// credential.

import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit, type YAMLError } from 'yaml'
import { z } from 'zod'
import { nearestNames } from '../kernel/nearest.ts'

export interface ConfigFault {
  /** `tollgate.yaml:14:12`, or `environment`. */
  readonly where: string
  /** `models[0].price.input`, or a variable's name; empty where the whole file is meant. */
  readonly field: string
  readonly message: string
  /** A variable or a file that this process cannot see, but the gateway may. */
  readonly isMissingHere?: true
}

export type ConfigPath = readonly (string | number)[]

export function formatFault(fault: ConfigFault): string {
  return [fault.where, fault.field, fault.message].filter((part) => part !== '').join('  ')
}

export function formatPath(path: ConfigPath): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else if (/^[$A-Za-z_]\w*$/.test(part) && part === shortened(part)) text += text === '' ? part : `.${part}`
    else text += `[${JSON.stringify(shortened(part))}]`
  }
  return text
}

/** `did you mean "x"?`, or all known names if none is similar. */
export function suggestion(wanted: string, known: readonly string[]): string {
  const [near] = nearestNames(wanted, known, 1)
  if (near !== undefined) return `did you mean ${JSON.stringify(near)}?`
  return known.length === 0 ? 'no names are known here' : `known here: ${known.join(', ')}`
}

/** One problem zod found, at the path of the value (or, for a key that should not be there, of that key). */
export interface SchemaFault {
  readonly path: ConfigPath
  readonly at: 'value' | 'key'
  readonly message: string
  readonly isMissingHere?: true
}

/** The typed value, or every fault in it. */
export function checkSchema<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
): { readonly value: z.output<Schema> } | { readonly faults: readonly SchemaFault[] } {
  const result = schema.safeParse(value, { error: expectation })
  if (result.success) return { value: result.data }
  const shape = z.toJSONSchema(schema, { io: 'input' })
  return { faults: result.error.issues.flatMap((issue) => issueFaults(issue, [], value, shape)) }
}

/** Messages for checks that define none. */
function expectation(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${typeNames[issue.expected] ?? issue.expected}`
    case 'invalid_value':
      return `expected ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.join(', ')}`
    case 'too_small':
      return `expected ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`
    case 'too_big':
      return `expected at most ${issue.maximum}${issue.origin === 'string' ? ' characters' : ''}`
    default:
      return undefined
  }
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
}

function issueFaults(issue: z.core.$ZodIssue, base: ConfigPath, root: unknown, shape: unknown): SchemaFault[] {
  const path = [...base, ...issue.path.map((part) => (typeof part === 'number' ? part : String(part)))]
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(shape, path)
    return issue.keys.map((key) => {
      const message = `unknown key ${JSON.stringify(shortened(key))}; ${suggestion(key, known)}`
      return { path: [...path, key], at: 'key', message }
    })
  }
  if (issue.code === 'invalid_union') {
    // Reports the faults of the alternative with the right type, which say more than "none of these".
    const meant = issue.errors.find((branch) => branch.every((inner) => !refusesWhole(inner)))
    if (meant !== undefined) return meant.flatMap((inner) => issueFaults(inner, path, root, shape))
  }
  if (issue.code === 'invalid_key') {
    return [{ path, at: 'key', message: issue.issues[0]?.message ?? issue.message }]
  }
  const got = valueAt(root, path)
  // These may hold a credential.
  const isHidden = path.includes('api_key') || path.includes('base_url')
  return [{ path, at: 'value', message: withFinding(issue, got, isHidden) }]
}

function refusesWhole(issue: z.core.$ZodIssue): boolean {
  return issue.path.length === 0 && (issue.code === 'invalid_type' || issue.code === 'invalid_value')
}

function withFinding(issue: z.core.$ZodIssue, got: unknown, hidden: boolean): string {
  const { message } = issue
  if (!message.startsWith('expected ')) return message
  if (got === undefined) return `${message}, but it is missing`
  return `${message}, got ${hidden ? kindOf(got) : described(got)}${hintFor(issue, got)}`
}

function hintFor(issue: z.core.$ZodIssue, got: unknown): string {
  if (issue.code === 'invalid_type') {
    const wantsText = issue.expected === 'string'
    if (wantsText && (typeof got === 'number' || typeof got === 'boolean')) return ' (put it in quotes)'
    if (!wantsText && typeof got === 'string' && /^[0-9.]+$/.test(got)) return ' (write it without quotes)'
  }
  if (issue.code !== 'invalid_value' || typeof got !== 'string') return ''
  const [near] = nearestNames(got, issue.values.map(String), 1)
  return near === undefined ? '' : ` (did you mean ${near}?)`
}

function kindOf(value: unknown): string {
  if (value === null) return 'nothing'
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (typeof value === 'string') return 'something else'
  return typeof value === 'object' ? 'a mapping' : `a ${typeof value}`
}

function described(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(shortened(value))
  if (typeof value === 'number') return `the number ${value}`
  return typeof value === 'boolean' ? String(value) : kindOf(value)
}

/** Long enough for any of our names, too short for a credential in the wrong place. */
function shortened(text: string): string {
  return text.length <= 32 ? text : `${text.slice(0, 8)}…`
}

export function valueAt(root: unknown, path: ConfigPath): unknown {
  let value = root
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    value = (value as Record<string | number, unknown>)[part]
  }
  return value
}

/** The keys a mapping may have, from the JSON Schema of the same rules. */
function knownKeys(shape: unknown, path: ConfigPath): string[] {
  const alternatives = valueAt(shape, ['anyOf'])
  if (Array.isArray(alternatives)) return [...new Set(alternatives.flatMap((inner) => knownKeys(inner, path)))]
  const [part, ...rest] = path
  if (part === undefined) return Object.keys(valueAt(shape, ['properties']) ?? {})
  const inner =
    typeof part === 'number'
      ? valueAt(shape, ['items'])
      : (valueAt(shape, ['properties', part]) ?? valueAt(shape, ['additionalProperties']))
  return knownKeys(inner, rest)
}

export interface ConfigDocument {
  readonly value: unknown
  /** Where a value or its key starts; for something missing, where its container starts. */
  offset(path: ConfigPath, at: 'value' | 'key'): number
  /** `tollgate.yaml:14:12` */
  place(offset: number): string
  line(path: ConfigPath): number
}

export function readDocument(
  fileName: string,
  text: string,
): ConfigDocument | { readonly faults: readonly ConfigFault[] } {
  const lines = new LineCounter()
  const position = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const place = (offset: number) => {
    const { line, column } = position(offset)
    return `${fileName}:${line}:${column}`
  }
  // Pretty errors would quote the line, which may hold a key.
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true })
  // A warning is an unknown tag; its value would silently become text.
  const faults = [...firstOfSyntax(document.errors), ...document.warnings].map((error) => ({
    where: place(error.pos[0]),
    field: '',
    message: syntaxMessage(error, text),
  }))
  visit(document, {
    Alias(_, alias) {
      if (alias.resolve(document) !== undefined) return
      faults.push({ where: place(alias.range?.[0] ?? 0), field: '', message: 'this alias has no anchor before it' })
    },
  })
  if (faults.length > 0) return { faults }

  const value = plainValue(document)
  if ('fault' in value) return { faults: [{ where: place(0), field: '', message: value.fault }] }
  lastRead = { text, value: value.plain }
  return {
    value: value.plain,
    offset: (path, at) => offsetOf(document, path, at),
    place,
    line: (path) => position(offsetOf(document, path, 'value')).line,
  }
}

/**
 * The last text without faults. The gateway reads its file when it changes, and the management API whenever someone looks at
 * it; parsing a thousand models takes hundreds of milliseconds, in which nothing else runs.
 */
let lastRead: { readonly text: string; readonly value: unknown } | undefined

/** The value of a YAML text, not to be changed; undefined = it is not valid. */
export function readValue(text: string): { readonly value: unknown } | undefined {
  if (lastRead?.text === text) return lastRead
  const document = parseDocument(text, { prettyErrors: false, stringKeys: true })
  const value = document.errors.length > 0 ? undefined : plainValue(document)
  if (value === undefined || 'fault' in value) return undefined
  lastRead = { text, value: value.plain }
  return lastRead
}

function plainValue(document: Document): { readonly plain: unknown } | { readonly fault: string } {
  try {
    return { plain: document.toJS() }
  } catch {
    return { fault: 'its aliases cannot be resolved: there are too many, or one contains itself' }
  }
}

/** The parser reports every token after a syntax error as another one, so only the first is kept. */
function firstOfSyntax(errors: readonly YAMLError[]): readonly YAMLError[] {
  const first = errors.find(({ code }) => code !== 'DUPLICATE_KEY')
  return errors.filter((error) => error === first || error.code === 'DUPLICATE_KEY')
}

/** The parser's message without the excerpt of the file that some messages end in. */
function syntaxMessage(error: YAMLError, text: string): string {
  const [start] = error.pos
  if (text.slice(start - 1, start + 1) === '${')
    return `not valid YAML: put a \${VARIABLE} inside { } or [ ] in double quotes, because a plain value ends at its brace`
  if (error.code === 'MULTIPLE_DOCS') return 'expected one document, got a second one after ---'
  if (error.code === 'DUPLICATE_KEY') return 'this key is used twice in the same mapping'
  if (error.code === 'BAD_DQ_ESCAPE') return 'invalid escape sequence in double quotes'
  const words = error.code === 'MISSING_CHAR' ? error.message : error.message.replace(/: .*$/s, '')
  return `not valid YAML: ${words.charAt(0).toLowerCase()}${words.slice(1)}`
}

function offsetOf(document: Document, path: ConfigPath, at: 'value' | 'key'): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  path.forEach((part, index) => {
    if (isAlias(node)) node = node.resolve(document)
    let next: unknown
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part))
      const wantsKey = at === 'key' && index === path.length - 1
      next = wantsKey ? pair?.key : (pair?.value ?? pair?.key)
    } else if (isSeq(node) && typeof part === 'number') {
      next = node.items[part]
    }
    offset = startOf(next) ?? offset
    node = next
  })
  return offset
}

function startOf(node: unknown): number | undefined {
  return isMap(node) || isSeq(node) || isScalar(node) || isAlias(node) ? node.range?.[0] : undefined
}
