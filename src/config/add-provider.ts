// Puts one provider into the text of a configuration file, as a person would: the entry is inserted and not one other
// character changes, so that comments, order and spacing stay. It writes no file, and takes references to keys only.

import { isMap, isScalar, isSeq, parseDocument, stringify, type YAMLMap, type YAMLSeq } from 'yaml'

export interface NewProvider {
  readonly id: string
  readonly dialect: string
  /** Absent for one that answers inside the gateway. */
  readonly baseUrl?: string | undefined
  /** `${VARIABLE}` or `file:/path`. */
  readonly keyReference?: string | undefined
}

export interface Insertion {
  readonly text: string
  /** The lines that are new, from which line on. */
  readonly added: readonly string[]
  readonly line: number
}

/** `flow`: the place is written in braces, as in JSON, where no line can be inserted. */
export function addProvider(text: string, provider: NewProvider): Insertion | 'repeated' | 'flow' {
  const document = parseDocument(text, { prettyErrors: false })
  const root = document.contents
  if (root === null) return insert(text, text.length, ['providers:', ...entryLines(provider, '  ')])
  if (!isMap(root) || root.flow) return 'flow'
  const pair = root.items.find(({ key }) => isScalar(key) && key.value === 'providers')
  if (pair === undefined) return insert(text, text.length, ['providers:', ...entryLines(provider, '  ')])
  const list = pair.value
  if (isSeq(list)) {
    if (list.items.some((item) => isMap(item) && String(item.get('id')) === provider.id)) return 'repeated'
    if (list.flow && list.items.length === 0 && list.range) return insertInstead(text, list.range, provider)
    return list.flow ? 'flow' : insertAfter(text, list, provider)
  }
  // `providers:` with nothing below it.
  const end = isScalar(pair.key) ? (pair.key.range?.[1] ?? text.length) : text.length
  return insert(text, endOfLine(text, end), entryLines(provider, '  '))
}

/** `providers: []` */
function insertInstead(text: string, [start, end]: readonly number[], provider: NewProvider): Insertion {
  const before = text.slice(0, start).trimEnd()
  return insert(
    before + text.slice(end),
    endOfLine(before + text.slice(end), before.length),
    entryLines(provider, '  '),
  )
}

/** What a person would write; also for files that cannot be inserted into. */
export function entryText(provider: NewProvider): string {
  return entryLines(provider, '  ').join('\n')
}

function insertAfter(text: string, list: YAMLSeq, provider: NewProvider): Insertion {
  const last = list.items.at(-1) as YAMLMap | undefined
  const start = last?.range?.[0] ?? list.range?.[0] ?? 0
  const indent = /^[ \t]*/.exec(text.slice(text.lastIndexOf('\n', start - 1) + 1))?.[0] ?? '  '
  // The value's own end: what follows, comments and empty lines, belongs to what comes next.
  return insert(text, endOfLine(text, (last?.range?.[1] ?? text.length) - 1), entryLines(provider, indent))
}

function entryLines({ id, dialect, baseUrl, keyReference }: NewProvider, indent: string): string[] {
  const entry = {
    id,
    dialect,
    ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
    ...(keyReference === undefined ? {} : { api_key: keyReference }),
  }
  return stringify([entry])
    .trimEnd()
    .split('\n')
    .map((line) => indent + line)
}

function endOfLine(text: string, offset: number): number {
  const end = text.indexOf('\n', offset)
  return end === -1 ? text.length : end + 1
}

function insert(text: string, offset: number, added: readonly string[]): Insertion {
  const before = text.slice(0, offset)
  const gap = before === '' || before.endsWith('\n') ? '' : '\n'
  return {
    text: `${before}${gap}${added.join('\n')}\n${text.slice(offset)}`,
    added,
    line: `${before}${gap}`.split('\n').length,
  }
}
